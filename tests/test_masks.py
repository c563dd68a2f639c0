"""Masks against their definitions, position by position, and how they combine."""

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import random_mask, seed, size

from attn_course import masks


@pytest.mark.parametrize(("n_query", "n_key"), [(i, j) for j in range(6) for i in range(j + 1)])
def test_causal_mask_lets_each_position_see_itself_and_the_past(n_query, n_key):
    mask = masks.causal_mask(n_query, n_key)
    assert mask.dtype == torch.bool
    assert mask.shape == (n_query, n_key)
    for i, j in product(range(n_query), range(n_key)):
        assert mask[i, j] == (j <= n_key - n_query + i)


def test_causal_mask_is_square_unless_told():
    assert torch.equal(masks.causal_mask(4), masks.causal_mask(4, 4))


def test_a_causal_mask_of_no_keys_is_not_square():
    with pytest.raises(ValueError, match="got 3 and 0"):
        masks.causal_mask(3, 0)


@pytest.mark.parametrize("name", ["causal_mask", "sliding_window_mask"])
@pytest.mark.parametrize(("n_query", "n_key"), [(5, 4), (-1, 4)])
def test_more_queries_than_keys_have_no_order(name, n_query, n_key):
    extra = {} if name == "causal_mask" else {"window": 2}
    with pytest.raises(ValueError, match=f"got {n_query} and {n_key}"):
        getattr(masks, name)(n_query, n_key, **extra)


@given(lengths=st.lists(st.integers(0, 6), min_size=1, max_size=4))
def test_padding_mask_shows_the_first_keys(lengths):
    mask = masks.padding_mask(torch.tensor(lengths), 6)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[j < length for j in range(6)] for length in lengths]


@pytest.mark.parametrize("lengths", [[3, 7], [-1, 2]])
def test_padding_mask_refuses_lengths_that_do_not_fit(lengths):
    bad = max(lengths, key=lambda length: abs(length - 3))
    with pytest.raises(ValueError, match=rf"0 … n_key=6, got \[{bad}\]"):
        masks.padding_mask(torch.tensor(lengths), 6)


@pytest.mark.parametrize("window", [1, 2, 4, 9])
@pytest.mark.parametrize(("n_query", "n_key"), [(6, 6), (2, 6)])
def test_sliding_window_shows_the_last_keys(n_query, n_key, window):
    mask = masks.sliding_window_mask(n_query, n_key, window=window)
    for i, j in product(range(n_query), range(n_key)):
        now = n_key - n_query + i
        assert mask[i, j] == (now - window + 1 <= j <= now)


def test_sliding_window_is_square_unless_told():
    assert torch.equal(
        masks.sliding_window_mask(5, window=2), masks.sliding_window_mask(5, 5, window=2)
    )


def test_a_window_needs_a_key():
    with pytest.raises(ValueError, match="window of 0 keys"):
        masks.sliding_window_mask(4, window=0)


def test_masks_are_made_where_they_are_wanted():
    assert masks.causal_mask(3, device="meta").device.type == "meta"
    assert masks.sliding_window_mask(3, window=1, device="meta").device.type == "meta"


@pytest.mark.parametrize(
    ("shape", "lifted"),
    [((4, 5), (1, 1, 4, 5)), ((2, 4, 5), (2, 1, 4, 5)), ((2, 3, 4, 5), (2, 3, 4, 5))],
)
def test_lift_mask_puts_missing_axes_where_they_belong(shape, lifted):
    mask = random_mask(*shape, seed=0)
    assert torch.equal(masks.lift_mask(mask), mask.reshape(lifted))


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("shape", [(5,), (1, 1, 1, 4, 5)])
def test_lift_mask_refuses_other_numbers_of_axes(shape):
    with pytest.raises(ValueError, match="got"):
        masks.lift_mask(torch.ones(shape, dtype=torch.bool))


@given(b=size, h=size, i=size, j=size, seed=seed)
def test_combined_masks_allow_what_all_allow(b, h, i, j, seed):
    of_pairs, of_samples = random_mask(i, j, seed=seed), random_mask(b, i, j, seed=seed + 1)
    of_heads, padding = random_mask(b, h, i, j, seed=seed + 2), random_mask(b, j, seed=seed + 3)
    combined = masks.combine_masks(of_pairs, None, of_samples, of_heads, padding=padding)
    assert combined is not None
    assert combined.shape == (b, h, i, j)
    for at in product(range(b), range(h), range(i), range(j)):
        b_, _, i_, j_ = at
        allowed = of_pairs[i_, j_] & of_samples[b_, i_, j_] & of_heads[at] & padding[b_, j_]
        assert combined[at] == allowed


def test_padding_and_pairs_are_not_mistaken_for_each_other_when_square():
    square = torch.tensor([[True, False], [True, True]])
    as_pairs, as_padding = masks.combine_masks(square), masks.combine_masks(padding=square)
    assert as_pairs is not None
    assert as_padding is not None
    assert torch.equal(as_pairs.expand(2, 1, 2, 2)[:, 0], torch.stack([square, square]))
    assert torch.equal(as_padding.expand(2, 1, 2, 2)[:, 0].transpose(0, 1)[0], square)
    assert as_pairs.shape == (1, 1, 2, 2)
    assert as_padding.shape == (2, 1, 1, 2)


def test_no_masks_are_no_mask():
    assert masks.combine_masks(None, padding=None) is None


@pytest.mark.usefixtures("without_shape_checks")
def test_masks_that_do_not_fit_together():
    with pytest.raises(ValueError, match=r"\(1, 1, 4, 5\), \(3, 1, 1, 6\)\] do not fit"):
        masks.combine_masks(
            torch.ones(4, 5, dtype=torch.bool), padding=torch.ones(3, 6, dtype=torch.bool)
        )
    with pytest.raises(ValueError, match=r"padding is \(b, j\), got \(1, 4, 5\)"):
        masks.combine_masks(padding=torch.ones(1, 4, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"boolean.*got torch.float32"):
        masks.combine_masks(padding=torch.ones(4, 5))
    with pytest.raises(ValueError, match=r"boolean.*got torch.int64"):
        masks.combine_masks(torch.ones(4, 5, dtype=torch.long))


@pytest.mark.parametrize(
    ("shape", "scores"),
    [
        ((4, 5), (2, 3, 4, 5)),
        ((2, 3, 4, 5), (2, 3, 4, 5)),
        ((1, 1, 1, 5), (2, 3, 4, 5)),
        ((2, 1, 4, 1), (2, 3, 4, 5)),
        ((4, 5), (2, 4, 5)),
        ((1, 4, 5), (2, 4, 5)),
        ((4, 5), (4, 5)),
    ],
)
def test_check_mask_lets_pass_what_fits_in_one_way(shape, scores):
    assert masks.check_mask(torch.ones(shape, dtype=torch.bool), scores) is None


@pytest.mark.parametrize(
    ("shape", "scores"),
    [
        ((2, 4, 5), (2, 2, 4, 5)),  # batch for heads, silently, were it broadcast
        ((1, 5), (2, 3, 4, 5)),  # padding of a single sequence
        ((4, 1), (2, 3, 4, 5)),
        ((5,), (2, 3, 4, 5)),
        ((2, 3, 4, 6), (2, 3, 4, 5)),
        ((1, 5), (4, 5)),
    ],
)
def test_check_mask_refuses_the_rest(shape, scores):
    with pytest.raises(ValueError, match="does not fit scores"):
        masks.check_mask(torch.ones(shape, dtype=torch.bool), scores)
