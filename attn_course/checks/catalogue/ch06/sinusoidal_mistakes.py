"""Exercise 6.1, sinusoidal_encoding: its known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import torch
from torch import Tensor

from attn_course.checks.exercise import Answer, Mistake

Rates = Callable[[Tensor, int], Tensor]
Join = Callable[[Tensor, Tensor, int], Any]


def paper(even: Tensor, d: int) -> Tensor:
    """10000^(−2i/d), where `even` is 2i."""
    return 10000.0 ** (-even / d)


def interleaved(sines: Tensor, cosines: Tensor, d: int) -> Tensor:
    """Each cosine behind its sine, cut to the width."""
    return torch.stack([sines, cosines], dim=-1).flatten(-2)[:, :d]


def version(
    rates: Rates = paper,
    join: Join = interleaved,
    *,
    cosine_rates: Rates | None = None,
    at: Callable[[int], Tensor] = torch.arange,
) -> Answer:
    """An encoding whose rates, joining or positions are these."""

    def answer(n: int, d_model: int) -> Any:
        even = torch.arange(0, d_model, 2)
        positions = at(n).to(torch.float64)[:, None]
        sines = (positions * rates(even, d_model)).sin()
        cosines = (positions * (cosine_rates or rates)(even, d_model)).cos()
        return join(sines.float(), cosines.float(), d_model)

    return answer


def finished(finish: Callable[[Tensor], Any]) -> Answer:
    """The encoding asked for, and something done to it."""
    right = version()
    return lambda n, d_model: finish(right(n, d_model))


def by_columns(fill: Callable[[Tensor, Tensor, int], None]) -> Answer:
    """A table whose columns are filled in place, where an odd width goes wrong."""

    def answer(n: int, d_model: int) -> Tensor:
        even = torch.arange(0, d_model, 2)
        table = torch.zeros(n, d_model)
        fill(table, (torch.arange(n)[:, None] * paper(even, d_model)).float(), d_model)
        return table

    return answer


def fill_both(table: Tensor, angles: Tensor, d: int) -> None:
    """As many cosines as sines."""
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()


def concatenated(sines: Tensor, cosines: Tensor, d: int) -> Tensor:
    """All sines, then all cosines."""
    return torch.cat([sines, cosines], dim=-1)[:, :d]


def odd_only(change: Callable[[int, int], Any]) -> Answer:
    """The encoding asked for where the width is even, `change(n, d_model)` where it is odd."""
    right = version()
    return lambda n, d: change(n, d) if d % 2 else right(n, d)


def alternating_down(n: int, d_model: int) -> Tensor:
    """Sine at even positions, cosine at odd ones."""
    features = torch.arange(d_model)
    angles = torch.arange(n)[:, None] * paper(features - features % 2, d_model)
    return torch.where(torch.arange(n)[:, None] % 2 == 0, angles.sin(), angles.cos()).float()


def angles_alone(n: int, d_model: int) -> Tensor:
    """Neither sine nor cosine."""
    angles = torch.arange(n)[:, None] * paper(torch.arange(0, d_model, 2), d_model)
    return interleaved(angles, angles, d_model)


def odd_is_refused(n: int, d_model: int) -> Tensor:
    """Takes even widths only."""
    raise ValueError(f"d_model={d_model} is odd")


NO_CLOCKS = (
    "All features turn at one rate. The exponent 2i/d_model is a fraction that differs from pair "
    "to pair: fast ones tell neighbours apart, slow ones distant positions. Is it lost, or cut to "
    "a whole number by `//`?"
)

growing_rates = version(lambda even, d: 10000.0 ** (even / d))

MISTAKES = (
    Mistake(
        "exponent-doubled",
        "The exponent grows twice as fast as it should. `arange(0, d_model, 2)` is 2i already: "
        "multiplied by 2 again it is 4i. Most pairs then hardly turn at all. (A base of 10⁸ would "
        "do the same.)",
        version(lambda even, d: paper(2 * even, d)),
    ),
    Mistake(
        "exponent-halved",
        "The exponent grows half as fast as it should: it is 2i/d_model, where i counts pairs, not "
        "i/d_model. (A base of 100 would do the same.)",
        version(lambda even, d: paper(even / 2, d)),
    ),
    Mistake(
        "own-rate-for-each-feature",
        "Sine and cosine of a pair turn at different rates: the squares of features 2i and 2i + 1 "
        "do not sum to 1. Both have the exponent 2i/d_model, with the same i.",
        version(cosine_rates=lambda even, d: paper(even + 1, d)),
        also=(
            version(cosine_rates=lambda even, d: paper(even + 2, d)),
            version(cosine_rates=lambda even, d: paper(2 * (even + 1), d)),
            version(
                lambda even, d: paper(2 * even, d), cosine_rates=lambda e, d: paper(2 * e + 2, d)
            ),
            version(
                lambda even, d: paper(2 * even, d), cosine_rates=lambda e, d: paper(2 * e + 1, d)
            ),
            version(cosine_rates=lambda even, d: paper(even - 1, d)),
        ),
    ),
    Mistake(
        "exponent-sign",
        "The angle is multiplied by 10000^(2i/d_model), not divided by it: the later features "
        "turn thousands of times between neighbours.",
        growing_rates,
    ),
    Mistake("one-rate", NO_CLOCKS, version(lambda even, d: torch.ones(len(even)))),
    Mistake(
        "base-and-exponent-swapped",
        "Base and exponent are exchanged: the number that is raised is 10000, and 2i/d_model is "
        "the power.",
        version(lambda even, d: (even / d) ** -10000.0),
        also=(
            version(lambda even, d: (even / d) ** 1e-4),
            version(lambda even, d: (even / d) ** -1e-4),
        ),
    ),
    Mistake(
        "not-divided-by-the-width",
        "The exponent is 2i; it should be 2i/d_model. Already the second pair hardly turns.",
        version(lambda even, d: 10000.0 ** -even.double()),
        also=(version(lambda even, d: 10000.0 ** (-even.double() / 2)),),
    ),
    Mistake(
        "linear",
        "The angle is divided by 10000 · 2i/d_model, a product. It should be 10000 to the power of "
        "2i/d_model.",
        version(lambda even, d: 1 / (10000.0 * even / d)),
        also=(
            version(lambda even, d: 1 / (10000.0 * even / d).clamp(min=1)),
            version(lambda even, d: 10000.0 * even / d),
        ),
    ),
    Mistake(
        "last-pair-at-10000",
        "The rates are spread so that the last pair has exactly 10000. In the formula the exponent "
        "is 2i/d_model, whose last value stays below 1.",
        version(lambda even, d: 10000.0 ** (-even / 2 / max(1, len(even) - 1))),
        also=(
            version(lambda even, d: 10000.0 ** (-even / 2 / (len(even) - 1))),
            version(lambda even, d: torch.logspace(0, -4, len(even))),
        ),
    ),
    Mistake(
        "pairs-from-one",
        "The pairs are counted from 1: the first pair should turn by one radian a position, with "
        "the exponent 0.",
        version(lambda even, d: paper(even + 2, d)),
    ),
    Mistake(
        "rates-reversed",
        "The pairs stand in the opposite order: the fastest comes first.",
        version(lambda even, d: paper(even, d).flip(0)),
    ),
    Mistake(
        "base",
        "The base is not 10000.",
        examples=(
            version(lambda even, d: 1000.0 ** (-even / d)),
            version(lambda even, d: 1e5 ** (-even / d)),
            version(lambda even, d: 512.0 ** (-even / d)),
        ),
    ),
    Mistake(
        "fixed-width",
        "The exponent is divided by a fixed number.",
        examples=(
            version(lambda even, d: 10000.0 ** (-even / 512)),
            version(lambda even, d: 10000.0 ** (-even / 16)),
        ),
    ),
    Mistake(
        "cosine-first",
        "Sine and cosine are exchanged: position 0 should give 0, 1, 0, 1, …",
        version(join=lambda s, c, d: interleaved(c, s, d)),
    ),
    Mistake(
        "not-interleaved",
        "All sines come first, then all cosines. Asked for is sine and cosine in turn: the pair i "
        "stands at the features 2i and 2i + 1. (Both layouts are in use; weights trained with one "
        "do not fit the other.)",
        version(join=concatenated),
        also=(
            lambda n, d: version(join=lambda s, c, d: torch.cat([s, c], dim=-1))(n, d),
            version(lambda even, d: paper(even / 2, d), join=concatenated),
            version(lambda even, d: paper(2 * even, d), join=concatenated),
        ),
    ),
    Mistake(
        "only-sines",
        "Every feature is a sine. The cosine at 2i + 1 tells which side of its wave the sine is "
        "on.",
        version(join=lambda s, c, d: interleaved(s, s, d)),
        also=(lambda n, d: (torch.arange(n)[:, None] * paper(torch.arange(d), d)).sin(),),
    ),
    Mistake(
        "only-cosines",
        "Every feature is a cosine.",
        version(join=lambda s, c, d: interleaved(c, c, d)),
    ),
    Mistake(
        "angles-overwritten",
        "The cosine is taken of the sine: an operation in place (`sin_`, `out=`, or a name used "
        "again) has overwritten the angles. Make the sines and the cosines from the same angles.",
        version(join=lambda s, c, d: interleaved(s, s.cos(), d)),
        also=(version(join=lambda s, c, d: interleaved(c.sin(), c, d)),),
    ),
    Mistake(
        "angles-returned",
        "These are the angles themselves. Take their sines and cosines.",
        angles_alone,
    ),
    Mistake(
        "alternates-over-positions",
        "Sine and cosine alternate from position to position. They alternate from feature to "
        "feature: in each row both occur.",
        alternating_down,
    ),
    Mistake(
        "positions-from-one",
        "The first row is that of position 1. Position 0 comes first: 0, 1, 0, 1, …",
        version(at=lambda n: torch.arange(1, n + 1)),
    ),
    Mistake(
        "positions-scaled",
        "The positions are divided by n, so that they depend on the length: position 3 of a short "
        "sequence is not position 3 of a long one.",
        version(at=lambda n: torch.arange(n) / n),
        also=(version(at=lambda n: torch.linspace(0, 1, n)),),
    ),
    Mistake(
        "positions-reversed",
        "The last position comes first.",
        version(at=lambda n: torch.arange(n).flip(0)),
    ),
    Mistake(
        "one-position",
        "All rows are the same: the positions do not enter.",
        version(at=torch.zeros),
        also=(version(at=torch.ones), version(at=lambda n: torch.full((n,), n))),
    ),
    Mistake(
        "degrees",
        "The angles are taken for degrees; they are radians already.",
        version(lambda even, d: paper(even, d) * pi / 180),
        also=(version(lambda even, d: paper(even, d).rad2deg()),),
    ),
    Mistake(
        "whole-turns",
        "The angle is multiplied by 2π. In the formula the wave of the first pair is 2π positions "
        "long, and there is no further π.",
        version(lambda even, d: 2 * pi * paper(even, d)),
        also=(version(lambda even, d: pi * paper(even, d)),),
    ),
    Mistake(
        "transposed",
        "The encoding is (d_model, n). Positions are rows, features are columns.",
        finished(lambda table: table.mT),
    ),
    Mistake(
        "batch-axis",
        "There is an axis for the batch. Asked for is exactly (n, d_model).",
        finished(lambda table: table[None]),
        also=(finished(lambda table: table[:, None]), finished(lambda t: t[None, None])),
    ),
    Mistake(
        "long-table",
        "The table has a fixed number of rows. Asked for are n.",
        lambda n, d: version()(5000, d),
        also=(lambda n, d: version()(512, d), lambda n, d: version()(1000, d)),
    ),
    Mistake(
        "odd-width-fails",
        "With an odd d_model there is one cosine fewer than sines: there is no room for the last "
        "one.",
        by_columns(fill_both),
        also=(odd_only(odd_is_refused),),
    ),
    Mistake(
        "odd-width-not-cut",
        "With an odd d_model there is one feature too many: a cosine behind the last sine.",
        odd_only(lambda n, d: version(join=lambda s, c, d: interleaved(s, c, d + 1))(n, d)),
        also=(odd_only(lambda n, d: version()(n, d + 1)),),
    ),
    Mistake(
        "odd-width-short",
        "With an odd d_model there is one feature too few: the last sine is missing.",
        odd_only(lambda n, d: version()(n, d)[:, :-1]),
        also=(odd_only(lambda n, d: version()(n, d - 1)),),
    ),
    Mistake(
        "odd-width-ends-in-zero",
        "With an odd d_model the last feature is left at zero. It is a sine.",
        odd_only(lambda n, d: torch.cat([version()(n, d)[:, :-1], torch.zeros(n, 1)], dim=1)),
        also=(odd_only(lambda n, d: torch.cat([version()(n, d - 1), torch.zeros(n, 1)], dim=1)),),
    ),
    Mistake(
        "odd-width-ends-in-cosine",
        "With an odd d_model the last feature is a cosine. The features alternate, beginning with "
        "a sine, so the last one is a sine as well.",
        odd_only(
            lambda n, d: version(
                join=lambda s, c, d: torch.cat([interleaved(s, c, d)[:, :-1], c[:, -1:]], 1)
            )(n, d)
        ),
    ),
    Mistake(
        "odd-width-other-rates",
        "With an odd d_model the rates are those of another width. The exponent is 2i/d_model with "
        "d_model as it is given.",
        odd_only(lambda n, d: version()(n, d + 1)[:, :d]),
        also=(
            odd_only(
                lambda n, d: version(lambda even, d: 10000.0 ** (-even / max(1, d - 1)))(n, d)
            ),
        ),
    ),
)
