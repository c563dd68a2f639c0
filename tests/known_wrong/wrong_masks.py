"""Masks as they were got wrong: polarity, off by one, alignment, axes."""

from wrong_versions import Wrong, known

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
OF_CAUSAL = "causal_mask(n_query, n_key, device=device)"
ALL_OPEN = "torch.ones(n_query, n_key, dtype=torch.bool)"
window_wide = {"n_query": 2, "n_key": 6, "window": 2}

MASKS = [
    Wrong(
        "B17 a token cannot see itself",
        {CAUSAL: known("causal_mask", "diagonal-excluded")},
        CAUSAL_TEST,
        square,
    ),
    Wrong(
        "one position of the future is seen",
        {CAUSAL: known("causal_mask", "one-ahead")},
        CAUSAL_TEST,
        square,
    ),
    Wrong("B19 the past is hidden", {CAUSAL: {".tril(": ".triu("}}, CAUSAL_TEST, square),
    Wrong("B1 True hides", {CAUSAL: known("causal_mask", "inverted")}, CAUSAL_TEST, square),
    Wrong("B20 aligned top-left", {CAUSAL: known("causal_mask", "top-left")}, CAUSAL_TEST, wide),
    Wrong(
        "floats for booleans",
        {CAUSAL: known("causal_mask", "numbers")},
        CAUSAL_TEST,
        square,
    ),
    Wrong(
        "more queries than keys go unnoticed",
        {CAUSAL: known("causal_mask", "too-many-queries")},
        "test_masks.test_more_queries_than_keys_have_no_order",
        {"name": "causal_mask", "n_query": 5, "n_key": 4},
    ),
    Wrong("B29 one key too many", {PADDING: known("padding_mask", "one-too-many")}, PADDING_TEST),
    Wrong("B1 padding is what is seen", {PADDING: known("padding_mask", "inverted")}, PADDING_TEST),
    Wrong(
        "B29 lengths beyond the keys go unnoticed",
        {PADDING: known("padding_mask", "lengths-not-checked")},
        "test_masks.test_padding_mask_refuses_lengths_that_do_not_fit",
        {"lengths": [3, 7]},
    ),
    Wrong(
        "a window one too wide",
        {WINDOW: {"- window + 1": "- window"}},
        WINDOW_TEST,
        window_wide,
    ),
    Wrong(
        "a window aligned top-left",
        {WINDOW: {OF_CAUSAL: f"{ALL_OPEN}.tril()", "causal.shape[1] - n_query": "0"}},
        WINDOW_TEST,
        window_wide,
    ),
    Wrong(
        "a window that sees ahead",
        {WINDOW: {OF_CAUSAL: ALL_OPEN}},
        WINDOW_TEST,
        window_wide,
    ),
    Wrong(
        "either mask is enough",
        {COMBINE: {"logical_and": "logical_or"}},
        COMBINE_TEST,
    ),
    Wrong(
        "B23 padding on the queries' side",
        {COMBINE: {"b j -> b 1 1 j": "b j -> b 1 j 1"}},
        SQUARE_TEST,
    ),
    Wrong(
        "padding taken for pairs",
        {COMBINE: {"b j -> b 1 1 j": "b j -> 1 1 b j"}},
        SQUARE_TEST,
    ),
    Wrong(
        "B25 samples broadcast over heads",
        {COMBINE: {"lift_mask(mask)": "mask.reshape((1,) * (4 - mask.ndim) + mask.shape)"}},
        COMBINE_TEST,
        error=(AssertionError, RuntimeError),
    ),
    Wrong(
        "B25 samples lifted into the heads' place",
        {"masks.lift_mask": {"b i j -> b 1 i j": "b i j -> 1 b i j"}},
        "test_masks.test_lift_mask_puts_missing_axes_where_they_belong",
        {"shape": (2, 4, 5), "lifted": (2, 1, 4, 5)},
    ),
    Wrong(
        "B25 whatever broadcasts passes",
        {
            "masks.check_mask": {
                'check_scores_shape("mask", mask,': "torch.broadcast_shapes(mask.shape,"
            }
        },
        "test_masks.test_check_mask_refuses_the_rest",
        {"shape": (2, 4, 5), "scores": (2, 2, 4, 5)},
    ),
]
