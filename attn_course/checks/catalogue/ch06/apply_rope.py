"""Exercise 6.4, apply_rope: its probes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch06.rope_mistakes import MISTAKES, rope
from attn_course.checks.compare import number
from attn_course.checks.exercise import (
    Diagnosis,
    Exercise,
    Output,
    Seen,
    Stage,
    normal,
    tenths,
)
from attn_course.checks.gradients import gradient_stage
from attn_course.checks.refusals import not_refused, refusal_stages
from attn_course.positions import apply_rope
from attn_course.sentences import say

INPUTS = ("x", "positions", "base")


def draw_one_pair(rng: Generator) -> Iterator[tuple]:
    """One pair, which turns by one radian at each position."""
    yield torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.arange(3)
    yield tenths(rng, 4, 2), torch.arange(4)


def draw_two_pairs(rng: Generator) -> Iterator[tuple]:
    """Two pairs: the second one turns a hundred times more slowly."""
    yield tenths(rng, 2, 4), torch.tensor([1, 3])
    yield tenths(rng, 5, 6), torch.arange(5)


def draw_many_pairs(rng: Generator) -> Iterator[tuple]:
    """Many positions and features, more of either, and as many of both."""
    for n, d in ((40, 16), (5, 24), (16, 16), (30, 64)):
        yield normal(rng, n, d), torch.arange(n)


def draw_positions(rng: Generator) -> Iterator[tuple]:
    """Positions that do not start at 0, one new token, leaps, disorder, the same one twice."""
    yield tenths(rng, 2, 2), torch.tensor([3, 4])
    for at in ([7], [20, 21, 22], [0, 5, 17, 40], [6, 2, 9, 2, 0], [3, 3, 3]):
        yield normal(rng, len(at), 16), torch.tensor(at)


def draw_leading_axes(rng: Generator) -> Iterator[tuple]:
    """Batch and heads, all sizes different, and then all equal."""
    for shape in ((3, 5, 4), (2, 3, 5, 6), (4, 4, 4, 4), (2, 2, 2), (1, 6, 2, 16), (2, 1, 7, 8)):
        yield normal(rng, *shape), torch.arange(1, shape[-2] + 1)


def draw_base(rng: Generator) -> Iterator[tuple]:
    """Another base than 10000."""
    yield tenths(rng, 2, 4), torch.tensor([1, 3]), 100.0
    yield normal(rng, 9, 16), torch.arange(9), 500.0
    yield normal(rng, 9, 8), torch.arange(9), 1e6


def draw_gradient(rng: Generator) -> Iterator[tuple]:
    """All sizes different."""
    yield normal(rng, 2, 5, 4), torch.tensor([0, 3, 4, 9, 11]), 100.0


def draw_odd(rng: Generator) -> Iterator[tuple]:
    """A feature without a partner."""
    yield tenths(rng, 2, 3), torch.arange(2), 10000.0
    yield normal(rng, 3, 4, 1), torch.arange(4), 10000.0


def draw_half(rng: Generator) -> Iterator[tuple]:
    """Positions that half precision cannot tell from their neighbours."""
    for dtype in (torch.bfloat16, torch.float16):
        yield normal(rng, 4, 16).to(dtype), torch.tensor([301, 999, 2003, 4001])


def read_base(seen: Sequence[Seen]) -> Diagnosis | None:
    """Name the base, or the width, that explains pairs turned rightly up to it."""
    found = []
    for case in seen:
        x, positions, *given = case.args
        base = _base_of(x, positions, case.actual)
        if base is not None:
            wanted = given[0] if given else 10000.0
            found.append((base, wanted, x.shape[-1] * log(wanted) / log(base)))
    wrong = [(base, wanted) for base, wanted, _ in found if abs(log(base / wanted)) > 0.01]
    if not wrong:
        return None
    widths = [width for _, _, width in found]
    if len(found) > 1 and max(widths) - min(widths) < 0.01 * max(widths):
        return Diagnosis(
            say(
                "The exponent is divided by {width} whatever the width of x is. It is 2i/d, where "
                "d is the size of the last axis: that of one head.",
                width=number(widths[0]),
            ),
            "fixed-width",
        )
    base, wanted = wrong[0]
    words = "The pairs are turned with the base {base}, not {wanted}."
    return Diagnosis(say(words, base=number(base), wanted=number(wanted)), "base")


def _base_of(x: Tensor, positions: Tensor, turned: Tensor) -> float | None:
    """The base that explains every angle, read from one row at a position near 0."""
    rows = [k for k, at in enumerate(positions.tolist()) if 1 <= at <= 3]
    if x.ndim != 2 or x.shape[-1] < 4 or not rows:
        return None
    at, row = positions[rows[0]].item(), rows[0]
    before, after = (torch.view_as_complex(t[row].double().reshape(-1, 2)) for t in (x, turned))
    if not torch.allclose(before.abs(), after.abs(), atol=1e-3):
        return None
    angles = (after / before).angle() / at
    d = x.shape[-1]
    if abs(angles[0] - 1) > 1e-2 or bool((angles[1:] <= 1e-6).any()):
        return None
    bases = torch.exp(-angles[1:].log() * d / torch.arange(2, d, 2))
    # the angles of slow pairs are known to few digits
    agree = (bases.log() - bases[0].log()).abs().max() < 0.3
    return bases[0].item() if agree and abs(bases[0] - 1) > 1e-3 else None


EXERCISE = Exercise(
    number="6.4",
    reference=apply_rope,
    right=rope,
    outputs=(Output("turned", "b n d"),),
    difficulty=2,
    minutes=25,
    points=4,
    may_use="torch and einops",
    stages=(
        Stage(
            "one pair",
            draw_one_pair,
            "With d = 2 there is one pair, turned at position p by p radians: (1, 0) becomes "
            "(cos p, sin p), (0, 1) becomes (−sin p, cos p).",
        ),
        Stage(
            "two pairs",
            draw_two_pairs,
            "One pair alone is right; with several, look at which features make a pair, and at the "
            "angle of each.",
            diagnose=read_base,
        ),
        Stage(
            "many pairs",
            draw_many_pairs,
            "With few features the result is right; with many positions and features it differs.",
            diagnose=read_base,
        ),
        Stage(
            "given positions",
            draw_positions,
            "With the positions 0, 1, 2, … the result is right. Here they begin elsewhere, leap, "
            "or repeat: the angle is that of the position that is given.",
        ),
        Stage(
            "leading axes",
            draw_leading_axes,
            "With x (n, d) the result is right; with axes for batch and heads before, it differs.",
        ),
        Stage(
            "another base",
            draw_base,
            "With the base 10000 the result is right; with another one it differs.",
            diagnose=read_base,
        ),
        gradient_stage(draw_gradient, INPUTS, {"x": "b n d"}),
        *refusal_stages(
            "odd width",
            draw_odd,
            "With an odd d a feature has no partner: raise a ValueError that names d.",
            inputs=INPUTS,
            numbers=lambda x, *_: (x.shape[-1],),
            diagnose=not_refused(MISTAKES, "odd-accepted"),
        ),
        Stage(
            "half precision",
            draw_half,
            "x is in half precision here, and the positions are distant: the angles must still be "
            "made in float32.",
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Begin with one pair, d = 2: the angle is the position. Write the turned pair in two "
        "lines, from x[..., 0] and x[..., 1].",
        "For all pairs: x[..., 0::2] and x[..., 1::2] have the shape (*b, n, d/2), and the angles "
        "(n, d/2) meet them from the right. The exponents are those of exercise 6.1.",
        "torch.stack([…, …], dim=-1).flatten(-2) puts the turned halves back in turn. Make the "
        "angles from positions.float(), and give the result the dtype of x at the end.",
    ),
)
