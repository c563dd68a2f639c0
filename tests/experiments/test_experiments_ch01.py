"""Chapter 01's experiments on gradients and on steps that wait."""

import pytest
import torch

from attn_course.attention import lookup
from attn_course.device import device_reasons
from attn_course.experiments.ch01 import (
    forward_milliseconds,
    fresh_readers,
    gradient_curves,
    longest_chain,
    memory_view,
    rival_layers,
    step_milliseconds,
)
from attn_course.recurrent import RNNCell


def test_fresh_readers_depend_on_the_seed_only():
    x = torch.randn(2, 5, 4)
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first, again, other = fresh_readers(4, 0), fresh_readers(4, 0), fresh_readers(4, 1)
    assert torch.equal(torch.random.get_rng_state(), before)
    for name in ("vanilla RNN", "GRU", "attention"):
        assert torch.equal(first[name](x), again[name](x))
        assert not torch.equal(first[name](x), other[name](x))
    assert first["GRU"](x).shape == (2, 5, 4)
    assert first["attention"](x).shape == (2, 1, 4)


def test_recurrence_fades_with_distance_and_looking_back_does_not():
    curves = gradient_curves(30, 16, seeds=(0, 1))
    assert {name: tuple(curve.shape) for name, curve in curves.items()} == {
        "vanilla RNN": (2, 30),
        "GRU": (2, 30),
        "attention": (2, 30),
    }
    reached = {name: curve[:, -1] / curve[:, 0] for name, curve in curves.items()}
    assert (reached["vanilla RNN"] < 1e-6).all()
    assert (reached["GRU"] < 1e-4).all()
    assert (reached["attention"] > 0.1).all()


def test_without_inputs_the_gradient_goes_as_the_gain_to_the_power():
    view = memory_view(n=20, d=16)
    measured, power = view.axes[0].get_lines()
    for gain in (0.5, 1.0, 1.5):
        view.set(gain=gain, drive=0.0)
        assert power.get_ydata()[19] == pytest.approx(gain**19)
        # the directions turn from step to step, the lengths follow the gain
        assert 0.3 < measured.get_ydata()[19] / gain**19 < 3
    view.set(gain=1.0, drive=2.0)
    assert measured.get_ydata()[19] < 1e-3
    assert "distance 19" in view.caption
    view.visit_extremes()


def test_the_longest_chain_is_counted():
    x = torch.ones(2, requires_grad=True)
    assert longest_chain(x.exp()) == 2  # the leaf's own node, then exp
    assert longest_chain(x.exp().sin().sum()) == 4
    assert longest_chain(x.exp().sin() + x.cos()) == 4  # the longer of two ways
    shared = x.exp()
    for _ in range(200):
        shared = shared + shared  # as many paths as 2 to the power of 200
    assert longest_chain(shared) == 202
    with pytest.raises(ValueError, match="no gradient"):
        longest_chain(torch.ones(2))


def test_a_recurrence_waits_for_each_step_and_looking_back_for_none():
    cell = RNNCell(3, 3)
    inputs = {n: torch.randn(1, n, 3, requires_grad=True) for n in (4, 8, 12)}
    recurrent = {n: longest_chain(cell.run(x)) for n, x in inputs.items()}
    assert recurrent[12] - recurrent[8] == recurrent[8] - recurrent[4] >= 4
    assert len({longest_chain(lookup(x, x, x)[0]) for x in inputs.values()}) == 1


def test_the_rivals_are_timed_on_one_thread_which_is_then_undone():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    seen = []
    try:
        layers = rival_layers(4)
        assert len(layers) == 2
        x = torch.randn(2, 5, 4)
        for run in layers.values():
            assert run(x).shape == x.shape
            assert forward_milliseconds(run, x, repeats=2) > 0
        forward_milliseconds(lambda x: seen.append(torch.get_num_threads()), x, repeats=3)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert seen == [1] * 4  # once to set things up


def test_a_step_is_timed_on_every_device_that_exists():
    found = step_milliseconds([(4, 8), (64, 64)], batch_size=2, repeats=1)
    assert list(found) == [name for name, reason in device_reasons().items() if reason is None]
    assert all(len(times) == 2 and min(times) > 0 for times in found.values())
