"""Exercise 0.2, cross_entropy: its probes and its known mistakes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Generator

from attn_course.checks import ready_made
from attn_course.checks.catalogue.ch00.cross_entropy_mistakes import (
    BASE_TEN,
    LOGITS_CLAMPED,
    MISTAKES,
    in_three_steps,
)
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
from attn_course.primer import cross_entropy
from attn_course.sentences import say

# -- probes -----------------------------------------------------------------------------------


def draw_one_row(rng: Generator) -> Iterator[tuple]:
    """A single row: the mean over rows cannot go wrong yet."""
    yield tenths(rng, 1, 3), torch.tensor([2])
    yield 2 * normal(rng, 1, 5), torch.tensor([1])


def draw_rows(rng: Generator) -> Iterator[tuple]:
    """Several rows, sizes different and equal: as many rows as classes hides wrong axes.

    Some classes occur twice: over a permutation of the classes, sums that belong to other
    rows would have the right mean.
    """
    yield tenths(rng, 2, 3), torch.tensor([2, 0])
    yield tenths(rng, 3, 3), torch.tensor([1, 2, 1])
    yield 2 * normal(rng, 7, 4), torch.tensor([3, 0, 2, 2, 1, 3, 0])
    yield 2 * normal(rng, 5, 5), torch.tensor([4, 0, 4, 2, 1])


def draw_large(_rng: Generator) -> Iterator[tuple]:
    """Logits in the thousands, a probability that is 0 in float32, rows far from each other."""
    yield torch.tensor([[1000.0, 999.0, 998.0]]), torch.tensor([1])
    yield torch.tensor([[1000.0, 0.0, 0.0]]), torch.tensor([1])
    yield torch.tensor([[1000.0, 999.0], [-1000.0, -1001.0]]), torch.tensor([1, 0])


LEAST_CAPPED = 100.0
"""A row's loss that is larger tells what caps it."""
SMALLEST_CONSTANT = -math.log(2.0**-126)
"""The loss at the smallest normal float32: nothing smaller can be added under the logarithm."""


def read_factor(seen: Sequence[Seen]) -> Diagnosis | None:
    """The same factor for every single row: a division by a number that was written down."""
    factors = [float(probe.actual) / float(probe.expected) for probe in seen]
    if len(seen) < 2 or not 0 < factors[0] < 0.6 or max(factors) - min(factors) > 1e-3:
        return None
    if abs(1 / factors[0] - math.log(10)) < 1e-2:
        return Diagnosis(BASE_TEN, "base-ten")
    words = (
        "A single row gives 1/{divisor} of its loss: the sum is divided by a fixed number, not by "
        "the number of rows that came in."
    )
    return Diagnosis(say(words, divisor=f"{1 / factors[0]:.3g}"), "divided-by-fixed-number")


def read_ceiling(seen: Sequence[Seen]) -> Diagnosis | None:
    """A finite loss that is far too small: a constant under the logarithm caps it.

    The logits of the first probe lie close together, so a cap cannot show there: if it is wrong,
    logits that are cut to a limit have become equal.
    """
    first = seen[0]
    equal = math.log(first.args[0].shape[-1])
    if len(seen) > 1 and abs(float(first.actual) - equal) < 1e-3:
        return Diagnosis(LOGITS_CLAMPED, "logits-clamped")
    probe = next((one for one in seen if float(one.expected) > LEAST_CAPPED), first)
    loss, expected = float(probe.actual), float(probe.expected)
    if not 0 < loss < expected / 2:
        return None
    if loss > SMALLEST_CONSTANT:
        return Diagnosis(say(CUT_OFF, loss=f"{loss:.3g}"), "loss-cut-off")
    constant = f"{math.exp(-loss):.0e}"
    return Diagnosis(say(CAPPED, loss=f"{loss:.3g}", constant=constant), "constant-in-log")


CUT_OFF = (
    "One row's loss never exceeds {loss}, however wrong it is: it is cut off there (a clamp?), and "
    "the gradient beyond is lost. With the logarithm of the softmax taken on paper first, nothing "
    "needs to be cut."
)
CAPPED = (
    "One row's loss never exceeds about {loss}, however wrong it is: a constant of about "
    "{constant} inside the logarithm caps it, and the gradient beyond is lost. Take the logarithm "
    "of the softmax on paper first."
)

EXERCISE = Exercise(
    number="0.2",
    reference=cross_entropy,
    right=in_three_steps,
    outputs=(Output("loss"),),
    difficulty=2,
    minutes=20,
    points=3,
    may_use="torch and einops, but no ready-made cross_entropy or nll_loss",
    rules_out=ready_made.LOSS,
    stages=(
        Stage(
            "one row",
            draw_one_row,
            "For one row the loss is −log of the probability that the softmax gives the target.",
            diagnose=read_factor,
        ),
        Stage(
            "several rows",
            draw_rows,
            "A single row is right; over several rows the loss should be their mean.",
        ),
        gradient_stage(draw_rows, ("logits", "targets"), {"logits": "row class"}),
        Stage(
            "large logits",
            draw_large,
            "Logits in the thousands break it. The softmax does not change when the same number "
            "is taken from all logits of a row, and log(exp(x)) need not be computed at all.",
            diagnose=read_ceiling,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Three steps: log-probabilities (n, classes), the one of each row's target (n), minus "
        "their mean. Do the first row on paper.",
        "log of exp(x) / Σ exp(x) is x − log Σ exp(x). Torch has the second part as one function, "
        "and it keeps large numbers from overflowing.",
        "To read each row at its own target, index with two lists of the same length, row numbers "
        "and targets, or use gather along the last axis. Then the minus sign and the mean.",
    ),
)
