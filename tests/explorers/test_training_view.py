import base64
import gc
import gzip
import json
import re
import weakref

import ipywidgets
import nbformat
import numpy as np
import pytest
import torch
import torch.nn.functional as F
import traitlets
from nbclient import NotebookClient
from torch import nn

from attn_course.explorers import TrainingView, training_view
from attn_course.explorers.attention_maps import quantisation_step
from attn_course.explorers.base import browser_module
from attn_course.explorers.training_view import binned
from attn_course.models import Config, DecoderLM, Encoder
from attn_course.multihead import record_attention
from attn_course.training import History, StepInfo, TrainingDiverged, fit

SMALL = Config(d_model=8, num_heads=2, num_layers=2, max_len=8, dropout_p=0.2)
IDS = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1]])
TOKENS = ["one", "two", "three", "four"]


class Clock:
    """Stands still but for what a step, or the view's own work, is said to take."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(training_view, "perf_counter", clock)
    return clock


def language_model() -> DecoderLM:
    torch.manual_seed(0)
    return DecoderLM(6, SMALL)


def next_token(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def trained(view: TrainingView | None, steps: int = 30, **settings):
    torch.manual_seed(1)
    model = language_model()
    settings = {"steps": steps, "label": "", "lr": 0.03, "on_step": view} | settings
    return model, fit(model, next_token, lambda step: IDS, **settings)


def pretended(view: TrainingView, clock: Clock, total: int, seconds, *, first: int = 1) -> None:
    """Tell the view of steps that take as long as `seconds(step)` says, and compute nothing."""
    history = History(loss=[1.0] * (first - 1), seconds=[0.0] * (first - 1))
    for step in range(first, total + 1):
        clock.now += seconds(step)
        history.loss.append(1.0)
        history.seconds.append(history.seconds[-1] + seconds(step) if history.seconds else 0.0)
        view(StepInfo(step, total, None, history, nn.Identity()))


def watched(**state) -> TrainingView:
    return TrainingView(watch=IDS[:1], tokens=TOKENS, **state)


# -- what it shows of a run ---------------------------------------------------------------


def test_a_run_gets_the_same_numbers_with_the_view_as_without():
    model, history = trained(watched())
    alone, expected = trained(None)
    assert history.loss == expected.loss
    for ours, theirs in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    assert model.training == alone.training


def test_the_record_holds_the_whole_run():
    view = watched()
    _, history = trained(view, evaluate=lambda model: {"a": 0.5, "b": float("nan")}, eval_every=10)
    assert (view.status, view.step, view.total) == ("finished", 30, 30)
    numbers = view.numbers()
    np.testing.assert_array_equal(numbers["loss"], history.loss)
    np.testing.assert_array_equal(numbers["steps"], range(1, 31))
    np.testing.assert_array_equal(numbers["metric_steps"], [10, 20, 30])
    np.testing.assert_array_equal(numbers["metric"], [0.5] * 3)
    view.metric = "b"
    assert np.isnan(view.numbers()["metric"]).all()


def test_it_works_from_the_first_step_on(clock):
    view = watched()
    seen = []

    def observe(info):
        view(info)
        seen.append((view.status, view.step, len(view.numbers()["loss"]), len(view.snapshots)))
        return True

    trained(None, steps=50, on_step=observe)
    assert seen == [("running", 1, 1, 1)]


def test_first_and_last_snapshots_are_the_models_attention_at_these_steps():
    view = watched()
    at_first = []

    def observe(info):
        if info.step == 1:
            at_first.append(weights_of(info.model))
        view(info)

    observe.finish = view.finish
    model, _ = trained(None, on_step=observe)
    view.layer, view.head = 1, 1
    for step, exact in ((1, at_first[0]), (30, weights_of(model))):
        view.at = step
        error = np.abs(view.numbers()["weights"] - exact)
        assert (error <= quantisation_step(exact)).all()
    assert np.abs(at_first[0] - weights_of(model)).max() > 0.01  # the run has changed them


def weights_of(model: nn.Module) -> np.ndarray:
    """Of the last layer and head, without dropout; the model's modes are put back."""
    mode = model.training
    with torch.no_grad(), record_attention(model.eval()) as maps:
        model(IDS[:1])
    model.train(mode)
    return list(maps.values())[1][0, 1].numpy()


def test_a_function_may_say_what_is_to_be_seen():
    def look(model):
        assert not torch.is_grad_enabled()
        assert not model.training
        return torch.eye(3)[None, None]

    view = TrainingView(watch=look, tokens="abc")
    trained(view, steps=2)
    np.testing.assert_array_equal(view.numbers()["weights"], np.eye(3))
    assert view.snapshots[0]["groups"][0]["rows"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("stop", "status"), [(lambda info: info.step == 3, "asked"), (None, "finished")]
)
def test_it_says_why_a_run_ended(stop, status):
    view = TrainingView()

    def observe(info):
        view(info)
        return stop is not None and stop(info)

    observe.finish = view.finish
    trained(None, steps=4, on_step=observe)
    assert (view.status, view.step) == (status, 4 if stop is None else 3)


def test_a_run_that_diverged_keeps_its_record_and_its_error():
    view = watched()

    def loss(model, ids):
        value = next_token(model, ids)
        return value * (float("nan") if view.step >= 1 else 1)

    with pytest.raises(TrainingDiverged):
        fit(language_model(), loss, [IDS], steps=5, label="", on_step=view)
    assert (view.status, view.step) == ("diverged", 1)


def test_a_second_run_begins_anew():
    view = watched()
    trained(view, steps=20, evaluate=lambda model: {"old": 1.0})
    view.at, view.metric, view.layer = 1, "old", 1
    trained(view, steps=3, evaluate=lambda model: {"new": 1.0})
    assert (view.step, view.at, view.metric, list(view.metrics)) == (3, None, "", ["new"])
    assert [one["step"] for one in view.snapshots][-1] == 3
    assert len(view.curve["loss"]) == 3


# kills: a view that waits for step 20 of a new run, chosen in the browser during the last one
def test_a_new_run_tells_the_browser_to_follow_it_whatever_was_chosen_there(monkeypatch):
    view, sent = watched(), []
    monkeypatch.setattr(view, "send_state", lambda key=None: sent.append(view.get_state(key)))
    trained(view, steps=2)
    asked = {"at": None, "metric": "", "kind": "", "layer": 0, "head": 0}
    assert [state for state in sent if state.keys() == asked.keys()] == [asked]


def test_a_run_that_goes_on_from_a_checkpoint_counts_its_own_steps_for_the_speed(clock):
    view = TrainingView()
    pretended(view, clock, 14, lambda step: 0.5, first=11)
    assert (view.step, len(view.curve["loss"])) == (14, 14)
    assert view.pace == pytest.approx(2)  # with the ten steps before it would be seven
    assert view.elapsed == pytest.approx(2)


def test_speed_and_time_left_come_from_the_last_seconds(clock):
    view = TrainingView()
    told = []
    view.observe(lambda change: told.append((view.step, view.pace, view.numbers()["left"])), "step")
    pretended(view, clock, 160, lambda step: 0.25 if step <= 100 else 1.0)
    at = {step: (pace, float(left)) for step, pace, left in told}
    assert at[90] == pytest.approx((4, 70 / 4))
    assert at[150] == pytest.approx((1, 10))


def test_the_time_left_of_a_run_without_a_known_end_is_not_made_up(clock):
    view = TrainingView()
    pretended(view, clock, 3, lambda step: 1.0)
    view.total = None
    assert view.numbers()["left"] == float("inf")


# -- what it costs ------------------------------------------------------------------------


def test_dear_work_is_done_as_seldom_as_it_is_dear(clock):
    looked = []

    def dear(model):
        clock.now += 1.0
        looked.append(clock.now)
        return torch.eye(2)[None, None]

    pretended(TrainingView(watch=dear), clock, 300, lambda step: 0.01)
    assert len(looked) == 1  # 3 s of steps do not make up for a second one
    looked.clear()
    pretended(TrainingView(watch=dear), clock, 300, lambda step: 1.0)
    assert 5 <= len(looked) <= 6  # once in 50 s


def test_the_browser_is_told_five_times_a_second_at_most(clock):
    view = TrainingView()
    told = []
    view.observe(lambda change: told.append(clock.now), "step")
    pretended(view, clock, 1000, lambda step: 0.001)
    assert len(told) == 5


def test_snapshots_of_a_long_run_are_few_and_lie_evenly(clock):
    view = TrainingView(watch=lambda model: torch.eye(2)[None, None])
    pretended(view, clock, 500, lambda step: 1.0)
    steps = [one["step"] for one in view.snapshots]
    assert (steps[0], len(steps) in range(16, 33)) == (1, True)
    assert steps[-1] > 500 - 32
    assert np.diff(steps).max() <= 2 * 500 / 16


def test_large_maps_are_kept_less_often_and_very_large_ones_refused(clock):
    look = {"n": 128}
    view = TrainingView(watch=lambda model: torch.full((4, 1, look["n"], look["n"]), 1 / look["n"]))
    pretended(view, clock, 40, lambda step: 1.0)
    assert 4 <= len(view.snapshots) <= 600_000 // (4 * 128 * 128)
    assert len(json.dumps(view.get_state())) < 1_000_000
    look["n"] = 200
    with pytest.raises(traitlets.TraitError, match="160000 weights a snapshot are more than"):
        pretended(view, clock, 3, lambda step: 1.0)


def test_a_long_curve_is_drawn_by_means_and_loses_no_step():
    values = [float(k) for k in range(1001)]
    curve = binned(values)
    assert len(curve["steps"]) == 251
    assert curve["steps"][:2] == [4, 8]
    assert curve["steps"][-1] == 1001
    assert curve["loss"][0] == 1.5
    assert curve["loss"][-1] == 1000.0  # a stretch of one
    assert binned([]) == {"steps": [], "loss": []}


def test_nothing_keeps_the_model_when_the_run_has_ended():
    view = watched()
    model = weakref.ref(trained(view)[0])
    gc.collect()
    assert model() is None


def test_ten_runs_leave_as_many_widgets_as_one():
    def count() -> int:
        gc.collect()
        return sum(issubclass(type(one), ipywidgets.Widget) for one in gc.get_objects())

    view = watched()
    trained(view)
    before, size = count(), len(json.dumps(view.get_state()))
    for _ in range(10):
        trained(view)
    assert count() == before
    assert len(json.dumps(view.get_state())) < 2 * size


# -- the two sides ------------------------------------------------------------------------


def close(got: dict, expected: dict) -> None:
    assert got.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(got[name], values, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("state", [{}, {"at": 7, "head": 1}, {"at": 120, "log": True}])
def test_the_browser_has_the_same_numbers_of_the_example(computed, state):
    view = TrainingView(**state)
    close(computed(view), dict(view.numbers()))


def test_the_browser_has_the_same_numbers_of_a_run_and_of_none(computed):
    view = watched()
    close(computed(view), dict(view.numbers()))
    trained(view, evaluate=lambda model: {"bad": float("inf"), "worse": float("nan")})
    for name in ("bad", "worse"):
        view.metric = name
        close(computed(view), dict(view.numbers()))
    view.status, view.total, view.pace = "running", None, 0.0
    close(computed(view), dict(view.numbers()))


@pytest.mark.parametrize(
    "changes",
    [{"at": 0}, {"at": 241}, {"metric": "none"}, {"kind": "cross"}, {"layer": 1}, {"head": 2}],
)
def test_both_sides_refuse_what_the_run_does_not_have_in_the_same_words(refusals, changes):
    python, browser = refusals(TrainingView(), **changes)
    assert python == browser != ""
    assert str(next(iter(changes.values()))) in python


# kills: choices that are refused, or forgotten, because no run has begun
def test_what_is_chosen_before_a_run_is_kept_for_it():
    view = watched(layer=1, head=1, kind="self", metric="b")
    measured = {"evaluate": lambda model: {"a": 0.5, "b": 0.25}, "eval_every": 10}
    for _ in range(2):
        trained(view, **measured)
        assert (view.layer, view.head, view.kind, view.metric) == (1, 1, "self", "b")
        view.layer, view.metric = 0, "a"  # looked at afterwards, not chosen for the next
    early = watched()
    early.head = 1
    trained(early)
    assert early.head == 1


@pytest.mark.parametrize(
    ("chosen", "said"),
    [({"layer": 5}, "layer must be from 0 to 1, got 5"), ({"kind": "cross"}, "one of self, got")],
)
def test_what_a_run_does_not_have_is_refused_in_its_first_step(chosen, said):
    with pytest.raises(traitlets.TraitError, match=said):
        trained(watched(**chosen))


def test_a_metric_that_a_run_does_not_have_gives_way_and_says_so():
    view = watched(metric="c")
    with pytest.warns(UserWarning, match="metric must be one of a, got c"):
        trained(view, evaluate=lambda model: {"a": 0.5}, eval_every=10)
    assert view.metric == ""


@pytest.mark.parametrize("name", ["layer", "head"])
def test_what_no_run_could_have_is_refused_at_once(name):
    with pytest.raises(traitlets.TraitError, match=f"{name} must be from 0 to ∞, got -1"):
        watched(**{name: -1})


def test_tokens_without_anything_to_watch_are_refused():
    with pytest.raises(traitlets.TraitError, match="give watch"):
        TrainingView(tokens=TOKENS)


def test_tokens_that_do_not_fit_end_the_run_at_its_first_step():
    with pytest.raises(traitlets.TraitError, match="3 tokens for 4 queries"):
        trained(TrainingView(watch=IDS[:1], tokens=["a", "b", "c"]))


def test_the_alternative_text_is_the_same_before_and_after_any_run():
    view = watched()
    before = repr(view)
    trained(view)
    assert repr(view) == before == repr(TrainingView())
    assert not re.search(r"\d", before)


# -- in the page --------------------------------------------------------------------------


def test_the_first_control_goes_through_the_moments_of_the_record(opened):
    view = watched()
    trained(view, evaluate=lambda model: 0.25)
    steps = [one["step"] for one in view.snapshots]
    page = opened(view)
    assert page.caption.startswith("Step 30: loss")
    assert "Metric evaluation: 0.25 at step 30" in page.caption
    page.page.keyboard.press("Tab")
    page.press("ArrowLeft")
    assert page.caption.startswith(f"Step {steps[-2]}: loss")
    page.press("Home")
    assert page.caption.startswith("Step 1: loss")
    page.press("End")
    assert page.caption.startswith("Step 30: loss")
    assert page.root.get_by_text(re.compile(r"^Finished: 30 steps in \d+ s")).is_visible()


def test_a_moment_of_a_long_run_tells_its_own_loss_and_a_point_of_the_curve_its_mean(opened, clock):
    for watch, said in ((None, "Steps 1 to 2: mean loss 1.5."), (IDS[:1], "Step 1: loss 1.")):
        view = TrainingView(watch=watch)
        history = History(loss=[1.0, 2.0] * 300, seconds=[0.0] * 600)
        short = History(loss=history.loss[:1], seconds=[0.0])
        view(StepInfo(1, 600, None, short, language_model()))
        short.loss, short.seconds = history.loss, history.seconds
        view.finish(short)
        page = opened(view)
        page.page.keyboard.press("Tab")
        page.press("Home")
        assert page.caption.startswith(said)


def test_a_run_without_attention_is_scrubbed_along_its_curve(opened):
    view = TrainingView()
    _, history = trained(view)
    page = opened(view)
    page.page.keyboard.press("Tab")
    page.press("Home", "ArrowRight")
    assert page.caption.startswith("Step 2: loss")
    assert page.root.locator("canvas:visible").count() == 2
    assert float(page.table()[2][1]) == pytest.approx(history.loss[1], abs=1e-4)


# a model of a front end whose kernel is training: new traits come while the learner scrubs
GROW = """async ([text, before, after]) => {
    const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const module = await import(address);
    const model = module.stillModel(before);
    const place = document.body.appendChild(document.createElement("div"));
    const next = () => new Promise(requestAnimationFrame);
    const frame = () => next().then(next);
    const caption = () => place.querySelector(".caption").textContent;
    module.default.render({ model, el: place });
    await frame();
    const told = [caption()];
    const slider = place.querySelector("input[type=range]");
    slider.value = 0;
    slider.dispatchEvent(new Event("input"));
    await frame();
    told.push(caption());
    for (const name of ["step", "curve", "metrics", "snapshots"]) model.set(name, after[name]);
    await frame();
    return [...told, caption(), slider.max, model.get("at")];
}"""


def test_a_moment_stays_while_new_steps_come(opened):
    view = TrainingView()
    trained(view, steps=5)
    before = json.loads(json.dumps(everything(view)))
    trained(view, steps=40)
    page = opened(view).page
    told = page.evaluate(GROW, [browser_module("training_view"), before, everything(view)])
    assert told[0].startswith("Step 5: ")
    assert told[1].startswith("Step 1: ")
    assert told[2].startswith("Step 1: ")
    assert told[3:] == ["39", 1]


def everything(view: TrainingView) -> dict:
    return view.state | {name: getattr(view, name) for name in ("fields", "words", "about")}


# -- in a notebook ------------------------------------------------------------------------

CELLS = [
    """
import torch
from attn_course.explorers import TrainingView
from attn_course.models import Config, Encoder
from attn_course.training import fit
view = TrainingView(watch=torch.tensor([[1, 2, 3]]), tokens=["a", "b", "c"])
view
""",
    """
model = Encoder(5, Config(d_model=8, num_heads=2, num_layers=1, max_len=8))
fit(model, lambda m, ids: m(ids).square().mean(), [torch.tensor([[1, 2, 3]])], steps=20,
    label="", on_step=view)
""",
]


def test_the_stored_output_of_the_cell_before_becomes_the_record_of_the_run(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(book, timeout=120, kernel_name="python3").execute()
    (output,) = book.cells[0].outputs
    assert output.data["text/plain"] == repr(TrainingView())
    packed = re.search(
        r'data-state="data:application/gzip;base64,([^"]+)"', output.data["text/html"]
    )
    assert packed is not None
    state = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    assert (state["status"], state["step"]) == ("finished", 20)
    assert len(state["curve"]["loss"]) == 20
    assert state["snapshots"][-1]["step"] == 20


def test_an_encoder_is_watched_like_any_other_model():
    view = TrainingView(watch=(IDS, IDS > 0))
    model = Encoder(6, SMALL)
    fit(model, lambda m, ids: m(ids).square().mean(), [IDS], steps=2, label="", on_step=view)
    assert view.snapshots[0]["groups"][0]["kind"] == "self"
    assert view.snapshots[0]["groups"][0]["shape"] == [4, 4, 4]
