"""The claim that a chapter's settings are about the best of the grid they were tuned on."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from benchmarks.claims import SEEDS, Claim


def near_the_best(
    kind: str,
    best: Any,
    figure: Callable[[Any, int], float],
    grid: Iterable[tuple[float, float]],
    margin: float,
    *,
    rises: bool,
    seeds: tuple[int, ...] = SEEDS,
) -> Claim:
    """Claim that no setting of the grid beats the chapter's by more than `margin`.

    Args:
        kind: the model's name, for the sentence.
        best: the chapter's settings, a dataclass with `lr` and `clip`, both on the grid.
        figure: (settings, seed) -> what a run with them reaches.
        grid: pairs of learning rate and gradient clipping.
        margin: how much better another setting may be, in the figure's unit.
        rises: whether more is better, as of exact match; of a loss, less is.
        seeds: see `Claim`.
    """
    pairs = tuple(grid)

    def measure(seed: int) -> Mapping[str, float]:
        return {
            _name(lr, clip): figure(replace(best, lr=lr, clip=clip), seed) for lr, clip in pairs
        }

    def holds(found: Mapping[str, float]) -> bool:
        chosen = found[_name(best.lr, best.clip)]
        ahead = max(found.values()) - chosen if rises else chosen - min(found.values())
        return ahead <= margin

    says = f"{kind}: no setting of the grid is clearly better than the chapter's"
    return Claim(says, measure, holds, seeds)


def _name(lr: float, clip: float) -> str:
    return f"lr {lr:g}, clip {clip:g}"
