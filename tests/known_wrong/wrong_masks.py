"""Masks as they were got wrong: polarity, off by one, alignment, axes."""

from functools import reduce

import torch
from wrong_versions import Wrong


def ones(n_query, n_key=None):
    return torch.ones(n_query, n_query if n_key is None else n_key, dtype=torch.bool)


def causal(shift=0, aligned="bottom-right"):
    def make(n_query, n_key=None, *, device=None):
        mask = ones(n_query, n_key)
        offset = mask.shape[1] - n_query if aligned == "bottom-right" else 0
        return mask.tril(offset + shift)

    return make


def window(extra=0, aligned="bottom-right", ahead=False):
    def make(n_query, n_key=None, *, window, device=None):
        mask = ones(n_query, n_key)
        offset = mask.shape[1] - n_query if aligned == "bottom-right" else 0
        mask = mask if ahead else mask.tril(offset)
        return mask.triu(offset - window + 1 - extra)

    return make


def first_keys(compare):
    return lambda lengths, n_key: compare(torch.arange(n_key), lengths[:, None])


def combine(join=torch.logical_and, padding_to=lambda padding: padding[:, None, None, :]):
    def combined(*masks, padding=None):
        lifted = [
            mask.reshape((1,) * (4 - mask.ndim) + mask.shape) for mask in masks if mask is not None
        ]
        lifted += [] if padding is None else [padding_to(padding)]
        return reduce(join, lifted) if lifted else None

    return combined


CAUSAL, PADDING = "masks.causal_mask", "masks.padding_mask"
CAUSAL_TEST = "test_masks.test_causal_mask_lets_each_position_see_itself_and_the_past"
PADDING_TEST = "test_masks.test_padding_mask_shows_the_first_keys"
WINDOW, WINDOW_TEST = (
    "masks.sliding_window_mask",
    "test_masks.test_sliding_window_shows_the_last_keys",
)
COMBINE, COMBINE_TEST = "masks.combine_masks", "test_masks.test_combined_masks_allow_what_all_allow"
SQUARE_TEST = "test_masks.test_padding_and_pairs_are_not_mistaken_for_each_other_when_square"
square, wide = {"n_query": 3, "n_key": 3}, {"n_query": 2, "n_key": 5}
window_wide = {"n_query": 2, "n_key": 6, "window": 2}

MASKS = [
    Wrong("B17 a token cannot see itself", {CAUSAL: causal(shift=-1)}, CAUSAL_TEST, square),
    Wrong("one position of the future is seen", {CAUSAL: causal(shift=1)}, CAUSAL_TEST, square),
    Wrong(
        "B19 the past is hidden", {CAUSAL: lambda i, j=None: ones(i, j).triu()}, CAUSAL_TEST, square
    ),
    Wrong("B1 True hides", {CAUSAL: lambda i, j=None: ~causal()(i, j)}, CAUSAL_TEST, square),
    Wrong("B20 aligned top-left", {CAUSAL: causal(aligned="top-left")}, CAUSAL_TEST, wide),
    Wrong(
        "floats for booleans",
        {CAUSAL: lambda i, j=None: causal()(i, j).float()},
        CAUSAL_TEST,
        square,
    ),
    Wrong(
        "more queries than keys go unnoticed",
        {CAUSAL: causal()},
        "test_masks.test_more_queries_than_keys_have_no_order",
        {"name": "causal_mask", "n_query": 5, "n_key": 4},
    ),
    Wrong("B29 one key too many", {PADDING: first_keys(torch.le)}, PADDING_TEST),
    Wrong("B1 padding is what is seen", {PADDING: first_keys(torch.ge)}, PADDING_TEST),
    Wrong(
        "B29 lengths beyond the keys go unnoticed",
        {PADDING: first_keys(torch.lt)},
        "test_masks.test_padding_mask_refuses_lengths_that_do_not_fit",
        {"lengths": [3, 7]},
    ),
    Wrong("a window one too wide", {WINDOW: window(extra=1)}, WINDOW_TEST, window_wide),
    Wrong(
        "a window aligned top-left", {WINDOW: window(aligned="top-left")}, WINDOW_TEST, window_wide
    ),
    Wrong("a window that sees ahead", {WINDOW: window(ahead=True)}, WINDOW_TEST, window_wide),
    Wrong("either mask is enough", {COMBINE: combine(torch.logical_or)}, COMBINE_TEST),
    Wrong(
        "B23 padding on the queries' side",
        {COMBINE: combine(padding_to=lambda padding: padding[:, None, :, None])},
        SQUARE_TEST,
    ),
    Wrong(
        "padding taken for pairs",
        {COMBINE: combine(padding_to=lambda padding: padding[None, None])},
        SQUARE_TEST,
    ),
    Wrong(
        "B25 samples broadcast over heads",
        {COMBINE: combine()},
        COMBINE_TEST,
        error=(AssertionError, RuntimeError),
    ),
    Wrong(
        "B25 samples lifted into the heads' place",
        {"masks.lift_mask": lambda mask: mask.reshape((1,) * (4 - mask.ndim) + mask.shape)},
        "test_masks.test_lift_mask_puts_missing_axes_where_they_belong",
        {"shape": (2, 4, 5), "lifted": (2, 1, 4, 5)},
    ),
    Wrong(
        "B25 whatever broadcasts passes",
        {"masks.check_mask": lambda mask, scores: torch.broadcast_shapes(mask.shape, scores)},
        "test_masks.test_check_mask_refuses_the_rest",
        {"shape": (2, 4, 5), "scores": (2, 2, 4, 5)},
    ),
]
