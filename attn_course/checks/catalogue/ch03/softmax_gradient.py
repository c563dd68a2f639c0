"""Exercise 3.3, softmax_gradient: its probes and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Generator, Tensor

from attn_course.attention import softmax_gradient
from attn_course.checks import ready_made
from attn_course.checks.exercise import (
    Diagnosis,
    Exercise,
    Mistake,
    Output,
    Seen,
    Stage,
    normal,
)
from attn_course.sentences import say

EPS = 1e-5


# -- probes -----------------------------------------------------------------------------------


def draw_double(rng: Generator) -> Iterator[tuple]:
    """Scores in float64, where the quotient is exact to about ten digits."""
    yield torch.tensor([1.0, 0.0, -0.5], dtype=torch.float64), 0
    yield torch.tensor([0.2, 1.4], dtype=torch.float64), 1
    for n, index in ((4, 2), (7, 6), (12, 3)):
        yield normal(rng, n).double(), index


def draw_step(rng: Generator) -> Iterator[tuple]:
    """The step is given, and wider or narrower than the usual one."""
    yield torch.tensor([1.0, 0.0, -0.5], dtype=torch.float64), 1, 1e-4
    yield normal(rng, 6).double(), 4, 2e-6


def draw_single(rng: Generator) -> Iterator[tuple]:
    """Scores in float32, which keeps seven digits."""
    yield torch.tensor([0.3, 0.1, 0.2, -0.4]), 2
    yield normal(rng, 9), 5


def draw_large(rng: Generator) -> Iterator[tuple]:
    """Scores whose exponentials overflow, or are all 0."""
    yield torch.tensor([1000.0, 999.0, 998.5]), 1
    yield torch.tensor([-2000.0, -2001.0]), 0


def read_size(seen: Sequence[Seen]) -> Diagnosis | None:
    """Tell apart nothing at all, a factor of ε², rounding noise and an error that is smaller."""
    both = [(probe.actual.double(), probe.expected.double()) for probe in seen]
    if all(torch.allclose(a, EPS**2 * e, rtol=0.1, atol=0) for a, e in both):
        return Diagnosis(
            "Everything is 10¹⁰ times too small, ε² times what it should be: in Python a / 2 * b "
            "means (a / 2) · b.",
            "multiplied-by-eps",
        )
    if all(bool((a.abs() < 1e-6 * e.abs().max()).all()) for a, e in both):
        return Diagnosis(NOTHING_MOVES, "all-moved-together")
    off = max(((a - e).abs().max() / e.abs().max()).item() for a, e in both)
    if off < 1e-4:
        return Diagnosis(say(NEARLY_RIGHT, share=f"{off:.0e}"))
    rounded = all(torch.equal(a, a.round(decimals=6)) for a, _ in both)
    if off < 0.05 and not rounded:
        return Diagnosis(say(BECOME_SINGLE, share=f"{off:.0e}"), "single-precision")
    return None


NEARLY_RIGHT = (
    "Nearly right: the largest entry is missed by a share of {share}. A step much wider than eps, "
    "or a rounded result, leaves that much."
)
BECOME_SINGLE = (
    "Right up to noise of {share} of the largest entry, though the scores are float64. Somewhere "
    "on the way they become float32, which keeps seven digits."
)

NOTHING_MOVES = (
    "All entries are 0: either all scores were moved together, or the sum of all weights was "
    "looked at. Neither changes anything."
)


def read_rounding(seen: Sequence[Seen]) -> Diagnosis | None:
    """Tell rounding noise from a wrong formula: it is small everywhere, and has no pattern."""
    noise = [(p.actual - p.expected).abs().max() / p.expected.abs().max() for p in seen]
    if all(share < 0.25 for share in noise):
        words = (
            "Right up to noise of {share} of the largest entry. float32 keeps seven digits, and "
            "the two weights that you subtract agree in five or more of them. Which dtype keeps "
            "enough?"
        )
        return Diagnosis(say(words, share=f"{max(noise).item():.1g}"), "single-precision")
    return None


# -- a right answer and what goes wrong in it --------------------------------------------------


def quotients(scores: Tensor, index: int, eps: float = EPS) -> Tensor:
    """The right answer that the mistakes edit; row m of the nudges moves score m."""
    scores = scores.double()
    nudges = eps * torch.eye(len(scores), dtype=torch.float64)
    moved = torch.stack([scores + nudges, scores - nudges])
    weights = moved.softmax(dim=-1)
    above, below = weights[..., index]
    gradient = (above - below) / (2 * eps)
    return gradient


NUDGES = "eps * torch.eye(len(scores), dtype=torch.float64)"
MOVED = "[scores + nudges, scores - nudges]"
ABOVE_ALONE = "[scores + nudges, scores.expand_as(nudges)]"
BELOW_ALONE = "[scores.expand_as(nudges), scores - nudges]"
SOFT = "moved.softmax(dim=-1)"
PICKED = "[..., index]"


def without_restoring(scores: Tensor, index: int, eps: float = EPS) -> Tensor:
    """Moves one score after the other and leaves each below where it was."""
    scores, gradient = scores.double().clone(), []
    for m in range(len(scores)):
        scores[m] += eps
        above = scores.softmax(-1)[index]
        scores[m] -= 2 * eps
        gradient.append((above - scores.softmax(-1)[index]) / (2 * eps))
    return torch.stack(gradient)


MISTAKES = (
    Mistake(
        "divided-by-eps",
        "Everything is twice too large: the two points lie 2ε apart, not ε.",
        {"/ (2 * eps)": "/ eps"},
    ),
    Mistake(
        "not-divided",
        "This is the difference of the two weights; a derivative is a difference divided by "
        "the distance of the two points.",
        {" / (2 * eps)": ""},
    ),
    Mistake(
        "multiplied-by-eps",
        "Everything is ε² times what it should be: in Python a / 2 * b means (a / 2) · b.",
        examples=({"/ (2 * eps)": "/ 2 * eps"},),
    ),
    Mistake(
        "one-sided-forward",
        "This is the one-sided quotient (p(s + ε) − p(s)) / ε: its error shrinks as ε, that of "
        "the two-sided one as ε².",
        {MOVED: ABOVE_ALONE, "/ (2 * eps)": "/ eps"},
    ),
    Mistake(
        "one-sided-backward",
        "This is the one-sided quotient (p(s) − p(s − ε)) / ε: its error shrinks as ε, that of "
        "the two-sided one as ε².",
        {MOVED: BELOW_ALONE, "/ (2 * eps)": "/ eps"},
    ),
    Mistake(
        "one-side-for-two",
        "Everything is half as large as it should be: only one of the two points was moved, "
        "and the difference divided by the distance 2ε.",
        {MOVED: ABOVE_ALONE},
    ),
    Mistake(
        "step-fixed-in-the-quotient",
        "The scores move by eps, but the difference is divided by a distance that does not "
        "depend on eps.",
        {"2 * eps": "2 * EPS"},
    ),
    Mistake(
        "sign",
        "The sign is wrong: raising a score raises its own weight.",
        {"above - below": "below - above"},
    ),
    Mistake(
        "all-moved-together",
        NOTHING_MOVES,
        examples=(
            {NUDGES: "torch.full((len(scores), len(scores)), eps)"},
            {PICKED: ".sum(dim=-1)"},
        ),
    ),
    Mistake(
        "own-score-only",
        "This is one number: how the weight answers to its own score. The other scores move "
        "it too.",
        {"return gradient": "return gradient[index]"},
    ),
    Mistake(
        "each-weight-by-its-own-score",
        "Entry m is the change of weight m, not of the weight at `index`.",
        {PICKED: ".diagonal(dim1=-2, dim2=-1)"},
    ),
    Mistake(
        "index-ignored",
        "This is the gradient of the first weight, whatever `index` is.",
        {PICKED: "[..., 0]"},
    ),
    Mistake(
        "largest-weight",
        "This is the gradient of the largest weight, whatever `index` is.",
        {PICKED: ".amax(dim=-1)"},
    ),
    Mistake(
        "whole-jacobian",
        "These are the gradients of all weights; only that of the weight at `index` is asked.",
        {PICKED: ""},
    ),
    Mistake(
        "log-weight",
        "This is the gradient of the logarithm of the weight, not of the weight.",
        {SOFT: "moved.log_softmax(dim=-1)"},
    ),
    Mistake(
        "loss",
        "This is the gradient of −log p, the loss, not of the weight p.",
        {SOFT: "-moved.log_softmax(dim=-1)"},
    ),
    Mistake(
        "weights-moved",
        "The weights were moved after the softmax; it is the scores that are to move.",
        {
            "scores + nudges": "scores.softmax(dim=-1) + nudges",
            "scores - nudges": "scores.softmax(dim=-1) - nudges",
            SOFT: "moved",
        },
    ),
    Mistake(
        "relative-step",
        "Each score moves by a share of itself, but is divided as if it had moved by eps.",
        {NUDGES: "eps * torch.diag(scores)"},
    ),
    Mistake(
        "softmax-over-the-copies",
        "The softmax runs over the copies of the scores, not within each copy.",
        {SOFT: "moved.softmax(dim=-2)"},
    ),
    Mistake(
        "nudge-not-taken-back",
        "A score that was moved stays moved while the next one has its turn.",
        without_restoring,
    ),
    Mistake(
        "nudges-accumulate",
        "With each entry one more score is moved along; each one has its turn alone.",
        {NUDGES: f"{NUDGES}.cumsum(dim=0)"},
    ),
    Mistake(
        "unstable-softmax",
        "exp of a large score is infinite. The softmax does not change when the same number "
        "is taken from all scores.",
        {SOFT: "moved.exp() / moved.exp().sum(dim=-1, keepdim=True)"},
    ),
    Mistake(
        "single-precision",
        "Right up to noise: float32 keeps seven digits, and the two weights that are "
        "subtracted agree in most of them.",
        examples=(
            {"scores.double()": "scores", "torch.float64": "scores.dtype"},
            {
                "scores.double()": "scores.float()",
                "torch.float64": "torch.float32",
                "return gradient": "return gradient.double()",
            },
        ),
    ),
)

EXERCISE = Exercise(
    number="3.3",
    reference=softmax_gradient,
    right=quotients,
    outputs=(Output("gradient", "score"),),
    difficulty=2,
    minutes=15,
    points=3,
    may_use="torch with its softmax, no autograd",
    rules_out=ready_made.AUTOGRAD,
    stages=(
        Stage(
            "derivative",
            draw_double,
            "Entry m should say how much the weight at `index` changes for each unit that score "
            "m is moved.",
            diagnose=read_size,
        ),
        Stage(
            "single precision",
            draw_single,
            "With scores in float32 the result differs; in float64 it is right.",
            diagnose=read_rounding,
        ),
        Stage("given step", draw_step, "With another eps than the usual one the result differs."),
        Stage("large scores", draw_large, "With scores in the thousands the result differs."),
    ),
    mistakes=MISTAKES,
    hints=(
        "For each m: a copy of the scores with score m raised by ε, one with it lowered by ε, and "
        "the weight at `index` of both.",
        "Divide the difference by the distance between the two points, 2ε, with brackets round "
        "it. Turn the scores into float64 first.",
        "`eps * torch.eye(n)` added to the scores gives all n raised copies at once, one a row; "
        "`.softmax(dim=-1)[:, index]` weighs each and picks.",
    ),
)
