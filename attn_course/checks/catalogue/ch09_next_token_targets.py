"""Exercise 9.1, next_token_targets: its stages and known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Generator, Tensor

from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage
from attn_course.tasks.language import next_token_targets

Probe = tuple[Tensor, int]

# -- probes -----------------------------------------------------------------------------------


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


# -- wrong versions ---------------------------------------------------------------------------


def windows(ids: Tensor, n: int, start: int = 0, count: int | None = None) -> Tensor:
    """Cut `ids` from `start` on."""
    count = (len(ids) - 1) // n if count is None else count
    return ids[start : start + count * n].reshape(count, n)


def version(targets: Callable[[Tensor, int], Tensor]) -> Answer:
    """The right windows, with these targets."""
    return lambda ids, n: (windows(ids, n), targets(ids, n))


def shifted_within(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Cuts first and shifts each window for itself: one position is lost in each."""
    cut = windows(ids, n, count=len(ids) // n)
    return cut[:, :-1], cut[:, 1:]


def windows_of_more(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Cuts windows of n + 1, so that the first token of each is never predicted."""
    cut = windows(ids, n + 1, count=len(ids) // (n + 1))
    return cut[:, :-1], cut[:, 1:]


def sliding(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Every place starts a window."""
    return ids[:-1].unfold(0, n, 1), ids[1:].unfold(0, n, 1)


def next_only(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """One target for each window."""
    cut = windows(ids, n)
    return cut, ids[n::n][: len(cut)]


def wrapped(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The last target of a text that is used up comes round from its start."""
    count = len(ids) // n
    return windows(ids, n, count=count), windows(ids.roll(-1), n, count=count)


def padded(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The last target of a text that is used up is made up."""
    longer = torch.cat([ids, torch.zeros_like(ids[:1])])
    count = len(ids) // n
    return windows(longer, n, count=count), windows(longer, n, 1, count)


def by_columns(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Lays the text out down the columns."""
    count = (len(ids) - 1) // n
    return ids[: count * n].reshape(n, count).T, ids[1 : count * n + 1].reshape(n, count).T


def transposed(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Takes n for the number of windows."""
    length = (len(ids) - 1) // n
    return windows(ids, length, count=n), windows(ids, length, 1, n)


def next_window(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The targets are the window that follows."""
    count = max(1, len(ids) // n - 1)
    longer = torch.cat([ids, ids])
    return windows(longer, n, count=count), windows(longer, n, n, count)


def flat(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The text is not cut."""
    count = (len(ids) - 1) // n
    return ids[: count * n], ids[1 : count * n + 1]


def first_only(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Only the first window."""
    return windows(ids, n)[:1], windows(ids, n, 1)[:1]


MISTAKES = (
    Mistake(
        "not-shifted",
        "The targets are the inputs themselves: the model would be asked for the token that it "
        "reads, and would learn to copy. The target is the token after it.",
        version(lambda ids, n: windows(ids, n).clone()),
    ),
    Mistake(
        "shifted-right",
        "The targets are one token too early: each position is asked for the token *before* the "
        "one it reads.",
        version(lambda ids, n: windows(ids.roll(1), n)),
        also=(version(lambda ids, n: windows(torch.cat([ids[:1] * 0, ids]), n, 0, None)),),
    ),
    Mistake(
        "by-two",
        "The targets lie two tokens ahead. Each position is asked for the very next one.",
        version(lambda ids, n: windows(ids.roll(-2), n)),
    ),
    Mistake(
        "wrapped-in-the-window",
        "At its last position a window is asked for its own first token: a roll brings round what "
        "was pushed out. What follows a window in the text is the first token of the next one.",
        version(lambda ids, n: windows(ids, n).roll(-1, dims=1)),
        also=(version(lambda ids, n: windows(ids, n).roll(-1)),),
    ),
    Mistake(
        "made-up-in-the-window",
        "At its last position a window is asked for a token that is made up. The text knows what "
        "follows a window: the first token of the next one.",
        version(
            lambda ids, n: torch.cat(
                [windows(ids, n)[:, 1:], torch.zeros_like(windows(ids, n)[:, :1])], dim=1
            )
        ),
        also=(
            version(
                lambda ids, n: torch.cat(
                    [windows(ids, n)[:, 1:], torch.full_like(windows(ids, n)[:, :1], -100)], dim=1
                )
            ),
            version(lambda ids, n: torch.cat([windows(ids, n)[:, 1:], windows(ids, n)[:, -1:]], 1)),
        ),
    ),
    Mistake(
        "shifted-within",
        "The text is cut first and each window is shifted for itself, so each loses a position. "
        "Shift the text, then cut.",
        shifted_within,
    ),
    Mistake(
        "windows-of-n-plus-one",
        "Windows of n + 1 tokens are cut apart, which then lose one: the first token of each "
        "window but the first is never asked for. Windows start at 0, n, 2n, …",
        windows_of_more,
    ),
    Mistake(
        "sliding",
        "A window starts at every place. They should not overlap: 0, n, 2n, …",
        sliding,
        also=(lambda ids, n: tuple(side[: max(1, len(side) - 1)] for side in sliding(ids, n)),),
    ),
    Mistake(
        "one-target",
        "There is one target for each window. Every position is asked for its next token: n "
        "targets for each window, that is why a decoder learns so much from one call.",
        next_only,
        also=(lambda ids, n: (next_only(ids, n)[0], next_only(ids, n)[1][:, None]),),
    ),
    Mistake(
        "by-columns",
        "The text runs down the columns. Each *row* is a stretch of the text.",
        by_columns,
    ),
    Mistake(
        "n-windows",
        "There are n windows. n is how many tokens each has.",
        transposed,
    ),
    Mistake(
        "next-window",
        "The targets are the whole next window, so they lie n tokens ahead.",
        next_window,
    ),
    Mistake("flat", "The text is shifted, but not cut into windows (b, n).", flat),
    Mistake("first-only", "Only the first window comes back.", first_only),
    Mistake(
        "last-target-wrapped",
        "Where the windows use the text up exactly, the last one is asked for the text's *first* "
        "token. A window that lacks a target is dropped.",
        wrapped,
    ),
    Mistake(
        "last-target-made-up",
        "Where the windows use the text up exactly, the last target is made up. A window that "
        "lacks a target is dropped.",
        padded,
    ),
    Mistake(
        "one-window-short",
        "The last window is missing where its last target is the last token of the text.",
        lambda ids, n: (
            windows(ids, n, count=max(1, (len(ids) - 2) // n)),
            windows(ids, n, 1, max(1, (len(ids) - 2) // n)),
        ),
    ),
    Mistake(
        "exchanged",
        "Targets and inputs are exchanged.",
        lambda ids, n: (windows(ids, n, 1), windows(ids, n)),
    ),
    Mistake(
        "from-the-end",
        "The windows are counted from the end of the text. The first starts at its first token.",
        lambda ids, n: (
            windows(ids, n, (len(ids) - 1) % n),
            windows(ids, n, (len(ids) - 1) % n + 1),
        ),
    ),
    Mistake(
        "floats",
        "The result holds floats. Tokens are integers: an embedding looks up nothing else.",
        lambda ids, n: (windows(ids, n).float(), windows(ids, n, 1).float()),
    ),
)

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

EXERCISES = (EXERCISE,)
