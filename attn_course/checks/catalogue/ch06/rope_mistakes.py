"""Exercise 6.3, apply_rope: its known mistakes."""

from __future__ import annotations

import torch

from attn_course.checks.catalogue.ch06.rope_versions import (
    asserted,
    at_axis,
    counted,
    from_axis_one,
    half_angles,
    half_at_last,
    half_positions,
    half_product,
    half_then_old,
    halves,
    in_turn,
    mixed_back,
    mixed_one,
    mixed_other,
    moved,
    overwritten,
    overwritten_in_x,
    pair_turned,
    paper,
    pieces,
    signs,
    turn,
    version,
    written_into_x,
)
from attn_course.checks.exercise import Mistake
from attn_course.checks.gradients import detached_inputs

MIXED = (
    "Two kinds of pairs are mixed: features are paired in one way, and the angles laid out, or "
    "the results put back, in the other. Here features 2i and 2i + 1 are a pair: both have the "
    "angle i, and both stay where they were."
)

MISTAKES = (
    Mistake(
        "in-place",
        "x itself is altered. Queries and keys are needed as they were, by whoever called and by "
        "the gradient. Make new tensors.",
        version(turn=written_into_x),
        also=(version(turn=overwritten_in_x),),
    ),
    Mistake(
        "overwritten",
        "The odd features are made from even ones that are turned already. Keep the old ones until "
        "both are made.",
        version(turn=overwritten),
    ),
    Mistake(
        "half-split",
        "Feature i is paired with feature i + d/2. Asked for are pairs of neighbours, 2i and "
        "2i + 1. (Both are in use, and equally good to train; weights trained with one do not fit "
        "the other.)",
        version(turn=halves),
    ),
    Mistake(
        "mixed-layouts",
        MIXED,
        version(turn=mixed_one),
        also=(version(turn=mixed_other), version(turn=mixed_back)),
    ),
    Mistake(
        "other-way-round",
        "The pairs turn the other way round: at position p, (1, 0) should become (cos p, sin p). "
        "(A model trained so would be as good: the scores only know differences.)",
        version(turn=signs(1, -1)),
    ),
    Mistake(
        "minus-lost",
        "Both sines have the same sign. This is no rotation: lengths change with the position.",
        version(turn=signs(1, 1)),
        also=(version(turn=signs(-1, -1)),),
    ),
    Mistake(
        "sine-and-cosine-exchanged",
        "Sine and cosine are exchanged: at position 0 nothing should be turned.",
        version(turn=lambda x, cos, sin: turn(x, sin, cos)),
    ),
    Mistake(
        "not-combined",
        "Each feature is multiplied by a cosine, or by a sine, but not combined with its partner. "
        "Each of the two turned features needs both.",
        version(turn=lambda x, c, s: in_turn(x[..., 0::2] * c, x[..., 1::2] * s)),
        also=(
            version(turn=lambda x, c, s: in_turn(x[..., 0::2] * c, x[..., 1::2] * c)),
            version(turn=lambda x, c, s: in_turn(x[..., 0::2] * s, x[..., 1::2] * c)),
        ),
    ),
    Mistake(
        "added",
        "Sines and cosines are added to x, as in exercise 6.2. Here x is turned by them.",
        version(turn=lambda x, cos, sin: x + in_turn(sin, cos)),
        also=(version(turn=lambda x, cos, sin: x + in_turn(cos, sin)),),
    ),
    Mistake(
        "twice",
        "Every pair is turned twice.",
        version(lambda p, d, base: 2 * paper(p, d, base)),
    ),
    Mistake(
        "degrees",
        "The angles are taken for degrees; they are radians already.",
        version(lambda p, d, base: paper(p, d, base).deg2rad()),
    ),
    Mistake(
        "whole-turns",
        "The angle is multiplied by 2π: position 1 should turn the first pair by one radian.",
        version(lambda p, d, base: 2 * torch.pi * paper(p, d, base)),
    ),
    Mistake(
        "exponent-doubled",
        "The exponent grows twice as fast as it should. `arange(0, d, 2)` is 2i already; and the d "
        "below it is the whole width of x, not the number of pairs.",
        version(lambda p, d, base: paper(p, d, base**2)),
    ),
    Mistake(
        "exponent-halved",
        "The exponent grows half as fast as it should: it is 2i/d, where i counts the pairs.",
        version(lambda p, d, base: paper(p, d, base**0.5)),
    ),
    Mistake(
        "exponent-sign",
        "The angle is multiplied by base^(2i/d), not divided by it.",
        version(lambda p, d, base: paper(p, d, 1 / base)),
    ),
    Mistake(
        "one-rate",
        "All pairs turn at one rate. The exponent 2i/d is a fraction that differs from pair to "
        "pair. Is it lost, or cut to a whole number by `//`?",
        version(lambda p, d, base: p[:, None] * torch.ones(d // 2)),
    ),
    Mistake(
        "rates-reversed",
        "The pairs stand in the opposite order: the first one should turn fastest.",
        version(lambda p, d, base: paper(p, d, base).flip(-1)),
    ),
    Mistake(
        "pairs-from-one",
        "The pairs are counted from 1: the first one should turn by one radian a position.",
        version(lambda p, d, base: p[:, None] * base ** (-torch.arange(2, d + 2, 2) / d)),
    ),
    Mistake(
        "last-pair-at-base",
        "The rates are spread so that the last pair has exactly the base. In the formula the "
        "exponent is 2i/d, whose last value stays below 1.",
        version(lambda p, d, b: p[:, None] * b ** -torch.linspace(0, 1, d // 2)),
    ),
    Mistake(
        "own-rate-for-each-feature",
        "The two features of a pair have different angles. It is one rotation: both have the angle "
        "of their pair.",
        version(
            lambda p, d, base: p[:, None] * base ** (-torch.arange(d) / d),
            turn=lambda x, cos, sin: x * cos + pair_turned(x) * sin,
        ),
    ),
    Mistake(
        "base-ignored",
        "The base that is given has no effect: it is written into the function.",
        version(lambda p, d, base: paper(p, d, 10000.0)),
    ),
    Mistake(
        "base",
        "The base is not the one that is given.",
        examples=(
            version(lambda p, d, base: paper(p, d, 1000.0)),
            version(lambda p, d, base: paper(p, d, 512.0)),
            version(lambda p, d, base: paper(p, d, base / 10)),
        ),
    ),
    Mistake(
        "fixed-width",
        "The exponent is not divided by the width of x.",
        examples=(
            version(lambda p, d, base: paper(p, d, base ** (d / 64))),
            version(lambda p, d, base: paper(p, d, base ** (d / 512))),
        ),
    ),
    Mistake(
        "positions-ignored",
        "The positions that are given have no effect: the rows are counted from 0. With a cache, "
        "every new token would stand at position 0.",
        moved(counted),
    ),
    Mistake(
        "positions-from-first",
        "The first position is taken for 0 and the rest is counted from it.",
        moved(lambda positions: positions - positions[0]),
    ),
    Mistake(
        "counted-on-from-the-first",
        "The rows are counted on from the first position. Those that are given need not follow "
        "each other.",
        moved(lambda positions: positions[0] + counted(positions)),
    ),
    Mistake(
        "positions-sorted",
        "The positions are put in order. Each row has the one that stands at its own index.",
        moved(lambda positions: positions.sort().values),
    ),
    Mistake(
        "one-too-far",
        "Every position is one too large: at position 0 nothing is turned.",
        moved(lambda positions: positions + 1),
    ),
    Mistake(
        "positions-reversed",
        "The positions are taken in reverse order.",
        moved(lambda positions: positions.flip(0)),
    ),
    Mistake(
        "not-turned",
        "x comes back as it was.",
        version(turn=lambda x, cos, sin: x.clone()),
        also=(version(turn=lambda x, cos, sin: x),),
    ),
    Mistake(
        "not-put-back",
        "The turned features come back as two halves: first all even ones, then all odd ones. "
        "Each belongs back where it was.",
        version(turn=pieces(lambda even, odd: torch.cat([even, odd], dim=-1))),
    ),
    Mistake(
        "pair-axis-left",
        "The result still has an axis of size 2 for the pairs. Its shape is that of x.",
        version(turn=pieces(lambda even, odd: torch.stack([even, odd], dim=-1))),
        also=(
            version(turn=pieces(lambda even, odd: torch.stack([even, odd], dim=0))),
            version(turn=pieces(lambda even, odd: torch.stack([even, odd], dim=-2))),
        ),
    ),
    Mistake(
        "complex-left",
        "The result is complex. torch.view_as_real, and flatten, give the features back.",
        version(turn=pieces(torch.complex)),
    ),
    Mistake(
        "halves-returned",
        "Two tensors come back, one for either feature of the pairs. Asked for is one of the shape "
        "of x.",
        version(turn=pieces(lambda even, odd: (even, odd))),
    ),
    Mistake(
        "only-half-turned",
        "Only the first half of the features is turned. Asked for are all pairs.",
        version(turn=lambda x, c, s: torch.cat([turn(x, c, s), x], -1)[..., half_then_old(x)]),
    ),
    Mistake(
        "batch-axis",
        "The positions are laid along an axis of the batch or of the heads. They belong to the "
        "second axis from the right.",
        at_axis(-3),
        also=(at_axis(-4, from_ndim=4), at_axis(-3, from_ndim=4)),
    ),
    Mistake(
        "width-of-another-axis",
        "The width is read from axis 1. It is the size of the last axis, whatever stands before.",
        from_axis_one,
    ),
    Mistake(
        "norm-changed",
        "The result has another length than x. A rotation keeps it.",
        version(turn=lambda x, c, s: turn(x, c, s) / x.norm(dim=-1, keepdim=True)),
        also=(version(turn=lambda x, c, s: turn(x, c, s) * x.shape[-1] ** 0.5),),
    ),
    Mistake(
        "detached",
        "The values are right, but the gradient does not reach x: queries and keys would not be "
        "trained.",
        detached_inputs(version()),
    ),
    Mistake(
        "odd-accepted",
        "An odd d raises another error, or none. A feature without a partner cannot be turned: "
        "raise a ValueError that names d.",
        version(odd_accepted=True),
        also=(
            version(
                turn=lambda x, c, s: (
                    torch.cat([turn(x[..., :-1], c[..., :-1], s[..., :-1]), x[..., -1:]], -1)
                    if x.shape[-1] % 2
                    else turn(x, c, s)
                ),
                odd_accepted=True,
            ),
        ),
    ),
    Mistake(
        "asserted",
        "With an odd d an assert fails. An assert is for the programmer, and is left out under "
        "`python -O`; a user's mistake is a ValueError with the number.",
        asserted,
    ),
    Mistake(
        "angles-in-half-precision",
        "The angles are made in the dtype of x. float16 and bfloat16 cannot tell position 4001 "
        "from its neighbours, and distant tokens are turned by whole turns too much or too little. "
        "Make positions, rates and angles in float32, up to their sine and cosine.",
        half_angles,
        also=(half_positions, half_product, half_at_last),
    ),
)
