"""Exercise 8.2, shift_right: its stages and known mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.exercise import Diagnosis, Exercise, Mistake, Output, Seen, Stage
from attn_course.sentences import say
from attn_course.tasks.base import shift_right

Probe = tuple[Any, ...]

# -- probes -----------------------------------------------------------------------------------


def tokens(rng: Generator, b: int, n: int) -> Tensor:
    """Different tokens 3, 4, 5, … in each row, in some order, and no two rows alike."""
    rows = [3 + torch.randperm(n + 4, generator=rng)[:n] + 20 * k for k in range(b)]
    return torch.stack(rows)


def draw_one_row(rng: Generator) -> Iterator[Probe]:
    """One sequence with the start token 0."""
    yield torch.tensor([[5, 3, 8]]), 0
    yield tokens(rng, 1, 6), 0


def draw_one_token(rng: Generator) -> Iterator[Probe]:
    """Targets of one token: the input is the start token alone."""
    yield torch.tensor([[7]]), 0
    yield tokens(rng, 4, 1), 0


def draw_batch(rng: Generator) -> Iterator[Probe]:
    """More rows than tokens, fewer, as many; tokens that repeat, and that equal the start."""
    yield torch.tensor([[5, 3, 8], [2, 9, 4]]), 0
    for b, n in ((2, 5), (5, 2), (4, 4)):
        yield tokens(rng, b, n), 0
    yield torch.tensor([[4, 4, 0], [0, 4, 4]]), 0


def draw_start(rng: Generator) -> Iterator[Probe]:
    """Start tokens other than 0, one of which stands among the targets."""
    yield torch.tensor([[5, 3, 8]]), 1
    yield tokens(rng, 3, 5), 99
    yield torch.tensor([[5, 3, 3], [3, 8, 5]]), 3


def draw_default(rng: Generator) -> Iterator[Probe]:
    """No start token is given: it is 0."""
    yield (torch.tensor([[5, 3, 8]]),)
    yield (tokens(rng, 2, 4),)


def other_start(seen: Sequence[Seen]) -> Diagnosis | None:
    """All is right but the first column, which is the same number everywhere."""
    if any(not torch.equal(s.actual[:, 1:], s.expected[:, 1:]) for s in seen):
        return None
    firsts = {int(number) for s in seen for number in s.actual[:, 0]}
    if len(firsts) != 1:
        return None
    words = (
        "The tokens move as they should, but each sequence starts with {start}, whatever "
        "start_token is."
    )
    return Diagnosis(say(words, start=firsts.pop()), "start-fixed")


# -- wrong versions ---------------------------------------------------------------------------


def in_place(targets: Tensor, start_token: int = 0) -> Tensor:
    """Writes into what it is given."""
    targets[:, 1:] = targets[:, :-1].clone()
    targets[:, 0] = start_token
    return targets


def overwritten(targets: Tensor, start_token: int = 0) -> Tensor:
    """Copies from front to back into itself, so that the first token runs through."""
    shifted = targets.clone()
    for position in range(1, targets.shape[1]):
        shifted[:, position] = shifted[:, position - 1]
    shifted[:, 0] = start_token
    return shifted


START = "torch.full_like(targets[:, :1], start_token)"
PARTS = "[start, targets[:, :-1]]"
RESULT = f"torch.cat({PARTS}, dim=1)"

MISTAKES = (
    Mistake(
        "not-shifted",
        "The targets come back as they are: the decoder would read the very token that it is to "
        "predict, and learn to copy.",
        {RESULT: "targets.clone()"},
    ),
    Mistake(
        "shifted-left",
        "The tokens move to the left: at each position the decoder would read the token *after* "
        "the one that it is to predict.",
        {PARTS: "[targets[:, 1:], start]"},
    ),
    Mistake(
        "wrapped-round",
        "The last token comes round to the front. The first thing that a decoder reads is the "
        "start token.",
        {RESULT: "targets.roll(1, dims=1)"},
        also=({RESULT: "targets.roll(1)"},),
    ),
    Mistake(
        "rolled-left",
        "The tokens move to the left, and the first comes round to the end.",
        {RESULT: "targets.roll(-1, dims=1)"},
    ),
    Mistake(
        "one-too-many",
        "Nothing is dropped at the end: the result is one token longer than the targets. The last "
        "target is predicted, but nothing is predicted from it.",
        {PARTS: "[start, targets]"},
    ),
    Mistake(
        "no-start",
        "The start token is missing: the last token is dropped, and nothing stands in front.",
        {PARTS: "[targets[:, :-1]]"},
    ),
    Mistake(
        "first-dropped",
        "The first token is dropped instead of the last: the decoder would never read it.",
        {PARTS: "[start, targets[:, 1:]]"},
    ),
    Mistake(
        "first-kept",
        "The first target stays in front and is read before it is predicted. The start token "
        "takes its place.",
        {PARTS: "[targets[:, :1], targets[:, :-1]]"},
    ),
    Mistake(
        "start-at-the-end",
        "The start token stands at the end.",
        {PARTS: "[targets[:, :-1], start]"},
    ),
    Mistake(
        "appended",
        "The start token stands behind the targets, and nothing is moved.",
        {PARTS: "[targets, start]"},
    ),
    Mistake(
        "by-two",
        "The tokens move by two places. Each position should read the token just before its own.",
        {RESULT: "torch.cat([start, start, targets], dim=1)[:, :-2]"},
    ),
    Mistake(
        "along-the-batch",
        "Whole sequences are moved, not their tokens: axis 0 is the batch, axis 1 the position.",
        {"targets[:, :1]": "targets[:1]", "targets[:, :-1]": "targets[:-1]", "dim=1": "dim=0"},
    ),
    Mistake(
        "flattened",
        "The batch is treated as one long sequence: the last token of a row runs over into the "
        "next.",
        {RESULT: "torch.cat([start[0], targets.flatten()[:-1]]).view_as(targets)"},
    ),
    Mistake(
        "first-repeated",
        "One token runs through the whole row. Writing front to back into the same tensor "
        "overwrites what is to be read next.",
        overwritten,
    ),
    Mistake(
        "reversed",
        "The tokens come back in reverse order.",
        {PARTS: "[start, targets.flip(1)[:, 1:]]"},
        also=({RESULT: "targets.flip(1)"},),
    ),
    Mistake(
        "start-added",
        "Every token is moved by the start token's number, or replaced by it.",
        {RESULT: "torch.full_like(targets, start_token)"},
        also=({RESULT: "targets + start_token"},),
    ),
    Mistake(
        "floats",
        "The result holds floats. Tokens are integers: an embedding looks up nothing else.",
        {START: "torch.zeros(len(targets), 1) + start_token"},
    ),
    Mistake(
        "in-place",
        "The targets themselves are changed, and they are still needed, for the loss.",
        in_place,
    ),
    Mistake(
        "start-fixed",
        "Each sequence starts with the same number, whatever start_token is.",
        examples=tuple({"1], start_token": f"1], {number}"} for number in (0, 1, 2)),
    ),
)

EXERCISE = Exercise(
    number="8.2",
    reference=shift_right,
    outputs=(Output(say("decoder input"), "b n"),),
    difficulty=1,
    minutes=6,
    points=1,
    may_use="torch",
    stages=(
        Stage(
            "one sequence",
            draw_one_row,
            "The decoder's input should be the start token, then all targets but the last.",
            diagnose=other_start,
        ),
        Stage(
            "one token", draw_one_token, "With one target there is the start token alone to read."
        ),
        Stage(
            "batch",
            draw_batch,
            "One sequence comes out right, several do not: each row should be moved by itself.",
            diagnose=other_start,
        ),
        Stage(
            "start token",
            draw_start,
            "With another start token the result differs.",
            diagnose=other_start,
        ),
        Stage(
            "default", draw_default, "Without a start token it should be 0.", diagnose=other_start
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "The decoder predicts target t from what it has read up to position t. So what may stand "
        "at position t of its input? Write it down for targets 5 3 8.",
        "Two pieces, side by side: a column (b, 1) of start tokens, and all targets but the last "
        "column.",
        "torch.full_like(targets[:, :1], start_token) makes the column; torch.cat joins along "
        "dim=1.",
    ),
)
