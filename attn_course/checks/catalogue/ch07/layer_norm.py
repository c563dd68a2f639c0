"""Exercise 7.1, layer_norm: its probes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Generator, Tensor

from attn_course.checks import ready_made
from attn_course.checks.catalogue.ch07.layer_norm_mistakes import MISTAKES, normalised
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
from attn_course.norms import layer_norm
from attn_course.sentences import say

INPUTS = ("x", "gain", "bias")
EPS = 1e-5  # unless it is given


def wide(rng: Generator, *shape: int) -> Tensor:
    """Whole numbers, so far apart that epsilon is nothing beside their variance."""
    return 10 * tenths(rng, *shape)


def neutral(d: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """A gain of ones and a bias of zeros, which change nothing."""
    return torch.ones(d).to(like), torch.zeros(d).to(like)


def draw_statistics(rng: Generator) -> Iterator[tuple]:
    """One token first; then several, with all sizes different, and any number of axes before."""
    token = torch.tensor([[1.0, 3.0, 3.0, 9.0]])
    yield token, *neutral(4, token)
    x = wide(rng, 2, 3)
    yield x, *neutral(3, x)
    for shape in ((2, 3, 4), (5,), (3, 2, 4, 5)):
        x = 3 * normal(rng, *shape) + 1
        yield x, *neutral(shape[-1], x)


def draw_affine(rng: Generator) -> Iterator[tuple]:
    """A gain and a bias of their own for each feature."""
    yield wide(rng, 1, 3), tenths(rng, 3), tenths(rng, 3)
    yield 9 * normal(rng, 2, 3, 4), normal(rng, 4), normal(rng, 4)
    yield 9 * normal(rng, 2, 3, 6).double(), normal(rng, 6).double(), normal(rng, 6).double()


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """As many tokens as features, and as many sequences: a wrong axis keeps the shape."""
    yield wide(rng, 2, 2), tenths(rng, 2), tenths(rng, 2)
    yield 9 * normal(rng, 4, 4, 4), normal(rng, 4), normal(rng, 4)
    yield 9 * normal(rng, 3, 3), normal(rng, 3), normal(rng, 3)


def draw_small(rng: Generator) -> Iterator[tuple]:
    """Features as small as epsilon's root, where it matters what epsilon is added to."""
    token = torch.tensor([[0.001, 0.003, 0.003, 0.009]])
    yield token, *neutral(4, token)
    yield 1e-3 * normal(rng, 2, 3, 5), normal(rng, 5), normal(rng, 5)


def draw_alike(rng: Generator) -> Iterator[tuple]:
    """All features of a token alike: nothing is left but the bias."""
    yield torch.full((1, 4), 2.0), torch.ones(4), tenths(rng, 4)
    yield torch.zeros(2, 3, 5), normal(rng, 5), normal(rng, 5)


def draw_epsilon(rng: Generator) -> Iterator[tuple]:
    """Epsilon as an argument."""
    token = torch.tensor([[1.0, 3.0, 3.0, 9.0]])
    yield token, *neutral(4, token), 7.0
    for eps in (0.5, 1e-3):
        yield normal(rng, 2, 3, 4), normal(rng, 4), normal(rng, 4), eps


def draw_gradients(rng: Generator) -> Iterator[tuple]:
    """One token, then several."""
    yield tenths(rng, 1, 4), tenths(rng, 4), tenths(rng, 4)
    yield normal(rng, 2, 3, 5), normal(rng, 5), normal(rng, 5)


def draw_far(rng: Generator) -> Iterator[tuple]:
    """Features far from zero, close to each other: their squares are large against their spread."""
    x = 100 + normal(rng, 3, 6)
    yield x, *neutral(6, x)


def read_epsilon(seen: Sequence[Seen]) -> Diagnosis | None:
    """Whether the answer took another epsilon than it was given: which, off its values."""
    for probe in seen:
        x, gain, bias, *given = probe.args
        eps = given[0] if given else EPS
        centred = x.double() - x.double().mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        found = ((probe.actual.double() - bias) / gain / centred).pow(-2) - variance
        off = abs(float(found.mean()) - eps)
        # one token does not tell it from other faults
        several = variance.numel() > 1 or bool(given)
        if several and float(found.max() - found.min()) < 0.05 * off and off > 0.1 * eps:
            return _told(float(found.mean()), eps)
    return None


def _told(found: float, eps: float) -> Diagnosis:
    if abs(found) < 1e-3 * min(eps, EPS):
        return Diagnosis(
            "Nothing is added to the variance here. Epsilon is, whatever the variance.",
            "no-epsilon",
        )
    words = (
        "Epsilon is about {found:.3g} where {wanted:g} is wanted. It is an argument, whose default "
        "is 1e-5."
    )
    return Diagnosis(say(words, found=found, wanted=eps), "epsilon-fixed")


EXERCISE = Exercise(
    number="7.1",
    reference=layer_norm,
    right=normalised,
    outputs=(Output("normalised", "b n d"),),
    difficulty=1,
    minutes=15,
    points=2,
    may_use="torch, no F.layer_norm, no nn.LayerNorm",
    rules_out=ready_made.NORM,
    stages=(
        Stage(
            "statistics",
            draw_statistics,
            "With a gain of ones and a bias of zeros each token should come out with mean 0 and "
            "variance 1 over its own features.",
            diagnose=read_epsilon,
        ),
        Stage(
            "gain and bias",
            draw_affine,
            "With a gain and a bias the result differs; without them it is right.",
            diagnose=read_epsilon,
        ),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "Here there are as many tokens as features, and the result differs: mean and variance "
            "belong to one token.",
        ),
        Stage(
            "small features",
            draw_small,
            "With features of about 0.001 the result differs: there epsilon is no longer small "
            "against the variance, so it matters what it is added to.",
            diagnose=read_epsilon,
        ),
        Stage(
            "features alike",
            draw_alike,
            "A token whose features are all alike should become the bias.",
        ),
        Stage(
            "epsilon", draw_epsilon, "With another eps the result differs.", diagnose=read_epsilon
        ),
        gradient_stage(draw_gradients, INPUTS, {"x": "b n d", "gain": "d", "bias": "d"}),
        Stage(
            "far from zero",
            draw_far,
            "Far from zero the result loses most of its digits: mean(x²) − mean(x)² is the "
            "difference of two large numbers. Centre first, then square.",
            remark=True,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Two numbers are needed for each token: the mean of its features, and the mean of their "
        "squared distances from it. Along which axis, and how do they line up with x afterwards?",
        "mean(dim=-1, keepdim=True) keeps an axis of size 1, so that each token meets its own "
        "mean. The variance is a mean too, divided by d and not by d − 1.",
        "centred = x minus its mean; variance = the mean of centred²; then gain · centred divided "
        "by the root of (variance + eps), plus bias.",
    ),
)
