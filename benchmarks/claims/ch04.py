"""What chapter 04 claims: paths, a floor for the loss, and what a leak is worth."""

from collections.abc import Mapping

import torch

from attn_course.experiments.ch04 import (
    FLOOR,
    MaskRule,
    NextTokenRun,
    as_layer,
    hand_set_attention,
    hand_set_tokens,
    loss_by_position,
    train_next_token,
    two_way_task,
)
from attn_course.masks import causal_mask
from attn_course.recurrent import RNNCell, gradient_by_distance
from attn_course.self_attention import SelfAttention
from benchmarks.claims import Claim

Figures = Mapping[str, float]


def bank(seed: int) -> Figures:
    """What comes out for "bank" in two sentences; all is set by hand, nothing drawn."""
    found = {}
    for name in ("loan", "river"):
        sentence = {"loan": "The bank approved the loan.", "river": "The bank is near the river."}
        output, _ = hand_set_attention()(hand_set_tokens(sentence[name])[1])
        found[f"money beside “{name}”"], found[f"water beside “{name}”"] = output[1].tolist()
    return found


def faded(seed: int) -> Figures:
    """The gradient at distance 63 as a share of that at distance 1, before any training."""
    torch.manual_seed(seed)
    inputs = torch.randn(32, 64, 16)
    layers = {"recurrent": RNNCell(16, 32).run, "self-attention": as_layer(SelfAttention(16, 32))}
    found = {}
    for name, layer in layers.items():
        by_distance = gradient_by_distance(layer, inputs)
        found[f"{name}, distance 63 / 1"] = (by_distance[63] / by_distance[1]).item()
    return found


def no_mask(n: int) -> None:
    """Let every position see all."""


def off_by_one(n: int) -> torch.Tensor:
    """Let every position see one ahead."""
    return torch.ones(n, n, dtype=torch.bool).tril(1)


def trained(rule: MaskRule, seed: int) -> tuple[NextTokenRun, float]:
    """A model trained under a mask, and its loss at the last position."""
    run = train_next_token(rule, seed=seed)
    test = two_way_task(12, seed=seed).test_set(500)
    return run, loss_by_position(run.model, test)[-1].item()


def causal(seed: int) -> Figures:
    """With the mask that belongs there."""
    run, _ = trained(causal_mask, seed)
    return {"held-out loss": run.loss, "floor, log 2": FLOOR, "legal steps written": run.legal}


def leaky(seed: int) -> Figures:
    """Without a mask, and with one that is off by one."""
    found = {}
    for name, rule in (("no mask", no_mask), ("off by one", off_by_one)):
        run, last = trained(rule, seed)
        found[f"{name}: held-out loss"] = run.loss
        found[f"{name}: loss at the last position"] = last
        found[f"{name}: legal steps written"] = run.legal
    return found


CLAIMS = (
    Claim(
        "One vector of “bank” goes in, two come out, by what stands beside it (set by hand).",
        bank,
        lambda f: (
            f["money beside “loan”"] > 2 * f["water beside “loan”"]
            and f["water beside “river”"] > 2 * f["money beside “river”"]
        ),
    ),
    Claim(
        "Untrained: a recurrent network's gradient fades with distance, self-attention's does not.",
        faded,
        lambda f: (
            f["recurrent, distance 63 / 1"] < 1e-9 < 0.3 < f["self-attention, distance 63 / 1"]
        ),
    ),
    Claim(
        "Under a causal mask the loss ends at its floor, and the model writes by the rule.",
        causal,
        lambda f: abs(f["held-out loss"] - FLOOR) < 0.05 and f["legal steps written"] > 0.95,
    ),
    Claim(
        "A leak takes the held-out loss far below the floor, except at the last position, and the "
        "model writes worse.",
        leaky,
        lambda f: all(
            f[f"{name}: held-out loss"] < FLOOR / 5
            and f[f"{name}: loss at the last position"] > FLOOR - 0.1
            and f[f"{name}: legal steps written"] < 0.95
            for name in ("no mask", "off by one")
        ),
    ),
)
