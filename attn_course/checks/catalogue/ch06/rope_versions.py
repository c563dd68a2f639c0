"""Exercise 6.3, apply_rope: ways to turn pairs, right and wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attn_course.checks.exercise import Answer
from attn_course.positions import apply_rope

Angles = Callable[[Tensor, int, float], Tensor]
Turn = Callable[[Tensor, Tensor, Tensor], Any]


def paper(positions: Tensor, d: int, base: float) -> Tensor:
    """One angle for each position and pair, (n, d/2)."""
    return positions[:, None] * base ** (-torch.arange(0, d, 2) / d)


def turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Each pair (2i, 2i + 1) turned."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return in_turn(even * cos - odd * sin, even * sin + odd * cos)


def in_turn(even: Tensor, odd: Tensor) -> Tensor:
    """The features of both in turn."""
    return torch.stack([even, odd], dim=-1).flatten(-2)


def version(angles: Angles = paper, turn: Turn = turn, *, odd_accepted: bool = False) -> Answer:
    """A version whose angles are these, or that turns in this way."""

    def answer(x: Tensor, positions: Tensor, base: float = 10000.0) -> Any:
        d = x.shape[-1]
        if d % 2 and not odd_accepted:
            raise ValueError(f"d={d} is odd")
        theta = angles(positions.float(), d, base).float()
        turned = turn(x, theta.cos(), theta.sin())
        return turned.to(x.dtype) if isinstance(turned, Tensor) else turned

    return answer


def moved(change: Callable[[Tensor], Tensor]) -> Answer:
    """Other positions than those that are given."""
    return version(lambda positions, d, base: paper(change(positions), d, base))


def counted(positions: Tensor) -> Tensor:
    """0, 1, 2, … in the place of the positions."""
    return torch.arange(len(positions)).float()


def halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Feature i with feature i + d/2."""
    one, two = x.chunk(2, dim=-1)
    return torch.cat([one * cos - two * sin, one * sin + two * cos], dim=-1)


def half_turned(x: Tensor) -> Tensor:
    """(−second half, first half)."""
    one, two = x.chunk(2, dim=-1)
    return torch.cat([-two, one], dim=-1)


def pair_turned(x: Tensor) -> Tensor:
    """(−odd, even) for each pair."""
    return in_turn(-x[..., 1::2], x[..., 0::2])


def mixed_one(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Angles for pairs, rotation of halves."""
    wide_cos, wide_sin = (t.repeat_interleave(2, dim=-1) for t in (cos, sin))
    return x * wide_cos + half_turned(x) * wide_sin


def mixed_other(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Angles for halves, rotation of pairs."""
    wide_cos, wide_sin = (torch.cat([t, t], dim=-1) for t in (cos, sin))
    return x * wide_cos + pair_turned(x) * wide_sin


def mixed_back(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Halves turned, put back as if they were pairs."""
    one, two = x.chunk(2, dim=-1)
    return in_turn(one * cos - two * sin, one * sin + two * cos)


def overwritten(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The even features are new when the odd ones are made from them."""
    even, odd = x[..., 0::2], x[..., 1::2]
    even = even * cos - odd * sin
    return in_turn(even, even * sin + odd * cos)


def written_into_x(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The right result, in place of x."""
    x.data.copy_(turn(x, cos, sin).data)
    return x


def overwritten_in_x(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Both at once."""
    x.data.copy_(overwritten(x, cos, sin).data)
    return x


def signs(first: int, second: int) -> Turn:
    """Other signs in front of the sines."""

    def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        even, odd = x[..., 0::2], x[..., 1::2]
        return in_turn(even * cos + first * odd * sin, second * even * sin + odd * cos)

    return turned


def pieces(join: Callable[[Tensor, Tensor], Any]) -> Turn:
    """Turned even and odd features, joined in this way."""

    def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Any:
        even, odd = turn(x, cos, sin).unflatten(-1, (-1, 2)).unbind(-1)
        return join(even, odd)

    return turned


def at_axis(axis: int, *, from_ndim: int = 3) -> Answer:
    """Positions at this axis where x has so many axes; that may not fit."""

    def answer(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
        if x.ndim < from_ndim or x.shape[-1] % 2:
            return apply_rope(x, positions, base)
        theta = paper(positions.float(), x.shape[-1], base)
        shape = [1] * x.ndim
        shape[axis], shape[-1] = theta.shape
        return turn(x, theta.cos().view(shape), theta.sin().view(shape)).to(x.dtype)

    return answer


def from_axis_one(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """The width is read from axis 1."""
    theta = paper(positions.float(), x.shape[1], base)
    return turn(x, theta.cos(), theta.sin())


def half_angles(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Angles in the dtype of x."""
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d={d} is odd")
    rates = base ** (-torch.arange(0, d, 2).to(x.dtype) / d)
    theta = positions.to(x.dtype)[:, None] * rates
    return turn(x, theta.cos(), theta.sin())


def half_positions(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Positions in the dtype of x, the rest precise."""
    return apply_rope(x, positions.to(x.dtype), base)  # type: ignore[arg-type]


def half_product(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Precise rates and positions, multiplied in the dtype of x."""
    if x.dtype == torch.float32:
        return apply_rope(x, positions, base)
    rates = (base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])).to(x.dtype)
    angles = positions.to(x.dtype)[:, None] * rates
    return turn(x, angles.cos(), angles.sin())


def half_at_last(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Precise angles, rounded to the dtype of x before their cosine is taken."""
    if x.shape[-1] % 2:
        raise ValueError(f"d={x.shape[-1]} is odd")
    angles = paper(positions.float(), x.shape[-1], base).to(x.dtype)
    return turn(x, angles.cos(), angles.sin())


def asserted(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Refuses with an assert."""
    assert x.shape[-1] % 2 == 0
    return apply_rope(x, positions, base)


def half_then_old(x: Tensor) -> Tensor:
    """Indices into (turned, x): turned features up to the middle pair, old ones from there."""
    d = x.shape[-1]
    features = torch.arange(d)
    return torch.where(features < d // 4 * 2, features, features + d)
