"""What the known-wrong versions of exercise 8.1, cross_attention, are made of."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from attn_course.attention import cross_attention, scaled_dot_product_attention
from attn_course.checks.exercise import Answer
from attn_course.masks import causal_mask

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Any]


def attending(attend: Attend) -> Answer:
    """Right projections, and this attention on them; it is given padding as it is."""
    return lambda x, memory, W_q, W_k, W_v, padding=None: attend(
        x @ W_q, memory @ W_k, memory @ W_v, padding
    )


def lifted(padding: Tensor | None) -> Tensor | None:
    """Padding as a mask for every query."""
    return None if padding is None else padding[:, None, :]


def right(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> Any:
    """The attention asked for."""
    return scaled_dot_product_attention(query, key, value, lifted(padding))


def projected(project: Callable[..., tuple[Tensor, Tensor, Tensor]]) -> Answer:
    """Right attention on these projections, made from all that is given but padding."""

    def version(x, memory, W_q, W_k, W_v, padding=None):
        return right(*project(x, memory, W_q, W_k, W_v), padding)

    return version


def by_hand(
    *,
    scale: Callable[[Tensor, Tensor], float] = lambda q, s: sqrt(q.shape[-1]),
    dim: int = -1,
    fill: float = -torch.inf,
    lift: Callable[[Tensor], Tensor] = lambda padding: padding[:, None, :],
) -> Answer:
    """Attention with another scale, axis, score for hidden keys, or axes for padding."""

    def attend(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> Any:
        scores = query @ key.mT
        scores = scores / scale(query, scores)
        if padding is not None:
            scores = scores.masked_fill(~lift(padding), fill)
        weights = scores.softmax(dim=dim)
        return weights @ value, weights

    return attending(attend)


def width_scale(which: int) -> Answer:
    """Divides by the root of the width of x (0) or of the memory (1)."""

    def version(*args):
        x, memory, W_q, W_k, W_v, *padding = args
        factor = sqrt(W_q.shape[-1] / (x, memory)[which].shape[-1])
        return cross_attention(x, memory, W_q * factor, W_k, W_v, *padding)

    return version


def zeroed_after(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> Any:
    """Takes hidden weights away behind the softmax."""
    weights = (query @ key.mT / sqrt(query.shape[-1])).softmax(dim=-1)
    weights = weights if padding is None else weights * padding[:, None, :]
    return weights @ value, weights


def no_softmax(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> Any:
    """Weighs the values by bare scores."""
    scores = query @ key.mT / sqrt(query.shape[-1])
    scores = scores if padding is None else scores * padding[:, None, :]
    return scores @ value, scores


def causal_too(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> Any:
    """Gives the decoder's own mask to the memory; fits where the lengths allow it."""
    mask = causal_mask(query.shape[-2], max(query.shape[-2], key.shape[-2]))[:, : key.shape[-2]]
    mask = mask if padding is None else mask & padding[:, None, :]
    return scaled_dot_product_attention(query, key, value, mask)


def causal_from_the_top(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> Any:
    """The same, aligned at the top left."""
    mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
    mask = mask if padding is None else mask & padding[:, None, :]
    return scaled_dot_product_attention(query, key, value, mask)


def added(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> Any:
    """Adds the mask's ones and zeros to the scores."""
    scores = query @ key.mT / sqrt(query.shape[-1])
    scores = scores if padding is None else scores + padding[:, None, :]
    weights = scores.softmax(dim=-1)
    return weights @ value, weights


def zeroed_memory(x, memory, W_q, W_k, W_v, padding=None):
    """Hides nothing, but hands over zeros."""
    memory = memory if padding is None else memory * padding[..., None]
    return cross_attention(x, memory, W_q, W_k, W_v)


def cleaned_at_the_end(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> Any:
    """Adds minus infinity, and replaces NaN in what comes out."""
    scores = query @ key.mT / sqrt(query.shape[-1])
    if padding is not None:
        hidden = torch.zeros(padding.shape, dtype=scores.dtype).masked_fill(~padding, -torch.inf)
        scores = scores + hidden[:, None, :]
    weights = scores.softmax(dim=-1)
    return (weights @ value).nan_to_num(), weights.nan_to_num()


def filled_and_cleaned(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> Any:
    """The same, with scores that are filled; its weights are not clean before they are used."""
    scores = query @ key.mT / sqrt(query.shape[-1])
    if padding is not None:
        scores = scores.masked_fill(~padding[:, None, :], -torch.inf)
    weights = scores.softmax(dim=-1)
    return (weights @ value).nan_to_num(), weights.nan_to_num()


def joined(x, memory, W_q, W_k, W_v, padding=None):
    """Looks up in both sequences, one after the other."""
    both = torch.cat([x, memory], dim=1)
    seen = None if padding is None else torch.cat([padding.new_ones(x.shape[:2]), padding], dim=1)
    return cross_attention(x, both, W_q, W_k, W_v, seen)


def cut_out(x, memory, W_q, W_k, W_v, padding=None):
    """Takes the padded tokens away."""
    memory = memory if padding is None else memory[padding][None]
    return cross_attention(x, memory, W_q, W_k, W_v)


def unshifted(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> Any:
    """Exponentials of the scores as they are; NaN, where they overflow, becomes 0."""
    scores = query @ key.mT / sqrt(query.shape[-1])
    scores = scores if padding is None else scores.masked_fill(~padding[:, None, :], -torch.inf)
    weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
    return weights.nan_to_num() @ value, weights.nan_to_num()


def crossed(attention: Answer) -> Answer:
    """A version of chapter 03's attention, on right projections and the padding as a mask."""
    return attending(lambda q, k, v, padding: attention(q, k, v, lifted(padding)))


def returning(make: Callable[..., Any]) -> Answer:
    """A version that makes its pair from the right output and weights, and all it was given."""
    return lambda *args: make(*cross_attention(*args), *args)
