"""The run that TrainingView shows until there is one: heads that learn to look where they should.

Nothing is trained. The scores of the right keys grow by a rule; the probability is the mean
weight that the right keys then have, the loss its negative logarithm.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from attn_course.attention import softmax
from attn_course.explorers.attention_maps import sentences_of

_TOKENS = ["a", "b", "c", "d", "→", "d", "c", "b", "a"]
_STEPS = 240
_SHOWN = 16


@cache
def example_run() -> dict[str, Any]:
    """Return the state of a TrainingView at the end of the example."""
    steps = torch.arange(1, _STEPS + 1)
    right = torch.stack([_weights(float(step))[1][_targets()].mean() for step in steps])
    shown = torch.linspace(1, _STEPS, _SHOWN).round().int().tolist()
    measured = steps[19::20]
    return {
        "status": "example",
        "step": _STEPS,
        "total": float(_STEPS),
        "elapsed": 12.0,
        "pace": 20.0,
        "curve": {"steps": steps.tolist(), "loss": (-right.log()).tolist()},
        "metrics": {"probability": {"steps": measured.tolist(), "values": right[19::20].tolist()}},
        "snapshots": [
            {"step": step, "loss": float(-right[step - 1].log())}
            | {"groups": sentences_of([_weights(step)], _TOKENS)[0]["groups"]}
            for step in shown
        ],
    }


def _targets() -> tuple[Tensor, Tensor]:
    """Where the second half, which is the first one backwards, should look."""
    n = len(_TOKENS)
    queries = torch.arange(n // 2 + 1, n)
    return queries, n - 1 - queries


def _weights(step: float) -> Tensor:
    """Return (h, i, j): a head that learns the token before, one that learns the mirror."""
    n = len(_TOKENS)
    i, j = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
    learnt = [1 / (1 + 2.718 ** ((middle - step) / 18)) for middle in (50.0, 110.0)]
    scores = torch.stack([6 * learnt[0] * (j == i - 1), 7 * learnt[1] * (j == n - 1 - i)])
    hidden = torch.where(j > i, -torch.inf, 0.0)
    return softmax(scores + hidden)
