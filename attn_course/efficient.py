"""Attention with less memory and less time: the same numbers, computed in another order.

i counts queries, j keys, d features; "*b" stands for any leading axes (batch, heads).
Nothing here builds the n × n weights, so every function returns None in their place.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, sqrt

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from attn_course.attention import check_fit
from attn_course.masks import check_mask
from attn_course.memory import AttentionMemory, attention_memory, check_positive

__all__ = [
    "AttentionMemory",
    "KVCache",
    "OnlineSoftmax",
    "attention_memory",
    "chunked_attention",
    "online_softmax",
    "sliding_window_attention",
]

MaskRule = Callable[[Tensor, Tensor], Tensor]
"""Says from query positions (i, 1) and key positions (1, j) who may attend to whom."""


@dataclass
class OnlineSoftmax:
    """A softmax-weighted sum under way: what is known after some of the keys.

    Milakov and Gimelshein 2018, algorithm 3; with the weighted sum, Dao et al. 2022.

    Attributes:
        largest: the largest score so far, (*b, i, 1); −∞ before the first that counts.
        total: Σ exp(score − largest), (*b, i, 1).
        weighted: Σ exp(score − largest) · value, (*b, i, d).
    """

    largest: Tensor
    total: Tensor
    weighted: Tensor

    @classmethod
    def empty(cls, like: Float[Tensor, "*b i d"]) -> "OnlineSoftmax":
        """Begin with no keys; `like` gives the form of the weighted sum."""
        one = torch.zeros_like(like[..., :1])
        return cls(one - inf, one, torch.zeros_like(like))

    def absorb(
        self, scores: Float[Tensor, "*b i j"], value: Float[Tensor, "*b j d"]
    ) -> "OnlineSoftmax":
        """Take in a block of keys; what was summed under a smaller maximum is scaled down."""
        largest = torch.maximum(self.largest, scores.amax(dim=-1, keepdim=True))
        # a row that has seen only hidden keys has no maximum: any finite one will do
        shift = largest.masked_fill(largest == -inf, 0.0)
        shrink = (self.largest - shift).exp()
        terms = (scores - shift).exp_()  # in place: the difference is nobody else's
        total = self.total * shrink + terms.sum(dim=-1, keepdim=True)
        return OnlineSoftmax(largest, total, self.weighted * shrink + terms @ value)

    def output(self) -> Float[Tensor, "*b i d"]:
        """Divide once, at the end. A row without any key gives zeros."""
        return self.weighted / self.total.masked_fill(self.total == 0, 1.0)

    def log_total(self) -> Float[Tensor, "*b i 1"]:
        """log Σ exp(score): all that the backward pass needs to rebuild the weights."""
        return self.largest + self.total.log()


def online_softmax(
    scores: Float[Tensor, "*b i j"], value: Float[Tensor, "*b j d"], block_size: int = 64
) -> Float[Tensor, "*b i d"]:
    """Return softmax(scores) value, reading the keys once, `block_size` at a time.

    Scores of −∞ are hidden; a row of nothing else gives zeros. Dao et al. 2022, section 3.1.
    Raises ValueError for a block smaller than 1 and for shapes that do not fit.
    """
    check_positive("block_size", block_size)
    if scores.shape[-1] != value.shape[-2]:
        raise ValueError(
            f"there must be one value for each score, got scores {tuple(scores.shape)} "
            f"and values {tuple(value.shape)}"
        )
    state = OnlineSoftmax.empty(scores[..., :1] * value[..., :1, :])
    blocks = zip(scores.split(block_size, -1), value.split(block_size, -2), strict=True)
    for some_scores, some_values in blocks:
        state = state.absorb(some_scores, some_values)
    return state.output()


def chunked_attention(
    query: Float[Tensor, "*b i d_k"],
    key: Float[Tensor, "*b j d_k"],
    value: Float[Tensor, "*b j d_v"],
    mask: Bool[Tensor, "*#b #i #j"] | MaskRule | None = None,
    chunk_size: int = 256,
) -> tuple[Float[Tensor, "*b i d_v"], None]:
    """Attend without ever holding more than a chunk × chunk block of scores.

    The numbers of `scaled_dot_product_attention`, by the forward and backward passes of
    Dao 2023 (algorithms 1 and 2): memory grows with n, time with n² still.

    mask: a boolean tensor (True: may attend) as there; or, since a tensor (i, j) is as large
        as the weights, a rule such as `lambda i, j: j <= i` on positions, with the queries
        aligned bottom-right. Blocks that it hides altogether are skipped.

    Raises ValueError for inputs that do not fit and for a chunk smaller than 1.
    """
    check_positive("chunk_size", chunk_size)
    check_fit(query, key, value)
    if isinstance(mask, Tensor):
        check_mask(mask, (*query.shape[:-1], key.shape[-2]))
    return _Chunked.apply(query, key, value, mask, chunk_size), None


class _Chunked(torch.autograd.Function):
    """Keeps the output and one number a query; the backward pass computes the blocks again."""

    @staticmethod
    def forward(ctx, query, key, value, mask, size):
        outputs, log_totals = [], []
        for rows in _chunks(query.shape[-2], size):
            q = _wide(query[..., rows, :]) / sqrt(query.shape[-1])
            state = OnlineSoftmax.empty(q[..., :1] * _wide(value[..., :1, :]))
            for columns, visible in _visible(mask, rows, query, key, size):
                scores = _hide(q @ _wide(key[..., columns, :]).mT, visible)
                state = state.absorb(scores, _wide(value[..., columns, :]))
            outputs.append(state.output().to(query.dtype))
            log_totals.append(state.log_total())
        output, log_total = torch.cat(outputs, -2), torch.cat(log_totals, -2)
        ctx.mask, ctx.size = mask, size
        ctx.save_for_backward(query, key, value, output, log_total)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx, *grads):
        query, key, value, output, log_total = ctx.saved_tensors
        scale = 1 / sqrt(query.shape[-1])
        d_query, d_key, d_value = (torch.zeros_like(_wide(x)) for x in (query, key, value))
        # a row without keys has no weights, whatever is subtracted
        log_total = log_total.masked_fill(log_total == -inf, inf)
        for rows in _chunks(query.shape[-2], ctx.size):
            q, d_output = _wide(query[..., rows, :]) * scale, _wide(grads[0][..., rows, :])
            # Σ_j p_j ∂L/∂p_j, from what is at hand
            mean = (d_output * output[..., rows, :]).sum(dim=-1, keepdim=True)
            for columns, visible in _visible(ctx.mask, rows, query, key, ctx.size):
                k, v = _wide(key[..., columns, :]), _wide(value[..., columns, :])
                weights = (_hide(q @ k.mT, visible) - log_total[..., rows, :]).exp()
                d_scores = weights * (d_output @ v.mT - mean)
                d_value[..., columns, :] += weights.mT @ d_output
                d_key[..., columns, :] += d_scores.mT @ q
                d_query[..., rows, :] += d_scores @ k * scale
        found = zip((d_query, d_key, d_value), (query, key, value), strict=True)
        return *(gradient.to(x.dtype) for gradient, x in found), None, None


def _wide(x: Tensor) -> Tensor:
    """In float32 at least: sums over many blocks lose too much in half precision."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _chunks(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _visible(
    mask: Tensor | MaskRule | None, rows: slice, query: Tensor, key: Tensor, size: int
) -> Iterator[tuple[slice, Tensor | None]]:
    """For a chunk of queries: each chunk of keys that some may attend to, with its mask.

    The mask is None where all of it is visible.
    """
    n_query, n_key = query.shape[-2], key.shape[-2]
    for columns in _chunks(n_key, size):
        if mask is None:
            yield columns, None
            continue
        if isinstance(mask, Tensor):
            visible = _part(_part(mask, -2, rows), -1, columns)
        else:
            positions = torch.arange(n_key, device=query.device)
            i = positions[n_key - n_query :][rows, None]
            visible = mask(i, positions[None, columns])
        if bool(visible.any()):
            yield columns, None if bool(visible.all()) else visible


def _part(mask: Tensor, axis: int, part: slice) -> Tensor:
    """The part of a mask along one axis; an axis of size 1 stands for all positions."""
    if mask.shape[axis] == 1:
        return mask
    return mask[..., part, :] if axis == -2 else mask[..., part]


def _hide(scores: Tensor, visible: Tensor | None) -> Tensor:
    return scores if visible is None else scores.masked_fill(~visible, -inf)


def sliding_window_attention(
    query: Float[Tensor, "*b i d_k"],
    key: Float[Tensor, "*b j d_k"],
    value: Float[Tensor, "*b j d_v"],
    window: int,
) -> tuple[Float[Tensor, "*b i d_v"], None]:
    """Let each position attend to the `window` keys that end with its own: O(n · window).

    The numbers of full attention under `masks.sliding_window_mask` (Beltagy et al. 2020,
    section 3.1), the queries aligned bottom-right. Queries are taken in blocks of `window`;
    such a block needs no more than 2 · window keys.

    Raises ValueError for inputs that do not fit, for a window smaller than 1 and for more
    queries than keys.
    """
    check_positive("window", window)
    check_fit(query, key, value)
    n_query, n_key = query.shape[-2], key.shape[-2]
    if n_query > n_key:
        raise ValueError(f"a window needs n_query <= n_key, got {n_query} and {n_key}")
    window = min(window, n_key)
    padding = -n_query % window  # the last block is filled up
    known = min(n_key, n_query + window)
    missing = n_query + window - known  # keys before the first one
    q = rearrange(F.pad(query, (0, 0, 0, padding)), "... (c i) d -> (...) c i d", i=window)
    k = _overlapping(F.pad(key[..., -known:, :], (0, 0, missing, padding)), window)
    v = _overlapping(F.pad(value[..., -known:, :], (0, 0, missing, padding)), window)
    # every query sees itself, so no row of the mask is empty
    mask = _window_mask(q.shape[1], window, missing, query.device)
    output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[None])
    output = rearrange(output, "b c i d -> b (c i) d")[:, :n_query]
    return output.reshape(*query.shape[:-1], value.shape[-1]), None


def _overlapping(x: Float[Tensor, "*b n d"], window: int) -> Float[Tensor, "flat c j d"]:
    """Blocks of two windows' width, one window apart; the leading axes as one."""
    return rearrange(x.unfold(-2, 2 * window, window), "... c d j -> (...) c j d")


def _window_mask(
    blocks: int, window: int, missing: int, device: torch.device
) -> Bool[Tensor, "c i j"]:
    """Query i of block c, at position c·w + w + i, sees the keys at c·w + j from w before it."""
    c = torch.arange(blocks, device=device)[:, None, None]
    i = torch.arange(window, device=device)[:, None]
    j = torch.arange(2 * window, device=device)
    return (j > i) & (j <= i + window) & (c * window + j >= missing)


class KVCache:
    """Keys and values of the positions so far, in memory that is taken once.

    One cache belongs to one attention layer and one batch of sequences. It holds no
    gradients: it is for generation. `attn_course.multihead.Cache` is what a layer asks of it.
    """

    def __init__(self, max_len: int) -> None:
        """Make room for `max_len` positions; the first `append` decides the other sizes.

        Raises ValueError if `max_len` is smaller than 1.
        """
        check_positive("max_len", max_len)
        self.max_len = max_len
        self.length = 0
        self._key: Tensor | None = None
        self._value: Tensor | None = None

    def append(
        self, key: Float[Tensor, "b h n d_k"], value: Float[Tensor, "b h n d_v"]
    ) -> tuple[Float[Tensor, "b h n_total d_k"], Float[Tensor, "b h n_total d_v"]]:
        """Store n new positions and return all, as views of the cache's own memory.

        Raises ValueError past the end, and for keys that do not continue those stored.
        """
        if self._key is None or self._value is None:
            self._key, self._value = self._room_for(key), self._room_for(value)
        self._check_next(key, value, self._key, self._value)
        end = self.length + key.shape[2]
        self._key[:, :, self.length : end] = key.detach()
        self._value[:, :, self.length : end] = value.detach()
        self.length = end
        return self._key[:, :, :end], self._value[:, :, :end]

    def reset(self) -> None:
        """Forget everything; the memory is taken anew at the next `append`."""
        self.length, self._key, self._value = 0, None, None

    def reorder(self, rows: Tensor) -> None:
        """Let sequence b continue what sequence rows[b] has stored, as beam search does."""
        if self._key is not None and self._value is not None:
            self._key, self._value = self._key[rows], self._value[rows]

    def _room_for(self, x: Tensor) -> Tensor:
        b, h, _, d = x.shape
        return x.new_zeros(b, h, self.max_len, d)

    def _check_next(self, key: Tensor, value: Tensor, keys: Tensor, values: Tensor) -> None:
        for name, new, stored in (("key", key, keys), ("value", value, values)):
            wanted = (*stored.shape[:2], key.shape[2], stored.shape[3])
            if new.shape != wanted or new.dtype != stored.dtype:
                raise ValueError(
                    f"{name} must continue what is stored, (b, h, n, d) = {wanted} in "
                    f"{stored.dtype}, got {tuple(new.shape)} in {new.dtype}"
                )
        if self.length + key.shape[2] > self.max_len:
            raise ValueError(
                f"the cache has room for {self.max_len} positions: {self.length} are stored, "
                f"{key.shape[2]} more do not fit"
            )
