"""Chapter 06: bags of words, distances after projections, the length table, faulty encodings."""

from collections.abc import Mapping
from functools import cache, partial

import torch

from attn_course.experiments.ch06 import (
    base_of_a_thousand,
    biter_runs,
    doubled_exponent,
    spread_at_one_distance,
)
from attn_course.experiments.ch06_lengths import (
    LATEST,
    POSITIONS,
    THREE_BACK,
    LengthSettings,
    length_runs,
)
from attn_course.models import Position
from attn_course.positions import apply_rope, sinusoidal_encoding
from benchmarks.claims import Claim

FACTORS = LengthSettings().factors
TWICE_THE_STEPS = LengthSettings(steps=400, factors=(1, 2))


def biters(seed: int) -> Mapping[str, float]:
    """Held-out sentences whose biter is found, without and with positions, without a mask."""
    (bag,), (told,) = (biter_runs(kind, seeds=[seed]) for kind in ("none", "sinusoidal"))
    return {"none": bag.found, "same answer to the reverse": bag.same, "sinusoidal": told.found}


def spreads(seed: int) -> Mapping[str, float]:
    """How far scores at one distance differ, against all: see `spread_at_one_distance`."""
    rng = torch.Generator().manual_seed(seed)
    W_q, W_k = torch.randn(2, 64, 64, generator=rng) / 8
    token = torch.randn(64, generator=rng)
    encoding, at = sinusoidal_encoding(48, 64), torch.arange(48)
    query, key = (apply_rope((token @ W).expand(48, 64), at) for W in (W_q, W_k))
    tables = {
        "encodings alone": encoding @ encoding.mT,
        "after W_q and W_k": (encoding @ W_q) @ (encoding @ W_k).mT,
        "RoPE after W_q and W_k": query @ key.mT,
    }
    return {name: spread_at_one_distance(scores) for name, scores in tables.items()}


@cache
def accuracies(task_name: str, position: Position, seed: int) -> tuple[float, ...]:
    """The chapter's run: accuracy at the end of sequences of each length."""
    return tuple(length_runs(task_name, position, seeds=[seed])[0].tolist())


def table(task_name: str, seed: int) -> Mapping[str, float]:
    """Every kind of position at every length."""
    return {
        f"{position}, {factor}×": found
        for position in POSITIONS
        for factor, found in zip(FACTORS, accuracies(task_name, position, seed), strict=True)
    }


def latest_write_holds(figures: Mapping[str, float]) -> bool:
    """Whether all but "none" learn it, ALiBi alone carries it far, and RoPE falls at once."""
    learnt = all(figures[f"{position}, 1×"] > 0.85 for position in POSITIONS[1:])
    far = {position: figures[f"{position}, 8×"] for position in POSITIONS}
    others = max(value for position, value in far.items() if position != "alibi")
    falls = figures["rope, 2×"] < 2 / 3 * figures["rope, 1×"]
    return learnt and far["alibi"] > max(0.8, others) and falls


def three_back_holds(figures: Mapping[str, float]) -> bool:
    """Whether three learn it, ALiBi does not, and the relative bias alone reaches 2×."""
    learnt = min(figures[f"{kind}, 1×"] for kind in ("sinusoidal", "rope", "relative"))
    at_twice = [kind for kind in POSITIONS if figures[f"{kind}, 2×"] > 0.9]
    return learnt > 0.95 and figures["alibi, 1×"] < 0.5 and at_twice == ["relative"]


def learned_given_time(seed: int) -> Mapping[str, float]:
    """Learned positions on "three back" with twice the steps."""
    at_length, beyond = length_runs(THREE_BACK, "learned", seeds=[seed], settings=TWICE_THE_STEPS)[
        0
    ]
    return {
        "200 steps, 1×": accuracies(THREE_BACK, "learned", seed)[0],
        "400 steps, 1×": at_length.item(),
        "400 steps, 2×": beyond.item(),
    }


def faults(seed: int) -> Mapping[str, float]:
    """Accuracy on "three back" at the trained length with two faulty encodings."""
    encodings = {"exponent doubled": doubled_exponent, "base 1000": base_of_a_thousand}
    return {
        name: length_runs(THREE_BACK, "sinusoidal", seeds=[seed], encode=encode)[0, 0].item()
        for name, encode in encodings.items()
    }


CLAIMS = (
    Claim(
        "Without a mask and without positions a sentence and its reverse get one answer, so that "
        "held-out sentences are mostly got wrong; with positions they are got right.",
        biters,
        lambda found: (
            found["none"] < 0.25
            and found["same answer to the reverse"] == 1
            and found["sinusoidal"] > 0.9
        ),
    ),
    Claim(
        "The distance alone decides the products of sinusoidal encodings and the scores of RoPE; "
        "it does not after random projections of the encodings.",
        spreads,
        lambda found: (
            found["encodings alone"] < 1e-3
            and found["RoPE after W_q and W_k"] < 1e-3
            and found["after W_q and W_k"] > 0.5
        ),
    ),
    Claim(
        "Latest write, trained at 32: all kinds of position learn it; at eight times the length "
        "ALiBi alone is near its first accuracy, and RoPE falls by a third at twice the length.",
        partial(table, LATEST),
        latest_write_holds,
    ),
    Claim(
        "Three back, trained at 32: sinusoids, RoPE and the relative bias learn it, ALiBi does "
        "not; at twice the length the relative bias alone still knows it.",
        partial(table, THREE_BACK),
        three_back_holds,
    ),
    Claim(
        "Learned positions learn three back with twice the steps, at the trained length only.",
        learned_given_time,
        lambda found: found["400 steps, 1×"] > 0.95 and found["400 steps, 2×"] < 0.5,
    ),
    Claim(
        "With a doubled exponent, or the base 1000, sinusoids learn three back as well: training "
        "does not show the fault.",
        faults,
        lambda found: min(found.values()) > 0.95,
    ),
)
