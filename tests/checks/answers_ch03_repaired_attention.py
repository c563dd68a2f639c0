"""Answers to exercise 3.5: the faulty version with its faults mended in different orders."""

import math
from functools import partial

import torch

FAULTS = (
    "query-altered",
    "softmax-axis-counted-from-left",
    "scale-by-values",
    "mask-inverted",
    "unstable-softmax",
    "empty-row-mean",
)


def faulty(query, key, value, mask=None, *, mended=()):
    """The version that the exercise gives, with the named faults mended."""
    width = value.shape[-1] if "scale-by-values" not in mended else query.shape[-1]
    if "query-altered" in mended:
        query = query / math.sqrt(width)
    else:
        query /= math.sqrt(width)
    scores = query @ key.mT
    if mask is not None:
        hidden = mask if "mask-inverted" not in mended else ~mask
        scores = scores.masked_fill(hidden, -1e9)
    dim = 1 if "softmax-axis-counted-from-left" not in mended else -1
    if "unstable-softmax" in mended:
        scores = scores - scores.amax(dim=dim, keepdim=True)
    exponentials = scores.exp()
    weights = exponentials / exponentials.sum(dim=dim, keepdim=True)
    if mask is not None and "empty-row-mean" in mended:
        weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    return weights @ value, weights


def with_mended(*faults):
    answer = partial(faulty, mended=faults)
    answer.__name__ = "faulty_but_" + ("_and_".join(faults) or "nothing")
    return answer


def by_torch_softmax(query, key, value, mask=None):
    scores = query / math.sqrt(query.shape[-1]) @ key.mT
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        empty = ~mask.any(dim=-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(~(mask | empty), -math.inf), dim=-1)
        weights = weights.masked_fill(empty, 0.0)
    return weights @ value, weights


def nan_made_zero(query, key, value, mask=None):
    scores = query / math.sqrt(query.shape[-1]) @ key.mT
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return (weights @ value).nan_to_num(), weights.nan_to_num()


def empty_rows_left_nan(query, key, value, mask=None):
    scores = query / math.sqrt(query.shape[-1]) @ key.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ value, weights


def largest_of_all_taken_off(query, key, value, mask=None):
    scores = query / math.sqrt(query.shape[-1]) @ key.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    exponentials = (scores - scores.max()).exp()
    weights = exponentials / exponentials.sum(dim=-1, keepdim=True)
    return weights @ value, weights


# in the order of the check, and each fault as the last one that is left
ONE_AFTER_ANOTHER = [(with_mended(*FAULTS[:n]), FAULTS[n]) for n in range(len(FAULTS))]
LAST_ONE_LEFT = [(with_mended(*(f for f in FAULTS if f != left)), left) for left in FAULTS]
FIRST_ONE_MENDED = [(with_mended(first), FAULTS[0]) for first in FAULTS[1:]]

RIGHT = {"repaired_attention": [with_mended(*FAULTS), by_torch_softmax]}
WRONG = {
    "repaired_attention": [
        *ONE_AFTER_ANOTHER,
        *LAST_ONE_LEFT,
        *FIRST_ONE_MENDED,
        (nan_made_zero, "gradient-nan", "must not arise"),
        (empty_rows_left_nan, "empty-row-nan", "0/0"),
        (largest_of_all_taken_off, "largest-of-all-taken-off", "NaN"),
    ]
}
