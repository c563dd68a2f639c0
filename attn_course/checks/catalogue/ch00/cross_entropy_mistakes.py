"""The known mistakes of exercise 0.2, cross_entropy."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from attn_course.checks.exercise import Answer, Mistake
from attn_course.checks.gradients import detached_inputs
from attn_course.primer import cross_entropy

# -- known-wrong versions ---------------------------------------------------------------------


def log_probs(logits: Tensor) -> Tensor:
    """What the mistakes below share with the reference."""
    return logits.log_softmax(dim=-1)


def of_targets(table: Tensor, targets: Tensor) -> Tensor:
    """The entry of each row's target."""
    return table[torch.arange(len(targets)), targets]


def naive_probs(logits: Tensor) -> Tensor:
    """A softmax that exponentiates the logits as they are."""
    return logits.exp() / logits.exp().sum(dim=-1, keepdim=True)


def one_maximum_for_all(logits: Tensor, targets: Tensor) -> Tensor:
    """Subtracts the largest logit of the whole table, not of each row."""
    shifted = logits - logits.max()
    return -of_targets(shifted - shifted.exp().sum(dim=-1, keepdim=True).log(), targets).mean()


def shift_not_undone(logits: Tensor, targets: Tensor) -> Tensor:
    """Takes the maximum from the logits of the sum only, and never gives it back."""
    shifted = logits - logits.max(dim=-1, keepdim=True).values
    return (shifted.exp().sum(dim=-1).log() - of_targets(logits, targets)).mean()


def yes_or_no(logits: Tensor, targets: Tensor) -> Tensor:
    """One yes-or-no loss for each class, (n, classes)."""
    right = F.one_hot(targets, logits.shape[-1]).to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, right, reduction="none")


def one_hot_of_those_present(logits: Tensor, targets: Tensor) -> Tensor:
    """Leaves it to one_hot to guess how many classes there are."""
    return -(F.one_hot(targets) * log_probs(logits)).sum(dim=-1).mean()


def sum_cut_off(logits: Tensor, targets: Tensor) -> Tensor:
    """Right numbers, with a gradient at the targets' own logits only."""
    return (logits.logsumexp(dim=-1).detach() - of_targets(logits, targets)).mean()


def softmax_of_all(logits: Tensor, targets: Tensor) -> Tensor:
    """One softmax over the whole table."""
    return -of_targets(logits - logits.flatten().logsumexp(dim=0), targets).mean()


def binary(logits: Tensor, targets: Tensor) -> Tensor:
    """Adds −log(1 − p) of the other classes."""
    probs = logits.softmax(dim=-1)
    right = F.one_hot(targets, logits.shape[-1]).to(logits.dtype)
    return -(right * probs.log() + (1 - right) * (1 - probs).log()).sum(dim=-1).mean()


def squared_error(logits: Tensor, targets: Tensor) -> Tensor:
    """Compares probabilities and one-hot targets by their squared difference."""
    right = F.one_hot(targets, logits.shape[-1]).to(logits.dtype)
    return (logits.softmax(dim=-1) - right).square().mean()


def averaged_before_the_log(logits: Tensor, targets: Tensor) -> Tensor:
    """Takes the logarithm of the mean, not the mean of the logarithms."""
    return -of_targets(logits.softmax(dim=-1), targets).mean().log()


def in_place(logits: Tensor, targets: Tensor) -> Tensor:
    """Subtracts the maximum in the caller's own tensor."""
    logits -= logits.max(dim=-1, keepdim=True).values
    return cross_entropy(logits, targets)


def divided_by(count: int) -> Answer:
    """A version that knows its batch size by heart."""
    return lambda logits, targets: -of_targets(log_probs(logits), targets).sum() / count


def clamped(limit: float) -> Answer:
    """A version that cuts the logits to ±`limit`, where the exponential is still finite."""
    return lambda logits, targets: cross_entropy(logits.clamp(-limit, limit), targets)


def cut_off(limit: float) -> Answer:
    """A version in which no row's loss exceeds `limit`."""
    return lambda logits, targets: -of_targets(log_probs(logits), targets).clamp(min=-limit).mean()


def capped(constant: float) -> Answer:
    """A version with a constant under the logarithm."""
    return lambda logits, targets: (
        -(of_targets(logits.softmax(dim=-1), targets) + constant).log().mean()
    )


LOGITS_CLAMPED = (
    "Logits beyond some limit are cut to it, so different logits get the same probability. The "
    "softmax does not change when the same number is taken from all logits of a row: no limit "
    "is needed."
)

MISTAKES = (
    Mistake(
        "sign-lost",
        "The minus sign is missing: this is the mean log-probability, which is never "
        "positive. Descending on it would make the right class less likely.",
        lambda x, t: of_targets(log_probs(x), t).mean(),
    ),
    Mistake(
        "sum-not-mean",
        "The losses of the rows are added up, not averaged: the loss grows with the batch.",
        lambda x, t: -of_targets(log_probs(x), t).sum(),
    ),
    Mistake(
        "not-averaged",
        "One loss for each row comes back; their mean is asked for.",
        lambda x, t: -of_targets(log_probs(x), t),
    ),
    Mistake(
        "always-zero",
        "The loss is 0 whatever the logits are. Does the loop add anything to the total? Is "
        "something taken from itself, or is the softmax taken over an axis of size 1?",
        lambda x, t: 0 * x.sum(),
        also=(lambda x, t: torch.zeros(()),),
    ),
    Mistake(
        "axis-kept",
        "The number is right but keeps an axis of size 1; a loss has no axes.",
        lambda x, t: cross_entropy(x, t)[None],
    ),
    Mistake(
        "mean-over-classes-too",
        "The sum is divided by rows times classes. The zeros of the wrong classes are no "
        "observations: divide by the number of rows.",
        lambda x, t: -of_targets(log_probs(x), t).mean() / x.shape[1],
    ),
    Mistake(
        "divided-by-classes",
        "The sum is divided by the number of classes, not by the number of rows.",
        lambda x, t: -of_targets(log_probs(x), t).sum() / x.shape[1],
    ),
    Mistake(
        "log-forgotten",
        "The probabilities of the targets are averaged without a logarithm.",
        lambda x, t: -of_targets(x.softmax(dim=-1), t).mean(),
    ),
    Mistake(
        "log-of-mean",
        "The probabilities are averaged first and the logarithm is taken of the mean; "
        "the mean of the logarithms is another number.",
        averaged_before_the_log,
    ),
    Mistake(
        "shift-not-undone",
        "The largest logit is taken from those in the sum but not from the target's own, so "
        "the loss is too small by it. Take it from both, or give it back after the "
        "logarithm.",
        shift_not_undone,
    ),
    Mistake(
        "softmax-forgotten",
        "The logits are taken for log-probabilities: nothing makes the classes of a row "
        "compete. Where is the softmax?",
        lambda x, t: -of_targets(x, t).mean(),
    ),
    Mistake(
        "log-of-logits",
        "The logarithm is taken of the logits, which may be negative; it belongs on "
        "the probabilities that the softmax makes of them.",
        lambda x, t: -of_targets(x, t).log().mean(),
    ),
    Mistake(
        "exp-forgotten",
        "The logits are divided by their sum: the softmax divides their exponentials.",
        lambda x, t: -of_targets(x / x.sum(dim=-1, keepdim=True), t).log().mean(),
    ),
    Mistake(
        "softmax-twice",
        "The softmax is taken twice: log_softmax (like every ready-made cross-entropy) "
        "wants logits, and gets probabilities.",
        lambda x, t: -of_targets(log_probs(x.softmax(dim=-1)), t).mean(),
    ),
    Mistake(
        "sigmoid-for-softmax",
        "Each logit gets a probability of its own (a sigmoid); the classes of a row should "
        "share a probability of 1.",
        lambda x, t: -of_targets(F.logsigmoid(x), t).mean(),
    ),
    Mistake(
        "softmax-over-rows",
        "The softmax runs over the rows: for one class the probabilities sum to one, but "
        "for one row they do not.",
        lambda x, t: -of_targets(x.log_softmax(dim=0), t).mean(),
    ),
    Mistake(
        "sums-misaligned",
        "The sum over the classes has lost its axis, so the sum of row k meets column k. "
        "With keepdim=True it stays a column, (n, 1), and fits its own row.",
        lambda x, t: -of_targets(x - x.logsumexp(dim=-1), t).mean(),
    ),
    Mistake(
        "softmax-over-all",
        "One softmax runs over the whole table; each row needs its own sum.",
        softmax_of_all,
    ),
    Mistake(
        "base-ten",
        "The logarithm has base 10; the loss is asked for in nats, base e.",
        lambda x, t: cross_entropy(x, t) / math.log(10),
    ),
    Mistake(
        "base-two",
        "The logarithm has base 2 (bits); the loss is asked for in nats, base e.",
        lambda x, t: -of_targets(log_probs(x), t).mean() / math.log(2),
    ),
    Mistake(
        "divided-by-fixed-number",
        "The sum is divided by a fixed number.",
        examples=tuple(divided_by(count) for count in (4, 32, 100)),
    ),
    Mistake(
        "every-target-in-every-row",
        "Each row is read at the targets of all rows: indexing with `[:, targets]` gives "
        "(n, n). Row k should be read at target k only.",
        lambda x, t: -log_probs(x)[:, t].mean(),
    ),
    Mistake(
        "index-exchanged",
        "Rows and classes are exchanged in the index: the first axis counts the rows.",
        lambda x, t: -log_probs(x)[t, torch.arange(len(t))].mean(),
    ),
    Mistake(
        "class-off-by-one",
        "The class before the target is read: classes count from 0, as indices do.",
        lambda x, t: -of_targets(log_probs(x), t - 1).mean(),
    ),
    Mistake(
        "all-classes-averaged",
        "The targets make no difference: −log p is averaged over all classes.",
        lambda x, t: -log_probs(x).mean(),
    ),
    Mistake(
        "entropy",
        "The targets make no difference: this is the entropy of the predictions.",
        lambda x, t: -(x.softmax(dim=-1) * log_probs(x)).sum(dim=-1).mean(),
    ),
    Mistake(
        "best-class",
        "The targets make no difference: the likeliest class is taken for the right one.",
        lambda x, t: -log_probs(x).max(dim=-1).values.mean(),
    ),
    Mistake(
        "first-row-only",
        "Only the first row counts: does a `return` stand inside the loop?",
        lambda x, t: -log_probs(x)[0, t[0]],
    ),
    Mistake(
        "last-row-only",
        "Only the last row counts: does the loop overwrite instead of adding up?",
        lambda x, t: -log_probs(x)[-1, t[-1]],
    ),
    Mistake(
        "accuracy",
        "This is the share of rows whose largest logit is the target: accuracy, no loss.",
        lambda x, t: (x.argmax(dim=-1) == t).to(x.dtype).mean(),
    ),
    Mistake(
        "perplexity",
        "This is exp of the loss, the perplexity.",
        lambda x, t: cross_entropy(x, t).exp(),
    ),
    Mistake(
        "squared-error",
        "This is the squared difference of probabilities and one-hot targets.",
        squared_error,
    ),
    Mistake(
        "binary-cross-entropy",
        "−log(1 − p) of the wrong classes is added. The softmax has seen to them already: "
        "only the target's term counts.",
        binary,
    ),
    Mistake(
        "yes-or-no-for-each-class",
        "Each class gets a yes-or-no loss of its own (a sigmoid and a binary cross-entropy). "
        "The classes of a row share a probability of 1: one softmax, and the target's term "
        "alone.",
        lambda x, t: yes_or_no(x, t).mean(),
        also=(lambda x, t: yes_or_no(x, t).sum(dim=-1).mean(),),
    ),
    Mistake(
        "one-hot-of-those-present",
        "The one-hot vectors are only as long as the largest target that occurs, so they do "
        "not fit as soon as the last class is not there. How many classes are there in all?",
        one_hot_of_those_present,
    ),
    Mistake(
        "sum-detached",
        "The numbers are right, but the sum of the exponentials is cut off from the "
        "gradient, so nothing pushes the wrong classes down.",
        sum_cut_off,
    ),
    Mistake(
        "detached",
        "The numbers are right, but the loss is cut off from the logits, so nothing can "
        "learn from it: keep tensors all the way (no item, tolist, numpy, detach, "
        "torch.tensor(…)).",
        detached_inputs(cross_entropy),
    ),
    Mistake(
        "number-returned",
        "A plain number comes back, cut off from the logits, so nothing can learn from it: "
        "return the tensor.",
        lambda x, t: cross_entropy(x, t).item(),
    ),
    Mistake(
        "overflow",
        "exp of a logit of 1000 is infinite, and what is computed from it is lost. The "
        "softmax does not change when the same number is taken from all logits of a row.",
        lambda x, t: -of_targets(naive_probs(x), t).log().mean(),
        also=(lambda x, t: (x.exp().sum(dim=-1).log() - of_targets(x, t)).mean(),),
    ),
    Mistake(
        "log-of-zero",
        "A probability below the smallest float32 number became 0, and its logarithm is "
        "infinite. Simplify log(exp(x) / Σ exp) on paper: no probability is needed.",
        lambda x, t: -of_targets(x.softmax(dim=-1), t).log().mean(),
    ),
    Mistake(
        "one-maximum-for-all",
        "The largest logit of the whole table is subtracted everywhere, so the exponentials "
        "of a row far below it are all 0: each row needs its own largest logit.",
        one_maximum_for_all,
    ),
    Mistake(
        "constant-in-log",
        "A constant is added under the logarithm, which caps the loss.",
        examples=(capped(1e-8), capped(1e-9), capped(1e-12), capped(1e-20)),
    ),
    Mistake(
        "logits-clamped",
        LOGITS_CLAMPED,
        examples=(clamped(50.0), clamped(80.0), clamped(20.0)),
    ),
    Mistake(
        "loss-cut-off",
        "One row's loss is cut off at a limit.",
        examples=(cut_off(100.0), cut_off(200.0)),
    ),
    Mistake(
        "logits-altered",
        "The caller's logits are changed in place (`-=` writes into them).",
        in_place,
    ),
)
