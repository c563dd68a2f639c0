"""Exercise 9.4, mask_tokens: its stages. What is left to chance is judged by its frequencies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch09_chance import could_come_from, in_numbers, snapped
from attn_course.checks.catalogue.ch09_mask_mistakes import MISTAKES
from attn_course.checks.exercise import Answer, Exercise, Output, Stage
from attn_course.tasks.base import IGNORE
from attn_course.tasks.language import mask_tokens

Probe = tuple[Any, ...]
MANY = (200, 250)  # tokens of which frequencies are taken
ROWS = 1000  # short sequences, to see whether their positions differ

# -- how an answer is called ------------------------------------------------------------------


class Hidden:
    """What an answer made of a batch: the ids as they were, its two sides, what it has chosen."""

    def __init__(self, answer: Answer, ids: Tensor, *rest: Any) -> None:
        """Call the answer; TypeError or ValueError where it returns something else than a pair."""
        self.ids = ids.clone()
        result = answer(ids, *rest)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError("it must return the pair (inputs, targets)")
        for name, side in zip(("inputs", "targets"), result, strict=True):
            if not isinstance(side, Tensor) or side.is_floating_point():
                raise TypeError(f"{name} must be a tensor of integers")
            if side.shape != ids.shape:
                raise ValueError(
                    f"{name} has shape {tuple(side.shape)}, the ids have {tuple(ids.shape)}"
                )
        self.inputs, self.targets = (side.clone() for side in result)
        self.chosen = self.targets != IGNORE


def untouched(answer: Answer, ids: Tensor, vocab_size: int, mask_token: int, p: float) -> str:
    """Whether the inputs are the ids wherever there is no target."""
    found = Hidden(answer, ids, vocab_size, mask_token, p)
    alike = (found.inputs == found.ids) | found.chosen
    return "the ids as they were" if alike.all() else "changed"


def asked(answer: Answer, ids: Tensor, vocab_size: int, mask_token: int, p: float) -> str:
    """What the targets are where there are any."""
    found = Hidden(answer, ids, vocab_size, mask_token, p)
    asked_for = found.targets[found.chosen]
    if torch.equal(asked_for, found.ids[found.chosen]):
        return "the ids as they were"
    if torch.equal(asked_for, found.inputs[found.chosen]):
        return "the inputs after hiding"
    return "something else"


def places(
    answer: Answer, ids: Tensor, vocab_size: int, mask_token: int, p: float
) -> tuple[str, str]:
    """Whether two neighbours in a row, and two below each other, are chosen by chance alone."""
    chosen = Hidden(answer, ids, vocab_size, mask_token, p).chosen
    pairs = (chosen[:, ::2] == chosen[:, 1::2], chosen[::2] == chosen[1::2])
    alike = [bool(pair.all()) for pair in pairs]
    expected = torch.tensor([p * p + (1 - p) ** 2, 2 * p * (1 - p)], dtype=torch.float64)
    words = []
    for pair, other in zip(pairs, reversed(alike), strict=True):
        counts = torch.stack([pair.sum(), (~pair).sum()])
        # where one axis goes together, too few draws are left to judge the other by
        by_chance = other or could_come_from(counts.double(), expected)
        words.append("always alike" if pair.all() else "by chance" if by_chance else "related")
    return words[0], words[1]


def share_chosen(answer: Answer, ids: Tensor, vocab_size: int, mask_token: int, p: float) -> Tensor:
    """The share of places with a target: (chosen, not chosen)."""
    chosen = Hidden(answer, ids, vocab_size, mask_token, p).chosen
    shares = (p, 1 - p, 0.15, 0.8 * p, (0.8 + 0.6 / 7) * p)
    return share_of(chosen, *shares)


def share_of(chosen: Tensor, *candidates: float) -> Tensor:
    """The share of True and of False: the first candidate that it could come from."""
    counts = torch.stack([chosen.sum(), (~chosen).sum()])
    return snapped(counts, [torch.tensor([q, 1 - q], dtype=torch.float64) for q in candidates])


def fates(answer: Answer, ids: Tensor, vocab_size: int, mask_token: int, p: float) -> Tensor:
    """What became of the chosen: (mask token, another token, the same token)."""
    found = Hidden(answer, ids, vocab_size, mask_token, p)
    hidden, before = found.inputs[found.chosen], found.ids[found.chosen]
    masked, same = hidden == mask_token, hidden == before
    counts = torch.stack([masked.sum(), (~masked & ~same).sum(), same.sum()])
    return snapped(counts, map(outcome_of, SHARES))


SHARES = (
    (0.8, 0.1, 0.1),
    (1.0, 0.0, 0.0),
    (0.8, 0.2, 0.0),
    (0.8, 0.0, 0.2),
    (0.1, 0.8, 0.1),
    (0.1, 0.1, 0.8),
    (0.9, 0.1, 0.0),
    (0.9, 0.0, 0.1),
    (0.8, 0.18, 0.02),
    (0.8, 0.02, 0.18),
    (8 / 9, 0.0, 1 / 9),
    (0.0, 1.0, 0.0),
    (0.0, 0.0, 1.0),
)
"""(masked, drawn, kept): those asked for, then those of known mistakes."""


def outcome_of(shares: tuple[float, ...]) -> Tensor:
    """The frequencies (mask token, other, same) of these shares.

    A drawn token is what it was once in 7 times, the size of the vocabulary in the probes.
    """
    masked, drawn, kept = shares
    return torch.tensor([masked, drawn * 6 / 7, kept + drawn / 7], dtype=torch.float64)


def replacements(answer: Answer, ids: Tensor, vocab_size: int, mask_token: int, p: float) -> Tensor:
    """Which tokens were put in the place of others: shares of 0 … vocab_size − 1, and of others.

    All ids of the probe are alike, and theirs therefore does not count.
    """
    own = int(ids[0, 0])
    found = Hidden(answer, ids, vocab_size, mask_token, p)
    drawn = found.inputs[found.chosen & (found.inputs != mask_token) & (found.inputs != own)]
    if drawn.numel() == 0:
        return torch.zeros(vocab_size + 1, dtype=torch.float64)
    outside = (drawn < 0) | (drawn > vocab_size)
    counts = torch.bincount(drawn.masked_fill(outside, vocab_size), minlength=vocab_size + 1)
    uniform = torch.ones(vocab_size + 1, dtype=torch.float64)
    uniform[own] = uniform[-1] = 0
    short, long, late = uniform.clone(), uniform.clone(), uniform.clone()
    short[-2], long[-1], late[0] = 0, 1, 0
    return snapped(counts, [u / u.sum() for u in (uniform, short, long, late)])


def by_position(answer: Answer, ids: Tensor, vocab_size: int, mask_token: int, p: float) -> Tensor:
    """How often each of a few positions is chosen, over many sequences."""
    chosen = Hidden(answer, ids, vocab_size, mask_token, p).chosen
    return torch.stack([share_of(column, p)[0] for column in chosen.T])


def by_sequence(answer: Answer, ids: Tensor, vocab_size: int, mask_token: int, p: float) -> Tensor:
    """In how many sequences of two tokens 0, 1 and 2 are chosen."""
    chosen = Hidden(answer, ids, vocab_size, mask_token, p).chosen
    independent = torch.tensor([(1 - p) ** 2, 2 * p * (1 - p), p * p])
    one_each = torch.tensor([0.0, 1.0, 0.0])
    together = torch.tensor([1 - p, 0.0, p])
    counts = torch.bincount(chosen.sum(dim=1), minlength=3)
    return snapped(counts, [independent, one_each, together])


def same_again(
    answer: Answer, ids: Tensor, vocab_size: int, mask_token: int, p: float
) -> tuple[bool, bool]:
    """Whether two generators of one seed hide the same, and one of another seed hides other."""
    first, again, other = (
        Hidden(answer, ids.clone(), vocab_size, mask_token, p, Generator().manual_seed(seed))
        for seed in (3, 3, 4)
    )
    same = torch.equal(first.inputs, again.inputs) and torch.equal(first.targets, again.targets)
    return same, not torch.equal(first.targets, other.targets)


# -- probes -----------------------------------------------------------------------------------


def tokens(rng: Generator, *shape: int) -> Tensor:
    """Ids 0 … 6."""
    return torch.randint(7, shape, generator=rng)


def draw_none(rng: Generator) -> Iterator[Probe]:
    """Nothing is chosen."""
    yield torch.tensor([[5, 3, 6]]), 7, 7, 0.0
    yield tokens(rng, 2, 4), 7, 9, 0.0


def draw_some(rng: Generator) -> Iterator[Probe]:
    """Some are chosen; mask tokens outside the vocabulary, and among its ids."""
    for mask_token, p in ((7, 0.15), (9, 0.5), (7, 1.0)):
        yield tokens(rng, 20, 30), 7, mask_token, p


def draw_shares(rng: Generator) -> Iterator[Probe]:
    """Many tokens, with several probabilities."""
    for p in (0.15, 0.4, 1.0):
        yield tokens(rng, *MANY), 7, 7, p


def draw_fates(rng: Generator) -> Iterator[Probe]:
    """Many tokens, of which many are chosen."""
    for mask_token, p in ((7, 0.5), (9, 0.9)):
        yield tokens(rng, *MANY), 7, mask_token, p


def draw_alike(_: Generator) -> Iterator[Probe]:
    """All tokens are the same, so that whatever else stands there was drawn."""
    for own, vocab_size in ((0, 7), (0, 4), (3, 7)):
        yield torch.full(MANY, own), vocab_size, 9, 0.8


def draw_places(rng: Generator) -> Iterator[Probe]:
    """Many tokens."""
    yield tokens(rng, *MANY), 7, 7, 0.3


def draw_rows(rng: Generator) -> Iterator[Probe]:
    """Many short sequences."""
    yield tokens(rng, ROWS, 2), 7, 7, 0.5


def draw_generator(rng: Generator) -> Iterator[Probe]:
    """Enough tokens that no two draws agree by chance."""
    yield tokens(rng, 6, 20), 7, 7, 0.5


EVERYTHING = (Output("inputs", "b n"), Output("targets", "b n"))

EXERCISE = Exercise(
    number="9.4",
    reference=mask_tokens,
    outputs=EVERYTHING,
    difficulty=2,
    minutes=20,
    points=3,
    may_use="torch",
    stages=(
        Stage(
            "none",
            draw_none,
            "With p = 0 nothing is chosen: the inputs are the ids, all targets −100.",
        ),
        Stage(
            "not chosen",
            draw_some,
            "Where there is no target the inputs should be the ids.",
            call=untouched,
            outputs=(Output("what stands where there is no target"),),
        ),
        Stage(
            "targets",
            draw_some,
            "At the chosen places the targets should be the ids as they were.",
            call=asked,
            outputs=(Output("what the targets are at the chosen places"),),
        ),
        Stage(
            "each for itself",
            draw_places,
            "Each token should be chosen independently of its neighbours.",
            call=places,
            outputs=(
                Output("whether neighbours in a sequence are chosen"),
                Output("whether the same place of two sequences is chosen"),
            ),
        ),
        Stage(
            "positions",
            draw_rows,
            "Every position should be chosen equally often.",
            call=by_position,
            diagnose=in_numbers(
                "Every position should be chosen equally often. Share chosen, by position:"
            ),
            outputs=(Output("share chosen, by position"),),
        ),
        Stage(
            "how many",
            draw_shares,
            "Each token should be chosen with probability p.",
            call=share_chosen,
            diagnose=in_numbers(
                "Each token should be chosen with probability p. Shares (chosen, not chosen):"
            ),
            outputs=(Output("shares (chosen, not chosen)"),),
        ),
        Stage(
            "what becomes of them",
            draw_fates,
            "Of the chosen, 80 % should become the mask token, 10 % a random token, and 10 % stay. "
            "(A random token is by chance the same as before once in vocab_size.)",
            call=fates,
            diagnose=in_numbers(
                "Of the chosen, 80 % should become the mask token, 10 % a random token, and 10 % "
                "stay. A random token is by chance the same as before once in vocab_size. Shares "
                "(mask token, other, as before):"
            ),
            outputs=(Output("shares of the chosen (mask token, other, as before)"),),
        ),
        Stage(
            "random tokens",
            draw_alike,
            "Random tokens should come from 0 … vocab_size − 1, each as likely.",
            call=replacements,
            diagnose=in_numbers(
                "Random tokens should come from 0 … vocab_size − 1, each as likely. Shares of the "
                "tokens put in for others (0, 1, …, vocab_size − 1, beyond):"
            ),
            outputs=(Output("shares of the tokens 0 … vocab_size"),),
        ),
        Stage(
            "sequences",
            draw_rows,
            "How many tokens of a sequence are chosen should be left to chance.",
            call=by_sequence,
            diagnose=in_numbers(
                "How many tokens of a sequence are chosen should be left to chance. Share of "
                "sequences of two tokens with 0, 1, 2 chosen:"
            ),
            outputs=(Output("share of sequences with 0, 1, 2 chosen"),),
        ),
        Stage(
            "generator",
            draw_generator,
            "With a generator all chance should come from it.",
            call=same_again,
            outputs=(
                Output("whether the same seed hides the same"),
                Output("whether another seed hides other tokens"),
            ),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Three questions for each token, each answered by chance: is it chosen? If so, what "
        "becomes of it? If it is to be another token, which? Draw the answers to all three for "
        "all tokens at once.",
        "torch.rand(ids.shape, generator=generator) < p chooses. A second torch.rand decides: "
        "below 0.8, from 0.9 on, between. torch.where picks by a condition.",
        "torch.randint(vocab_size, ids.shape, generator=generator) are random tokens. The targets "
        "are ids.masked_fill(~chosen, -100).",
    ),
)

EXERCISES = (EXERCISE,)
