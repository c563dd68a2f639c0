"""Multi-head attention: several look-ups side by side, and the matrix that mixes them.

b counts sequences, h heads, i queries, j keys, d the features of one head. Heads lie one
after the other in the feature axis, (h d).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Protocol, runtime_checkable

import torch
from einops import einsum, rearrange, repeat
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attn_course.attention import scaled_dot_product_attention
from attn_course.masks import lift_mask
from attn_course.positions import PositionHook
from attn_course.torch_layers import AttentionExchange


def split_heads(x: Float[Tensor, "b n d_model"], num_heads: int) -> Float[Tensor, "b h n d"]:
    """Cut the features of each token into `num_heads` equal parts, one for each head.

    Raises ValueError if they cannot be cut evenly.
    """
    if num_heads < 1 or x.shape[-1] % num_heads != 0:
        raise ValueError(f"d_model={x.shape[-1]} is not divisible by num_heads={num_heads}")
    return rearrange(x, "b n (h d) -> b h n d", h=num_heads)


def merge_heads(x: Float[Tensor, "b h n d"]) -> Float[Tensor, "b n d_model"]:
    """Lay the heads of each token side by side again: the inverse of `split_heads`."""
    return rearrange(x, "b h n d -> b n (h d)")


def share_heads(x: Float[Tensor, "b h_kv n d"], num_heads: int) -> Float[Tensor, "b num_heads n d"]:
    """Let groups of query heads share one key (or value) head (Ainslie et al. 2023).

    In blocks: with g = num_heads / h_kv, key head m serves the query heads m g … m g + g − 1.
    Raises ValueError if the groups would not be equal.
    """
    num_kv_heads = x.shape[1]
    if num_heads % num_kv_heads != 0:
        raise ValueError(f"{num_kv_heads} heads cannot be shared evenly by {num_heads} queries")
    if num_heads == num_kv_heads:
        return x
    return repeat(x, "b h_kv n d -> b (h_kv g) n d", g=num_heads // num_kv_heads)


def projection(d_in: int, d_out: int, *, bias: bool = True) -> nn.Linear:
    """Return a linear map x W + b with Xavier's initialisation and b = 0.

    Glorot and Bengio 2010, equation 16: weights uniform with variance 2 / (d_in + d_out).
    For d_in = d_out the map keeps the variance of what it is given, forward and backward;
    so queries and keys begin with variance 1 when tokens have it, which is what the scale
    1/√d_k counts on. The default of `nn.Linear`, a third of that variance, would begin with
    scores of a ninth, and with it almost uniform attention.
    """
    linear = nn.Linear(d_in, d_out, bias=bias)
    nn.init.xavier_uniform_(linear.weight)
    if bias:
        nn.init.zeros_(linear.bias)
    return linear


@runtime_checkable
class Cache(Protocol):
    """What `MultiHeadAttention` asks of a cache of keys and values, as `efficient.KVCache`."""

    @property
    def length(self) -> int:
        """The number of positions that it holds."""
        ...

    def append(
        self, key: Float[Tensor, "b h_kv n d_k"], value: Float[Tensor, "b h_kv n d_v"]
    ) -> tuple[Float[Tensor, "b h_kv n_total d_k"], Float[Tensor, "b h_kv n_total d_v"]]:
        """Store the keys and values of n new positions; return those of all positions."""
        ...


class MultiHeadAttention(AttentionExchange):
    """Concat(head_1, …, head_h) W_O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    Vaswani et al. 2017, section 3.2.2. Sequences come batch first. W_q, W_k, W_v hold the
    matrices of all heads side by side; `nn.Linear` stores them transposed, (out, in).
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        dropout_p: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        num_kv_heads: int | None = None,
        position: PositionHook | None = None,
    ) -> None:
        """Make the four projections, all from `projection`.

        dropout_p: the chance to drop an attention weight, in training only.
        kdim, vdim: the widths of the tokens that keys and values are made from, if not d_model.
        num_kv_heads: heads of keys and values, each shared by a block of query heads.
        position: RoPE, ALiBi or a relative bias, for self-attention.

        Raises ValueError for head counts that do not divide, listing those that do, and for
        a dropout outside 0 ≤ p < 1.
        """
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_divides("num_heads", num_heads, "d_model", d_model)
        check_divides("num_kv_heads", num_kv_heads, "num_heads", num_heads)
        if not 0 <= dropout_p < 1:
            raise ValueError(f"dropout_p={dropout_p} is not in 0 <= p < 1")
        d_kv = d_model // num_heads * num_kv_heads
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.dropout_p = dropout_p
        self.position = position
        self.W_q = projection(d_model, d_model, bias=bias)
        self.W_k = projection(d_model if kdim is None else kdim, d_kv, bias=bias)
        self.W_v = projection(d_model if vdim is None else vdim, d_kv, bias=bias)
        self.W_o = projection(d_model, d_model, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "b i d_model"],
        key: Float[Tensor, "b j kdim"],
        value: Float[Tensor, "b j vdim"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        need_weights: bool = True,
        cache: Cache | None = None,
    ) -> tuple[Float[Tensor, "b i d_model"], Float[Tensor, "b h i n_key"] | None]:
        """Return the output and the weights of each head.

        mask: True means "may attend"; (i, j), (b, i, j) or (b, h, i, j). Padding (b, j)
            becomes such a mask through `masks.combine_masks`.
        need_weights: False takes the fused kernel, which never builds the weights, and
            returns None in their place.
        cache: holds the keys and values of earlier positions; those given here are added to
            it, and j counts all of them, in the mask too.

        Raises ValueError for inputs that do not fit together.
        """
        self._check_inputs(query, key, value)
        q = split_heads(self.W_q(query), self.num_heads)
        k = split_heads(self.W_k(key), self.num_kv_heads)
        v = split_heads(self.W_v(value), self.num_kv_heads)
        q, k, bias = self._put_positions_in(q, k, past=0 if cache is None else cache.length)
        if cache is not None:
            k, v = cache.append(k, v)
        output, weights = scaled_dot_product_attention(
            q,
            share_heads(k, self.num_heads),
            share_heads(v, self.num_heads),
            None if mask is None else lift_mask(mask),
            bias=bias,
            dropout_p=self.dropout_p if self.training else 0.0,
            need_weights=need_weights,
        )
        return self.W_o(merge_heads(output)), weights

    def _put_positions_in(
        self, q: Tensor, k: Tensor, past: int
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        if self.position is None:
            return q, k, None
        n_query, n_key = q.shape[2], past + k.shape[2]
        if n_query > n_key:
            raise ValueError(f"positions need n_query <= n_key, got {n_query} and {n_key}")
        positions = torch.arange(n_key, device=q.device)
        q = self.position.rotate(q, positions[n_key - n_query :])
        k = self.position.rotate(k, positions[past:])
        bias = self.position.score_bias(n_query, n_key, q.device)
        return q, k, None if bias is None else bias[None]

    def _check_inputs(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        for name, x, linear in (
            ("query", query, self.W_q),
            ("key", key, self.W_k),
            ("value", value, self.W_v),
        ):
            if x.ndim != 3 or x.shape[-1] != linear.in_features:
                wanted = f"(b, n, {linear.in_features})"
                raise ValueError(f"{name} must be {wanted}, got {tuple(x.shape)}")
        if query.shape[0] != key.shape[0] or key.shape[:2] != value.shape[:2]:
            raise ValueError(
                "query, key and value must agree in batch, key and value in length, got "
                f"{tuple(query.shape)}, {tuple(key.shape)}, {tuple(value.shape)}"
            )


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Float[Tensor, "b h i j"]]]:
    """Collect the weights of every `MultiHeadAttention` in `model` while it runs.

    with record_attention(model) as maps: model(x)   # maps["blocks.0.self_attention"]

    The names are those of `model.named_modules()`; of several calls the last one stays.
    Within the block the fused kernel is not used, since it has no weights to show.
    """
    maps: dict[str, Tensor] = {}
    handles = []
    for name, module in model.named_modules():
        if not isinstance(module, MultiHeadAttention):
            continue

        def ask(_module, args, kwargs):
            return args, {**kwargs, "need_weights": True}

        def keep(_module, _args, output, name=name):
            maps[name] = output[1].detach()

        handles.append(module.register_forward_pre_hook(ask, with_kwargs=True))
        handles.append(module.register_forward_hook(keep))
    try:
        yield maps
    finally:
        for handle in handles:
            handle.remove()


def fuse_value_output(
    W_v: Float[Tensor, "d_in _"], W_o: Float[Tensor, "_ d_out"], num_heads: int
) -> Float[Tensor, "h d_in d_out"]:
    """Multiply out, for each head, its part of W_v and its part of W_o.

    Between the two stands nothing but a weighted mean, so they act as one matrix:
    Concat(A_1 X W_1^V, …) W^O = Σ_m A_m X (W_m^V W_m^O), of rank at most d (Elhage et al.
    2021). Weights are stored as (in, out): `nn.Linear` stores them transposed.

    Raises ValueError if the inner widths differ or cannot be cut evenly.
    """
    if W_v.shape[1] != W_o.shape[0]:
        shapes = f"{tuple(W_v.shape)} and {tuple(W_o.shape)}"
        raise ValueError(f"W_v (d_in, h d) and W_o (h d, d_out) do not fit: {shapes}")
    check_divides("num_heads", num_heads, "h d", len(W_o))
    values = rearrange(W_v, "d_in (h d) -> h d_in d", h=num_heads)
    outputs = rearrange(W_o, "(h d) d_out -> h d d_out", h=num_heads)
    return einsum(values, outputs, "h d_in d, h d d_out -> h d_in d_out")


def ablate_heads(attention: "MultiHeadAttention", heads: Iterable[int]) -> "MultiHeadAttention":
    """Return a copy of the attention in which these heads add nothing to the output.

    What head m says passes through its d rows of W_o (in, out), so these become zeros; the
    bias of W_o stays. Michel et al. 2019 silence heads in this way.

    Raises ValueError for a head that there is not.
    """
    heads = set(heads)
    missing = sorted(heads - set(range(attention.num_heads)))
    if missing:
        raise ValueError(f"heads are 0 … {attention.num_heads - 1}, there is no head {missing[0]}")
    ablated = deepcopy(attention)
    with torch.no_grad():
        # nn.Linear stores W_o as (out, in): the rows spoken of are its columns
        parts = ablated.W_o.weight.unflatten(1, (attention.num_heads, -1))  # (out, h, d), a view
        parts[:, sorted(heads)] = 0.0
    return ablated


def check_divides(name: str, count: int, whole_name: str, whole: int) -> None:
    """Raise ValueError unless `count` divides `whole`, listing the counts that do."""
    if count >= 1 and whole >= 1 and whole % count == 0:
        return
    divisors = [n for n in range(1, whole + 1) if whole % n == 0]
    raise ValueError(
        f"{whole_name}={whole} is not divisible by {name}={count}; possible are {divisors}"
    )
