"""The wrong ways to build and to call multi-head attention, of exercise 5.3."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from einops import rearrange, repeat
from torch import Tensor, nn

from attn_course.attention import scaled_dot_product_attention
from attn_course.checks.exercise import Answer
from attn_course.masks import lift_mask
from attn_course.multihead import merge_heads, split_heads

ROLES = ("W_q", "W_k", "W_v", "W_o")

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]
Forward = Callable[[Any, Tensor, Tensor, Tensor, Tensor | None], Any]
Make = Callable[[Any, int, int], None]


def version(forward: Forward, make: Make | None = None, *, checked: bool = True) -> Answer:
    """A layer with this forward pass, whose parts are the right ones unless `make` is given."""

    class Layer(nn.Module):
        def __init__(self, d_model: int, num_heads: int) -> None:
            super().__init__()
            if checked and d_model % num_heads != 0:
                raise ValueError(f"{d_model} features, {num_heads} heads")
            self.num_heads = num_heads
            if make is not None:
                make(self, d_model, num_heads)
                return
            for role in ROLES:
                setattr(self, role, nn.Linear(d_model, d_model))

        def forward(
            self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
        ) -> Any:
            return forward(self, query, key, value, mask)

    return Layer


# -- the forward pass, with one step exchanged ------------------------------------------------


def lifted(mask: Tensor | None) -> Tensor | None:
    """The mask with four axes."""
    return None if mask is None else lift_mask(mask)


def plain_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
    """Attention as it should be."""
    return scaled_dot_product_attention(q, k, v, lifted(mask))


def steps(
    *,
    roles: tuple[str, str, str] = ("W_q", "W_k", "W_v"),
    split: Callable[[Tensor, int], Tensor] = split_heads,
    merge: Callable[[Tensor], Tensor] = merge_heads,
    attend: Attend = plain_attention,
    project: Callable[[nn.Linear, Tensor], Tensor] = lambda linear, x: linear(x),
    out: Callable[[Any, Tensor], Tensor] = lambda layer, x: layer.W_o(x),
) -> Forward:
    """The forward pass: project, split, attend, merge, project; any step may be another."""

    def forward(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Any:
        q, k, v = (
            split(project(getattr(layer, role), x), layer.num_heads)
            for role, x in zip(roles, (query, key, value), strict=True)
        )
        output, weights = attend(q, k, v, mask)
        return out(layer, merge(output)), weights

    return forward


right = steps()


def with_step(**step: Any) -> Answer:
    """A layer in whose forward pass these steps are exchanged."""
    return version(steps(**step))


def fed(choose: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]) -> Answer:
    """A layer that takes its query, key and value from the wrong places."""
    return version(lambda layer, q, k, v, mask: right(layer, *choose(q, k, v), mask))


def masked(treat: Callable[[Tensor], Tensor | None]) -> Answer:
    """A layer that treats a mask in this way before it attends."""
    return with_step(
        attend=lambda q, k, v, mask: scaled_dot_product_attention(
            q, k, v, None if mask is None else treat(mask)
        )
    )


def attending_under_a_mask(attend: Answer) -> Answer:
    """A layer with this attention, which is given the mask with four axes."""
    return with_step(attend=lambda q, k, v, mask: attend(q, k, v, lifted(mask)))


def weakly_hidden(fill: float) -> Answer:
    """An attention whose hidden keys get this score; rows without an open key are zeros."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        scores = q @ k.mT / sqrt(q.shape[-1])
        mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
        weights = scores.masked_fill(~mask, fill).softmax(dim=-1) * mask.any(dim=-1, keepdim=True)
        return weights @ v, weights

    return attend


def by_hand(
    *,
    scale: Callable[[Tensor, Tensor], float] = lambda q, k: sqrt(q.shape[-1]),
    dim: int = -1,
    fill: float = -torch.inf,
) -> Answer:
    """Attention by hand, with another scale, another axis, or another score for hidden keys."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        scores = q @ k.mT / scale(q, k)
        if mask is not None:
            scores = scores.masked_fill(~lift_mask(mask), fill)
        weights = scores.softmax(dim=dim)
        return weights @ v, weights

    return with_step(attend=attend)


def no_softmax(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
    """Weighs the values by bare scores."""
    scores = q @ k.mT / sqrt(q.shape[-1])
    scores = scores if mask is None else scores * lift_mask(mask)
    return scores @ v, scores


def zeroed_after(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
    """Takes hidden weights away behind the softmax."""
    weights = (q @ k.mT / sqrt(q.shape[-1])).softmax(dim=-1)
    weights = weights if mask is None else weights * lift_mask(mask)
    return weights @ v, weights


def filled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
    """Lets the mask broadcast as it will."""
    scores = q @ k.mT / sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


def filled_and_cleared(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
    """The same, with zeros for rows in which nothing may be seen."""
    weights = filled(q, k, v, mask)[1].nan_to_num(0.0)
    return weights @ v, weights


def tiled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
    """Makes one axis of sequences and heads, and lays the masks one after the other on it."""
    if mask is not None:
        mask = lift_mask(mask)
        b, h = q.shape[:2]
        if mask.shape[:2] == (b, 1):
            mask = mask[:, 0].repeat(h, 1, 1).unflatten(0, (b, h))
    return scaled_dot_product_attention(q, k, v, mask)


def added(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
    """Adds a mask of ones and zeros to the scores."""
    scores = q @ k.mT / sqrt(q.shape[-1])
    weights = (scores if mask is None else scores + lift_mask(mask)).softmax(dim=-1)
    return weights @ v, weights


def cleared_afterwards(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
    """Clears NaN where it can be seen, and leaves it in the gradient."""
    scores = q @ k.mT / sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(~lift_mask(mask), -torch.inf)
    weights = scores.softmax(dim=-1)
    return (weights @ v).nan_to_num(0.0), weights.nan_to_num(0.0)


def no_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
    """Takes the fused kernel, which has no weights to show."""
    output, _ = plain_attention(q, k, v, mask)
    return output, None


def reported(choose: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Answer:
    """A layer whose output is right, and which returns something else for the weights."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        output, weights = plain_attention(q, k, v, mask)
        return output, choose(q, k, weights)

    return with_step(attend=attend)


def detached_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
    """Sums the values by weights that have no graph."""
    _, weights = plain_attention(q, k, v, mask)
    return weights.detach() @ v, weights


# -- heads cut and joined in wrong ways -------------------------------------------------------


def view_split(x: Tensor, num_heads: int) -> Tensor:
    """(b, h, n, d) counted off anew."""
    b, n, d_model = x.shape
    return x.reshape(b, num_heads, n, d_model // num_heads)


def view_merge(x: Tensor) -> Tensor:
    """(b, n, h d) counted off anew."""
    b, h, n, d = x.shape
    return x.reshape(b, n, h * d)


def features_first_split(x: Tensor, num_heads: int) -> Tensor:
    """Heads interleaved."""
    return rearrange(x, "b n (d h) -> b h n d", h=num_heads)


def features_first_merge(x: Tensor) -> Tensor:
    """Heads interleaved again."""
    return rearrange(x, "b h n d -> b n (d h)")


def averaged_heads(x: Tensor) -> Tensor:
    """The mean of the heads in the place of each."""
    return repeat(x.mean(dim=1), "b n d -> b n (h d)", h=x.shape[1])


def summed_heads(x: Tensor) -> Tensor:
    """The sum of the heads in the place of each."""
    return repeat(x.sum(dim=1), "b n d -> b n (h d)", h=x.shape[1])


# -- whole forward passes ---------------------------------------------------------------------


def as_one_head(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Any:
    """Does not split."""
    heads, layer.num_heads = layer.num_heads, 1
    try:
        return right(layer, query, key, value, mask)
    finally:
        layer.num_heads = heads


def averaged(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Any:
    """Returns the mean of the heads' weights."""
    output, weights = right(layer, query, key, value, mask)
    return output, weights.mean(dim=1)


def cleared(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Any:
    """Clears the output of a query that sees nothing, W_o's bias included."""
    output, weights = right(layer, query, key, value, mask)
    empty = ~weights.any(dim=-1).any(dim=1)
    return output.masked_fill(empty[..., None], 0.0), weights


def textbook(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Any:
    """The forward pass of many tutorials: every mask gets an axis in the second place."""
    mask = None if mask is None else mask.unsqueeze(1)
    b, h = query.shape[0], layer.num_heads
    q, k, v = (
        linear(x).view(b, -1, h, x.shape[-1] // h).transpose(1, 2)
        for linear, x in ((layer.W_q, query), (layer.W_k, key), (layer.W_v, value))
    )
    scores = q @ k.mT / sqrt(q.shape[-1])
    scores = scores if mask is None else scores.masked_fill(mask == 0, -1e9)
    weights = scores.softmax(dim=-1)
    output = (weights @ v).transpose(1, 2).contiguous().view(b, -1, h * q.shape[-1])
    return layer.W_o(output), weights


def over_the_heads(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Any:
    """Attends in (b, n, h, d): each token among its own heads."""
    h = layer.num_heads
    q, k, v = (
        linear(x).unflatten(-1, (h, -1))
        for linear, x in ((layer.W_q, query), (layer.W_k, key), (layer.W_v, value))
    )
    weights = (q @ k.mT / sqrt(q.shape[-1])).softmax(dim=-1)
    return layer.W_o((weights @ v).flatten(2)), weights


def of_the_querys_length(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Any:
    """Takes it that there are as many keys as queries."""
    b, n, d_model = query.shape

    def split(x: Tensor, h: int) -> Tensor:
        return x.view(b, n, h, d_model // h).transpose(1, 2)

    return steps(split=split)(layer, query, key, value, mask)


def sequence_first(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Any:
    """Attends over the batch."""
    turned = (query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1))
    output, weights = right(layer, *turned, mask)
    return output.transpose(0, 1), weights


def always_causal(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Any:
    """Hides the future unasked."""
    n_query, n_key = query.shape[1], key.shape[1]
    causal = torch.ones(n_query, n_key, dtype=torch.bool).tril(max(n_key - n_query, 0))
    both = causal if mask is None else lift_mask(mask) & causal
    return right(layer, query, key, value, both)


def mask_kept(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Any:
    """Uses the mask of the call before, if none is given."""
    if mask is None:
        mask = getattr(layer, "kept", None)
    layer.kept = mask
    return right(layer, query, key, value, mask)


def without_graph(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Any:
    """Runs without a graph."""
    with torch.no_grad():
        return right(layer, query, key, value, mask)


def made_anew(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Any:
    """Makes its parts at each call."""
    fresh = version(right)(query.shape[-1], layer.num_heads).to(query.dtype)
    return fresh(query, key, value, mask)


def dropping(p: float, *, always: bool = False) -> Answer:
    """A layer that drops weights, in training or always."""

    def forward(layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Any:
        def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
            _, weights = plain_attention(q, k, v, mask)
            dropped = nn.functional.dropout(weights, p, training=layer.training or always)
            return dropped @ v, weights

        return steps(attend=attend)(layer, query, key, value, mask)

    return version(forward)


# -- wrong parts ------------------------------------------------------------------------------


def with_parts(**parts: Callable[[int, int], Any]) -> Answer:
    """A layer made of these parts, given d_model and num_heads, and right in its forward pass."""

    def make(layer: Any, d_model: int, num_heads: int) -> None:
        for name, part in parts.items():
            setattr(layer, name, part(d_model, num_heads))

    return version(right, make)


def asserting(layer: Any, d_model: int, num_heads: int) -> None:
    """The right parts, behind an assert."""
    assert d_model % num_heads == 0
    for role in ROLES:
        setattr(layer, role, nn.Linear(d_model, d_model))


def linear(d_model: int, num_heads: int) -> nn.Linear:
    """The projection asked for."""
    return nn.Linear(d_model, d_model)


def unbiased(d_model: int, num_heads: int) -> nn.Linear:
    """A projection without a bias."""
    return nn.Linear(d_model, d_model, bias=False)


def narrow(d_model: int, num_heads: int) -> nn.Linear:
    """A projection to the width of one head."""
    return nn.Linear(d_model, d_model // num_heads)


def of_a_head(d_model: int, num_heads: int) -> nn.Linear:
    """A projection within one head."""
    return nn.Linear(d_model // num_heads, d_model // num_heads)


def one_a_head(d_model: int, num_heads: int) -> nn.ModuleList:
    """A projection for each head."""
    return nn.ModuleList(narrow(d_model, num_heads) for _ in range(num_heads))


def whole_a_head(d_model: int, num_heads: int) -> nn.Linear:
    """A projection to the full width for every head."""
    return nn.Linear(d_model, d_model * num_heads)
