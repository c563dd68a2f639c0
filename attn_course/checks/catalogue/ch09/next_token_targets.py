"""Exercise 9.1, next_token_targets: its stages."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch09.next_token_mistakes import MISTAKES
from attn_course.checks.exercise import Exercise, Output, Stage
from attn_course.tasks.language import next_token_targets

Probe = tuple[Tensor, int]


def text(rng: Generator, length: int) -> Tensor:
    """Different tokens in some order, so that each tells where it came from."""
    return 3 + torch.randperm(length, generator=rng)


def draw_one_window(rng: Generator) -> Iterator[Probe]:
    """A text of one window and the token behind it."""
    yield torch.tensor([5, 3, 8, 6]), 3
    yield text(rng, 6), 5


def draw_several(rng: Generator) -> Iterator[Probe]:
    """Windows that use the text up; more of them than tokens in each, fewer, as many."""
    yield torch.tensor([5, 3, 8, 6, 2]), 2
    for count, n in ((2, 5), (5, 2), (4, 4)):
        yield text(rng, count * n + 1), n


def draw_left_over(rng: Generator) -> Iterator[Probe]:
    """Too few tokens are left for another window: one short of its last target, and others."""
    yield torch.tensor([5, 3, 8, 6]), 2
    for count, n, more in ((2, 5, 5), (3, 4, 2), (4, 3, 3), (2, 6, 4)):
        yield text(rng, count * n + more), n


def draw_edges(rng: Generator) -> Iterator[Probe]:
    """Windows of one token, and the shortest text."""
    yield torch.tensor([7, 4]), 1
    yield text(rng, 5), 1
    yield torch.tensor([4, 4, 0, 0, 4]), 2


OUTPUTS = (Output("inputs", "b n"), Output("targets", "b n"))

EXERCISE = Exercise(
    number="9.1",
    reference=next_token_targets,
    outputs=OUTPUTS,
    difficulty=1,
    minutes=10,
    points=1,
    may_use="torch",
    stages=(
        Stage(
            "one window",
            draw_one_window,
            "For a text of n + 1 tokens there is one window: the first n tokens, and as targets "
            "the last n.",
        ),
        Stage(
            "several windows",
            draw_several,
            "One window comes out right, several do not: they start at 0, n, 2n, …, and at the "
            "last position of each the first token of the next is asked for.",
        ),
        Stage(
            "left over",
            draw_left_over,
            "Where tokens are left over the windows differ: only those that have all their targets "
            "count.",
        ),
        Stage("edges", draw_edges, "With windows of one token the result differs."),
    ),
    mistakes=MISTAKES,
    hints=(
        "Write a text of seven letters down, windows of three. Which letter is asked for at the "
        "last position of the first window? How many letters does the second need?",
        "count windows need count · n + 1 tokens. So count = (len(ids) − 1) // n.",
        "ids[: count * n].reshape(count, n) are the inputs; the targets are cut the same way, one "
        "token later: ids[1 : count * n + 1].",
    ),
)
