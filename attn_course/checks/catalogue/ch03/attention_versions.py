"""Attention with its joints open, and versions of it that go wrong, for exercises 3.2 and 3.4."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attn_course.checks.exercise import Answer


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    scale: Any = lambda query, key, value: 1 / math.sqrt(query.shape[-1]),
    normalise: Any = lambda scores: scores.softmax(-1),
    mask_scores: Any = None,
    mask_weights: Any = None,
    after: Any = None,
) -> tuple[Tensor, Tensor]:
    """Attention with its joints open: each mistake replaces one of them."""
    scores = query @ key.mT * scale(query, key, value)
    empty = torch.zeros((), dtype=torch.bool) if mask is None else ~mask.any(-1, keepdim=True)
    if mask is not None and mask_scores:
        scores = mask_scores(scores, mask)
    elif mask is not None and mask_weights is None:
        scores = scores.masked_fill(~mask, -math.inf).masked_fill(empty, 0.0)
    weights = normalise(scores)
    if mask is not None and mask_weights:
        weights = mask_weights(weights, mask)
    elif mask is not None and not mask_scores:
        weights = weights.masked_fill(empty, 0.0)
    if after:
        weights = after(weights, query)
    return weights @ value, weights


def scaled_by(rule: Any) -> Answer:
    """A version whose scale follows another rule of the three shapes."""
    return partial(attention, scale=rule)


def normalised_by(normalise: Any) -> Answer:
    """A version with something else in the softmax's place."""
    return partial(attention, normalise=normalise)


def filled_with(fill: float) -> Answer:
    """A version that writes `fill` where it should write minus infinity."""
    return partial(attention, mask_scores=lambda scores, mask: scores.masked_fill(~mask, fill))


def with_mask(change: Any) -> Answer:
    """A version that attends under another mask than the one it is given."""
    return lambda q, k, v, mask=None: attention(q, k, v, None if mask is None else change(mask))


def returning(pick: Any) -> Answer:
    """A version that is right but returns something else."""
    return lambda q, k, v, mask=None: pick(*attention(q, k, v, mask), q, k, v)


def masked_gradient_nan(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Cleans NaN in the result only; the gradient has met it already."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(~mask, -math.inf)
    weights = scores.softmax(-1)
    return (weights @ value).nan_to_num(), weights.nan_to_num()


def unstable(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Exponentiates the scores as they are."""
    exponentials = (query @ key.mT / math.sqrt(query.shape[-1])).exp()
    if mask is None:
        weights = exponentials / exponentials.sum(-1, keepdim=True)
    else:
        exponentials = exponentials * mask
        total = exponentials.sum(-1, keepdim=True)
        weights = exponentials / total.masked_fill(~mask.any(-1, keepdim=True), 1.0)
    return weights @ value, weights


def always_causal(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Hides the future always, whatever mask is given."""
    return attention(query, key, value, _triangle(query, key))


def causal_when_masked(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Builds a causal mask in place of the one that is given."""
    return attention(query, key, value, None if mask is None else _triangle(query, key))


def _triangle(query: Tensor, key: Tensor) -> Tensor:
    return torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()


def keys_for_values(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Sums the keys, not the values."""
    _, weights = attention(query, key, value, mask)
    return weights @ key, weights


def hard_choice(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Gives all weight to the best key."""
    _, soft = attention(query, key, value, mask)
    weights = torch.zeros_like(soft).scatter(-1, soft.argmax(-1, keepdim=True), 1.0)
    return weights @ value, weights


def cosine(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Compares directions only: the vectors' lengths are divided out."""
    query = query / query.norm(dim=-1, keepdim=True).clamp(min=1e-8)
    key = key / key.norm(dim=-1, keepdim=True).clamp(min=1e-8)
    return attention(query, key, value, mask, scale=lambda q, k, v: 1.0)


def with_mask_as_index(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Picks the hidden scores by a mask that has fewer axes than they."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is None:
        weights = scores.softmax(-1)
    else:
        empty = ~mask.any(-1, keepdim=True)
        scores[~(mask | empty)] = -math.inf
        weights = scores.softmax(-1).masked_fill(empty, 0.0)
    return weights @ value, weights


def without_dim(scores: Tensor) -> Tensor:
    """What `F.softmax(scores)` does: it chooses the axis by the number of axes."""
    return scores.softmax(0 if scores.ndim in (0, 1, 3) else 1)


def in_place(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Divides the caller's own query."""
    query /= math.sqrt(query.shape[-1])
    return attention(query, key, value, mask, scale=lambda q, k, v: 1.0)


def guessing_padding(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Takes (i, j) for (b, j) as soon as there are as many sequences as queries."""
    if mask is not None and mask.ndim == 2 and query.ndim == 3 and len(mask) == len(query):
        mask = mask[:, None]
    return attention(query, key, value, mask)


def without_largest_of_all(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, least: float
):
    """Takes one number off all scores, in place of one for each row."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    exponentials = (scores - scores.max()).exp()
    exponentials = exponentials if mask is None else exponentials * mask
    total = exponentials.sum(-1, keepdim=True)
    if mask is not None:
        total = total.masked_fill(~mask.any(-1, keepdim=True), 1.0)
    weights = exponentials / total.clamp(min=least)
    return weights @ value, weights


def elementwise(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    values_too: bool = False,
):
    """Multiplies number by number, which broadcasts for one query."""
    weights = (query * key / math.sqrt(query.shape[-1])).softmax(-1)
    return weights * value if values_too else weights @ value, weights


def dropping(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Drops a tenth of the weights."""
    _, weights = attention(query, key, value, mask)
    weights = torch.nn.functional.dropout(weights, 0.1)
    return weights @ value, weights
