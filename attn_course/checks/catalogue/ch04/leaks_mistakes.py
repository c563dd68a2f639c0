"""Known-wrong tests for leaks: exercise 4.6."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attn_course.checks.exercise import Answer, Mistake
from attn_course.self_attention import leaks_future

Change = Callable[[Tensor, int], Tensor]
Cuts = Callable[[int], list[int]]
Compare = Callable[[Tensor, Tensor], bool]


def replaced(x: Tensor, start: int, stop: int | None = None) -> Tensor:
    """Other random tokens at the positions start … stop − 1."""
    generator = torch.Generator().manual_seed(2)
    changed = x.clone()
    other = torch.randn(x.shape, generator=generator, dtype=x.dtype)
    changed[:, start:stop] = other[:, start:stop]
    return changed


def all_cuts(n: int) -> list[int]:
    """Between every two positions."""
    return list(range(1, n))


def found_by(
    change: Change = replaced,
    cuts: Cuts = all_cuts,
    read: Callable[[Tensor, int], Tensor] = lambda y, cut: y[:, :cut],
    close: Compare = torch.allclose,
) -> Answer:
    """A test that compares what is read of the outputs for x, and for x changed at a cut."""

    def answer(layer: Any, x: Tensor) -> bool:
        before = layer(x)
        return any(
            not close(read(layer(change(x, cut)), cut), read(before, cut))
            for cut in cuts(x.shape[1])
        )

    return answer


def added(x: Tensor, start: int) -> Tensor:
    """One added to all features of what follows."""
    changed = x.clone()
    changed[:, start:] += 1
    return changed


def one_feature_replaced(x: Tensor, start: int, feature: int = 0) -> Tensor:
    """Another number in one feature of what follows."""
    changed = x.clone()
    changed[:, start:, feature] = replaced(x, start)[:, start:, feature]
    return changed


def sign_changed(x: Tensor, start: int) -> Tensor:
    """What follows, with the other sign."""
    return torch.cat([x[:, :start], -x[:, start:]], dim=1)


def poisoned(x: Tensor, start: int) -> Tensor:
    """NaN in place of what follows."""
    return torch.cat([x[:, :start], torch.full_like(x[:, start:], torch.nan)], dim=1)


def doubled(x: Tensor, start: int) -> Tensor:
    """What follows, twice as large."""
    changed = x.clone()
    changed[:, start:] *= 2
    return changed


def rotated(x: Tensor, start: int) -> Tensor:
    """What follows, in another order."""
    return torch.cat([x[:, :start], x[:, start:].flip(1)], dim=1)


def past_replaced(x: Tensor, cut: int) -> Tensor:
    """Other tokens before the cut."""
    return replaced(x, 0, cut)


def within(tolerance: float) -> Compare:
    """Equal up to an absolute tolerance."""
    return lambda one, other: torch.allclose(one, other, atol=tolerance)


def gradient_of_a_sum(layer: Any, x: Tensor) -> bool:
    """Differentiates the sum of all features of an output."""
    x = x.clone().requires_grad_()
    output = layer(x)
    for t in range(x.shape[1] - 1):
        (gradient,) = torch.autograd.grad(output[:, t].sum(), x, retain_graph=True)
        if gradient[:, t + 1 :].abs().max() > 1e-8:
            return True
    return False


def of_the_first(axis: str) -> Answer:
    """Compares the first sample, or the first feature, only."""
    if axis == "sample":
        return found_by(read=lambda y, cut: y[0, :cut])
    return found_by(read=lambda y, cut: y[:, :cut, 0])


MISTAKES = (
    Mistake(
        "always-true",
        "Your test says True whatever the layer, even where no token sees another. Is an output "
        "compared whose own token was changed? Is rounding let pass?",
        lambda layer, x: True,
    ),
    Mistake(
        "always-false",
        "Your test says False whatever the layer. Does the layer's output on a changed input come "
        "into it?",
        lambda layer, x: False,
    ),
    Mistake(
        "negated",
        "The verdicts are all turned round: True stands for “leaks”.",
        lambda layer, x: not leaks_future(layer, x),
    ),
    Mistake(
        "past-for-future",
        "You change earlier tokens and look at later outputs. That an output depends on the past "
        "is wanted; a leak goes the other way.",
        found_by(past_replaced, read=lambda y, cut: y[:, cut:]),
    ),
    Mistake(
        "own-token-changed",
        "A position is compared whose own token was changed. Every layer that reads its own token "
        "counts as leaky then: the slice you change and the slice you compare overlap by one.",
        found_by(read=lambda y, cut: y[:, : cut + 1]),
    ),
    Mistake(
        "misses-one-ahead",
        "Your test misses a layer that looks exactly one token ahead: between the last output that "
        "you compare and the first token that you change, one position is left out.",
        found_by(
            lambda x, cut: replaced(x, cut + 1),
            lambda n: list(range(1, n - 1)),
        ),
    ),
    Mistake(
        "one-token-changed",
        "Only one token is changed, the very next one. Change all that follows: some layers look "
        "further ahead.",
        found_by(lambda x, cut: replaced(x, cut, cut + 1), read=lambda y, cut: y[:, cut - 1]),
    ),
    Mistake(
        "first-position-only",
        "Only the first position is looked at (is there a `return` that ends the loop?). Layers "
        "may leak at others.",
        found_by(cuts=lambda n: [1]),
    ),
    Mistake(
        "one-sequence",
        "The layer is only given the first sequence of the batch. What it does with the others "
        "goes unnoticed.",
        examples=(lambda layer, x: leaks_future(layer, x[:1]),),
    ),
    Mistake(
        "one-feature-changed",
        "Only one feature of the tokens that follow is changed. A layer may read another one: "
        "replace the whole tokens.",
        found_by(one_feature_replaced),
        also=(found_by(partial(one_feature_replaced, feature=-1)),),
    ),
    Mistake(
        "sign-changed",
        "The tokens that follow only change their sign. A layer that reads how large they are "
        "cannot tell: replace them by other random tokens.",
        found_by(sign_changed),
    ),
    Mistake(
        "poisoned",
        "NaN or infinity is put in place of the tokens that follow. 0 · NaN is NaN, so it comes "
        "through where a weight is exactly 0: replace the tokens by other ordinary ones.",
        found_by(poisoned, close=lambda one, other: not bool(one.isnan().any())),
    ),
    Mistake(
        "last-token-only",
        "Only the last token is ever changed, or only the last cut counts. What earlier positions "
        "see of each other goes unnoticed.",
        found_by(cuts=lambda n: [n - 1]),
    ),
    Mistake(
        "one-cut",
        "Only one cut is tried, in the middle of the sequence. Where nothing crosses that cut, "
        "leaks on both its sides go unnoticed: try every cut. (And one that leaks is enough: not "
        "all of them need to.)",
        found_by(cuts=lambda n: [n // 2]),
    ),
    Mistake(
        "constant-added",
        "The tokens that follow are changed by one and the same number in all features. A layer "
        "that normalises its tokens takes that off again: replace them by other random tokens.",
        found_by(added),
    ),
    Mistake(
        "scaled",
        "The tokens that follow are only made larger or smaller. A layer that normalises its "
        "tokens takes that off again: replace them by other random tokens.",
        found_by(doubled),
    ),
    Mistake(
        "reordered",
        "The tokens that follow are only put into another order. Attention does not know an "
        "order, so it cannot tell: replace them by other random tokens.",
        found_by(rotated),
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
        examples=tuple(found_by(close=within(t)) for t in (0.1, 0.05, 0.01)),
    ),
    Mistake(
        "exact-equality",
        "Two numbers must be exactly equal for your test. A sum in another order differs in the "
        "last digit: that is rounding, and no leak.",
        found_by(close=torch.equal),
    ),
    Mistake(
        "one-sample",
        "Only the first sequence of the batch is compared.",
        of_the_first("sample"),
    ),
    Mistake("one-feature", "Only the first feature is compared.", of_the_first("feature")),
)
