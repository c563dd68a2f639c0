"""Exercise 3.1, attention_entropy: its probes and its known mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.attention import attention_entropy
from attn_course.checks import ready_made
from attn_course.checks.catalogue.families.gradient import detached
from attn_course.checks.exercise import (
    Diagnosis,
    Exercise,
    Mistake,
    Output,
    Seen,
    Stage,
    normal,
)
from attn_course.checks.gradients import gradient_of
from attn_course.sentences import joined, say

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
            return Diagnosis(joined([say(what, eps=f"{eps:.1g}"), NO_SHIFT]), mistake)
    return None


_GRID = torch.logspace(-7, -0.5, 2000, dtype=torch.float64).tolist()
_SPOILT: dict[str, tuple[Callable[[Tensor, float], Tensor], str]] = {
    # first, since it explains the fewest: a number beside one weight fits almost any error
    "This fits a sum from which weights up to {eps} are left out.": (
        lambda p, eps: surprise(torch.where(p > eps, p, 0.0)).sum(-1),
        "small-weights-left-out",
    ),
    "This fits a logarithm of the weight plus {eps}.": (
        lambda p, eps: -(p * (p + eps).log()).sum(-1),
        "shifted-logarithm",
    ),
    "This fits a logarithm of the weight raised to {eps} where it is less.": (
        lambda p, eps: -(p * p.clamp(min=eps).log()).sum(-1),
        "shifted-logarithm",
    ),
    "This fits a logarithm of the weight that was raised to {eps} where it is less, in front of "
    "the logarithm too.": (
        lambda p, eps: -(p.clamp(min=eps) * p.clamp(min=eps).log()).sum(-1),
        "shifted-logarithm",
    ),
}


NO_SHIFT = (
    "What keeps log 0 away must change nothing where the weight is not 0: look for a smaller "
    "number, or treat exactly the zeros."
)


def surprise(weights: Tensor) -> Tensor:
    """−p log p for each weight, 0 where the weight is 0."""
    return -(weights * weights.masked_fill(weights == 0, 1.0).log())


# -- a right answer and what goes wrong in it --------------------------------------------------


def entropy_of(weights: Tensor) -> Tensor:
    """The right answer that the mistakes edit."""
    safe = weights.masked_fill(weights == 0, 1.0)
    logs = safe.log()
    entropy = -(weights * logs).sum(dim=-1)
    return entropy


SAFE = "weights.masked_fill(weights == 0, 1.0)"
LOGS = "safe.log()"
PRODUCT = "(weights * logs)"
SUM = "sum(dim=-1)"
RETURN = "return entropy"


def binary(weights: Tensor) -> Tensor:
    """Adds what each key's absence would tell."""
    return (surprise(weights) + surprise(1 - weights)).sum(dim=-1)


MISTAKES = (
    Mistake(
        "sign",
        "The sign is lost: the logarithm of a weight is negative, an entropy is not.",
        {RETURN: "return -entropy"},
    ),
    Mistake(
        "log2",
        "This is the entropy in bits: the logarithm is to base 2, and nats take base e.",
        {LOGS: "safe.log2()"},
    ),
    Mistake(
        "log10",
        "The logarithm is to base 10; nats take base e.",
        {LOGS: "safe.log10()"},
    ),
    Mistake(
        "mean-over-keys",
        "The mean over the keys is taken in place of their sum.",
        {SUM: "mean(dim=-1)"},
    ),
    Mistake(
        "divided-by-log-n",
        "The entropy is divided by log n, its largest value; here it is asked for in nats.",
        {RETURN: "return entropy / math.log(weights.shape[-1])"},
    ),
    Mistake(
        "perplexity",
        "This is exp of the entropy (the number of keys that share, the perplexity).",
        {RETURN: "return entropy.exp()"},
    ),
    Mistake(
        "distance-from-uniform",
        "This is log n − H, how far the row is from uniform: it falls as attention spreads.",
        {RETURN: "return math.log(weights.shape[-1]) - entropy"},
    ),
    Mistake(
        "not-summed",
        "This holds one number for each weight; a row of weights has one entropy, their sum.",
        {f".{SUM}": ""},
    ),
    Mistake(
        "summed-over-everything",
        "All rows are summed into one number; each row has an entropy of its own. (A boolean "
        "index such as weights[weights > 0] flattens the rows, too.)",
        {SUM: "sum()"},
    ),
    Mistake(
        "averaged-over-rows",
        "The mean over all rows is returned; each row has an entropy of its own.",
        {RETURN: "return entropy.mean()"},
    ),
    Mistake(
        "summed-over-queries",
        "The sum runs over the queries; a row of weights is one query's, and its keys lie on "
        "the last axis.",
        {SUM: "sum(dim=-2)"},
    ),
    Mistake(
        "summed-over-first-axis",
        "The sum runs over the first axis; the keys lie on the last one.",
        {SUM: "sum(dim=0)"},
    ),
    Mistake(
        "axis-counted-from-left",
        "The axis of the sum is counted from the left, so it is another one as soon as there "
        "are more or fewer leading axes.",
        {SUM: "sum(dim=1)"},
    ),
    Mistake(
        "axis-kept",
        "The summed axis is still there with size 1 (keepdim); it should be gone.",
        {SUM: "sum(dim=-1, keepdim=True)"},
    ),
    Mistake(
        "weight-forgotten",
        "The logarithms are summed without their weights: each log p counts p times.",
        {SAFE: "weights", PRODUCT: "logs"},
    ),
    Mistake(
        "logarithms-averaged",
        "All logarithms count alike: each log p counts p times, not 1/n times.",
        {SAFE: "weights", PRODUCT: "logs", SUM: "mean(dim=-1)"},
    ),
    Mistake(
        "logarithm-forgotten",
        "The squares of the weights are summed: where is the logarithm?",
        {PRODUCT: "(weights * weights)"},
    ),
    Mistake(
        "gini",
        "This is 1 − Σ p², another measure of spread, not the entropy.",
        {PRODUCT: "(weights * weights)", RETURN: "return 1 + entropy"},
    ),
    Mistake(
        "softmax-again",
        "The rows are weights already; a softmax over them makes them nearly equal.",
        {SAFE: "weights.softmax(dim=-1)", PRODUCT: "(weights.softmax(dim=-1) * logs)"},
        also=(
            {LOGS: "weights.log_softmax(dim=-1)"},
            {LOGS: "weights.log_softmax(dim=-1)", PRODUCT: "logs"},
        ),
    ),
    Mistake(
        "binary-entropy",
        "−(1 − p) log(1 − p) is added for each key: that is the entropy of n separate "
        "yes-or-no choices, and a row of weights is one choice among n.",
        binary,
    ),
    Mistake(
        "nan-at-zero",
        "A weight of 0 gives NaN: log 0 is minus infinity, and 0 times that is NaN. What "
        "should such a weight contribute?",
        {SAFE: "weights"},
    ),
    Mistake(
        "shifted-logarithm",
        joined(["The logarithm is not taken of the weight itself.", NO_SHIFT]),
        examples=(
            {SAFE: "weights + 1e-2"},
            {SAFE: "weights + 1e-4"},
            {SAFE: "weights.clamp(min=1e-1)"},
            {SAFE: "weights.clamp(min=1e-2)"},
            {SAFE: "weights.clamp(min=1e-3)", PRODUCT: "(weights.clamp(min=1e-3) * logs)"},
        ),
    ),
    Mistake(
        "small-weights-left-out",
        joined(["Small weights are left out of the sum, as if they were 0.", NO_SHIFT]),
        examples=(
            {PRODUCT: "torch.where(weights > 1e-2, weights * logs, 0.0)"},
            {PRODUCT: "torch.where(weights > 1e-4, weights * logs, 0.0)"},
        ),
    ),
    Mistake(
        "gradient-nan",
        "The entropy is right, but its gradient is NaN where a weight is 0: log 0 was taken, "
        "and what was made of it replaced afterwards. The logarithm must not meet the 0.",
        {SAFE: "weights", PRODUCT: "(weights * logs).nan_to_num()"},
    ),
    Mistake(
        "detached",
        "The entropy does not depend on the weights any more: a float, numpy, `.data`, "
        "`.detach()` or `no_grad` on the way has cut the gradient.",
        detached("entropy"),
    ),
)

EXERCISE = Exercise(
    number="3.1",
    reference=attention_entropy,
    right=entropy_of,
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
            outputs=(gradient_of("the scores", "i j"),),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "One number for each row: multiply each weight by its own logarithm, sum over the last "
        "axis, change the sign.",
        "0 · log 0 counts as 0, but torch computes 0 · (−∞) = NaN. Put something harmless inside "
        "the logarithm exactly where the weight is 0: a number whose logarithm is 0.",
        "`weights.masked_fill(weights == 0, 1.0)` has no zeros. Take its logarithm, and multiply "
        "by the weights themselves.",
    ),
)
