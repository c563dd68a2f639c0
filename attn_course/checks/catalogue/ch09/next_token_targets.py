"""Exercise 9.1, next_token_targets: its known mistakes and its stages."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Exercise, Mistake, Output, Stage
from attn_course.tasks.language import next_token_targets

# -- known mistakes ---------------------------------------------------------------------------


def right(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Text cut as a learner may cut it; each mistake is an edit of this."""
    count = (len(ids) - 1) // n
    inputs = ids[: count * n].reshape(count, n)
    targets = ids[1 : count * n + 1].reshape(count, n)
    return inputs, targets


COUNT, INPUTS = "(len(ids) - 1) // n", "ids[: count * n].reshape(count, n)"
SHIFTED, TARGETS = "ids[1 : count * n + 1]", "ids[1 : count * n + 1].reshape(count, n)"


def filled_up(fill: int, behind: int = 1) -> Edits:
    """What is left over is filled up to a whole window; at its end stand so many targets alone."""
    padded = f"F.pad(ids, (0, count * n + 1 - len(ids)), value={fill})"
    return {COUNT: f"math.ceil((len(ids) - {behind}) / n)\n    ids = {padded}"}


def one_less_in_a_loop(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The loop ends one token too early."""
    starts = range(0, len(ids) - n - 1, n)
    inputs, targets = ([ids[k + s : k + s + n] for k in starts] for s in (0, 1))
    return torch.stack(inputs), torch.stack(targets)


MISTAKES = (
    Mistake(
        "not-shifted",
        "The targets are the inputs themselves: the model would be asked for the token that it "
        "reads, and would learn to copy. The target is the token after it.",
        {SHIFTED: "ids[: count * n]"},
    ),
    Mistake(
        "shifted-right",
        "The targets are one token too early: each position is asked for the token *before* the "
        "one it reads.",
        {SHIFTED: "ids.roll(1)[: count * n]"},
        also=({TARGETS: "F.pad(ids, (1, 0))[: len(ids) // n * n].reshape(-1, n)"},),
    ),
    Mistake(
        "by-two",
        "The targets lie two tokens ahead. Each position is asked for the very next one.",
        {SHIFTED: "ids.roll(-2)[: count * n]"},
    ),
    Mistake(
        "wrapped-in-the-window",
        "At its last position a window is asked for its own first token: a roll brings round what "
        "was pushed out. What follows a window in the text is the first token of the next one.",
        {TARGETS: "inputs.roll(-1, dims=1)"},
        also=({TARGETS: "inputs.roll(-1)"},),
    ),
    Mistake(
        "made-up-in-the-window",
        "At its last position a window is asked for a token that is made up. The text knows what "
        "follows a window: the first token of the next one.",
        {TARGETS: "F.pad(inputs[:, 1:], (0, 1))"},
        also=(
            {TARGETS: "F.pad(inputs[:, 1:], (0, 1), value=-100)"},
            {TARGETS: "torch.cat([inputs[:, 1:], inputs[:, -1:]], dim=1)"},
        ),
    ),
    Mistake(
        "shifted-within",
        "The text is cut first and each window is shifted for itself, so each loses a position. "
        "Shift the text, then cut.",
        {
            INPUTS: "ids.unfold(0, n, n)",
            TARGETS: "inputs[:, 1:]",
            "return inputs": "return inputs[:, :-1]",
        },
    ),
    Mistake(
        "windows-of-n-plus-one",
        "Windows of n + 1 tokens are cut apart, which then lose one: the first token of each "
        "window but the first is never asked for. Windows start at 0, n, 2n, …",
        {
            INPUTS: "ids.unfold(0, n + 1, n + 1)",
            TARGETS: "inputs[:, 1:]",
            "return inputs": "return inputs[:, :-1]",
        },
    ),
    Mistake(
        "sliding",
        "A window starts at every place. They should not overlap: 0, n, 2n, …",
        {INPUTS: "ids[:-1].unfold(0, n, 1)", TARGETS: "ids[1:].unfold(0, n, 1)"},
        also=(
            {
                INPUTS: "ids[:-1].unfold(0, n, 1)[: max(1, len(ids) - n - 1)]",
                TARGETS: "ids[1:].unfold(0, n, 1)[: max(1, len(ids) - n - 1)]",
            },
        ),
    ),
    Mistake(
        "one-target",
        "There is one target for each window. Every position is asked for its next token: n "
        "targets for each window, that is why a decoder learns so much from one call.",
        {TARGETS: "ids[n::n][:count]"},
        also=({TARGETS: "ids[n::n][:count, None]"},),
    ),
    Mistake(
        "by-columns",
        "The text runs down the columns. Each *row* is a stretch of the text.",
        {
            INPUTS: "ids[: count * n].reshape(n, count).T",
            TARGETS: "ids[1 : count * n + 1].reshape(n, count).T",
        },
    ),
    Mistake(
        "n-windows",
        "There are n windows. n is how many tokens each has.",
        {
            INPUTS: "ids[: count * n].reshape(n, count)",
            TARGETS: "ids[1 : count * n + 1].reshape(n, count)",
        },
    ),
    Mistake(
        "next-window",
        "The targets are the whole next window, so they lie n tokens ahead.",
        {COUNT: "max(1, len(ids) // n - 1)", SHIFTED: "torch.cat([ids, ids])[n : count * n + n]"},
    ),
    Mistake(
        "flat",
        "The text is shifted, but not cut into windows (b, n).",
        {INPUTS: "ids[: count * n]", TARGETS: SHIFTED},
    ),
    Mistake(
        "first-only",
        "Only the first window comes back.",
        {"return inputs, targets": "return inputs[:1], targets[:1]"},
    ),
    Mistake(
        "last-target-wrapped",
        "Where the windows use the text up exactly, the last one is asked for the text's *first* "
        "token. A window that lacks a target is dropped.",
        {COUNT: "len(ids) // n", SHIFTED: "ids.roll(-1)[: count * n]"},
    ),
    Mistake(
        "last-target-made-up",
        "Where the windows use the text up exactly, the last target is made up. A window that "
        "lacks a target is dropped.",
        {COUNT: "len(ids) // n", SHIFTED: "F.pad(ids, (0, 1))[1 : count * n + 1]"},
    ),
    Mistake(
        "last-target-lacking",
        "Where the windows use the text up exactly, the last one lacks its last target. count "
        "windows need count · n + 1 tokens: is there one behind them?",
        {COUNT: "len(ids) // n"},
        also=({INPUTS: "ids.unfold(0, n, n)", TARGETS: "ids[1:].unfold(0, n, n)"},),
    ),
    Mistake(
        "nothing-dropped",
        "The text is shifted, but what is left over at the end is not dropped, so it cannot be "
        "cut into windows of n. How many whole windows are there?",
        {INPUTS: "ids[:-1].reshape(-1, n)", TARGETS: "ids[1:].reshape(-1, n)"},
        also=({INPUTS: "ids[:-1].view(-1, n)", TARGETS: "ids[1:].view(-1, n)"},),
    ),
    Mistake(
        "filled-up",
        "What is left over at the end is filled up to a whole window. It is dropped: nothing is "
        "made up.",
        filled_up(0),
        also=(filled_up(-100), filled_up(0, behind=0), filled_up(-100, behind=0)),
    ),
    Mistake(
        "overlapping",
        "The windows overlap by one token: each begins at the last token of the one before. They "
        "start at 0, n, 2n, …",
        {
            INPUTS: "ids[:-1].unfold(0, n, max(1, n - 1))",
            TARGETS: "ids[1:].unfold(0, n, max(1, n - 1))",
        },
    ),
    Mistake(
        "one-window-short",
        "The last window is missing, though all its targets are there: a window at k needs the "
        "tokens k … k + n.",
        {COUNT: "max(1, (len(ids) - 2) // n)"},
        also=(
            {COUNT: "(len(ids) - 2) // n"},
            {COUNT: "len(ids) // n - 1"},
            one_less_in_a_loop,
        ),
    ),
    Mistake(
        "exchanged",
        "Targets and inputs are exchanged.",
        {"return inputs, targets": "return targets, inputs"},
    ),
    Mistake(
        "from-the-end",
        "The windows are counted from the end of the text. The first starts at its first token.",
        {"count =": "ids = ids[(len(ids) - 1) % n :]\n    count ="},
    ),
    Mistake(
        "floats",
        "The result holds floats. Tokens are integers: an embedding looks up nothing else.",
        {"return inputs, targets": "return inputs.float(), targets.float()"},
    ),
)

# -- probes -----------------------------------------------------------------------------------

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
    right=right,
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
