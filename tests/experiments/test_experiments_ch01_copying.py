"""Chapter 01's copying experiment: equal budgets, honest measures."""

from dataclasses import replace

import pytest
import torch

from attn_course.experiments import ch01_copying
from attn_course.experiments.ch01_copying import (
    CopySettings,
    accuracy_by_length,
    accuracy_by_position,
    alignment_of,
    alignment_view,
    compare_copiers,
    comparison_table,
    encoder_gradients,
    kept_share,
    letters,
    train_copier,
)
from attn_course.recurrent import gradient_by_distance

SHORT = CopySettings(steps=2, width_fixed=10, width_attention=8, d_attention=4, test_size=20)


@pytest.fixture(scope="module")
def runs():
    return compare_copiers((6, 4), (0, 1), SHORT)


def test_both_models_get_the_same_budget():
    pair = [train_copier(4, attention=a, settings=CopySettings(steps=1)) for a in (False, True)]
    fixed, looking = (run.parameters for run in pair)
    assert looking <= fixed <= 1.02 * looking  # the fixed state has no fewer
    assert torch.equal(pair[0].test.inputs, pair[1].test.inputs)
    assert pair[0].history.lr == pair[1].history.lr


def test_a_run_depends_on_its_seed_only():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first, again, other = (
        train_copier(4, attention=True, seed=seed, settings=SHORT) for seed in (0, 0, 1)
    )
    assert torch.equal(torch.random.get_rng_state(), before)
    assert first.history.loss == again.history.loss
    assert first.history.loss != other.history.loss
    assert torch.equal(first.told, again.told)


def test_looking_back_learns_to_copy_and_to_look_at_the_right_place():
    run = train_copier(3, attention=True, settings=CopySettings(steps=150, test_size=50))
    assert run.told.mean() > 0.9
    assert run.alone.mean() > 0.9
    assert run.alignment.shape == (50, 3, 3)
    torch.testing.assert_close(run.alignment.sum(-1), torch.ones(50, 3))
    # position 0 of what is written comes from what was read first
    assert run.alignment[:, 0].argmax(-1).float().mean() < 0.5


def test_told_and_alone_agree_at_the_first_position_only(runs):
    for run in runs:
        assert run.told[0] == run.alone[0]  # nothing has been written yet
    assert any(not torch.equal(run.told, run.alone) for run in runs)


def test_runs_come_by_length_model_and_seed(runs):
    assert [(run.n, run.attention, run.seed) for run in runs] == [
        (n, attention, seed) for n in (6, 4) for attention in (False, True) for seed in (0, 1)
    ]
    assert all(run.history.steps == 2 for run in runs)
    assert all((run.alignment is not None) == run.attention for run in runs)


def test_accuracies_are_sorted_by_seed_length_and_position(runs):
    runs = [replace(run, told=run.told.clone()) for run in runs]
    for run in runs:
        run.told[:] = run.n + 10 * run.seed + 100 * run.attention
    by_length = accuracy_by_length(runs, attention=True, told=True)
    assert by_length.tolist() == [[106, 104], [116, 114]]
    by_position = accuracy_by_position(runs, 4, attention=False, told=True)
    assert by_position.tolist() == [[4] * 4, [14] * 4]
    alone = accuracy_by_length(runs, attention=False, told=False)
    assert alone[1, 0] == runs[1].alone.mean()


def test_the_table_tells_what_each_model_was_given(runs):
    head, *lines = comparison_table(runs).splitlines()
    assert len(lines) == 4
    assert lines[0].split()[:3] == ["6", "fixed", "state"]
    assert str(runs[0].parameters) in lines[0]
    assert f"{torch.stack([runs[2].told, runs[3].told]).mean():.3f}" in lines[1]
    assert "CPU-s" in head
    longer = replace(runs[0], history=replace(runs[0].history, loss=[1.0] * 7))
    assert [line.split()[4] for line in comparison_table([runs[0], longer]).splitlines()[1:]] == [
        "2",
        "7",
    ]


def test_encoders_are_measured_before_and_after_training(runs):
    fixed = [run for run in runs if run.n == 6 and not run.attention]
    fresh, trained = (encoder_gradients(fixed, trained=trained) for trained in (False, True))
    assert fresh.shape == trained.shape == (2, 6)
    assert not torch.equal(fresh, trained)
    model = fixed[0].model
    inputs = model.source_embedding(fixed[0].test.inputs)
    expected = gradient_by_distance(lambda x: model.encoder(x)[0], inputs)
    torch.testing.assert_close(trained[0], expected)
    unmoved = train_copier(6, attention=False, settings=replace(SHORT, lr=1e-30))
    torch.testing.assert_close(encoder_gradients([unmoved], trained=True)[0], fresh[0])


# kills: another gate's rows, the state after a step for the one before it, the untrained model
def test_the_share_that_is_kept_solves_the_equation_of_the_gru(runs):
    run = next(run for run in runs if run.n == 6 and not run.attention)
    gru = run.model.encoder
    inputs = run.model.source_embedding(run.test.inputs)
    with torch.no_grad():
        after = gru(inputs)[0]
        before = torch.cat([torch.zeros_like(after[:, :1]), after[:, :-1]], dim=1)
        sums = (inputs @ gru.weight_ih_l0.mT, before @ gru.weight_hh_l0.mT + gru.bias_hh_l0)
        (r_x, _, n_x), (r_h, _, n_h) = (
            (sums[0] + gru.bias_ih_l0).chunk(3, -1),
            sums[1].chunk(3, -1),
        )
        proposal = torch.tanh(n_x + (r_x + r_h).sigmoid() * n_h)
        kept = ((after - proposal) / (before - proposal)).median()  # h' = (1 - z) n + z h
    assert kept_share(run, trained=True) == pytest.approx(kept.item(), abs=0.02)
    assert kept_share(run, trained=True) != kept_share(run, trained=False)


def test_a_stopped_comparison_is_no_comparison(runs, monkeypatch):
    stopped = replace(runs[0], history=replace(runs[0].history, stopped="interrupted"))
    monkeypatch.setattr(ch01_copying, "train_copier", lambda *_, **__: stopped)
    with pytest.raises(KeyboardInterrupt):
        compare_copiers((4,), (0,), SHORT)


def test_the_view_shows_the_row_of_the_chosen_position(runs):
    looking = next(run for run in runs if run.attention)
    view = alignment_view(looking, row=1)
    view.set(position=5)
    heights = [bar.get_height() for bar in view.axes[1].patches]
    assert heights == pytest.approx(looking.alignment[1, 5].tolist())
    assert f"position {int(looking.alignment[1, 5].argmax())}." in view.caption
    assert [tick.get_text() for tick in view.axes[1].get_xticklabels()] == letters(
        looking.test.inputs[1]
    )
    view.visit_extremes()
    with pytest.raises(ValueError, match="does not look back"):
        alignment_view(runs[0])


# kills: the weights of the free run; an axis lost
def test_the_alignment_is_that_of_the_told_run(runs):
    run = next(run for run in runs if run.attention)
    (maps,) = alignment_of(run.model, run.test.inputs[:1])
    torch.testing.assert_close(maps, run.alignment[:1])


def test_symbols_are_written_as_letters():
    assert letters(torch.tensor([1, 3, 2])) == ["a", "c", "b"]
