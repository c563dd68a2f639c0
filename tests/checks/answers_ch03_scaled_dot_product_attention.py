"""Answers to exercise 3.2 that the check has to judge right: correct variants and wrong ones."""

import math

import torch
import torch.nn.functional as F


def by_matmul(query, key, value, mask=None):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights * mask.any(-1, keepdim=True)
    return weights @ value, weights


def scale_split_between_both(query, key, value, mask=None):
    root = query.shape[-1] ** 0.25
    scores = (query / root) @ (key / root).mT
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill_(
            ~mask, torch.finfo(scores.dtype).min
        )
    weights = F.softmax(scores, -1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0)
    return torch.einsum("...ij,...jd->...id", weights, value), weights


def renormalised_after_the_softmax(query, key, value, mask=None):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    if mask is not None:
        weights = weights * mask
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    return weights @ value, weights


def computed_in_float64(query, key, value, mask=None):
    q, k, v = query.double(), key.double(), value.double()
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
        scores = scores.masked_fill(~mask.any(-1, keepdim=True), 0)
    weights = scores.softmax(-1)
    if mask is not None:
        weights = weights * mask.any(-1, keepdim=True)
    return [(weights @ v).to(query.dtype), weights.to(query.dtype)]


def no_scale_and_zero_fill(query, key, value, mask=None):
    scores = query @ key.mT
    if mask is not None:
        scores = scores * mask
    weights = scores.softmax(-1)
    return weights @ value, weights


def forgotten_return(query, key, value, mask=None):
    by_matmul(query, key, value, mask)


def only_the_output(query, key, value, mask=None):
    return by_matmul(query, key, value, mask)[0]


def fixed_width(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(64)
    weights = scores.softmax(-1)
    return weights @ value, weights


def triangle_of_its_own(query, key, value, mask=None):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    hidden = torch.ones(scores.shape[-2:]).triu(1).bool()
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    return weights @ value, weights


def scale_axis_of_the_key_counted_from_left(query, key, value, mask=None):
    weights = (query @ key.mT / math.sqrt(key.shape[1])).softmax(-1)
    return weights @ value, weights


def only_one_of_both_by_the_fourth_root(query, key, value, mask=None):
    weights = ((query / query.shape[-1] ** 0.25) @ key.mT).softmax(-1)
    return weights @ value, weights


def divided_by_the_number_of_keys(query, key, value, mask=None):
    weights = (query @ key.mT / key.shape[-2]).softmax(-1)
    return weights @ value, weights


def truth_of_the_mask(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1)
    return weights @ value, weights


def three_axes_only(query, key, value, mask=None):
    _, _, d_k = query.shape
    weights = (query @ key.mT / math.sqrt(d_k)).softmax(-1)
    return weights @ value, weights


def value_altered(query, key, value, mask=None):
    output, weights = by_matmul(query, key, value, mask)
    value *= 0
    return output, weights


def filled_with_minus_fifty(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -50.0)
    weights = scores.softmax(-1)
    return weights @ value, weights


def padding_mask_only(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask[0], -torch.inf)
    weights = scores.softmax(-1)
    return weights @ value, weights


def numpy_inside(query, key, value, mask=None):
    output, weights = by_matmul(query.detach(), key.detach(), value.detach(), mask)
    return torch.tensor(output.numpy()), torch.tensor(weights.numpy())


def no_scale_and_no_mask_and_wrong_axis(query, key, value, mask=None):
    weights = (query @ key.mT).softmax(dim=-2)
    return weights @ value, weights


def value_masked(query, key, value, mask=None):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1)
    if mask is None:
        return weights @ value, weights
    return (weights * mask) @ value, weights


def rows_cleaned_by_where(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1) if mask is not None else scores
    if mask is None:
        weights = scores.softmax(-1)
    weights = torch.where(weights.isnan(), 0.0, weights)
    return weights @ value, weights


def float64_kept(query, key, value, mask=None):
    return by_matmul(query.double(), key.double(), value.double(), mask)


def key_by_key(query, key, value, mask=None):
    columns = [(query * key[..., j : j + 1, :]).sum(-1) for j in range(key.shape[-2])]
    scores = torch.stack(columns, dim=-1) / key.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    exponentials = (scores - scores.max(-1, keepdim=True).values).exp()
    if mask is not None:
        exponentials = exponentials * mask
    weights = exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-20)
    return torch.einsum("...ij,...jd->...id", weights, value), weights


def by_the_fused_kernel(query, key, value, mask=None):
    eye = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], key.shape[-2])
    weights = F.scaled_dot_product_attention(query, key, eye, mask)
    if mask is not None:
        weights = weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return weights @ value, weights


def softmax_told_nothing(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = torch.nn.Softmax()(scores)
    return weights @ value, weights


def key_reversed_by_T(query, key, value, mask=None):
    weights = (query @ key.permute(*range(key.ndim)[::-1]) / math.sqrt(query.shape[-1])).softmax(-1)
    return weights @ value, weights


def infinity_times_the_mask(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + (1 - mask.float()) * float("-inf")
    weights = scores.softmax(-1)
    return weights @ value, weights


def rows_divided_after_masking(query, key, value, mask=None):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1)
    if mask is not None:
        weights = weights * mask
        weights = weights / weights.sum(-1, keepdim=True)
    return weights @ value, weights


def mask_for_three_axes(query, key, value, mask=None):
    if mask is not None and mask.ndim == 2:
        mask = mask.expand(len(query), -1, -1) if query.ndim > 2 else mask
    return by_matmul(query, key, value, mask)


def any_query_opens_a_key(query, key, value, mask=None):
    return by_matmul(query, key, value, None if mask is None else mask.any(-2, keepdim=True))


def weights_dropped(query, key, value, mask=None):
    weights = F.dropout(by_matmul(query, key, value, mask)[1], 0.1)
    return weights @ value, weights


def scale_of_the_keys_first_axis(query, key, value, mask=None):
    query = query * math.sqrt(query.shape[-1] / key.size(0))
    return by_matmul(query, key, value, mask)


def one_by_one(query, key, value, mask=None):
    weights = (query * key / math.sqrt(query.shape[-1])).softmax(-1)
    return weights * value, weights


def mask_guessed(query, key, value, mask=None):
    if mask is not None and mask.ndim == 2 < query.ndim and mask.shape[0] == query.shape[0]:
        mask = mask.unsqueeze(1)
    return by_matmul(query, key, value, mask)


def largest_of_all_taken_off(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    exponentials = (scores - scores.max()).exp()
    exponentials = exponentials if mask is None else exponentials * mask
    weights = exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-9)
    return weights @ value, weights


def flat_by_baddbmm(query, key, value, mask=None):
    *leading, i, d = query.shape
    q, k, v = (t.reshape(-1, *t.shape[-2:]) for t in (query, key, value))
    low = torch.zeros(len(q), i, k.shape[1], dtype=q.dtype)
    if mask is not None:
        mask = mask.expand(*leading, i, k.shape[1]).reshape(low.shape)
        low = low.masked_fill(~mask, torch.finfo(q.dtype).min)
    weights = torch.baddbmm(low, q, k.mT, alpha=d**-0.5).softmax(-1)
    weights = weights if mask is None else weights * mask.any(-1, keepdim=True)
    output = torch.bmm(weights, v)
    return output.reshape(*leading, *output.shape[1:]), weights.reshape(*leading, i, -1)


def by_logsumexp(query, key, value, mask=None):
    scores = query @ key.mT * query.shape[-1] ** -0.5
    scores = scores if mask is None else scores.masked_fill(~mask, -1e30)
    weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()
    weights = weights if mask is None else weights.masked_fill(~mask, 0.0)
    return weights @ value, weights


RIGHT = {
    "scaled_dot_product_attention": [
        by_matmul,
        scale_split_between_both,
        computed_in_float64,
        rows_cleaned_by_where,
        float64_kept,
        key_by_key,
        by_the_fused_kernel,
        flat_by_baddbmm,
        by_logsumexp,
    ]
}
WRONG = {
    "scaled_dot_product_attention": [
        (no_scale_and_zero_fill, "no-scale", "factor"),
        (forgotten_return, None, "return"),
        (only_the_output, None, "(output, weights)"),
        (fixed_width, "fixed-scale", "0.125"),
        (triangle_of_its_own, "always-causal", "no mask was given"),
        (scale_axis_of_the_key_counted_from_left, "scale-axis-counted-from-left", "leading axes"),
        (only_one_of_both_by_the_fourth_root, None, "1/d_k^¼, not 1/√d_k"),
        (divided_by_the_number_of_keys, None, "1/n_key, not 1/√d_k"),
        (truth_of_the_mask, None, "ambiguous", "if mask:"),
        (three_axes_only, None, "not enough values to unpack", "_, _, d_k = query.shape"),
        (value_altered, None, "`value` is altered in place"),
        (filled_with_minus_fifty, "fill-too-small", "-4000"),
        (padding_mask_only, "mask-first-row-for-all", "row of its own"),
        (numpy_inside, "detached", "gradient"),
        (no_scale_and_no_mask_and_wrong_axis, "softmax-over-queries", "queries"),
        (value_masked, None, "weights"),
        (softmax_told_nothing, "softmax-without-an-axis", "not told"),
        (key_reversed_by_T, None, "RuntimeError"),
        (infinity_times_the_mask, "mask-times-infinity", "0 times infinity"),
        (mask_for_three_axes, None, "RuntimeError", "must match"),
        (any_query_opens_a_key, None, "share its weight alike"),
        (weights_dropped, "dropout", "1.111 times"),
        (scale_of_the_keys_first_axis, "scale-by-first-axis", "first axis"),
        (one_by_one, "multiplied-number-by-number", "matrix product"),
        (mask_guessed, "mask-read-as-padding", "queries and keys"),
        (largest_of_all_taken_off, "mask-renormalised", "hidden score"),
        (rows_divided_after_masking, "mask-renormalised", "NaN"),
        (renormalised_after_the_softmax, "mask-renormalised", "hide the scores before"),
    ]
}
