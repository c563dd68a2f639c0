"""Known-wrong tests for leaks: exercise 4.6."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attn_course.checks.exercise import Mistake

Layer = Callable[[Tensor], Tensor]


def sees_what_follows(layer: Layer, x: Tensor) -> bool:
    """A right test, in which the mistakes are made."""
    before = layer(x)
    other = other_tokens(x)
    for cut in range(1, x.shape[1]):
        changed = x.clone()
        changed[:, cut:] = other[:, cut:]
        after = layer(changed)
        if not torch.allclose(after[:, :cut], before[:, :cut]):
            return True
    return False


def other_tokens(x: Tensor) -> Tensor:
    """Other random tokens in the place of x, always the same ones."""
    return torch.randn(x.shape, generator=torch.Generator().manual_seed(2), dtype=x.dtype)


CUTS = "range(1, x.shape[1])"
CHANGE = "changed[:, cut:] = other[:, cut:]"
COMPARED = "after[:, :cut], before[:, :cut]"


def gradient_of_a_sum(layer: Layer, x: Tensor) -> bool:
    """A test that differentiates the sum of all features of an output."""
    x = x.clone().requires_grad_()
    output = layer(x)
    for t in range(x.shape[1] - 1):
        (gradient,) = torch.autograd.grad(output[:, t].sum(), x, retain_graph=True)
        if gradient[:, t + 1 :].abs().max() > 1e-8:
            return True
    return False


MISTAKES = (
    Mistake(
        "always-true",
        "Your test says True whatever the layer, even where no token sees another. Is an output "
        "compared whose own token was changed? Is rounding let pass?",
        {"return False": "return True"},
    ),
    Mistake(
        "always-false",
        "Your test says False whatever the layer. Does the layer's output on a changed input come "
        "into it?",
        {"return True": "return False"},
    ),
    Mistake(
        "negated",
        "The verdicts are all turned round: True stands for “leaks”.",
        {"return False": "return True", "return True": "return False"},
    ),
    Mistake(
        "past-for-future",
        "You change earlier tokens and look at later outputs. That an output depends on the past "
        "is wanted; a leak goes the other way.",
        {CHANGE: "changed[:, :cut] = other[:, :cut]", COMPARED: "after[:, cut:], before[:, cut:]"},
    ),
    Mistake(
        "own-token-changed",
        "A position is compared whose own token was changed. Every layer that reads its own token "
        "counts as leaky then: the slice you change and the slice you compare overlap by one.",
        {COMPARED: "after[:, : cut + 1], before[:, : cut + 1]"},
    ),
    Mistake(
        "misses-one-ahead",
        "Your test misses a layer that looks exactly one token ahead: between the last output that "
        "you compare and the first token that you change, one position is left out.",
        {CHANGE: "changed[:, cut + 1 :] = other[:, cut + 1 :]"},
    ),
    Mistake(
        "one-token-changed",
        "Only one token is changed, the very next one. Change all that follows: some layers look "
        "further ahead.",
        {
            CHANGE: "changed[:, cut] = other[:, cut]",
            COMPARED: "after[:, cut - 1], before[:, cut - 1]",
        },
    ),
    Mistake(
        "first-position-only",
        "Only the first position is looked at (is there a `return` that ends the loop?). Layers "
        "may leak at others.",
        {CUTS: "[1]"},
    ),
    Mistake(
        "one-sequence",
        "The layer is only given the first sequence of the batch. What it does with the others "
        "goes unnoticed.",
        examples=({"before = layer(x)": "x = x[:1]\n    before = layer(x)"},),
    ),
    Mistake(
        "one-feature-changed",
        "Only one feature of the tokens that follow is changed. A layer may read another one: "
        "replace the whole tokens.",
        {CHANGE: "changed[:, cut:, 0] = other[:, cut:, 0]"},
        also=({CHANGE: "changed[:, cut:, -1] = other[:, cut:, -1]"},),
    ),
    Mistake(
        "sign-changed",
        "The tokens that follow only change their sign. A layer that reads how large they are "
        "cannot tell: replace them by other random tokens.",
        {CHANGE: "changed[:, cut:] *= -1"},
    ),
    Mistake(
        "poisoned",
        "NaN or infinity is put in place of the tokens that follow. 0 · NaN is NaN, so it comes "
        "through where a weight is exactly 0: replace the tokens by other ordinary ones.",
        {
            CHANGE: "changed[:, cut:] = torch.nan",
            f"not torch.allclose({COMPARED})": "after[:, :cut].isnan().any()",
        },
    ),
    Mistake(
        "last-token-only",
        "Only the last token is ever changed, or only the last cut counts. What earlier positions "
        "see of each other goes unnoticed.",
        {CUTS: "[x.shape[1] - 1]"},
    ),
    Mistake(
        "one-cut",
        "Only one cut is tried, in the middle of the sequence. Where nothing crosses that cut, "
        "leaks on both its sides go unnoticed: try every cut. (And one that leaks is enough: not "
        "all of them need to.)",
        {CUTS: "[x.shape[1] // 2]"},
    ),
    Mistake(
        "constant-added",
        "The tokens that follow are changed by one and the same number in all features. A layer "
        "that normalises its tokens takes that off again: replace them by other random tokens.",
        {CHANGE: "changed[:, cut:] += 1"},
    ),
    Mistake(
        "scaled",
        "The tokens that follow are only made larger or smaller. A layer that normalises its "
        "tokens takes that off again: replace them by other random tokens.",
        {CHANGE: "changed[:, cut:] *= 2"},
    ),
    Mistake(
        "reordered",
        "The tokens that follow are only put into another order. Attention does not know an "
        "order, so it cannot tell: replace them by other random tokens.",
        {CHANGE: "changed[:, cut:] = x[:, cut:].flip(1)"},
    ),
    Mistake(
        "sum-of-features",
        "An output's features are added up before you differentiate them, or compare them. Behind "
        "a layer norm that sum is zero, always, and so is its gradient: look at the features one "
        "by one.",
        gradient_of_a_sum,
    ),
    Mistake(
        "loose-tolerance",
        "What your test lets pass as rounding is too much: some layers leak a little. In float64 "
        "rounding stays far below a millionth.",
        examples=tuple({COMPARED: f"{COMPARED}, atol={t}"} for t in (0.1, 0.05, 0.01)),
    ),
    Mistake(
        "exact-equality",
        "Two numbers must be exactly equal for your test. A sum in another order differs in the "
        "last digit: that is rounding, and no leak.",
        {"torch.allclose": "torch.equal"},
    ),
    Mistake(
        "one-sample",
        "Only the first sequence of the batch is compared.",
        {COMPARED: "after[0, :cut], before[0, :cut]"},
    ),
    Mistake(
        "one-feature",
        "Only the first feature is compared.",
        {COMPARED: "after[:, :cut, 0], before[:, :cut, 0]"},
    ),
)
