"""Exercise 3.1, attention_entropy: its probes and its known mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.attention import attention_entropy
from attn_course.checks import ready_made
from attn_course.checks.exercise import (
    Answer,
    Diagnosis,
    Exercise,
    Mistake,
    Output,
    Seen,
    Stage,
    normal,
)

ENTROPY = (Output("entropy", "b i"),)


# -- probes -----------------------------------------------------------------------------------


def draw_rows(rng: Generator) -> Iterator[tuple]:
    """Rows of weights without zeros; all sizes different, 0 to 3 leading axes, then square."""
    yield (torch.tensor([[0.1, 0.9], [0.6, 0.4], [0.5, 0.5]]),)
    for shape in ((7,), (4, 6), (2, 3, 5), (2, 3, 4, 5), (4, 4), (3, 3, 3)):
        yield ((2 * normal(rng, *shape)).softmax(-1),)


def draw_uniform(rng: Generator) -> Iterator[tuple]:
    """All keys share alike: the entropy is log n, the largest there is."""
    for n in (2, 5, 16):
        yield (torch.full((3, n), 1 / n),)


def draw_one_hot(rng: Generator) -> Iterator[tuple]:
    """One key takes all; in the second probe a row has no key at all."""
    yield (torch.eye(3)[:2],)
    yield (torch.stack([torch.zeros(4), torch.eye(4)[2], torch.tensor([0.5, 0.5, 0.0, 0.0])]),)


def draw_small_weights(rng: Generator) -> Iterator[tuple]:
    """Small weights count too: 0.001 and 0.00002 are small, but no zeros."""
    yield (torch.tensor([[0.997, 0.001, 0.002], [0.98, 0.019, 0.001]]),)
    yield (torch.tensor([[0.5, 0.49998, 2e-5]]),)


def draw_masked_scores(rng: Generator) -> Iterator[tuple]:
    """Scores with a mask under which some weights are exactly 0."""
    yield torch.tensor([[1.0, 0.5, 2.0]]), torch.tensor([[True, True, False]])
    yield 2 * normal(rng, 3, 5), torch.rand(3, 5, generator=rng) < torch.tensor([2, 0.5, 2, 0, 0.5])


def gradient(answer: Callable[[Tensor], Any], scores: Tensor, mask: Tensor) -> Any:
    """The gradient of the summed entropy with respect to the scores behind the weights."""
    scores = scores.clone().requires_grad_()
    entropy = answer(scores.masked_fill(~mask, -math.inf).softmax(dim=-1))
    if not entropy.requires_grad:  # the answer has cut itself off; a gradient of 0 says so
        return torch.zeros_like(scores)
    return torch.autograd.grad(entropy.sum(), scores)[0]


def read_shift(seen: Sequence[Seen]) -> Diagnosis | None:
    """Find the number that stands beside the weights, or cuts them off, if one explains all."""
    probes = [(p.args[0].double(), p.actual.double(), p.expected.double()) for p in seen]
    weights, entropy, _ = min(probes, key=lambda probe: probe[0].min().item())
    slack = max(1e-5, 0.01 * max((h - exact).abs().max().item() for _, h, exact in probes))
    left_out = [p for p in torch.cat([w.flatten() for w, _, _ in probes]).tolist() if 0 < p < 0.3]
    for what, (spoilt, mistake) in _SPOILT.items():
        tried, held = (_GRID, [(weights, entropy)])
        if mistake == "small-weights-left-out":
            tried, held = left_out or [0.0], [(w, h) for w, h, _ in probes]
        eps = min(
            tried,
            key=lambda eps: sum(float((spoilt(w, eps) - h).abs().sum()) for w, h in held),
        )
        if all(
            torch.allclose(spoilt(p, eps) - exact, h - exact, rtol=0.05, atol=slack)
            for p, h, exact in probes
        ):
            return Diagnosis(f"{what.format(f'{eps:.1g}')} {_NO_SHIFT}", mistake)
    return None


_GRID = torch.logspace(-7, -0.5, 2000, dtype=torch.float64).tolist()
_SPOILT: dict[str, tuple[Callable[[Tensor, float], Tensor], str]] = {
    # first, since it explains the fewest: a number beside one weight fits almost any error
    "This fits a sum from which weights up to {} are left out.": (
        lambda p, eps: surprise(torch.where(p > eps, p, 0.0)).sum(-1),
        "small-weights-left-out",
    ),
    "This fits a logarithm of the weight plus {}.": (
        lambda p, eps: -(p * (p + eps).log()).sum(-1),
        "shifted-logarithm",
    ),
    "This fits a logarithm of the weight raised to {} where it is less.": (
        lambda p, eps: -(p * p.clamp(min=eps).log()).sum(-1),
        "shifted-logarithm",
    ),
    "This fits a logarithm of the weight that was raised to {} where it is less, in front of the "
    "logarithm too.": (
        lambda p, eps: -(p.clamp(min=eps) * p.clamp(min=eps).log()).sum(-1),
        "shifted-logarithm",
    ),
}


_NO_SHIFT = (
    "What keeps log 0 away must change nothing where the weight is not 0: look for a smaller "
    "number, or treat exactly the zeros."
)


# -- known-wrong versions ---------------------------------------------------------------------


def surprise(weights: Tensor) -> Tensor:
    """−p log p for each weight, 0 where the weight is 0."""
    return -(weights * weights.masked_fill(weights == 0, 1.0).log())


def of_entropy(change: Callable[..., Tensor]) -> Answer:
    """A version that spoils the right result."""
    return lambda weights: change(surprise(weights).sum(dim=-1), weights.shape[-1])


def shifted(eps: float) -> Answer:
    """Adds a number that is too large inside the logarithm."""
    return lambda weights: -(weights * (weights + eps).log()).sum(dim=-1)


def floored(eps: float) -> Answer:
    """Puts a floor under the weights that is too high."""
    return lambda weights: -(weights * weights.clamp(min=eps).log()).sum(dim=-1)


def without_small(eps: float) -> Answer:
    """Leaves small weights out."""
    return lambda weights: surprise(torch.where(weights > eps, weights, 0.0)).sum(dim=-1)


def raised(eps: float) -> Answer:
    """Raises all small weights, then takes the entropy."""
    return lambda weights: surprise(weights.clamp(min=eps)).sum(dim=-1)


EXERCISE = Exercise(
    number="3.1",
    reference=attention_entropy,
    outputs=ENTROPY,
    difficulty=1,
    minutes=10,
    points=2,
    may_use="torch, no ready-made entropy (torch.special.entr, torch.distributions)",
    rules_out=ready_made.ENTROPY,
    stages=(
        Stage(
            "rows",
            draw_rows,
            "Each row of weights gives one number, −Σ p log p over its keys.",
            diagnose=read_shift,
        ),
        Stage("uniform", draw_uniform, "n keys that share alike have the entropy log n, in nats."),
        Stage(
            "zeros",
            draw_one_hot,
            "A weight of exactly 0 must count for nothing, and one key that takes all gives 0.",
            diagnose=read_shift,
        ),
        Stage(
            "small weights",
            draw_small_weights,
            "Small weights are treated as if they were something else.",
            diagnose=read_shift,
        ),
        Stage(
            "gradient",
            draw_masked_scores,
            "The value is right, but the gradient with respect to the scores behind the weights "
            "is not.",
            call=gradient,
            outputs=(Output("gradient of the scores", "i j"),),
        ),
    ),
    mistakes=(
        Mistake(
            "sign",
            "The sign is lost: the logarithm of a weight is negative, an entropy is not.",
            of_entropy(lambda entropy, n: -entropy),
        ),
        Mistake(
            "log2",
            "This is the entropy in bits: the logarithm is to base 2, and nats take base e.",
            of_entropy(lambda entropy, n: entropy / math.log(2)),
        ),
        Mistake(
            "log10",
            "The logarithm is to base 10; nats take base e.",
            of_entropy(lambda entropy, n: entropy / math.log(10)),
        ),
        Mistake(
            "mean-over-keys",
            "The mean over the keys is taken in place of their sum.",
            of_entropy(lambda entropy, n: entropy / n),
        ),
        Mistake(
            "divided-by-log-n",
            "The entropy is divided by log n, its largest value; here it is asked for in nats.",
            of_entropy(lambda entropy, n: entropy / math.log(n)),
        ),
        Mistake(
            "perplexity",
            "This is exp of the entropy (the number of keys that share, the perplexity).",
            of_entropy(lambda entropy, n: entropy.exp()),
        ),
        Mistake(
            "distance-from-uniform",
            "This is log n − H, how far the row is from uniform: it falls as attention spreads.",
            of_entropy(lambda entropy, n: math.log(n) - entropy),
        ),
        Mistake(
            "not-summed",
            "This holds one number for each weight; a row of weights has one entropy, their sum.",
            surprise,
        ),
        Mistake(
            "summed-over-everything",
            "All rows are summed into one number; each row has an entropy of its own. (A boolean "
            "index such as weights[weights > 0] flattens the rows, too.)",
            lambda weights: surprise(weights).sum(),
        ),
        Mistake(
            "averaged-over-rows",
            "The mean over all rows is returned; each row has an entropy of its own.",
            lambda weights: surprise(weights).sum(dim=-1).mean(),
        ),
        Mistake(
            "summed-over-queries",
            "The sum runs over the queries; a row of weights is one query's, and its keys lie on "
            "the last axis.",
            lambda weights: surprise(weights).sum(dim=-2),
        ),
        Mistake(
            "summed-over-first-axis",
            "The sum runs over the first axis; the keys lie on the last one.",
            lambda weights: surprise(weights).sum(dim=0),
        ),
        Mistake(
            "axis-counted-from-left",
            "The axis of the sum is counted from the left, so it is another one as soon as there "
            "are more or fewer leading axes.",
            lambda weights: surprise(weights).sum(dim=1),
        ),
        Mistake(
            "axis-kept",
            "The summed axis is still there with size 1 (keepdim); it should be gone.",
            lambda weights: surprise(weights).sum(dim=-1, keepdim=True),
        ),
        Mistake(
            "weight-forgotten",
            "The logarithms are summed without their weights: each log p counts p times.",
            lambda weights: -weights.log().sum(dim=-1),
        ),
        Mistake(
            "logarithms-averaged",
            "All logarithms count alike: each log p counts p times, not 1/n times.",
            lambda weights: -weights.log().mean(dim=-1),
        ),
        Mistake(
            "logarithm-forgotten",
            "The squares of the weights are summed: where is the logarithm?",
            lambda weights: -(weights * weights).sum(dim=-1),
        ),
        Mistake(
            "gini",
            "This is 1 − Σ p², another measure of spread, not the entropy.",
            lambda weights: 1 - (weights * weights).sum(dim=-1),
        ),
        Mistake(
            "softmax-again",
            "The rows are weights already; a softmax over them makes them nearly equal.",
            lambda weights: surprise(weights.softmax(-1)).sum(dim=-1),
            also=(
                lambda weights: -(weights * weights.log_softmax(-1)).sum(dim=-1),
                lambda weights: -weights.log_softmax(-1).sum(dim=-1),
            ),
        ),
        Mistake(
            "binary-entropy",
            "−(1 − p) log(1 − p) is added for each key: that is the entropy of n separate "
            "yes-or-no choices, and a row of weights is one choice among n.",
            lambda weights: (surprise(weights) + surprise(1 - weights)).sum(dim=-1),
        ),
        Mistake(
            "nan-at-zero",
            "A weight of 0 gives NaN: log 0 is minus infinity, and 0 times that is NaN. What "
            "should such a weight contribute?",
            lambda weights: -(weights * weights.log()).sum(dim=-1),
        ),
        Mistake(
            "shifted-logarithm",
            f"The logarithm is not taken of the weight itself. {_NO_SHIFT}",
            examples=(shifted(1e-2), shifted(1e-4), floored(1e-1), floored(1e-2), raised(1e-3)),
        ),
        Mistake(
            "small-weights-left-out",
            f"Small weights are left out of the sum, as if they were 0. {_NO_SHIFT}",
            examples=(without_small(1e-2), without_small(1e-4)),
        ),
        Mistake(
            "gradient-nan",
            "The entropy is right, but its gradient is NaN where a weight is 0: log 0 was taken, "
            "and what was made of it replaced afterwards. The logarithm must not meet the 0.",
            lambda weights: -(weights * weights.log()).nan_to_num().sum(dim=-1),
        ),
        Mistake(
            "detached",
            "The entropy does not depend on the weights any more: a float, numpy, `.data`, "
            "`.detach()` or `no_grad` on the way has cut the gradient.",
            of_entropy(lambda entropy, n: entropy.detach()),
        ),
    ),
    hints=(
        "One number for each row: multiply each weight by its own logarithm, sum over the last "
        "axis, change the sign.",
        "0 · log 0 counts as 0, but torch computes 0 · (−∞) = NaN. Put something harmless inside "
        "the logarithm exactly where the weight is 0: a number whose logarithm is 0.",
        "`weights.masked_fill(weights == 0, 1.0)` has no zeros. Take its logarithm, and multiply "
        "by the weights themselves.",
    ),
)
