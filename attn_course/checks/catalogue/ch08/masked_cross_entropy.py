"""Exercise 8.3, masked_cross_entropy: its stages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch08.masked_cross_entropy_mistakes import MISTAKES
from attn_course.checks.exercise import Exercise, Output, Stage, normal, tenths
from attn_course.checks.gradients import gradient_stage
from attn_course.losses import masked_cross_entropy
from attn_course.masks import padding_mask

Probe = tuple[Any, ...]

# -- probes -----------------------------------------------------------------------------------


def draw_targets(rng: Generator, vocab: int, *shape: int) -> Tensor:
    """Targets of any class."""
    return torch.randint(vocab, shape, generator=rng)


def draw_one_token(rng: Generator) -> Iterator[Probe]:
    """One token, that is none of padding: a plain cross-entropy."""
    yield tenths(rng, 1, 1, 3), torch.tensor([[2]]), torch.ones(1, 1, dtype=torch.bool)
    yield normal(rng, 1, 1, 7), torch.tensor([[0]]), torch.ones(1, 1, dtype=torch.bool)


def draw_unpadded(rng: Generator) -> Iterator[Probe]:
    """No padding; unequal sizes, then as many positions as classes, where axes go unnoticed."""
    yield tenths(rng, 1, 2, 3), torch.tensor([[2, 0]]), torch.ones(1, 2, dtype=torch.bool)
    for b, n, vocab in ((2, 3, 7), (4, 5, 5), (3, 3, 3)):
        targets = draw_targets(rng, vocab, b, n)
        yield normal(rng, b, n, vocab), targets, torch.ones(b, n, dtype=torch.bool)


def draw_padded(rng: Generator) -> Iterator[Probe]:
    """One padded row; then several, of unequal lengths, one of them 0."""
    yield tenths(rng, 1, 2, 3), torch.tensor([[2, 0]]), torch.tensor([[True, False]])
    for lengths, n in (([4, 1, 2], 4), ([5, 0], 5), ([3, 1, 1], 3)):
        b = len(lengths)
        targets = draw_targets(rng, 6, b, n)
        yield normal(rng, b, n, 6), targets, padding_mask(torch.tensor(lengths), n)


def draw_real_zeros(rng: Generator) -> Iterator[Probe]:
    """The class 0 stands among the tokens; padding in front, with any number at it."""
    yield tenths(rng, 1, 2, 2), torch.tensor([[0, 1]]), torch.tensor([[True, True]])
    targets = torch.tensor([[0, 3, 0, 5], [2, 0, 0, 0]])
    padding = torch.tensor([[False, True, True, True], [True, True, False, True]])
    yield normal(rng, 2, 4, 6), targets, padding


def draw_extreme(rng: Generator) -> Iterator[Probe]:
    """Logits of hundreds, at tokens and at padding."""
    yield torch.tensor([[[200.0, -200.0]]]), torch.tensor([[1]]), torch.tensor([[True]])
    logits = 300 * normal(rng, 2, 3, 5)
    yield logits, draw_targets(rng, 5, 2, 3), padding_mask(torch.tensor([3, 1]), 3)


def draw_gradient(rng: Generator) -> Iterator[Probe]:
    """One sequence and several."""
    yield tenths(rng, 1, 2, 3), torch.tensor([[2, 0]]), torch.tensor([[True, False]])
    targets = draw_targets(rng, 5, 3, 4)
    yield normal(rng, 3, 4, 5), targets, padding_mask(torch.tensor([4, 1, 2]), 4)


EXERCISE = Exercise(
    number="8.3",
    reference=masked_cross_entropy,
    outputs=(Output("loss"),),
    difficulty=2,
    minutes=12,
    points=2,
    may_use="torch, F.cross_entropy",
    stages=(
        Stage(
            "one token",
            draw_one_token,
            "For one token the loss should be minus the log-probability of its target.",
        ),
        Stage(
            "no padding",
            draw_unpadded,
            "Without padding the loss should be the mean over all positions of all sequences.",
        ),
        Stage(
            "padding",
            draw_padded,
            "With padding the loss differs: it should be the mean over the tokens, all alike.",
        ),
        Stage(
            "any number",
            draw_real_zeros,
            "Where 0 is a token, or padding stands elsewhere than at the end, the loss differs: "
            "only the mask says what is padding.",
        ),
        Stage("large logits", draw_extreme, "With logits of some hundred the loss differs."),
        gradient_stage(draw_gradient, ("logits", "targets", "padding"), {"logits": "b n v"}),
    ),
    mistakes=MISTAKES,
    hints=(
        "Two steps: a loss for every position, (b, n); then the mean of those at which padding is "
        "True.",
        "A boolean mask picks: logits[padding] is (tokens, vocab) and targets[padding] is "
        "(tokens,).",
        "F.cross_entropy(logits[padding], targets[padding]) takes classes on the last axis of two, "
        "and the mean.",
    ),
)
