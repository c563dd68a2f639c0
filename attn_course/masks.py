"""Who may attend to whom: boolean masks in which True means "may attend".

This is the convention of `F.scaled_dot_product_attention`. The `key_padding_mask` of
`nn.MultiheadAttention` means the opposite: there True hides.

A mask of queries and keys has the shape (i, j), a mask of padding (b, j). When batch and
length are equal the shapes do not tell the two apart, so nothing here guesses: a mask with
two axes is read as (i, j), always, and padding is passed by its name, to `combine_masks`.
"""

from collections.abc import Sequence
from functools import reduce

import torch
from einops import rearrange
from jaxtyping import Bool, Int
from torch import Tensor


def causal_mask(
    n_query: int, n_key: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "i j"]:
    """Let each position attend to itself and to what came before it.

    With fewer queries than keys the queries are the *last* positions, as when a cache
    holds the keys of the past: query i stands at position n_key − n_query + i.
    Raises ValueError if there are more queries than keys.
    """
    n_key = n_query if n_key is None else n_key
    if not 0 <= n_query <= n_key:
        raise ValueError(f"a causal mask needs 0 <= n_query <= n_key, got {n_query} and {n_key}")
    may_attend = torch.ones(n_query, n_key, dtype=torch.bool, device=device)
    return may_attend.tril(diagonal=n_key - n_query)


def padding_mask(lengths: Int[Tensor, " b"], n_key: int) -> Bool[Tensor, "b j"]:
    """Let the first `lengths[b]` keys of sequence b be attended to, and hide the padding.

    Raises ValueError for a length below 0 or above n_key.
    """
    outside = lengths[(lengths < 0) | (lengths > n_key)]
    if len(outside) > 0:
        raise ValueError(f"lengths must lie in 0 … n_key={n_key}, got {outside.tolist()}")
    return torch.arange(n_key, device=lengths.device) < lengths[:, None]


def sliding_window_mask(
    n_query: int,
    n_key: int | None = None,
    *,
    window: int,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "i j"]:
    """Let position i attend to the `window` keys i − window + 1 … i (Beltagy et al. 2020).

    Aligned as `causal_mask`, of which it is the band next to the diagonal.
    Raises ValueError if the window is smaller than 1 or there are more queries than keys.
    """
    if window < 1:
        raise ValueError(f"a window of {window} keys leaves nothing to attend to")
    causal = causal_mask(n_query, n_key, device=device)
    offset = causal.shape[1] - n_query
    return causal.triu(diagonal=offset - window + 1)


def lift_mask(mask: Bool[Tensor, "..."]) -> Bool[Tensor, "#b #h #i #j"]:
    """Give a mask its batch and head axes, so that it broadcasts to (b, h, i, j).

    (i, j) becomes (1, 1, i, j) and (b, i, j) becomes (b, 1, i, j); four axes stay as they
    are. Raises ValueError for any other number of axes and for a mask that is not boolean.
    """
    _check_boolean(mask)
    if mask.ndim == 2:
        return rearrange(mask, "i j -> 1 1 i j")
    if mask.ndim == 3:
        return rearrange(mask, "b i j -> b 1 i j")
    if mask.ndim == 4:
        return mask
    raise ValueError(f"a mask is (i, j), (b, i, j) or (b, h, i, j), got {tuple(mask.shape)}")


def combine_masks(
    *masks: Bool[Tensor, "..."] | None, padding: Bool[Tensor, "b j"] | None = None
) -> Bool[Tensor, "#b #h #i #j"] | None:
    """Allow what every mask allows; the result broadcasts to (b, h, i, j).

    `masks` are read as `lift_mask` reads them, `padding` is (b, j) and hides keys, never
    queries: what a padded query computes is left out by the loss. None allows everything,
    and None is returned when no mask is left. Raises ValueError for masks that do not fit.
    """
    lifted = [lift_mask(mask) for mask in masks if mask is not None]
    if padding is not None:
        _check_boolean(padding)
        if padding.ndim != 2:
            raise ValueError(f"padding is (b, j), got {tuple(padding.shape)}")
        lifted.append(rearrange(padding, "b j -> b 1 1 j"))
    shapes = [tuple(mask.shape) for mask in lifted]
    for sizes in zip(*shapes, strict=True):
        if len(set(sizes) - {1}) > 1:
            raise ValueError(f"masks of shapes {shapes} do not fit together")
    return reduce(torch.logical_and, lifted) if lifted else None


def check_mask(mask: Tensor, scores_shape: Sequence[int]) -> None:
    """Raise ValueError unless `mask` is boolean and fits the scores (*b, i, j)."""
    _check_boolean(mask)
    check_scores_shape("mask", mask, scores_shape)


def check_scores_shape(name: str, tensor: Tensor, scores_shape: Sequence[int]) -> None:
    """Raise ValueError unless `tensor` fits scores of shape (*b, i, j) in one way only.

    It fits as exactly (i, j), or with as many axes as the scores, each of full size or 1.
    Plain broadcasting would admit more: a (b, i, j) mask against (b, h, i, j) scores pairs
    batch with heads, and nothing tells when the two are equal.
    """
    shape, scores_shape = tuple(tensor.shape), tuple(scores_shape)
    if shape == scores_shape[-2:]:
        return
    same_axes = len(shape) == len(scores_shape) > 2
    if not same_axes or any(
        size not in (1, n) for size, n in zip(shape, scores_shape, strict=True)
    ):
        raise ValueError(
            f"a {name} of shape {shape} does not fit scores of shape {scores_shape}: it must be "
            f"{scores_shape[-2:]} or have {len(scores_shape)} axes, each of full size or 1 "
            "(padding (b, j) becomes a mask through combine_masks)"
        )


def _check_boolean(mask: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise ValueError(f"a mask is boolean, True where it may attend, got {mask.dtype}")
