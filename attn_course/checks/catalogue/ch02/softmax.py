"""Exercise 2.2, softmax: its probes and its known mistakes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Generator, Tensor

from attn_course.attention import softmax
from attn_course.checks import ready_made
from attn_course.checks.catalogue.ch02.softmax_mistakes import (
    EPSILON_ADDED,
    MISTAKES,
    POWERS_OF_TWO,
    SCORES_CLAMPED,
    weighed,
)
from attn_course.checks.exercise import (
    Answer,
    Diagnosis,
    Exercise,
    Output,
    Seen,
    Stage,
    normal,
    tenths,
)
from attn_course.checks.gradients import gradient_stage
from attn_course.sentences import say

# -- probes -----------------------------------------------------------------------------------


def draw_rows(rng: Generator) -> Iterator[tuple]:
    """Rows of moderate scores, the axis left to its default; equal scores share alike."""
    yield (tenths(rng, 3),)
    yield (tenths(rng, 2, 4),)
    yield (torch.full((5,), 0.7),)
    yield (normal(rng, 3, 2, 6),)


def draw_axes(rng: Generator) -> Iterator[tuple]:
    """Every axis, counted from either end; then equal sizes, where a lost axis is silent."""
    yield tenths(rng, 2, 3), 0
    for shape in ((2, 3), (4, 2, 3), (3, 3), (3, 3, 3)):
        for dim in range(len(shape)):
            yield normal(rng, *shape), dim
    yield normal(rng, 2, 5), -2
    yield normal(rng, 5, 1, 4), -3  # an axis of size 1 stays


def draw_large(rng: Generator) -> Iterator[tuple]:
    """Scores in the thousands: all positive, all negative, far apart, and rows that differ."""
    up, down = [1000.0, 1001.0, 999.0], [-1000.0, -1001.0, -1002.0]
    yield torch.tensor(up), -1
    yield torch.tensor(down), -1
    yield torch.tensor([2000.0, 0.0, -1000.0]), -1
    yield torch.tensor([up, down]), 1
    yield torch.tensor([up, down]).mT.contiguous(), 0
    # far apart: exp(s − log Σ exp s) is right too, but has no digits left for small differences
    yield torch.tensor([8e5, 5e4, 2e4]), -1
    level = 3000 * torch.randint(0, 2, (2, 1, 3), generator=rng) - 1500
    yield level + normal(rng, 2, 4, 3), 1


def draw_hidden(rng: Generator) -> Iterator[tuple]:
    """Scores of minus infinity, as a mask writes them; no row holds nothing else."""
    yield torch.tensor([1.5, -math.inf, 0.5]), -1
    scores = normal(rng, 3, 5)
    scores[0, 1] = scores[2, :4] = -math.inf
    yield scores, 1
    # a number of usual size in the place of minus infinity would outweigh these
    yield torch.tensor([-30000.0, -math.inf, -30500.0]), -1


def draw_double(rng: Generator) -> Iterator[tuple]:
    """In float64, one score far above the rest: the sum below the fraction is 1, but for 1e-20."""
    yield torch.tensor([[0.0, -50.0, -60.0], [-50.0, 0.0, -60.0]], dtype=torch.float64), 1


def draw_weights_to_train(rng: Generator) -> Iterator[tuple]:
    """Gradients along both axes."""
    yield tenths(rng, 2, 5), 1
    yield normal(rng, 3, 2, 4), 1


def missing_billionths(answer: Answer, scores: Tensor, dim: int) -> float:
    """What the sums of the weights lack to 1, in billionths."""
    lacking = 1e9 * (1 - answer(scores, dim).double().sum(dim).max().item())
    return round(lacking, 2) if math.isfinite(lacking) else lacking


def read_temperature(seen: Sequence[Seen]) -> Diagnosis | None:
    """Read off the weights what the scores were multiplied by, or what the sums lack."""
    factors, epsilons = [], []
    for probe in seen:
        scores, actual = probe.args[0].double(), probe.actual.double()
        if not bool((actual > 0).all()):
            return None
        spread, logs = _centred(scores), _centred(actual.log())
        if bool(spread.abs().max() > 0.1):
            factor = (spread * logs).sum() / (spread * spread).sum()
            if not torch.allclose(logs, factor * spread, atol=1e-3):
                return None
            factors.append(factor.item())
        total = actual.sum(-1)
        epsilons.append((scores - scores.amax(-1, keepdim=True)).exp().sum(-1) * (1 / total - 1))
    if factors and max(abs(factor - 1) for factor in factors) > 1e-3:
        return _scaled(factors)
    added = torch.cat([epsilon.flatten() for epsilon in epsilons])
    if bool((added > 0.1).all()):
        words = (
            "The weights do not sum to one: {added} is added to the sum below the fraction. It is "
            "the sum of the exponentials alone."
        )
        return Diagnosis(say(words, added=f"{added.mean():.3g}"), "epsilon-added")
    if bool((added > 1e-6).all()):
        return Diagnosis(EPSILON_ADDED, "epsilon-added")
    return None


def read_sums(seen: Sequence[Seen]) -> Diagnosis:
    """Sums below 1 have something added below the fraction; above 1, weights have been raised."""
    if all(float(probe.actual) < 0 for probe in seen):
        return Diagnosis(
            "The weights sum to more than one: small ones are raised to a limit (a clamp?), or "
            "something is added to them. They need no guard.",
            "weights-raised",
        )
    return Diagnosis(EPSILON_ADDED, "epsilon-added")


def read_clamped(seen: Sequence[Seen]) -> Diagnosis | None:
    """Different large scores that get equal weights were cut to a common limit."""
    for probe in seen:
        scores, dim = probe.args
        along = probe.actual.movedim(dim, -1)
        differs = scores.movedim(dim, -1).std(-1) > 0.5
        equal = (along - along[..., :1]).abs().amax(-1) < 1e-6
        if bool((differs & equal & (along[..., 0] > 0)).any()):
            return Diagnosis(SCORES_CLAMPED, "scores-clamped")
    return None


def _centred(values: Tensor) -> Tensor:
    return values - values.mean(-1, keepdim=True)


def _scaled(factors: list[float]) -> Diagnosis | None:
    shown = ", ".join(f"{factor:.3g}" for factor in factors)
    if all(abs(factor + 1) < 1e-2 for factor in factors):
        return Diagnosis(
            "The smallest score gets the largest weight: the sign of the scores is turned round.",
            "sign-turned",
        )
    if all(abs(factor - math.log(2)) < 1e-3 for factor in factors):
        return Diagnosis(POWERS_OF_TWO, "powers-of-two")
    words = (
        "The scores are multiplied by something before the exponential (by {shown} in these "
        "probes)."
    )
    return Diagnosis(say(words, shown=shown), "scores-scaled")


EXERCISE = Exercise(
    number="2.2",
    reference=softmax,
    right=weighed,
    outputs=(Output("weights"),),
    difficulty=2,
    minutes=15,
    points=3,
    may_use="torch, but no ready-made softmax",
    rules_out=ready_made.SOFTMAX,
    stages=(
        Stage(
            "rows",
            draw_rows,
            "With dim left out, the weights along the last axis are exp(score) divided by the "
            "sum of exp(score).",
            diagnose=read_temperature,
        ),
        Stage("axes", draw_axes, "The last axis is right by default, but `dim` is not followed."),
        Stage(
            "large scores",
            draw_large,
            "Moderate scores are right, but scores in the thousands are not.",
            diagnose=read_clamped,
        ),
        Stage(
            "hidden scores",
            draw_hidden,
            "A score of minus infinity should get the weight 0 and leave the others as they are.",
        ),
        Stage(
            "sums",
            draw_double,
            EPSILON_ADDED,
            call=missing_billionths,
            outputs=(Output(say("lack of the sums to 1, in billionths")),),
            diagnose=read_sums,
        ),
        gradient_stage(draw_weights_to_train, ("scores", "dim"), {"scores": ""}),
    ),
    mistakes=MISTAKES,
    hints=(
        "Three steps: exponentials, their sum along `dim`, the division. `keepdim=True` keeps the "
        "summed axis with size 1, so that the division lines up.",
        "exp(1000) is infinite. exp(s − c) / Σ exp(s − c) is the same for every c. For which c is "
        "no exponential above 1, and at least one equal to 1?",
        "Before the exponential, subtract from each row its largest score: `amax` along the same "
        "`dim`, again with `keepdim=True`. Subtract into a new tensor.",
    ),
)
