"""Attention as it was got wrong: scale, softmax, mask, dropout, numerics."""

from functools import partial
from math import inf

import torch
import torch.nn.functional as F
from wrong_versions import Wrong

from attn_course.attention import scaled_dot_product_attention as right

SDPA = "attention.scaled_dot_product_attention"
FUSED = "test_attention.test_equals_the_fused_kernel"
THERMOMETER = "test_attention.test_thermometer_reads_the_scale"
WEIGHTS = "test_attention.test_weights_sum_to_one_and_are_those_that_weigh_the_values"
HIDDEN = "test_attention.test_hidden_keys_and_values_change_nothing"
EMPTY = "test_attention.test_a_query_without_keys_gets_zeros_and_finite_gradients"
DROPOUT = "test_attention.test_dropout_drops_weights_and_scales_up_the_rest"
an_empty_row = {"need_weights": True, "biased": False, "dtype": torch.float64}


def attention_from(weigh):
    """Attention that is right but for its weights, which `weigh(query, key, mask)` gives."""

    def attend(query, key, value, mask=None, *, bias=None, dropout_p=0.0, need_weights=True):
        weights = weigh(query, key, mask)
        return weights @ value, weights if need_weights else None

    return attend


def scaled_by(scale, dim=-1):
    """Weights whose scores are multiplied by `scale(query, key)`."""

    def weigh(query, key, mask):
        scores = query @ key.mT * scale(query, key)
        return (scores if mask is None else scores.masked_fill(~mask, -inf)).softmax(dim)

    return attention_from(weigh)


def root(query, key):
    return query.shape[-1] ** -0.5


def masked_by(fill):
    """Weights whose mask is put into the scaled scores by `fill(scores, mask)`."""

    def weigh(query, key, mask):
        scores = query @ key.mT * root(query, key)
        return (scores if mask is None else fill(scores, mask)).softmax(-1)

    return attention_from(weigh)


def scale_after_softmax(query, key, mask):
    return (query @ key.mT).softmax(-1) * root(query, key)


def key_reshaped_not_transposed(query, key, mask):
    swapped = key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])
    return (query @ swapped * root(query, key)).softmax(-1)


def masked_after_softmax(query, key, mask):
    return (query @ key.mT * root(query, key)).softmax(-1) * mask


def unstable(query, key, mask):
    raised = (query @ key.mT * root(query, key)).exp()
    raised = raised if mask is None else raised * mask
    return raised / raised.sum(-1, keepdim=True)


def nan_cleaned_in_the_output(query, key, value, mask=None, *, bias=None, **options):
    scores = query @ key.mT * root(query, key)
    weights = scores.masked_fill(~mask, -inf).softmax(-1)
    return (weights @ value).nan_to_num(), weights


def product_before_scale(query, key, mask):
    return (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)


def values_not_weighed(query, key, value, mask=None, **options):
    _, weights = right(query, key, value, mask)
    return value.mean(-2, keepdim=True).expand(*query.shape[:-1], value.shape[-1]), weights


def gradient_cut(query, key, value, mask=None, **options):
    _, weights = right(query, key, value, mask)
    return weights.detach() @ value, weights


def dropped(change, query, key, value, mask=None, *, dropout_p=0.0, **options):
    """Attention with dropout in the way of `change(scores, dropout_p)` → (kept, weights)."""
    kept, weights = change(query @ key.mT * root(query, key), dropout_p)
    return kept @ value, weights


def on_the_scores(scores, p):
    weights = F.dropout(scores, p).softmax(-1)
    return weights, weights


def never(scores, p):
    return scores.softmax(-1), scores.softmax(-1)


def keep_for_drop(scores, p):
    return F.dropout(scores.softmax(-1), 1 - p), scores.softmax(-1)


def without_scaling_up(scores, p):
    return scores.softmax(-1) * (torch.rand(scores.shape) >= p), scores.softmax(-1)


def weights_after_dropout(scores, p):
    kept = F.dropout(scores.softmax(-1), p)
    return kept, kept


def fast_path_forgets(*forgotten):
    """Right with weights; the fast path loses some of its options."""

    def attend(query, key, value, mask=None, *, need_weights=True, **options):
        if not need_weights:
            options = {name: x for name, x in options.items() if name not in forgotten}
            mask = None if "mask" in forgotten else mask
        return right(query, key, value, mask, need_weights=need_weights, **options)

    return attend


def bias_before_the_scale(query, key, value, mask=None, *, bias=None, need_weights=True, **options):
    bias = None if bias is None else bias * root(query, key)
    return right(query, key, value, mask, bias=bias, need_weights=need_weights)


def anything_that_broadcasts(query, key, value, mask=None, *, bias=None, **options):
    additive = bias if mask is None else mask
    return F.scaled_dot_product_attention(query, key, value, additive), None


ATTENTION = [
    Wrong("A1 no scale", {SDPA: scaled_by(lambda q, k: 1.0)}, THERMOMETER, {"d_k": 5}),
    Wrong(
        "A2 the root of the width of all heads",
        {SDPA: scaled_by(lambda q, k: (q.shape[-1] * q.shape[-3]) ** -0.5)},
        FUSED,
    ),
    Wrong(
        "A4 multiplied where it should divide",
        {SDPA: scaled_by(lambda q, k: q.shape[-1] ** 0.5)},
        THERMOMETER,
        {"d_k": 5},
    ),
    Wrong(
        "A4 scaled twice",
        {SDPA: scaled_by(lambda q, k: 1 / q.shape[-1])},
        THERMOMETER,
        {"d_k": 5},
    ),
    Wrong("A5 scale after the softmax", {SDPA: attention_from(scale_after_softmax)}, WEIGHTS),
    Wrong(
        "A7 a scale that is right for one width",
        {SDPA: scaled_by(lambda q, k: 5**-0.5)},
        THERMOMETER,
        {"d_k": 12},
    ),
    Wrong(
        "A8 a scale from the number of keys",
        {SDPA: scaled_by(lambda q, k: k.shape[-2] ** -0.5)},
        FUSED,
    ),
    Wrong("A11 softmax over the queries", {SDPA: scaled_by(root, dim=-2)}, WEIGHTS),
    Wrong(
        "A13 an axis number that is right for three axes",
        {SDPA: scaled_by(root, dim=2)},
        "test_attention.test_any_leading_axes_are_independent_look_ups",
        {"leading": (2, 3), "need_weights": True},
    ),
    Wrong("A14 keys reshaped", {SDPA: attention_from(key_reshaped_not_transposed)}, FUSED),
    Wrong("A17 dropout on the scores", {SDPA: partial(dropped, on_the_scores)}, DROPOUT),
    Wrong("A19 dropout never applied", {SDPA: partial(dropped, never)}, DROPOUT),
    Wrong("A20 keep for drop", {SDPA: partial(dropped, keep_for_drop)}, DROPOUT),
    Wrong("A20 not scaled up", {SDPA: partial(dropped, without_scaling_up)}, DROPOUT),
    Wrong("weights after dropout", {SDPA: partial(dropped, weights_after_dropout)}, DROPOUT),
    Wrong(
        "A19 dropout forgotten on the fast path",
        {SDPA: fast_path_forgets("dropout_p")},
        "test_attention.test_dropout_on_the_fast_path_is_alive_and_right_on_average",
    ),
    Wrong(
        "A22 the product overflows before the scale",
        {SDPA: attention_from(product_before_scale)},
        "test_attention.test_half_precision_does_not_overflow_before_the_scale",
    ),
    Wrong("A23 values averaged, weights unused", {SDPA: values_not_weighed}, FUSED),
    Wrong("A23 queries and keys never learn", {SDPA: gradient_cut}, FUSED, error=RuntimeError),
    Wrong(
        "B1 polarity inverted",
        {SDPA: masked_by(lambda scores, mask: scores.masked_fill(mask, -inf))},
        HIDDEN,
        {"need_weights": True},
    ),
    Wrong(
        "B4 zeros and ones added to the scores",
        {SDPA: masked_by(lambda scores, mask: scores + mask)},
        HIDDEN,
        {"need_weights": True},
    ),
    Wrong("B5 masked after the softmax", {SDPA: attention_from(masked_after_softmax)}, WEIGHTS),
    Wrong(
        "B7 filled with 1e-9",
        {SDPA: masked_by(lambda scores, mask: scores.masked_fill(~mask, 1e-9))},
        HIDDEN,
        {"need_weights": True},
    ),
    Wrong(
        "B8 filled with plus infinity",
        {SDPA: masked_by(lambda scores, mask: scores.masked_fill(~mask, inf))},
        FUSED,
    ),
    Wrong(
        "B10 a fill that float16 cannot hold",
        {SDPA: masked_by(lambda scores, mask: scores.masked_fill(~mask, -1e9))},
        EMPTY,
        an_empty_row | {"dtype": torch.float16},
        error=RuntimeError,
    ),
    Wrong(
        "B13 an empty row becomes the mean of all values",
        {SDPA: masked_by(lambda scores, mask: scores.masked_fill(~mask, -1e9))},
        EMPTY,
        an_empty_row,
    ),
    Wrong(
        "B14 NaN cleaned in the output, not in the gradient",
        {SDPA: nan_cleaned_in_the_output},
        EMPTY,
        an_empty_row,
        error=RuntimeError,
    ),
    Wrong(
        "B16 mask never used",
        {SDPA: masked_by(lambda scores, mask: scores)},
        HIDDEN,
        {"need_weights": True},
    ),
    Wrong(
        "B16 mask never used on the fast path",
        {SDPA: fast_path_forgets("mask")},
        "test_attention.test_both_paths_agree",
    ),
    Wrong(
        "B25 masks of samples broadcast over heads",
        {SDPA: anything_that_broadcasts},
        "test_attention.test_masks_that_do_not_fit",
        {"mask": torch.ones(3, 4, 5, dtype=torch.bool), "words": "axes"},
    ),
    Wrong(
        "bias added before the scale",
        {SDPA: bias_before_the_scale},
        "test_attention.test_a_bias_is_added_to_the_scaled_scores",
        {"masked": False, "need_weights": True},
    ),
    Wrong(
        "bias forgotten on the fast path",
        {SDPA: fast_path_forgets("bias")},
        "test_attention.test_both_paths_agree",
    ),
    Wrong(
        "J1 exponentials overflow",
        {SDPA: attention_from(unstable)},
        "test_attention.test_scores_far_below_zero_still_outweigh_hidden_ones",
    ),
    Wrong(
        "J8 a finite number for minus infinity",
        {SDPA: masked_by(lambda scores, mask: scores.masked_fill(~mask, -1e4))},
        "test_attention.test_scores_far_below_zero_still_outweigh_hidden_ones",
    ),
]
