"""Exercise 6.4, apply_rope: a right answer, and its known mistakes as edits of it."""

from __future__ import annotations

import torch
from torch import Tensor

from attn_course.checks.catalogue.families.refusal import WITH_THE_NUMBER, asserted
from attn_course.checks.exercise import Mistake


def rope(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """A right answer, which the mistakes edit."""
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d={d} is odd")
    positions = positions.float()
    even_features = torch.arange(0, d, 2)
    rates = base ** (-even_features / d)
    angles = positions[:, None] * rates
    cos, sin = angles.cos(), angles.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    first = even * cos - odd * sin
    second = even * sin + odd * cos
    turned = torch.stack([first, second], dim=-1).flatten(-2)
    return turned.to(x.dtype)


# the pieces of it that are edited most often
POSITIONS = "positions.float()"
RATES = "base ** (-even_features / d)"
ANGLES = "positions[:, None] * rates"
COS_SIN = "angles.cos(), angles.sin()"
FIRST, SECOND = "even * cos - odd * sin", "even * sin + odd * cos"
CUT = "x[..., 0::2], x[..., 1::2]"
JOINED = "torch.stack([first, second], dim=-1).flatten(-2)"
HALVES, PUT_AS_HALVES = "x.chunk(2, dim=-1)", "torch.cat([first, second], dim=-1)"
RESULT = "turned.to(x.dtype)"
ODD = "if d % 2:"

# both features of a pair are multiplied by the cosine, and their partners by the sine
PARTNERS = {FIRST: "-odd", SECOND: "even"}


def angles_at(axes: str, *, from_ndim: int = 3) -> dict[str, str]:
    """Positions laid along another axis, where x has so many; that may not fit."""
    laid = f"angles = angles[{axes}] if x.ndim >= {from_ndim} else angles"
    return {"cos, sin =": f"{laid}\n    cos, sin ="}


MISTAKES = (
    Mistake(
        "in-place",
        "x itself is altered. Queries and keys are needed as they were, by whoever called and by "
        "the gradient. Make new tensors.",
        {JOINED: f"x.data.copy_({JOINED}.data)", RESULT: "x"},
        also=(
            {
                "first = even": "even = even",
                JOINED: f"x.data.copy_({JOINED.replace('first', 'even')}.data)",
                RESULT: "x",
            },
        ),
    ),
    Mistake(
        "overwritten",
        "The odd features are made from even ones that are turned already. Keep the old ones until "
        "both are made.",
        {"first = even": "even = even", "[first, second]": "[even, second]"},
    ),
    Mistake(
        "half-split",
        "Feature i is paired with feature i + d/2. Asked for are pairs of neighbours, 2i and "
        "2i + 1. (Both are in use, and equally good to train; weights trained with one do not fit "
        "the other.)",
        {CUT: HALVES, JOINED: PUT_AS_HALVES},
    ),
    Mistake(
        "mixed-layouts",
        "Two kinds of pairs are mixed: features are paired in one way, and the angles laid out, or "
        "the results put back, in the other. Here features 2i and 2i + 1 are a pair: both have the "
        "angle i, and both stay where they were.",
        PARTNERS
        | {
            RATES: f"({RATES}).repeat_interleave(2)",
            CUT: HALVES,
            JOINED: f"x * cos + {PUT_AS_HALVES} * sin",
        },
        also=(
            PARTNERS | {RATES: f"({RATES}).repeat(2)", JOINED: f"x * cos + {JOINED} * sin"},
            {CUT: HALVES},
        ),
    ),
    Mistake(
        "other-way-round",
        "The pairs turn the other way round: at position p, (1, 0) should become (cos p, sin p). "
        "(A model trained so would be as good: the scores only know differences.)",
        {FIRST: "even * cos + odd * sin", SECOND: "odd * cos - even * sin"},
    ),
    Mistake(
        "minus-lost",
        "Both sines have the same sign. This is no rotation: lengths change with the position.",
        {"cos - odd": "cos + odd"},
        also=({"sin + odd": "sin * -1 + odd"},),
    ),
    Mistake(
        "sine-and-cosine-exchanged",
        "Sine and cosine are exchanged: at position 0 nothing should be turned.",
        {COS_SIN: "angles.sin(), angles.cos()"},
    ),
    Mistake(
        "not-combined",
        "Each feature is multiplied by a cosine, or by a sine, but not combined with its partner. "
        "Each of the two turned features needs both.",
        {FIRST: "even * cos", SECOND: "odd * sin"},
        also=(
            {FIRST: "even * cos", SECOND: "odd * cos"},
            {FIRST: "even * sin", SECOND: "odd * cos"},
        ),
    ),
    Mistake(
        "added",
        "Sines and cosines are added to x, as in exercise 6.2. Here x is turned by them.",
        {FIRST: "even + sin", SECOND: "odd + cos"},
        also=({FIRST: "even + cos", SECOND: "odd + sin"},),
    ),
    Mistake(
        "twice",
        "Every pair is turned twice.",
        {RATES: f"2 * {RATES}"},
    ),
    Mistake(
        "degrees",
        "The angles are taken for degrees; they are radians already.",
        {ANGLES: f"({ANGLES}).deg2rad()"},
    ),
    Mistake(
        "whole-turns",
        "The angle is multiplied by 2π: position 1 should turn the first pair by one radian.",
        {RATES: f"2 * torch.pi * {RATES}"},
    ),
    Mistake(
        "exponent-doubled",
        "The exponent grows twice as fast as it should. `arange(0, d, 2)` is 2i already; and the d "
        "below it is the whole width of x, not the number of pairs.",
        {"/ d)": "/ d * 2)"},
    ),
    Mistake(
        "exponent-halved",
        "The exponent grows half as fast as it should: it is 2i/d, where i counts the pairs.",
        {"/ d)": "/ d / 2)"},
    ),
    Mistake(
        "exponent-sign",
        "The angle is multiplied by base^(2i/d), not divided by it.",
        {"(-even": "(even"},
    ),
    Mistake(
        "one-rate",
        "All pairs turn at one rate. The exponent 2i/d is a fraction that differs from pair to "
        "pair. Is it lost, or cut to a whole number by `//`?",
        {RATES: "torch.ones(d // 2)"},
    ),
    Mistake(
        "rates-reversed",
        "The pairs stand in the opposite order: the first one should turn fastest.",
        {RATES: f"({RATES}).flip(-1)"},
    ),
    Mistake(
        "pairs-from-one",
        "The pairs are counted from 1: the first one should turn by one radian a position.",
        {"(0, d, 2)": "(2, d + 2, 2)"},
    ),
    Mistake(
        "last-pair-at-base",
        "The rates are spread so that the last pair has exactly the base. In the formula the "
        "exponent is 2i/d, whose last value stays below 1.",
        {RATES: "base ** -torch.linspace(0, 1, d // 2)"},
    ),
    Mistake(
        "own-rate-for-each-feature",
        "The two features of a pair have different angles. It is one rotation: both have the angle "
        "of their pair.",
        {
            "(0, d, 2)": "(d)",
            FIRST: "even * cos[:, 0::2] - odd * sin[:, 0::2]",
            SECOND: "even * sin[:, 1::2] + odd * cos[:, 1::2]",
        },
    ),
    Mistake(
        "base-ignored",
        "The base that is given has no effect: it is written into the function.",
        {"base **": "10000.0 **"},
    ),
    Mistake(
        "base",
        "The base is not the one that is given.",
        examples=(
            {"base **": "1000.0 **"},
            {"base **": "512.0 **"},
            {"base **": "(base / 10) **"},
        ),
    ),
    Mistake(
        "fixed-width",
        "The exponent is not divided by the width of x.",
        examples=(
            {"/ d)": "/ 64)"},
            {"/ d)": "/ 512)"},
        ),
    ),
    Mistake(
        "positions-ignored",
        "The positions that are given have no effect: the rows are counted from 0. With a cache, "
        "every new token would stand at position 0.",
        {POSITIONS: "torch.arange(len(positions)).float()"},
    ),
    Mistake(
        "positions-from-first",
        "The first position is taken for 0 and the rest is counted from it.",
        {POSITIONS: "(positions - positions[0]).float()"},
    ),
    Mistake(
        "counted-on-from-the-first",
        "The rows are counted on from the first position. Those that are given need not follow "
        "each other.",
        {POSITIONS: "(positions[0] + torch.arange(len(positions))).float()"},
    ),
    Mistake(
        "positions-sorted",
        "The positions are put in order. Each row has the one that stands at its own index.",
        {POSITIONS: "positions.float().sort().values"},
    ),
    Mistake(
        "one-too-far",
        "Every position is one too large: at position 0 nothing is turned.",
        {POSITIONS: "positions.float() + 1"},
    ),
    Mistake(
        "positions-reversed",
        "The positions are taken in reverse order.",
        {POSITIONS: "positions.float().flip(0)"},
    ),
    Mistake(
        "not-turned",
        "x comes back as it was.",
        {RESULT: "x.clone()"},
        also=({RESULT: "x"},),
    ),
    Mistake(
        "not-put-back",
        "The turned features come back as two halves: first all even ones, then all odd ones. "
        "Each belongs back where it was.",
        {JOINED: PUT_AS_HALVES},
    ),
    Mistake(
        "pair-axis-left",
        "The result still has an axis of size 2 for the pairs. Its shape is that of x.",
        {".flatten(-2)": ""},
        also=(
            {JOINED: "torch.stack([first, second], dim=0)"},
            {JOINED: "torch.stack([first, second], dim=-2)"},
        ),
    ),
    Mistake(
        "complex-left",
        "The result is complex. torch.view_as_real, and flatten, give the features back.",
        {JOINED: "torch.complex(first, second)"},
    ),
    Mistake(
        "halves-returned",
        "Two tensors come back, one for either feature of the pairs. Asked for is one of the shape "
        "of x.",
        {RESULT: "first, second"},
    ),
    Mistake(
        "only-half-turned",
        "Only the first half of the features is turned. Asked for are all pairs.",
        {RESULT: "torch.cat([turned[..., : d // 4 * 2], x[..., d // 4 * 2 :]], dim=-1)"},
    ),
    Mistake(
        "batch-axis",
        "The positions are laid along an axis of the batch or of the heads. They belong to the "
        "second axis from the right.",
        angles_at(":, None"),
        also=(
            angles_at(":, None, None", from_ndim=4),
            angles_at(":, None", from_ndim=4),
        ),
    ),
    Mistake(
        "width-of-another-axis",
        "The width is read from axis 1. It is the size of the last axis, whatever stands before.",
        {"x.shape[-1]": "x.shape[1]", ODD: "if False:"},
    ),
    Mistake(
        "norm-changed",
        "The result has another length than x. A rotation keeps it.",
        {RESULT: "turned / x.norm(dim=-1, keepdim=True)"},
        also=({RESULT: "turned * d**0.5"},),
    ),
    Mistake(
        "detached",
        "The values are right, but the gradient does not reach x: queries and keys would not be "
        "trained.",
        {CUT: "x.detach()[..., 0::2], x.detach()[..., 1::2]"},
    ),
    Mistake(
        "odd-accepted",
        "An odd d raises another error, or none. A feature without a partner cannot be turned: "
        "raise a ValueError that names d.",
        {ODD: "if False:"},
        also=(
            {
                "d = x.shape[-1]": "x, left = x.tensor_split([x.shape[-1] // 2 * 2], dim=-1)\n"
                "    d = x.shape[-1]",
                RESULT: "torch.cat([turned.to(x.dtype), left], dim=-1)",
            },
        ),
    ),
    asserted("With an odd d an assert fails.", WITH_THE_NUMBER),
    Mistake(
        "angles-in-half-precision",
        "The angles are made in the dtype of x. float16 and bfloat16 cannot tell position 4001 "
        "from its neighbours, and distant tokens are turned by whole turns too much or too little. "
        "Make positions, rates and angles in float32, up to their sine and cosine.",
        {POSITIONS: "positions.to(x.dtype)", "(0, d, 2)": "(0, d, 2).to(x.dtype)"},
        also=(
            {POSITIONS: "positions.to(x.dtype)"},
            {ANGLES: "positions.to(x.dtype)[:, None] * rates.to(x.dtype)"},
            {COS_SIN: "angles.to(x.dtype).cos(), angles.to(x.dtype).sin()"},
        ),
    ),
)
