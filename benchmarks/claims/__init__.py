"""The figures that the chapters claim, measured again over three seeds: the table docs/claims.md.

Each chapter's module holds its `CLAIMS`. `python -m benchmarks.claims` measures them all,
`--chapter 05` one chapter; the table keeps the other chapters' rows as they were.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Claim:
    """What a chapter says, and the run that shows it.

    Attributes:
        says: one sentence, as a reader of the table would want it.
        measure: seed -> the figures' names and values. Draws all chance from the seed.
        holds: whether the figures of one seed bear the sentence out. It leaves the margin
            that another machine needs.
        seeds: fewer than three only where one seed alone takes many minutes; the table says so.
    """

    says: str
    measure: Callable[[int], Mapping[str, float]]
    holds: Callable[[Mapping[str, float]], bool]
    seeds: tuple[int, ...] = SEEDS
