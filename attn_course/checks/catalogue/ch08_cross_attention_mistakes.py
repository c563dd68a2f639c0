"""Known-wrong versions of exercise 8.1, cross_attention."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from attn_course.attention import cross_attention, scaled_dot_product_attention
from attn_course.checks.exercise import Answer, Mistake
from attn_course.checks.gradients import detached_inputs
from attn_course.masks import causal_mask

EXERCISES = ()

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


PADDING_AXIS = (
    "The padding mask (b, j) has to become (b, 1, j): it says which keys of each sequence may be "
    "attended to, the same for every query."
)

MISTAKES = (
    Mistake(
        "roles-reversed",
        "The memory asks and x is looked up. In cross-attention x asks: there is one output for "
        "each token of x.",
        projected(lambda x, memory, W_q, W_k, W_v: (memory @ W_q, x @ W_k, x @ W_v)),
        also=(projected(lambda x, memory, W_q, W_k, W_v: (memory @ W_k, x @ W_q, memory @ W_v)),),
    ),
    Mistake(
        "self-attention",
        "Keys and values are made from x: this is self-attention, and the memory is not read.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, x @ W_k, x @ W_v)),
    ),
    Mistake(
        "memory-alone",
        "The queries are made from the memory: x is not read.",
        projected(lambda x, memory, W_q, W_k, W_v: (memory @ W_q, memory @ W_k, memory @ W_v)),
    ),
    Mistake(
        "keys-from-x",
        "The keys are made from x, so the scores say how x matches x. The keys belong to what is "
        "looked up, like the values.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, x @ W_k, memory @ W_v)),
    ),
    Mistake(
        "values-from-x",
        "The values are made from x. What is handed over should come from the memory.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_k, x @ W_v)),
    ),
    Mistake(
        "key-and-value-exchanged",
        "Keys are made with W_v, and values with W_k.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_v, memory @ W_k)),
    ),
    Mistake(
        "query-and-key-exchanged",
        "Queries are made with W_k, and keys with W_q.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_k, memory @ W_q, memory @ W_v)),
    ),
    Mistake(
        "value-from-key",
        "The values are made with W_k, and W_v is not used: a line copied?",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_k, memory @ W_k)),
    ),
    Mistake(
        "key-with-the-query-weight",
        "The keys are made with W_q: a line copied?",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_q, memory @ W_v)),
    ),
    Mistake(
        "values-not-projected",
        "The values are the memory as it is: W_v is not used.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_k, memory)),
    ),
    Mistake(
        "weights-transposed",
        "The weights are used transposed. They are drawn (in, out), so x @ W is all there is; "
        "nn.Linear stores them the other way round.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q.T, memory @ W_k.T, memory @ W_v.T)),
    ),
    Mistake("no-scale", "The scores are not divided by √d_k.", by_hand(scale=lambda q, s: 1.0)),
    Mistake(
        "scale-of-d-k",
        "The scores are divided by d_k. It should be its root.",
        by_hand(scale=lambda q, s: q.shape[-1]),
    ),
    Mistake(
        "scale-of-d-model",
        "The scores are divided by the root of the width of x. It should be the root of d_k, the "
        "size of a query.",
        width_scale(0),
    ),
    Mistake(
        "scale-of-d-memory",
        "The scores are divided by the root of the memory's width. It should be the root of d_k, "
        "the size of a query.",
        width_scale(1),
    ),
    Mistake(
        "scale-of-the-length",
        "The scores are divided by the root of the number of keys. It should be the root of d_k.",
        by_hand(scale=lambda q, s: sqrt(s.shape[-1])),
    ),
    Mistake(
        "softmax-over-queries",
        "The softmax runs over the queries. Each query should share out one whole among the keys.",
        by_hand(dim=-2),
    ),
    Mistake(
        "softmax-over-the-batch",
        "The softmax runs over the batch. Each query should share out one whole among the keys.",
        by_hand(dim=0),
    ),
    Mistake("no-softmax", "The values are weighted by bare scores.", attending(no_softmax)),
    Mistake(
        "padding-ignored",
        "The padding changes nothing: padded keys are attended to.",
        attending(lambda q, k, v, padding: scaled_dot_product_attention(q, k, v)),
    ),
    Mistake(
        "padding-inverted",
        "The padding mask works the other way round: True means a token, which may be attended to.",
        attending(lambda q, k, v, p: right(q, k, v, None if p is None else ~p)),
    ),
    Mistake(
        "padding-on-the-queries",
        "The padding is laid along the axis of the queries, (b, j, 1). " + PADDING_AXIS,
        attending(
            lambda q, k, v, p: scaled_dot_product_attention(
                q, k, v, None if p is None else p[:, :, None]
            )
        ),
        also=(by_hand(lift=lambda p: p[:, :, None]),),
    ),
    Mistake(
        "padding-as-it-is",
        "The padding (b, j) meets the scores (b, i, j) as it is, and is taken for (i, j). "
        + PADDING_AXIS,
        attending(scaled_dot_product_attention),
        also=(by_hand(lift=lambda p: p),),
    ),
    Mistake(
        "causal-too",
        "Part of the memory is hidden as if it lay in the future. The memory is complete before "
        "the first query is asked: only padding is hidden.",
        attending(causal_from_the_top),
        also=(attending(causal_too),),
    ),
    Mistake(
        "fill-zero",
        "The scores of padded keys are set to 0, and a key with score 0 still gets weight.",
        by_hand(fill=0.0),
        also=(by_hand(fill=1e-9),),
    ),
    Mistake(
        "memory-zeroed",
        "The padded tokens of the memory are set to zeros, and then attended to: a key of zeros "
        "has the score 0, and still gets weight.",
        zeroed_memory,
    ),
    Mistake(
        "padding-added",
        "The mask's ones and zeros are added to the scores: a padded key still gets weight.",
        attending(added),
    ),
    Mistake(
        "mask-after-softmax",
        "The weights of padded keys are set to 0 after the softmax: the others no longer sum to "
        "one.",
        attending(zeroed_after),
    ),
    Mistake(
        "empty-row-nan",
        "A memory of padding only gives NaN: a softmax over nothing but minus infinity. Here it "
        "should give zeros.",
        by_hand(),
    ),
    Mistake(
        "empty-row-mean",
        "A memory of padding only gives the mean of its values, which nobody may see. Here it "
        "should give zeros.",
        by_hand(fill=-1e9),
    ),
    Mistake(
        "output-only",
        "Only the output comes back. Asked for is the pair (output, weights).",
        lambda *args: cross_attention(*args)[0],
    ),
    Mistake(
        "pair-exchanged",
        "The pair is (weights, output). Asked for is (output, weights).",
        lambda *args: cross_attention(*args)[::-1],
    ),
    Mistake(
        "no-gradient",
        "The values are right, but no gradient reaches the weights: something detaches them.",
        detached_inputs(cross_attention),
    ),
)
