"""Exercise 6.1, sinusoidal_encoding: its probes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch06.sinusoidal_mistakes import MISTAKES, encoding
from attn_course.checks.compare import number
from attn_course.checks.exercise import Diagnosis, Exercise, Output, Seen, Stage, whole
from attn_course.positions import sinusoidal_encoding
from attn_course.sentences import say


def draw_one_pair(rng: Generator) -> Iterator[tuple]:
    """One pair of features, which turns by one radian at each position."""
    yield 3, 2
    yield 1, 2
    yield whole(rng, 4, 40), 2


def draw_two_pairs(rng: Generator) -> Iterator[tuple]:
    """Two pairs: the second one turns a hundred times more slowly."""
    yield 3, 4
    yield 5, 6
    yield whole(rng, 3, 40), 4


def draw_wide(rng: Generator) -> Iterator[tuple]:
    """Many positions and features, more of either, and as many of both."""
    yield from ((60, 16), (7, 20), (24, 24), (50, 64))
    yield whole(rng, 25, 60), 2 * whole(rng, 4, 40)


def draw_odd(rng: Generator) -> Iterator[tuple]:
    """A last sine without its cosine."""
    yield from ((4, 3), (3, 1), (30, 9), (9, 9))
    yield whole(rng, 10, 40), 2 * whole(rng, 5, 20) + 1


def read_rates(seen: Sequence[Seen]) -> Diagnosis | None:
    """Name the base, or the width, that explains the rates of all pairs."""
    sign = EXERCISE.mistake("exponent-sign")
    (growing_rates,) = EXERCISE.versions(sign)
    tables = [(*case.args, case.actual.to(torch.float64)) for case in seen]
    # the angles are large then, and float32 knows few digits of them
    if all(torch.allclose(t, growing_rates(n, d).double(), atol=0.01) for n, d, t in tables[:1]):
        return Diagnosis(sign.message, sign.id)
    logs = [(d, _log_of_base(d, table)) for n, d, table in tables if d >= 4 and n >= 2]
    found = [(d, log_base) for d, log_base in logs if log_base is not None]
    if len(found) < 2 or len(found) < len(logs):
        return None
    bases = [exp(log_base) for _, log_base in found]
    widths = [d * log(10000) / log_base for d, log_base in found]
    if _all_close(bases):
        words = "The waves are those of another base: {base}, not 10000."
        return Diagnosis(say(words, base=number(bases[0])), "base")
    if _all_close(widths):
        words = (
            "The exponent is divided by {width} whatever d_model is: a width is written into the "
            "function."
        )
        return Diagnosis(say(words, width=number(widths[0])), "fixed-width")
    return None


def _log_of_base(d_model: int, table: Tensor) -> float | None:
    """The logarithm of the base that explains every pair's angle at position 1."""
    even = torch.arange(0, d_model - 1, 2, dtype=torch.float64)
    # the first angles lie within half a turn for every base above 1
    angles = torch.atan2(table[1, 0::2][: len(even)], table[1, 1::2])
    if bool((angles <= 0).any()):
        return None
    logs = -angles[1:].log() * d_model / even[1:]
    agree = abs(angles[0] - 1) < 1e-3 and _all_close(logs.tolist()) and bool(logs[0] > 0)
    return logs.mean().item() if agree else None


def _all_close(values: Sequence[float]) -> bool:
    return max(values) - min(values) <= 0.01 * max(values)


EXERCISE = Exercise(
    number="6.1",
    reference=sinusoidal_encoding,
    right=encoding,
    outputs=(Output("encoding", "n d"),),
    difficulty=2,
    minutes=20,
    points=3,
    may_use="torch and einops",
    stages=(
        Stage(
            "one pair",
            draw_one_pair,
            "With d_model = 2 there is one pair: each position pos should give (sin pos, cos pos).",
        ),
        Stage(
            "two pairs",
            draw_two_pairs,
            "The first pair is right, so positions, sine and cosine are; look at the angle of the "
            "pairs after it, and at the order of the features.",
            diagnose=read_rates,
        ),
        Stage(
            "many pairs",
            draw_wide,
            "With few features the encoding is right; with many positions and features it differs.",
            diagnose=read_rates,
        ),
        Stage(
            "odd width",
            draw_odd,
            "With an even d_model the encoding is right. An odd one ends in a sine that has no "
            "cosine beside it; all other features are as always.",
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "One angle for each position and each pair of features: a table (n, pairs). Its sines go "
        "to the features 0, 2, 4, …, its cosines to 1, 3, 5, …",
        "torch.arange(0, d_model, 2) is 2i itself, for every pair i. Divide by d_model for the "
        "exponent. A column of positions (n, 1) times a row (pairs,) gives all angles.",
        "torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2) puts each cosine behind its "
        "sine. With an odd d_model that is one feature too many: cut it off.",
    ),
)
