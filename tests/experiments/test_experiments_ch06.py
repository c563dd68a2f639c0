"""Chapter 06's bags, its order from a mask, its spreads, faulty encodings and length table."""

from dataclasses import replace

import pytest
import torch

from attn_course.experiments.ch06 import (
    BITES,
    add_by_batch,
    base_of_a_thousand,
    biter_runs,
    doubled_exponent,
    encoding_of,
    first_token_share,
    idle_features,
    longest_wave,
    spread_at_one_distance,
    who_bites_task,
)
from attn_course.experiments.ch06_lengths import (
    LATEST,
    POSITIONS,
    TASKS,
    THREE_BACK,
    LengthSettings,
    accuracy_at_the_end,
    accuracy_by_length,
    answer_loss,
    length_model,
    length_table,
    trained,
)
from attn_course.experiments.ch06_views import shift_view
from attn_course.positions import relative_positions, sinusoidal_encoding
from attn_course.self_attention import is_permutation_equivariant
from attn_course.tasks.base import IGNORE, Batch

TINY = LengthSettings(
    n=8, factors=(1, 2), window=4, d_model=8, num_heads=2, num_layers=1, d_ff=8, batch_size=4,
    steps=2, test_every=1, test_size=5,
)  # fmt: skip


# -- who bites whom ---------------------------------------------------------------------------


# kills: a name that bites itself, the bitten as the answer, a verb among the names
def test_the_biter_stands_first():
    batch = who_bites_task(5).train_batch(0, 200)
    assert (batch.inputs[:, 1] == BITES).all()
    assert torch.equal(batch.targets[:, 0], batch.inputs[:, 0] - 1)
    assert (batch.inputs[:, 0] != batch.inputs[:, 2]).all()
    assert set(batch.inputs[:, 2].tolist()) == {1, 2, 3, 4, 5}


# kills: a test that training has seen
def test_held_out_sentences_are_never_trained_on():
    task = who_bites_task(6)
    test = {tuple(row) for row in task.test_set(4).inputs.tolist()}
    assert not test & {tuple(row) for row in task.train_batch(0, 400).inputs.tolist()}


# kills: a bag that is told apart, positions that do not help, a start that is not the seed's
def test_only_positions_tell_who_bites():
    before = torch.get_rng_state()
    bag, again = biter_runs("none", seeds=(0, 0))
    assert torch.equal(torch.get_rng_state(), before)
    assert bag == again
    assert bag.same == 1
    assert bag.found < 0.25
    (told,) = biter_runs("sinusoidal", seeds=(1,))
    assert told.found > 0.9
    assert told.same < 0.1


# -- order from a mask, and scores by distance ------------------------------------------------


def test_a_causal_mean_counts_positions():
    torch.testing.assert_close(first_token_share(4), torch.tensor([1, 1 / 2, 1 / 3, 1 / 4]))


# kills: a spread over rows, a spread that grows with the size of the scores
def test_spread_at_one_distance():
    distance = relative_positions(12, 12).float()
    assert spread_at_one_distance(distance) == 0
    assert spread_at_one_distance(-7 * distance.abs()) == 0
    torch.manual_seed(0)
    noise = torch.randn(40, 40)
    assert spread_at_one_distance(noise) == pytest.approx(1, abs=0.1)
    assert spread_at_one_distance(100 * noise) == pytest.approx(spread_at_one_distance(noise))


# -- faulty encodings -------------------------------------------------------------------------


# kills: faults that are right
def test_the_faults_differ_from_the_right_one_in_their_rates_alone():
    right = encoding_of(lambda even, d_model: 10000.0 ** (-even / d_model))
    torch.testing.assert_close(right(30, 9), sinusoidal_encoding(30, 9), rtol=0, atol=1e-5)
    assert longest_wave(right(3, 64)) == pytest.approx(2 * torch.pi * 10000 ** (62 / 64), rel=1e-3)
    assert longest_wave(base_of_a_thousand(3, 64)) < 6000
    assert longest_wave(doubled_exponent(3, 64)) > 1e8
    for fault in (doubled_exponent, base_of_a_thousand):
        assert fault(20, 9).shape == (20, 9)
        torch.testing.assert_close(fault(20, 8)[:, :2], right(20, 8)[:, :2])


def test_idle_features_are_those_that_hardly_move():
    assert idle_features(lambda n, d: torch.zeros(n, d), d_model=6) == 6
    assert idle_features(sinusoidal_encoding, d_model=2) == 0
    assert idle_features(doubled_exponent) > idle_features(sinusoidal_encoding)


# kills: positions told apart after all
def test_rows_added_by_the_batch_leave_a_bag():
    x, table = torch.randn(3, 5, 4), torch.randn(9, 4)
    moved = add_by_batch(x, table)
    torch.testing.assert_close(moved[2], x[2] + table[2])
    assert is_permutation_equivariant(lambda x: add_by_batch(x, table), x)


# -- the length table -------------------------------------------------------------------------


# kills: tests of the trained length at every factor, positions that the loss should leave out
def test_tests_are_as_long_as_they_say():
    for name, task in TASKS.items():
        batch = task(16, 0).test_set(3)
        assert batch.inputs.shape == (3, 16), name
        assert batch.targets[batch.targets != IGNORE].max() <= 8
    asked = []

    def guess(ids):
        asked.append(tuple(ids.shape))
        return torch.zeros(*ids.shape, 9)

    found = accuracy_by_length(THREE_BACK, 0, TINY)(guess)  # type: ignore[arg-type]
    assert asked == [(5, 8), (5, 16)]
    assert list(found) == ["1×", "2×"]


# kills: positions before the window, answers that nobody asked for
def test_only_the_last_positions_that_ask_are_judged():
    class Copy(torch.nn.Module):
        def forward(self, ids):
            return torch.nn.functional.one_hot(ids, 9).float()

    inputs = torch.tensor([[1, 2, 3, 4, 5, 6]])
    targets = torch.tensor([[0, 0, 3, IGNORE, 5, 0]])
    assert accuracy_at_the_end(Copy(), Batch(inputs, targets), 4) == pytest.approx(2 / 3)
    assert accuracy_at_the_end(Copy(), Batch(inputs, targets), 2) == pytest.approx(1 / 2)
    loss = answer_loss(Copy(), Batch(inputs, targets))
    every = torch.nn.functional.cross_entropy(
        Copy()(inputs)[0, [0, 1, 2, 4, 5]], torch.tensor([0, 0, 3, 5, 0])
    )
    torch.testing.assert_close(loss, every)


# kills: a fault that the model does not use, a table too short for the longest test
def test_a_given_encoding_takes_the_place_of_the_sinusoids():
    ids = torch.arange(16)[None] % 9
    models = []
    for encode in (None, sinusoidal_encoding, doubled_exponent):
        torch.manual_seed(0)
        models.append(length_model("sinusoidal", 9, TINY, encode))
    usual, same, other = (model(ids) for model in models)
    torch.testing.assert_close(usual, same)
    assert not torch.allclose(usual, other)


# kills: a start or data drawn from the global generator, one seed for all runs
def test_a_run_depends_on_its_seed_alone():
    before = torch.get_rng_state()
    first, tests = trained(LATEST, "rope", seed=1, settings=TINY)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    again, other = (trained(LATEST, "rope", seed=seed, settings=TINY)[0] for seed in (1, 2))
    for one, two in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, two)
    assert not torch.equal(first.head.weight, other.head.weight)
    assert not first.training
    assert tests.shape == (2, 2)
    at_the_end = accuracy_by_length(LATEST, 1, TINY)(first)
    assert tests[-1].tolist() == pytest.approx(list(at_the_end.values()))


# kills: tests at the end alone, and tests that are made of the trained model each time
def test_a_run_is_tested_on_its_way():
    settings = replace(TINY, steps=60, test_every=30, test_size=200)
    _, tests = trained(LATEST, "alibi", seed=0, settings=settings)
    assert tests.shape == (2, 2)
    assert not torch.equal(tests[0], tests[1])


def test_the_table_has_a_row_for_each_kind_and_each_seed():
    table = length_table(THREE_BACK, seeds=(0, 1), settings=TINY)
    assert tuple(table) == POSITIONS
    assert POSITIONS[0] == "none"
    assert {runs.shape for runs in table.values()} == {(2, 2, 2)}


# kills: an encoding that the table does not hand on, runs in another order than their seeds
def test_the_table_hands_on_an_encoding():
    def of_table(encode):
        options = {"positions": ["sinusoidal"], "settings": TINY, "encode": encode}
        return length_table(THREE_BACK, seeds=(0, 1), **options)["sinusoidal"]

    asked = []

    def recorded(n, d_model):
        asked.append((n, d_model))
        return doubled_exponent(n, d_model)

    found = of_table(recorded)
    assert asked == [(TINY.n * max(TINY.factors), TINY.d_model)] * 2
    expected = [
        trained(THREE_BACK, "sinusoidal", seed=seed, settings=TINY, encode=doubled_exponent)[1]
        for seed in (0, 1)
    ]
    torch.testing.assert_close(found, torch.stack(expected))


# kills: encodings that do not reach the model, a task that needs no position
def test_an_exact_distance_needs_positions():
    short = LengthSettings(factors=(1,), steps=150)
    bag, told = (
        trained(THREE_BACK, position, seed=0, settings=short)[1]
        for position in ("none", "sinusoidal")
    )
    assert bag.item() < 0.5
    assert told.item() > 0.9


# -- the view ---------------------------------------------------------------------------------


# kills: a slider that is not read, a hand at the wrong place
def test_the_view_follows_its_sliders():
    view = shift_view()
    circle, _ = view.axes
    before, after = circle.lines[-2:]
    view.set(position=4, shift=3, pair=0)
    assert before.get_xydata()[1].tolist() == pytest.approx(
        [torch.tensor(4.0).cos().item(), torch.tensor(4.0).sin().item()], abs=1e-5
    )
    assert after.get_xydata()[1].tolist() == pytest.approx(
        [torch.tensor(7.0).cos().item(), torch.tensor(7.0).sin().item()], abs=1e-5
    )
    assert "equal to that of 7" in view.caption
    assert "turns by 3 radians" in view.caption
    view.set(pair=4)
    assert "turns by 0.03 radians" in view.caption
    view.set(pair=7)  # slow, but it turns
    assert "turns by 0.00095 radians" in view.caption
    view.visit_extremes()
