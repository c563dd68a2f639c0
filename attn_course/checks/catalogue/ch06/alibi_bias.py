"""Exercise 6.5, alibi_bias: its stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch06.alibi_mistakes import MISTAKES, right
from attn_course.checks.compare import number
from attn_course.checks.exercise import Diagnosis, Exercise, Output, Seen, Stage, whole
from attn_course.checks.refusals import not_refused, refusal_stages
from attn_course.positions import alibi_bias
from attn_course.sentences import Drawn, say


def draw_square(rng: Generator) -> Iterator[tuple]:
    """As many queries as keys, and heads that are a power of two."""
    yield from ((2, 2, 2), (1, 3, 3), (8, 1, 1), (4, 5, 5), (8, 8, 8), (16, 3, 3))
    n = whole(rng, 9, 30)
    yield 2 ** whole(rng, 1, 5), n, n


def draw_rectangular(rng: Generator) -> Iterator[tuple]:
    """Fewer queries than keys: the queries are the last positions."""
    yield from ((2, 1, 3), (2, 2, 5), (8, 1, 9), (4, 3, 4), (2, 5, 11))
    yield 2 ** whole(rng, 1, 5), whole(rng, 3, 12), whole(rng, 13, 30)


def draw_other_counts(rng: Generator) -> Iterator[tuple]:
    """Head counts that are no power of two."""
    yield from ((3, 1, 2), (6, 3, 3), (12, 4, 4), (5, 2, 6), (7, 7, 7), (20, 1, 3))
    n = whole(rng, 4, 12)
    yield whole(rng, 9, 15), n, n


def draw_too_many(rng: Generator) -> Iterator[tuple]:
    """More queries than keys: a query would stand where no key is."""
    yield from ((2, 3, 2), (4, 5, 1))


def read_square(seen: Sequence[Seen]) -> Diagnosis | None:
    """Tell signs, sides and slopes apart, from two positions that see each other."""
    for (num_heads, n_query, n_key), actual, expected in (
        (case.args, case.actual, case.expected) for case in seen
    ):
        if n_query != n_key or n_query < 2:
            continue
        own, back, ahead = (actual[:, i, j].double() for i, j in ((0, 0), (1, 0), (0, 1)))
        if bool((own != 0).any()):
            return Diagnosis("A query has a bias at its own position: |i − j| is 0 there.")
        if not torch.allclose(back, ahead):
            return Diagnosis(
                "One position behind and one ahead have different biases. The distance is |i − j|, "
                "the same on both sides."
            )
        if bool((back > 0).all()):
            return Diagnosis(_SIGN.message, _SIGN.id)
        wrong = (back - expected[:, 1, 0]).abs() > 1e-4 * back.abs()
        if bool(wrong.any()) and num_heads <= 8:
            words = (
                "The signs are right, the slopes are not: with {n} heads yours are {yours}, "
                "expected {expected}."
            )
            yours, wanted = _fractions(-back), _fractions(-expected[:, 1, 0])
            return Diagnosis(say(words, n=num_heads, yours=Drawn(yours), expected=Drawn(wanted)))
    return None


_SIGN = next(mistake for mistake in MISTAKES if mistake.id == "sign")


def _fractions(slopes: Tensor) -> str:
    return ", ".join(f"1/{number(1 / slope)}" if slope else "0" for slope in slopes.tolist())


EXERCISE = Exercise(
    number="6.5",
    reference=alibi_bias,
    right=right,
    outputs=(Output("bias", "h i j"),),
    difficulty=2,
    minutes=20,
    points=3,
    may_use="torch and einops",
    stages=(
        Stage(
            "square",
            draw_square,
            "The bias should be −slope · |i − j|, with a slope for each head.",
            diagnose=read_square,
        ),
        Stage(
            "fewer queries than keys",
            draw_rectangular,
            "With as many queries as keys the bias is right. With fewer, the queries being the "
            "last positions, it differs.",
        ),
        Stage(
            "other head counts",
            draw_other_counts,
            "For head counts that are a power of two the bias is right. For others the slopes are "
            "those of the next lower power of two p, and then every second one of 2p.",
        ),
        *refusal_stages(
            "more queries than keys",
            draw_too_many,
            "More queries than keys make no sense here: raise a ValueError with both numbers.",
            inputs=("num_heads", "n_query", "n_key"),
            numbers=lambda _, n_query, n_key: (n_query, n_key),
            diagnose=not_refused(MISTAKES, "too-many-queries"),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Two tables, multiplied: slopes (h) and distances (i, j). Begin with as many queries as "
        "keys, and a power of two for the heads.",
        "The key positions are 0 … n_key − 1; the queries are the last n_query of them. Slopes for "
        "a power of two: 2^(−8·1/h), 2^(−8·2/h), …, 2^(−8).",
        "p = 2 ** (num_heads.bit_length() - 1) is the next lower power of two. Make the slopes of "
        "p, then those of 2p and take [0::2] of them, join both and cut to num_heads.",
    ),
)
