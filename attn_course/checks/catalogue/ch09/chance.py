"""How answers that draw by chance are judged: by frequencies, held against distributions.

An answer draws very often. The frequencies that come out are compared with a list of
distributions, the right one and those of known mistakes, and the first that could have
produced them stands for them; if none could, the frequencies themselves do. So two answers that
draw in different ways (multinomial, Gumbel, inverse of the cumulative sum) give the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from attn_course.checks.compare import describe
from attn_course.checks.exercise import Diagnosis, Seen
from attn_course.sentences import Drawn, Spoken, constant, say

STANDARD_ERRORS = 5.0
SKEW = 8.0
"""How far a count may lie from its mean, in standard errors, and in draws on top of them.

Chance exceeds it about once in a million times, also where a token is so rare that its counts are
skewed.
"""


def could_come_from(counts: Tensor, probs: Tensor) -> bool:
    """Whether counts of independent draws may have come from these probabilities, row by row.

    What has probability 0 must never have been drawn, what has 1 always.
    """
    n = counts.sum(dim=-1, keepdim=True).double()
    variance = (n * probs * (1 - probs)).clamp(min=0)
    allowed = STANDARD_ERRORS * variance.sqrt() + SKEW * (variance > 0.01) + 1e-6 * n
    return bool(((counts - n * probs).abs() <= allowed).all())


def snapped(counts: Tensor, candidates: Iterable[Tensor]) -> Tensor:
    """The first distribution that the counts could come from; else their frequencies."""
    counts = counts.to(torch.float64)
    for probs in candidates:
        probs = probs.to(torch.float64)
        if could_come_from(counts, probs):
            return probs
    return counts / counts.sum(dim=-1, keepdim=True)


def in_numbers(message: Spoken) -> Callable[[Sequence[Seen]], Diagnosis]:
    """A `diagnose` that shows the frequencies, which many draws would otherwise leave out."""

    def diagnose(seen: Sequence[Seen]) -> Diagnosis:
        yours, expected = Drawn(describe(seen[0].actual)), Drawn(describe(seen[0].expected))
        words = "{message} Yours: {yours}, expected: {expected}."
        return Diagnosis(say(words, message=constant(message), yours=yours, expected=expected))

    return diagnose
