"""Attention as it was got wrong: scale, softmax, mask, dropout, numerics."""

import torch
from wrong_versions import Wrong, known

from attn_course.checks.catalogue.ch03.attention import attention
from attn_course.checks.catalogue.families.mask import filled_with
from attn_course.checks.edits import edited

SDPA = "attention.scaled_dot_product_attention"
FUSED = "test_attention.test_equals_the_fused_kernel"
THERMOMETER = "test_attention.test_thermometer_reads_the_scale"
WEIGHTS = "test_attention.test_weights_sum_to_one_and_are_those_that_weigh_the_values"
HIDDEN = "test_attention.test_hidden_keys_and_values_change_nothing"
EMPTY = "test_attention.test_a_query_without_keys_gets_zeros_and_finite_gradients"
DROPOUT = "test_attention.test_dropout_drops_weights_and_scales_up_the_rest"
an_empty_row = {"need_weights": True, "biased": False, "dtype": torch.float64}


# pieces of the package's own attention
WEIGH = "if mask is None:\n        weights"
KEPT = "F.dropout(weights, dropout_p) if dropout_p > 0 else weights"
FAST = "mask, bias, dropout_p), None"
SCORES_DROPPED = {WEIGH: f"scores = F.dropout(scores, dropout_p)\n    {WEIGH}", KEPT: "weights"}


def by_hand(edits):
    """The catalogue's right answer with pieces of its source replaced."""
    return with_options(edited(attention, edits))


def known_as(mistake):
    """A mistake that the catalogue knows."""
    return with_options(known("scaled_dot_product_attention", mistake))


def with_options(answer):
    """An answer that may be called as the package's function is."""

    def attend(query, key, value, mask=None, *, bias=None, dropout_p=0.0, need_weights=True):
        output, weights = answer(query, key, value, mask)
        return output, weights if need_weights else None

    return attend


ATTENTION = [
    Wrong("A1 no scale", {SDPA: known_as("no-scale")}, THERMOMETER, {"d_k": 5}),
    Wrong(
        "A2 the root of the width of all heads",
        {SDPA: by_hand({"query.shape[-1]": "query.shape[-1] * query.shape[-3]"})},
        FUSED,
    ),
    Wrong(
        "A4 multiplied where it should divide",
        {SDPA: known_as("scale-inverted")},
        THERMOMETER,
        {"d_k": 5},
    ),
    Wrong(
        "A4 scaled twice",
        {SDPA: known_as("scale-by-d")},
        THERMOMETER,
        {"d_k": 5},
    ),
    Wrong("A5 scale after the softmax", {SDPA: known_as("scale-after-softmax")}, WEIGHTS),
    Wrong(
        "A7 a scale that is right for one width",
        {SDPA: by_hand({"query.shape[-1]": "5"})},
        THERMOMETER,
        {"d_k": 12},
    ),
    Wrong(
        "A8 a scale from the number of keys",
        {SDPA: known_as("scale-by-keys")},
        FUSED,
    ),
    Wrong("A11 softmax over the queries", {SDPA: known_as("softmax-over-queries")}, WEIGHTS),
    Wrong(
        "A13 an axis number that is right for three axes",
        {SDPA: known_as("softmax-axis-for-three-axes")},
        "test_attention.test_any_leading_axes_are_independent_look_ups",
        {"leading": (2, 3), "need_weights": True},
    ),
    Wrong(
        "A14 keys reshaped",
        {SDPA: by_hand({"key.mT": "key.reshape(*key.shape[:-2], *key.mT.shape[-2:])"})},
        FUSED,
    ),
    Wrong(
        "A17 dropout on the scores",
        {SDPA: SCORES_DROPPED},
        DROPOUT,
    ),
    Wrong("A19 dropout never applied", {SDPA: {KEPT: "weights"}}, DROPOUT),
    Wrong(
        "A20 keep for drop",
        {SDPA: {"F.dropout(weights, dropout_p)": "F.dropout(weights, 1 - dropout_p)"}},
        DROPOUT,
    ),
    Wrong(
        "A20 not scaled up",
        {SDPA: {KEPT: "weights * (torch.rand(weights.shape) >= dropout_p)"}},
        DROPOUT,
    ),
    Wrong(
        "weights after dropout",
        {SDPA: {"return output, weights": "return output, kept"}},
        DROPOUT,
    ),
    Wrong(
        "A19 dropout forgotten on the fast path",
        {SDPA: {FAST: "mask, bias, 0.0), None"}},
        "test_attention.test_dropout_on_the_fast_path_is_alive_and_right_on_average",
    ),
    Wrong(
        "A22 the product overflows before the scale",
        {SDPA: by_hand({"/ sqrt(query.shape[-1]) @ key.mT": "@ key.mT / sqrt(query.shape[-1])"})},
        "test_attention.test_half_precision_does_not_overflow_before_the_scale",
    ),
    Wrong(
        "A23 values averaged, weights unused",
        {SDPA: by_hand({"weights @": "torch.ones_like(weights) / key.shape[-2] @"})},
        FUSED,
    ),
    Wrong(
        "A23 queries and keys never learn",
        {SDPA: known_as("weights-detached")},
        FUSED,
        error=RuntimeError,
    ),
    Wrong(
        "B1 polarity inverted",
        {SDPA: known_as("mask-inverted")},
        HIDDEN,
        {"need_weights": True},
    ),
    Wrong(
        "B4 zeros and ones added to the scores",
        {SDPA: known_as("mask-added")},
        HIDDEN,
        {"need_weights": True},
    ),
    Wrong("B5 masked after the softmax", {SDPA: known_as("mask-multiplied-after")}, WEIGHTS),
    Wrong(
        "B7 filled with 1e-9",
        {SDPA: by_hand(filled_with("1e-9"))},
        HIDDEN,
        {"need_weights": True},
    ),
    Wrong(
        "B8 filled with plus infinity",
        {SDPA: known_as("mask-filled-with-plus-infinity")},
        FUSED,
    ),
    Wrong(
        "B10 a fill that float16 cannot hold",
        {SDPA: known_as("empty-row-mean")},
        EMPTY,
        an_empty_row | {"dtype": torch.float16},
        error=RuntimeError,
    ),
    Wrong(
        "B13 an empty row becomes the mean of all values",
        {SDPA: known_as("empty-row-mean")},
        EMPTY,
        an_empty_row,
    ),
    Wrong(
        "B14 NaN cleaned in the output, not in the gradient",
        {SDPA: known_as("gradient-nan")},
        EMPTY,
        an_empty_row,
        error=RuntimeError,
    ),
    Wrong(
        "B16 mask never used",
        {SDPA: known_as("mask-ignored")},
        HIDDEN,
        {"need_weights": True},
    ),
    Wrong(
        "B16 mask never used on the fast path",
        {SDPA: {FAST: "None, bias, dropout_p), None"}},
        "test_attention.test_both_paths_agree",
    ),
    Wrong(
        "B25 masks of samples broadcast over heads",
        {SDPA: {"_check_inputs(query, key, value, mask, bias, dropout_p)": "pass"}},
        "test_attention.test_masks_that_do_not_fit",
        {"mask": torch.ones(3, 4, 5, dtype=torch.bool), "words": "axes"},
    ),
    Wrong(
        "bias added before the scale",
        {SDPA: {"bias.to(scores.dtype)": "bias.to(scores.dtype) / sqrt(d_k)"}},
        "test_attention.test_a_bias_is_added_to_the_scaled_scores",
        {"masked": False, "need_weights": True},
    ),
    Wrong(
        "bias forgotten on the fast path",
        {SDPA: {FAST: "mask, None, dropout_p), None"}},
        "test_attention.test_both_paths_agree",
    ),
    Wrong(
        "J1 exponentials overflow",
        {SDPA: known_as("unstable-softmax")},
        "test_attention.test_scores_far_below_zero_still_outweigh_hidden_ones",
    ),
    Wrong(
        "J8 a finite number for minus infinity",
        {SDPA: by_hand(filled_with("-1e4"))},
        "test_attention.test_scores_far_below_zero_still_outweigh_hidden_ones",
    ),
]
