"""Known-wrong versions of exercise 4.2, SelfAttention."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from attn_course.attention import scaled_dot_product_attention
from attn_course.checks.exercise import Answer, Mistake
from attn_course.checks.modules import of_repeated_calls
from attn_course.masks import causal_mask

Forward = Callable[[Any, Tensor, Tensor | None], Any]
Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Any]


def version(forward: Forward, make: Callable[[Any, int, int], None] | None = None) -> Answer:
    """A layer with this forward pass, whose parts are the right ones unless `make` is given."""

    class Layer(nn.Module):
        def __init__(self, d_model: int, d_k: int) -> None:
            super().__init__()
            if make is not None:
                make(self, d_model, d_k)
            else:
                for role in ("W_q", "W_k", "W_v"):
                    setattr(self, role, nn.Linear(d_model, d_k, bias=False))

        def forward(self, x: Tensor, mask: Tensor | None = None) -> Any:
            return forward(self, x, mask)

    return Layer


def from_parts(query: str, key: str, value: str) -> Answer:
    """A layer that takes these projections for the three roles."""
    return version(
        lambda layer, x, mask: scaled_dot_product_attention(
            getattr(layer, query)(x), getattr(layer, key)(x), getattr(layer, value)(x), mask
        )
    )


def right(layer: Any, x: Tensor, mask: Tensor | None = None) -> Any:
    """The forward pass asked for."""
    return scaled_dot_product_attention(layer.W_q(x), layer.W_k(x), layer.W_v(x), mask)


def attending(attend: Attend) -> Answer:
    """A layer with right projections and this attention."""
    return version(lambda layer, x, mask: attend(layer.W_q(x), layer.W_k(x), layer.W_v(x), mask))


def weighted(
    *,
    scale: Callable[[Tensor, Tensor], float] = lambda q, s: sqrt(q.shape[-1]),
    dim: int = -1,
    fill: float = -torch.inf,
) -> Answer:
    """Attention by hand, with another scale, another axis, or another score for hidden keys."""

    def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Any:
        scores = query @ key.mT
        scores = scores / scale(query, scores)
        if mask is not None:
            scores = scores.masked_fill(~mask, fill)
        weights = scores.softmax(dim=dim)
        return weights @ value, weights

    return attending(attend)


def from_widths(fill: float) -> Answer:
    """Attention by hand, scaled by the width of a token."""

    def forward(layer: Any, x: Tensor, mask: Tensor | None) -> Any:
        scores = layer.W_q(x) @ layer.W_k(x).mT / sqrt(x.shape[-1])
        scores = scores if mask is None else scores.masked_fill(~mask, fill)
        weights = scores.softmax(dim=-1)
        return weights @ layer.W_v(x), weights

    return version(forward)


def cleaned_at_the_end(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Any:
    """Replaces NaN in what comes out, and multiplies with it before."""
    scores = query @ key.mT / sqrt(query.shape[-1])
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1)
    return (weights @ value).nan_to_num(0.0), weights.nan_to_num(0.0)


def added_and_cleaned(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Any:
    """The same, with minus infinity added to the scores."""
    scores = query @ key.mT / sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1)
    return (weights @ value).nan_to_num(0.0), weights.nan_to_num(0.0)


def added(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Any:
    """Adds the mask to the scores, as numbers."""
    scores = query @ key.mT / sqrt(query.shape[-1])
    weights = (scores if mask is None else scores + mask).softmax(dim=-1)
    return weights @ value, weights


def zeroed_after(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Any:
    """Takes hidden weights away behind the softmax."""
    weights = (query @ key.mT / sqrt(query.shape[-1])).softmax(dim=-1)
    weights = weights if mask is None else weights * mask
    return weights @ value, weights


def no_softmax(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Any:
    """Weighs the values by bare scores."""
    scores = query @ key.mT / sqrt(query.shape[-1])
    scores = scores if mask is None else scores * mask
    return scores @ value, scores


def chained(layer: Any, x: Tensor, mask: Tensor | None) -> Any:
    """Makes each projection from the one before; fits square weights only."""
    query = layer.W_q(x)
    key = layer.W_k(query)
    return scaled_dot_product_attention(query, key, layer.W_v(key), mask)


def always_causal(layer: Any, x: Tensor, mask: Tensor | None) -> Any:
    """Hides the future unasked."""
    causal = causal_mask(x.shape[-2])
    return right(layer, x, causal if mask is None else mask & causal)


def detached(layer: Any, x: Tensor, mask: Tensor | None) -> Any:
    """Runs without a graph."""
    with torch.no_grad():
        return right(layer, x, mask)


def from_data(layer: Any, x: Tensor, mask: Tensor | None) -> Any:
    """Takes the weights without their graph."""
    query, key, value = (x @ part.weight.data.T for part in (layer.W_q, layer.W_k, layer.W_v))
    return scaled_dot_product_attention(query, key, value, mask)


def shared(layer: Any, d_model: int, d_k: int) -> None:
    """Makes one projection under three names."""
    layer.W_q = layer.W_k = layer.W_v = plain(d_model, d_k)


def made_anew(layer: Any, x: Tensor, mask: Tensor | None) -> Any:
    """Makes projections at each call."""
    d_k, d_model = layer.W_q.weight.shape
    query, key, value = (nn.Linear(d_model, d_k, bias=False).to(x.dtype)(x) for _ in range(3))
    return scaled_dot_product_attention(query, key, value, mask)


def key_made_anew(layer: Any, x: Tensor, mask: Tensor | None) -> Any:
    """Makes one projection at each call."""
    d_k, d_model = layer.W_q.weight.shape
    key = nn.Linear(d_model, d_k, bias=False).to(x.dtype)(x)
    return scaled_dot_product_attention(layer.W_q(x), key, layer.W_v(x), mask)


def dropped(layer: Any, x: Tensor, mask: Tensor | None) -> Any:
    """Drops a part of what comes out."""
    output, weights = right(layer, x, mask)
    return nn.functional.dropout(output, 0.1, layer.training), weights


def with_parts(**parts: Callable[[int, int], Any]) -> Answer:
    """A layer made of these parts, and right in its forward pass."""

    def make(layer: Any, d_model: int, d_k: int) -> None:
        for name, part in parts.items():
            setattr(layer, name, part(d_model, d_k))

    return version(right, make)


def plain(d_model: int, d_k: int) -> nn.Linear:
    """The projection asked for."""
    return nn.Linear(d_model, d_k, bias=False)


MISTAKES = (
    Mistake(
        "bias",
        "The projections have biases. nn.Linear has one unless it is told otherwise; here none is "
        "asked for, so that x W_q is all there is.",
        with_parts(W_q=nn.Linear, W_k=nn.Linear, W_v=nn.Linear),
    ),
    Mistake(
        "output-projection",
        "There is a fourth projection. W_o comes with several heads, in chapter 05.",
        with_parts(W_q=plain, W_k=plain, W_v=plain, W_o=lambda d_model, d_k: plain(d_k, d_model)),
    ),
    Mistake(
        "sizes-exchanged",
        "The projections go from d_k to d_model. nn.Linear takes the size that comes in first, "
        "then the one that goes out.",
        with_parts(**dict.fromkeys(("W_q", "W_k", "W_v"), lambda d, k: plain(k, d))),
    ),
    Mistake(
        "square-projections",
        "The projections lead back to d_model features. They should lead to d_k.",
        with_parts(**dict.fromkeys(("W_q", "W_k", "W_v"), lambda d, k: plain(d, d))),
    ),
    Mistake(
        "one-projection",
        "There is only one projection for all three roles. A token's question, what it is found "
        "by and what it gives are three things.",
        with_parts(W_q=plain),
        also=(version(right, shared),),
    ),
    Mistake(
        "in-a-list",
        "The layer has no parameters: a plain Python list or dict hides its modules from "
        "nn.Module, so that they are neither trained nor saved. Set them as self.W_q, …",
        with_parts(projections=lambda d, k: [plain(d, k) for _ in range(3)]),
    ),
    Mistake(
        "fused",
        "One projection makes all three at once. That computes the same, but here weights are "
        "exchanged by role: self.W_q, self.W_k, self.W_v.",
        with_parts(W_qkv=lambda d, k: plain(d, 3 * k)),
    ),
    Mistake(
        "bare-parameters",
        "The weights are bare parameters. Asked for are three nn.Linear, which store theirs as "
        "(d_k, d_model).",
        with_parts(
            **dict.fromkeys(
                ("W_q", "W_k", "W_v"), lambda d, k: nn.Parameter(torch.randn(d, k) / sqrt(d))
            )
        ),
        also=(
            with_parts(
                **dict.fromkeys(
                    ("W_q", "W_k", "W_v"), lambda d, k: nn.Parameter(torch.randn(k, d) / sqrt(d))
                )
            ),
        ),
    ),
    Mistake(
        "weight-not-transposed",
        "x is multiplied by W.weight as nn.Linear stores it, (d_k, d_model). Call the projection, "
        "self.W_q(x), or transpose its weight.",
        version(
            lambda layer, x, mask: scaled_dot_product_attention(
                x @ layer.W_q.weight, x @ layer.W_k.weight, x @ layer.W_v.weight, mask
            )
        ),
    ),
    Mistake(
        "query-and-key-exchanged",
        "Queries are made with W_k, and keys with W_q. The scores are transposed then: row i "
        "should hold what token i asks of all others.",
        from_parts("W_k", "W_q", "W_v"),
    ),
    Mistake(
        "key-from-query",
        "The keys are made with W_q: a line copied and not changed? Scores are symmetric then.",
        from_parts("W_q", "W_q", "W_v"),
    ),
    Mistake(
        "query-from-key",
        "The queries are made with W_k: a line copied and not changed? Scores are symmetric then.",
        from_parts("W_k", "W_k", "W_v"),
    ),
    Mistake(
        "value-from-key",
        "The values are made with W_k, and W_v is not used.",
        from_parts("W_q", "W_k", "W_k"),
    ),
    Mistake(
        "value-from-query",
        "The values are made with W_q, and W_v is not used.",
        from_parts("W_q", "W_k", "W_q"),
    ),
    Mistake(
        "key-and-value-exchanged",
        "Keys are made with W_v, and values with W_k.",
        from_parts("W_q", "W_v", "W_k"),
    ),
    Mistake(
        "values-not-projected",
        "The values are the tokens themselves: W_v is not used.",
        version(
            lambda layer, x, mask: scaled_dot_product_attention(layer.W_q(x), layer.W_k(x), x, mask)
        ),
    ),
    Mistake(
        "not-projected",
        "Queries and keys are the tokens themselves: W_q and W_k are not used.",
        version(lambda layer, x, mask: scaled_dot_product_attention(x, x, layer.W_v(x), mask)),
    ),
    Mistake(
        "chained",
        "Each projection starts from the result of the one before. All three start from x.",
        version(chained),
    ),
    Mistake("no-scale", "The scores are not divided by √d_k.", weighted(scale=lambda q, s: 1.0)),
    Mistake(
        "scale-of-d-k",
        "The scores are divided by d_k. It should be its root.",
        weighted(scale=lambda q, s: q.shape[-1]),
    ),
    Mistake(
        "scale-of-d-model",
        "The scores are divided by the root of d_model. A query has d_k numbers, and it is the "
        "root of their number.",
        version(
            lambda layer, x, mask: scaled_dot_product_attention(
                layer.W_q(x) * sqrt(layer.W_q.out_features / x.shape[-1]),
                layer.W_k(x),
                layer.W_v(x),
                mask,
            )
        ),
        also=(from_widths(fill=-torch.inf), from_widths(fill=-1e9)),
    ),
    Mistake(
        "softmax-axis-counted-from-left",
        "The axis of the softmax is counted from the left, so that it is that of the keys for some "
        "shapes only. The last axis is -1, whatever stands before it.",
        weighted(dim=2),
        also=(weighted(dim=1), weighted(dim=2, fill=-1e9), weighted(dim=1, fill=-1e9)),
    ),
    Mistake(
        "scale-axis-counted-from-left",
        "The scores are divided by the root of a size whose axis is counted from the left, so "
        "that it is d_k for some shapes only. The last axis is -1, whatever stands before it.",
        weighted(scale=lambda q, s: sqrt(q.shape[1])),
        also=(weighted(scale=lambda q, s: sqrt(q.shape[1]), fill=-1e9),),
    ),
    Mistake(
        "scale-of-the-length",
        "The scores are divided by the root of the number of tokens. It should be the root of d_k, "
        "the size of a query.",
        weighted(scale=lambda q, s: sqrt(s.shape[-1])),
    ),
    Mistake(
        "softmax-over-queries",
        "The softmax runs over the queries: columns of the weights sum to one, not rows. Each "
        "query should share out one whole among the keys.",
        weighted(dim=-2),
    ),
    Mistake(
        "no-softmax",
        "The values are weighted by bare scores: there is no softmax.",
        attending(no_softmax),
    ),
    Mistake(
        "mask-ignored",
        "The mask changes nothing. Does forward hand it on, that of this call and no earlier one?",
        attending(lambda q, k, v, mask: scaled_dot_product_attention(q, k, v)),
    ),
    Mistake(
        "mask-inverted",
        "The mask works the other way round: True means “may attend”.",
        attending(
            lambda q, k, v, mask: scaled_dot_product_attention(
                q, k, v, None if mask is None else ~mask
            )
        ),
    ),
    Mistake(
        "always-causal",
        "The future is hidden without being asked: without a mask, every token sees all others.",
        version(always_causal),
    ),
    Mistake(
        "fill-zero",
        "Hidden scores are set to 0, and a key with score 0 still gets weight.",
        weighted(fill=0.0),
    ),
    Mistake(
        "mask-added",
        "The mask is added to the scores as 0 and 1: hidden keys are only 1 behind.",
        attending(added),
    ),
    Mistake(
        "mask-after-softmax",
        "Hidden weights are set to 0 after the softmax: the others no longer sum to one.",
        attending(zeroed_after),
    ),
    Mistake(
        "empty-row-nan",
        "A query that may attend to nothing gives NaN: a softmax over nothing but minus infinity. "
        "Here it should give zeros.",
        weighted(),
    ),
    Mistake(
        "empty-row-mean",
        "A query that may attend to nothing gets the mean of all values, those that it may not "
        "see. Here it should get zeros.",
        weighted(fill=-1e9),
    ),
    Mistake(
        "gradient-nan",
        "The output is clean, but where a query may attend to nothing the gradient is NaN: NaN "
        "arose inside and was replaced only at the end. It must not arise.",
        attending(cleaned_at_the_end),
        also=(attending(added_and_cleaned),),
    ),
    Mistake(
        "residual",
        "The tokens themselves are added to the output. That residual comes in chapter 07, outside "
        "of attention.",
        version(
            lambda layer, x, mask: (
                right(layer, x, mask)[0] + layer.W_v(x),
                right(layer, x, mask)[1],
            )
        ),
    ),
    Mistake(
        "output-only",
        "Only the output comes back. Asked for is the pair (output, weights).",
        version(lambda layer, x, mask: right(layer, x, mask)[0]),
    ),
    Mistake(
        "pair-exchanged",
        "The pair is (weights, output). Asked for is (output, weights).",
        version(lambda layer, x, mask: right(layer, x, mask)[::-1]),
    ),
    Mistake(
        "no-gradient",
        "No gradient reaches the weights: forward runs under no_grad, or detaches, so nothing of "
        "it would be trained.",
        version(detached),
        also=(version(from_data),),
    ),
    *of_repeated_calls(
        dropping=(version(dropped),),
        made_anew=(version(made_anew), version(key_made_anew)),
    ),
)
