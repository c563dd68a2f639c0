"""Exercise 9.1, next_token_targets: its known mistakes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attn_course.checks.exercise import Answer, Mistake


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


def short_of_one(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """As many windows as fit, though the last may lack its last target."""
    count = len(ids) // n
    return windows(ids, n, count=count), windows(ids, n, 1, count)


def nothing_dropped(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Leaves the number of windows to the reshape."""
    return ids[:-1].reshape(-1, n), ids[1:].reshape(-1, n)


def filled_up(fill: int, behind: int = 1) -> Answer:
    """What is left over is filled up to a whole window; at its end stand so many targets alone."""

    def answer(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
        count = -((behind - len(ids)) // n)
        longer = torch.cat([ids, ids.new_full((count * n + 1 - len(ids),), fill)])
        return windows(longer, n, count=count), windows(longer, n, 1, count)

    return answer


def overlapping(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Each window begins at the last token of the one before."""
    starts = torch.arange(0, len(ids) - n, max(1, n - 1))
    places = starts[:, None] + torch.arange(n)
    return ids[places], ids[places + 1]


def one_less(count: Callable[[int, int], int]) -> Answer:
    """A window too few, by a count of them that may come to none."""
    return lambda ids, n: (
        windows(ids, n, count=count(len(ids), n)),
        windows(ids, n, 1, count(len(ids), n)),
    )


def one_less_in_a_loop(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The loop ends one token too early."""
    starts = range(0, len(ids) - n - 1, n)
    inputs, targets = ([ids[k + s : k + s + n] for k in starts] for s in (0, 1))
    return torch.stack(inputs), torch.stack(targets)


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
        "last-target-lacking",
        "Where the windows use the text up exactly, the last one lacks its last target. count "
        "windows need count · n + 1 tokens: is there one behind them?",
        short_of_one,
        also=(lambda ids, n: (ids.unfold(0, n, n), ids[1:].unfold(0, n, n)),),
    ),
    Mistake(
        "nothing-dropped",
        "The text is shifted, but what is left over at the end is not dropped, so it cannot be "
        "cut into windows of n. How many whole windows are there?",
        nothing_dropped,
        also=(lambda ids, n: (ids[:-1].view(-1, n), ids[1:].view(-1, n)),),
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
        overlapping,
    ),
    Mistake(
        "one-window-short",
        "The last window is missing, though all its targets are there: a window at k needs the "
        "tokens k … k + n.",
        one_less(lambda length, n: max(1, (length - 2) // n)),
        also=(
            one_less(lambda length, n: (length - 2) // n),
            one_less(lambda length, n: length // n - 1),
            one_less_in_a_loop,
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
