"""What exercise 9.4, mask_tokens, is judged by: what an answer hides, and how often."""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch09.chance import could_come_from, snapped
from attn_course.checks.exercise import Answer
from attn_course.sentences import say
from attn_course.tasks.base import IGNORE


class Hidden:
    """What an answer made of a batch: the ids as they were, its two sides, what it has chosen."""

    def __init__(self, answer: Answer, ids: Tensor, *rest: Any) -> None:
        """Call the answer; TypeError or ValueError where it returns something else than a pair."""
        self.ids = ids.clone()
        result = answer(ids, *rest)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(say("it must return the pair (inputs, targets)"))
        for name, side in zip(("inputs", "targets"), result, strict=True):
            if not isinstance(side, Tensor) or side.is_floating_point():
                raise TypeError(say("{name} must be a tensor of integers", name=name))
            if side.shape != ids.shape:
                words = "{name} has shape {shape}, the ids have {wanted}"
                shape, wanted = tuple(side.shape), tuple(ids.shape)
                raise ValueError(say(words, name=name, shape=shape, wanted=wanted))
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
    """How the chosen lie along the sequences, and along the batch."""
    chosen = Hidden(answer, ids, vocab_size, mask_token, p).chosen
    words = [along(chosen), along(chosen.T)]
    # where one axis goes together, too few draws are left to judge the other by
    if ALL_ALIKE in words:
        words = [word if word == ALL_ALIKE else BY_CHANCE for word in words]
    return words[0], words[1]


BY_CHANCE, ALL_ALIKE, TOGETHER, APART = "by chance", "all or none", "together", "apart"


def along(chosen: Tensor) -> str:
    """Whether neighbours along the last axis are chosen by chance alone."""
    if bool((chosen.all(dim=1) | ~chosen.any(dim=1)).all()):
        return ALL_ALIKE if 0 < chosen.double().mean() < 1 else BY_CHANCE
    q = float(chosen.double().mean())  # whatever the share is: here it is about neighbours
    expected = torch.tensor([q * q + (1 - q) ** 2, 2 * q * (1 - q)], dtype=torch.float64)
    alike = chosen[:, ::2] == chosen[:, 1::2]
    counts = torch.stack([alike.sum(), (~alike).sum()]).double()
    if could_come_from(counts, expected):
        return BY_CHANCE
    return TOGETHER if counts[0] > expected[0] * counts.sum() else APART


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
    others = torch.tensor(WITHOUT_ITS_MASK, dtype=torch.float64)
    return snapped(counts, (*map(outcome_of, SHARES), *others))


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
    (0.72, 0.1, 0.18),
    (0.4, 0.5, 0.1),
)
"""(masked, drawn, kept): those asked for, then those of known mistakes."""

WITHOUT_ITS_MASK = (
    (0.8, 0.1, 0.1),
    (0.0, 0.8 + 0.6 / 7, 0.1 + 0.1 / 7),
    (0.0, 0.9 * 6 / 7, 0.1 + 0.9 / 7),
)
"""(mask token, other, same) where a drawn token is never the same, or another mask is put in."""


def outcome_of(shares: tuple[float, ...]) -> Tensor:
    """The frequencies (mask token, other, same) of these shares.

    A drawn token is what it was once in 7 times, the size of the vocabulary in the probes.
    """
    masked, drawn, kept = shares
    return torch.tensor([masked, drawn * 6 / 7, kept + drawn / 7], dtype=torch.float64)


def mostly(answer: Answer, ids: Tensor, vocab_size: int, mask_token: int, p: float) -> str:
    """What most of the chosen that do not stay become."""
    found = Hidden(answer, ids, vocab_size, mask_token, p)
    changed = found.inputs[found.chosen & (found.inputs != found.ids)]
    if changed.numel() == 0:
        return "nothing else than they were"
    return "the mask token" if int(changed.mode().values) == mask_token else "another token"


def fates_together(answer: Answer, ids: Tensor, vocab_size: int, mask_token: int, p: float) -> str:
    """Whether a whole sequence, or a position in all of them, is hidden or not as one."""
    calls = (Hidden(answer, ids.clone(), vocab_size, mask_token, p) for _ in range(CALLS))
    hidden = torch.stack([found.inputs == mask_token for found in calls])  # (call, b, n)
    if hidden.all() or not hidden.any():
        return "for each token"
    for axis, words in ((2, "for a whole sequence"), (1, "for a position in all sequences")):
        if bool((hidden.all(dim=axis) | ~hidden.any(dim=axis)).all()):
            return words
    return "for each token"


CALLS = 100
"""Of one small batch, to see what is drawn anew in each."""


def by_call(answer: Answer, ids: Tensor, vocab_size: int, mask_token: int, p: float) -> Tensor:
    """In how many calls with two tokens 0, 1 and 2 are chosen."""
    calls = (Hidden(answer, ids.clone(), vocab_size, mask_token, p) for _ in range(CALLS))
    chosen = torch.stack([found.chosen.sum() for found in calls])
    one_each = torch.tensor([0.0, 1.0, 0.0])
    independent = torch.tensor([(1 - p) ** 2, 2 * p * (1 - p), p * p])
    return snapped(torch.bincount(chosen, minlength=3), [independent, one_each])


def by_token(answer: Answer, ids: Tensor, vocab_size: int, mask_token: int, p: float) -> Tensor:
    """How often each of the tokens 0, 1, … is chosen."""
    chosen = Hidden(answer, ids, vocab_size, mask_token, p).chosen
    return torch.stack([share_of(chosen[ids == token], p, 0.0)[0] for token in range(vocab_size)])


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
    short, long, late, beyond = (uniform.clone() for _ in range(4))
    short[-2], long[-1], late[0], beyond[-1] = 0, 1, 0, 8 * vocab_size
    return snapped(counts, [u / u.sum() for u in (uniform, short, long, late, beyond)])


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
