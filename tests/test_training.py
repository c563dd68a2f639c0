"""The training loop: what it measures, when it stops, how it resumes, what it says of NaN."""

import os
import signal
from math import cos, inf, nan, pi

import pytest
import torch
from torch import nn
from tqdm.notebook import tqdm_notebook

from attn_course.training import (
    History,
    TrainingDiverged,
    checkpoints,
    fit,
    loop,
    lr_factor,
    progress_bar,
    steps,
    torch_threads,
)


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def regression(step, count=16):
    """Batches of y = 2 x₀ − x₁ + 0.5, the same for the same step."""
    x = torch.randn(count, 2, generator=torch.Generator().manual_seed(step))
    return x, x @ torch.tensor([[2.0], [-1.0]]) + 0.5


def squared_error(model, batch):
    x, y = batch
    return (model(x) - y).square().mean()


def total(model, batch):
    return sum(parameter.sum() for parameter in model.parameters())


def state(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_learns_what_the_data_say():
    model = nn.Linear(2, 1)
    history = fit(model, squared_error, regression, steps=300, lr=0.1)
    torch.testing.assert_close(model.weight, torch.tensor([[2.0, -1.0]]), atol=1e-2, rtol=0)
    torch.testing.assert_close(model.bias, torch.tensor([0.5]), atol=1e-2, rtol=0)
    assert history.loss[-1] < 1e-3 < history.loss[0]


def test_history_has_one_plain_entry_a_step():
    history = fit(nn.Linear(2, 1), squared_error, regression, steps=5, lr=0.1)
    for name in ("loss", "lr", "gradient_norm", "seconds"):
        values = getattr(history, name)
        assert isinstance(values, list)
        assert [type(value) for value in values] == [float] * 5
    assert history.seconds == sorted(history.seconds)
    assert history.stopped == "finished"
    assert history.steps == 5


def test_repr_holds_no_figure_that_differs_between_machines():
    history = History(loss=[0.1234] * 3, metrics={"accuracy": [0.5]}, stopped="finished")
    assert repr(history) == "History(3 steps, finished, measured: accuracy)"
    assert repr(History()) == "History(0 steps, running)"


# kills: a first step of rate 0, a peak one step late, a cosine that starts at step 0
def test_schedule_by_hand():
    rates = [lr_factor(step, 12, warmup=4) for step in range(13)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[4] == 1.0
    assert rates[8] == pytest.approx(0.5)
    assert rates[10] == pytest.approx(0.5 * (1 + cos(pi * 0.75)))
    assert rates[12] == pytest.approx(0.0)
    assert lr_factor(0, 10) == 1.0
    assert [lr_factor(step, 12, warmup=2, schedule="constant") for step in (0, 1, 2, 11)] == [
        0.5,
        1.0,
        1.0,
        1.0,
    ]
    assert lr_factor(5, 5, warmup=5) == 1.0
    assert lr_factor(100, inf) == 1.0


def test_rates_reach_the_optimizer():
    history = fit(nn.Linear(2, 1), squared_error, regression, steps=8, lr=0.2, warmup=4)
    assert history.lr == [pytest.approx(0.2 * lr_factor(k, 8, warmup=4)) for k in range(8)]
    # Adam's first steps move each weight by its rate, so the recorded rate is the true one
    model = nn.Linear(2, 1, bias=False)
    before = model.weight.clone()
    fit(model, total, [0], steps=1, lr=0.2, warmup=4, weight_decay=0.0)
    torch.testing.assert_close(before - model.weight, torch.full((1, 2), 0.05))


# kills: decay of biases and gains; no decay at all
def test_weight_decay_is_for_matrices():
    model = nn.Linear(2, 2)
    nn.init.ones_(model.weight)
    nn.init.ones_(model.bias)
    fit(model, lambda model, _: 0 * total(model, _), [0], steps=1, lr=0.1, weight_decay=0.5)
    torch.testing.assert_close(model.weight, torch.full((2, 2), 0.95))
    torch.testing.assert_close(model.bias, torch.ones(2))


def test_clipping_bounds_the_gradient_and_records_it_unclipped():
    model, norms = nn.Linear(8, 8), []

    def look(info):
        norms.append(torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item())

    history = fit(model, total, [0], steps=2, clip=0.5, on_step=look)
    assert norms == [pytest.approx(0.5, rel=1e-3)] * 2
    assert history.gradient_norm == [pytest.approx(72**0.5)] * 2  # not doubled: it was zeroed
    history = fit(model, total, [0], steps=1, clip=None, on_step=look)
    assert norms[-1] == pytest.approx(72**0.5)


def test_evaluation_runs_without_dropout_and_without_gradients():
    model = nn.Sequential(nn.Linear(2, 64), nn.Dropout(0.5), nn.Linear(64, 1))
    seen = []

    def evaluate(model):
        x = torch.ones(1, 2)
        seen.append((model.training, model(x).requires_grad))
        return {"same": (model(x) == model(x)).all().item(), "two": torch.tensor(2.0)}

    trained_in = []

    def loss(model, batch):
        trained_in.append(model.training)
        return squared_error(model, batch)

    model.eval()
    history = fit(model, loss, regression, steps=7, evaluate=evaluate, eval_every=3)
    assert history.eval_steps == [3, 6, 7]
    assert history.metrics == {"same": [1.0] * 3, "two": [2.0] * 3}
    assert seen == [(False, False)] * 3
    assert trained_in == [True] * 7
    assert not model.training  # as it was before


def test_one_number_is_a_measure_too():
    history = fit(nn.Linear(2, 1), squared_error, regression, steps=1, evaluate=lambda model: 0.25)
    assert history.metrics == {"evaluation": [0.25]}


class Clock:
    """A process clock that moves by itself, so that a budget in seconds can be tested."""

    def __init__(self, tick):
        self.now, self.tick = 100.0, tick

    def __call__(self):
        self.now += self.tick
        return self.now


def test_budget_in_seconds_ends_the_run_and_the_schedule(monkeypatch):
    monkeypatch.setattr(loop.time, "process_time", Clock(0.25))
    history = fit(nn.Linear(2, 1), squared_error, regression, seconds=30, lr=0.1)
    assert history.seconds[-2] < 30 <= history.seconds[-1] + 0.5
    assert 20 < history.steps < 60
    assert history.lr == sorted(history.lr, reverse=True)
    assert history.lr[0] == pytest.approx(0.1)
    assert history.lr[-1] < 0.002


def test_what_is_spent_first_ends_the_run(monkeypatch):
    monkeypatch.setattr(loop.time, "process_time", Clock(1.0))
    assert fit(nn.Linear(2, 1), squared_error, regression, seconds=1000, steps=3).steps == 3
    assert fit(nn.Linear(2, 1), squared_error, regression, seconds=6, steps=1000).steps < 7


def test_observer_sees_each_step_and_can_end_the_run():
    told = []

    def observe(info):
        told.append((info.step, info.total, info.metrics, info.history.steps))
        return info.step == 3

    history = fit(
        nn.Linear(2, 1),
        squared_error,
        regression,
        steps=10,
        evaluate=lambda model: 1.0,
        eval_every=2,
        on_step=observe,
    )
    assert told == [(1, 10, None, 1), (2, 10, {"evaluation": 1.0}, 2), (3, 10, None, 3)]
    assert history.stopped == "asked"


# kills: a list that is read once; steps counted from 1
def test_batches_from_a_list_or_a_function():
    seen = []

    def loss(model, batch):
        seen.append(batch)
        return total(model, batch)

    fit(nn.Linear(1, 1), loss, ["a", "b", "c"], steps=5)
    fit(nn.Linear(1, 1), loss, lambda step: step, steps=3)
    assert seen == ["a", "b", "c", "a", "b", 0, 1, 2]


def dropout_model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.3), nn.Linear(8, 1))


@pytest.mark.parametrize("batches", [regression, [regression(step) for step in range(5)]])
def test_a_resumed_run_gets_the_same_numbers(tmp_path, batches):
    whole_model = dropout_model()
    whole = fit(whole_model, squared_error, batches, steps=12, lr=0.05, warmup=3)

    path = tmp_path / "run.pt"
    settings = {"steps": 12, "lr": 0.05, "warmup": 3, "checkpoint": path}
    first = dropout_model()
    fit(first, squared_error, batches, **settings, on_step=lambda info: info.step == 7)
    torch.rand(99)  # somebody else uses the generator in between
    second = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.3), nn.Linear(8, 1))
    resumed = fit(second, squared_error, batches, **settings)

    assert resumed.loss == whole.loss
    assert resumed.lr == whole.lr
    assert resumed.stopped == "finished"
    for name, value in whole_model.state_dict().items():
        assert torch.equal(value, second.state_dict()[name]), name


def test_a_finished_checkpoint_gives_the_model_without_training(tmp_path):
    path = tmp_path / "deep" / "run.pt"
    model = nn.Linear(2, 1)
    fit(model, squared_error, regression, steps=4, checkpoint=path)
    other = nn.Linear(2, 1)
    history = fit(
        other, lambda model, batch: pytest.fail("trained"), regression, steps=4, checkpoint=path
    )
    assert history.steps == 4
    assert torch.equal(model.weight, other.weight)
    assert [p.name for p in path.parent.iterdir()] == ["run.pt"]


def test_checkpoints_are_written_as_often_as_asked(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(
        steps,
        "save_checkpoint",
        lambda path, model, opt, history: written.append(len(history["loss"])),
    )
    fit(
        nn.Linear(2, 1),
        squared_error,
        regression,
        steps=7,
        checkpoint=tmp_path / "x",
        checkpoint_every=3,
    )
    assert written == [3, 6, 7]


# kills: writing in place; a temporary file left behind
def test_a_write_that_fails_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    fit(nn.Linear(2, 1), squared_error, regression, steps=2, checkpoint=path)
    before = path.read_bytes()

    def disk_full(state, file):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(checkpoints.torch, "save", disk_full)
    with pytest.raises(OSError, match="no space"):
        fit(nn.Linear(2, 1), squared_error, regression, steps=3, checkpoint=path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.pt"]


def test_checkpoints_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "run.pt"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(ValueError, match=r"run\.pt cannot be read"):
        fit(nn.Linear(2, 1), squared_error, regression, steps=2, checkpoint=path)
    torch.save({"weights": torch.ones(2)}, path)
    with pytest.raises(ValueError, match="not a checkpoint of this course"):
        fit(nn.Linear(2, 1), squared_error, regression, steps=2, checkpoint=path)
    path.unlink()
    fit(nn.Linear(2, 1), squared_error, regression, steps=2, checkpoint=path)
    with pytest.raises(ValueError, match="another model"):
        fit(nn.Linear(3, 1), squared_error, regression, steps=2, checkpoint=path)


def interrupt_in(step_wanted, times=1):
    calls = []

    def loss(model, batch):
        calls.append(1)
        if len(calls) == step_wanted:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
        return squared_error(model, batch)

    return loss


@pytest.fixture
def interruptible():
    """Let Ctrl-C arrive also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# kills: an interrupt that leaves a step half done, that loses the model, or that is swallowed
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_after_the_step_and_keeps_what_was_learnt(tmp_path):
    path = tmp_path / "run.pt"
    model, reference = nn.Linear(2, 1), nn.Linear(2, 1)
    reference.load_state_dict(model.state_dict())
    history = fit(
        model, interrupt_in(4), regression, steps=50, schedule="constant", checkpoint=path
    )
    fit(reference, squared_error, regression, steps=4, schedule="constant")
    assert (history.steps, history.stopped) == (4, "interrupted")
    assert torch.equal(model.weight, reference.weight)
    assert path.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interruptible")
def test_a_second_ctrl_c_does_not_wait_for_the_step():
    model = nn.Linear(2, 1)
    history = fit(model, interrupt_in(4, times=2), regression, steps=50)
    assert (history.steps, history.stopped) == (3, "interrupted")


def test_an_interrupt_from_below_keeps_the_history_too():
    def loss(model, batch):
        if history_so_far:
            raise KeyboardInterrupt
        history_so_far.append(1)
        return squared_error(model, batch)

    history_so_far = []
    history = fit(nn.Linear(2, 1), loss, regression, steps=50)
    assert (history.steps, history.stopped) == (1, "interrupted")


def nan_from(step_wanted, at_fault):
    def loss(model, batch):
        value = squared_error(model, batch)
        calls.append(1)
        return value * at_fault if len(calls) == step_wanted else value

    calls = []
    return loss


@pytest.mark.parametrize("bad", [nan, inf])
def test_a_loss_that_is_not_finite_is_noticed_before_the_weights_are_touched(bad):
    model = nn.Linear(2, 1)
    before = []

    def look(info):
        before.append(state(info.model))

    with pytest.raises(TrainingDiverged, match=rf"the loss is {bad} at step 6") as caught:
        fit(model, nan_from(6, bad), regression, steps=50, on_step=look)
    assert caught.value.step == 6
    assert caught.value.history.steps == 5
    assert "softmax over a row" in caught.value.reasons[0]
    assert torch.equal(model.weight, before[-1]["weight"])
    assert len(before) == 5


def test_reason_the_batch():
    def batches(step):
        x, y = regression(step)
        return {"pair": (x * (nan if step == 2 else 1), y)}

    with pytest.raises(TrainingDiverged, match="step 3") as caught:
        fit(nn.Linear(2, 1), lambda m, b: squared_error(m, b["pair"]), batches, steps=9)
    assert caught.value.reasons == ["the batch itself contains NaN or infinity"]


def test_reason_a_parameter():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    with torch.no_grad():
        model[1].bias.fill_(nan)
    with pytest.raises(TrainingDiverged, match=r"step 1.*\n.*1\.bias"):
        fit(model, squared_error, regression, steps=9)


def test_reason_a_rate_that_is_too_high():
    def exploding(model, batch):
        losses.append(squared_error(model, batch) * 100.0 ** len(losses))
        return losses[-1]

    losses = []
    with pytest.raises(TrainingDiverged) as caught:
        fit(nn.Linear(2, 1), exploding, regression, steps=99, lr=0.5, schedule="constant")
    assert "lr=0.5 is too high" in caught.value.reasons[0]


def test_a_gradient_that_is_not_finite_is_noticed_too():
    model = nn.Linear(2, 1)
    before = state(model)

    def loss(model, batch):
        return (model.weight * 0).sum().sqrt() + model.bias.sum()

    with pytest.raises(TrainingDiverged, match="its gradient is not finite at step 1"):
        fit(model, loss, regression, steps=3)
    assert torch.equal(model.weight, before["weight"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "no budget"),
        ({"steps": 0}, "steps=0"),
        ({"seconds": -1}, "seconds=-1"),
        ({"steps": 2, "lr": nan}, "lr=nan"),
        ({"steps": 2, "clip": 0}, "clip=0"),
        ({"steps": 2, "eval_every": 0}, "eval_every=0"),
        ({"steps": 2, "warmup": -1}, "warmup=-1"),
        ({"steps": 2, "schedule": "cosin"}, "schedule='cosin'"),
        ({"steps": 2, "precision": "half"}, "precision='half'"),
        ({"steps": 2, "threads": 0}, "threads=0"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        fit(nn.Linear(2, 1), squared_error, regression, **settings)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda model, batch: model(batch[0]), r"one number, got \(16, 1\)"),
        (lambda model, batch: 0.5, "one number, got float"),
        (lambda model, batch: torch.tensor(1.0), "does not depend on the parameters"),
    ],
)
def test_losses_that_cannot_be_trained_on_are_named(loss, message):
    with pytest.raises(ValueError, match=message):
        fit(nn.Linear(2, 1), loss, regression, steps=2)


def test_batches_that_end_are_named():
    once = (regression(step) for step in range(2))
    with pytest.raises(ValueError, match="batches ran out"):
        fit(nn.Linear(2, 1), squared_error, once, steps=5)
    with pytest.raises(ValueError, match="Dropout has no parameters"):
        fit(nn.Dropout(), squared_error, regression, steps=5)


def test_half_precision_computes_in_half_and_keeps_full_weights():
    seen = []

    def loss(model, batch):
        output = model(batch[0])
        seen.append(output.dtype)
        return (output.float() - batch[1]).square().mean()

    model = nn.Linear(2, 1)
    history = fit(model, loss, regression, steps=200, lr=0.1, precision="bfloat16")
    assert set(seen) == {torch.bfloat16}
    assert model.weight.dtype == torch.float32
    assert history.loss[-1] < 0.01 * history.loss[0]
    fit(model, loss, regression, steps=1, precision="auto")
    assert seen[-1] == torch.float32  # a CPU gains nothing


def test_threads_are_fixed_inside_and_as_before_outside():
    before = torch.get_num_threads()
    seen = []

    def loss(model, batch):
        seen.append(torch.get_num_threads())
        return squared_error(model, batch)

    with torch_threads(3):
        fit(nn.Linear(2, 1), loss, regression, steps=1)
        fit(nn.Linear(2, 1), loss, regression, steps=1, threads=2)
        fit(nn.Linear(2, 1), loss, regression, steps=1, threads=None)
        assert torch.get_num_threads() == 3
    assert seen == [1, 2, 3]
    assert torch.get_num_threads() == before


def test_nothing_is_printed_where_nobody_watches(capfd):
    fit(nn.Linear(2, 1), squared_error, regression, steps=3)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_with_the_loss_unless_it_is_switched_off(capfd, monkeypatch):
    monkeypatch.setattr(progress_bar.sys.stderr, "isatty", lambda: True, raising=False)
    fit(nn.Linear(2, 1), squared_error, regression, steps=3, label="slope")
    bar = capfd.readouterr().err
    assert "slope 100%" in bar
    assert "3 of 3 steps" in bar
    assert "loss" in bar
    monkeypatch.setenv("ATTN_COURSE_PROGRESS_BAR", "0")
    fit(nn.Linear(2, 1), squared_error, regression, steps=3)
    assert capfd.readouterr().err == ""


# kills: a time left that counts the steps of the run before as if they had just been made
def test_the_bar_of_a_resumed_run_begins_where_the_run_does(tmp_path, monkeypatch):
    begun = []
    real = loop.training_bar
    monkeypatch.setattr(
        loop, "training_bar", lambda *args, done: begun.append(done) or real(*args, done=done)
    )
    path = tmp_path / "run.pt"
    fit(nn.Linear(2, 1), squared_error, regression, steps=3, checkpoint=path)
    fit(nn.Linear(2, 1), squared_error, regression, steps=5, checkpoint=path)
    assert begun == [0, 3]
    monkeypatch.setattr(progress_bar.sys.stderr, "isatty", lambda: True, raising=False)
    with progress_bar.training_bar("slope", 5, None, done=3) as bar:
        assert (bar.n, bar.initial) == (3, 3)


# kills: a bar whose stand-in without a kernel says 0 % for ever, or figures that differ
def test_a_notebook_gets_a_bar_and_words_in_its_stead(monkeypatch, capfd):
    def display(bundle, raw):
        shown.append(bundle)

    shown = []
    monkeypatch.setattr(progress_bar, "in_notebook", lambda: True)
    monkeypatch.setattr("tqdm.auto.tqdm", tqdm_notebook)
    monkeypatch.setattr("IPython.display.display", display)
    fit(nn.Linear(2, 1), squared_error, regression, steps=3, label="slope")
    fit(nn.Linear(2, 1), squared_error, regression, steps=3, label="")
    (bundle,) = shown
    assert bundle["text/plain"] == "slope: 3 steps"
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert capfd.readouterr() == ("", "")


def test_half_precision_is_named_among_the_reasons():
    with pytest.raises(TrainingDiverged, match="half precision overflowed"):
        fit(nn.Linear(2, 1), nan_from(1, nan), regression, steps=3, precision="bfloat16")
