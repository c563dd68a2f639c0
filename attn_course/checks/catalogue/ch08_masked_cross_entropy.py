"""Exercise 8.3, masked_cross_entropy: its stages and known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage, normal, tenths
from attn_course.checks.gradients import detached_inputs, gradient_stage
from attn_course.losses import masked_cross_entropy
from attn_course.masks import padding_mask

Probe = tuple[Any, ...]

# -- probes -----------------------------------------------------------------------------------


def draw_targets(rng: Generator, vocab: int, *shape: int) -> Tensor:
    """Targets of any class."""
    return torch.randint(vocab, shape, generator=rng)


def draw_one_token(rng: Generator) -> Iterator[Probe]:
    """One token, that is none of padding: a plain cross-entropy."""
    yield tenths(rng, 1, 1, 3), torch.tensor([[2]]), torch.ones(1, 1, dtype=torch.bool)
    yield normal(rng, 1, 1, 7), torch.tensor([[0]]), torch.ones(1, 1, dtype=torch.bool)


def draw_unpadded(rng: Generator) -> Iterator[Probe]:
    """No padding; unequal sizes, then as many positions as classes, where axes go unnoticed."""
    yield tenths(rng, 1, 2, 3), torch.tensor([[2, 0]]), torch.ones(1, 2, dtype=torch.bool)
    for b, n, vocab in ((2, 3, 7), (4, 5, 5), (3, 3, 3)):
        targets = draw_targets(rng, vocab, b, n)
        yield normal(rng, b, n, vocab), targets, torch.ones(b, n, dtype=torch.bool)


def draw_padded(rng: Generator) -> Iterator[Probe]:
    """One padded row; then several, of unequal lengths, one of them 0."""
    yield tenths(rng, 1, 2, 3), torch.tensor([[2, 0]]), torch.tensor([[True, False]])
    for lengths, n in (([4, 1, 2], 4), ([5, 0], 5), ([3, 1, 1], 3)):
        b = len(lengths)
        targets = draw_targets(rng, 6, b, n)
        yield normal(rng, b, n, 6), targets, padding_mask(torch.tensor(lengths), n)


def draw_real_zeros(rng: Generator) -> Iterator[Probe]:
    """The class 0 stands among the tokens; padding in front, with any number at it."""
    yield tenths(rng, 1, 2, 2), torch.tensor([[0, 1]]), torch.tensor([[True, True]])
    targets = torch.tensor([[0, 3, 0, 5], [2, 0, 0, 0]])
    padding = torch.tensor([[False, True, True, True], [True, True, False, True]])
    yield normal(rng, 2, 4, 6), targets, padding


def draw_extreme(rng: Generator) -> Iterator[Probe]:
    """Logits of hundreds, at tokens and at padding."""
    yield torch.tensor([[[200.0, -200.0]]]), torch.tensor([[1]]), torch.tensor([[True]])
    logits = 300 * normal(rng, 2, 3, 5)
    yield logits, draw_targets(rng, 5, 2, 3), padding_mask(torch.tensor([3, 1]), 3)


def draw_gradient(rng: Generator) -> Iterator[Probe]:
    """One sequence and several."""
    yield tenths(rng, 1, 2, 3), torch.tensor([[2, 0]]), torch.tensor([[True, False]])
    targets = draw_targets(rng, 5, 3, 4)
    yield normal(rng, 3, 4, 5), targets, padding_mask(torch.tensor([4, 1, 2]), 4)


# -- wrong versions ---------------------------------------------------------------------------

Reduce = Callable[[Tensor, Tensor], Tensor]


def losses_of(logits: Tensor, targets: Tensor) -> Tensor:
    """The cross-entropy of each position, (b, n)."""
    return F.cross_entropy(logits.mT, targets, reduction="none")


def reduced(reduce: Reduce, losses: Callable[[Tensor, Tensor], Tensor] = losses_of) -> Answer:
    """A version that makes one number from the losses (b, n) and the padding."""
    return lambda logits, targets, padding: reduce(losses(logits, targets), padding)


def mean_of_tokens(losses: Tensor, padding: Tensor) -> Tensor:
    """What is asked for."""
    return losses[padding].mean()


def mean_of_rows(losses: Tensor, padding: Tensor) -> Tensor:
    """The mean of each sequence first, an empty one with 0."""
    counts = padding.sum(dim=1).clamp(min=1)
    return ((losses * padding).sum(dim=1) / counts).mean()


def mean_of_positions(losses: Tensor, padding: Tensor) -> Tensor:
    """The mean of each position first."""
    counts = padding.sum(dim=0).clamp(min=1)
    return ((losses * padding).sum(dim=0) / counts).mean()


def zeroed_logits(logits: Tensor, targets: Tensor, padding: Tensor) -> Tensor:
    """Masks what goes in, and counts it all the same."""
    return losses_of(logits * padding[..., None], targets).mean()


def ignores_zero(logits: Tensor, targets: Tensor, padding: Tensor) -> Tensor:
    """Takes a number for padding, and the mask for nothing."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0)


def zero_put_in(logits: Tensor, targets: Tensor, padding: Tensor) -> Tensor:
    """Makes padding class 0, and leaves every class 0 out."""
    marked = targets.masked_fill(~padding, 0)
    return F.cross_entropy(logits.flatten(0, 1), marked.flatten(), ignore_index=0)


def zero_without_ignore(logits: Tensor, targets: Tensor, padding: Tensor) -> Tensor:
    """Makes padding class 0, and teaches the model to write it."""
    return losses_of(logits, targets.masked_fill(~padding, 0)).mean()


def viewed(logits: Tensor, targets: Tensor, padding: Tensor) -> Tensor:
    """Takes the axis of positions for that of classes, by a reshape."""
    b, n, vocab = logits.shape
    return losses_of(logits.reshape(b, vocab, n).mT, targets)[padding].mean()


def unnormalised(logits: Tensor, targets: Tensor) -> Tensor:
    """The target's logit, without a softmax."""
    return -logits.gather(-1, targets[..., None])[..., 0]


def probabilities(logits: Tensor, targets: Tensor) -> Tensor:
    """Minus the target's probability, without a logarithm."""
    return -logits.softmax(-1).gather(-1, targets[..., None])[..., 0]


def naive_log(logits: Tensor, targets: Tensor) -> Tensor:
    """The logarithm of a softmax that has become 0."""
    return -logits.softmax(-1).log().gather(-1, targets[..., None])[..., 0]


MISTAKES = (
    Mistake(
        "mean-over-all",
        "The sum over the tokens is divided by all positions, padded ones included: the more "
        "padding, the smaller the loss. Divide by the number of tokens.",
        reduced(lambda losses, padding: (losses * padding).mean()),
    ),
    Mistake(
        "padding-counted",
        "Padded positions enter the loss. Where the mask says False nothing is asked.",
        reduced(lambda losses, padding: losses.mean()),
    ),
    Mistake(
        "logits-zeroed",
        "The logits at padding are set to 0, and the loss is taken over all positions: a padded "
        "one then costs log vocab.",
        zeroed_logits,
    ),
    Mistake(
        "inverted",
        "The loss is that of the padding: True means a token.",
        reduced(lambda losses, padding: losses[~padding].mean()),
        also=(
            reduced(lambda losses, padding: (losses * ~padding).sum() / (~padding).sum()),
            reduced(lambda losses, padding: (losses * ~padding).sum() / padding.sum()),
        ),
    ),
    Mistake(
        "sum",
        "This is the sum over the tokens. Asked for is their mean.",
        reduced(lambda losses, padding: losses[padding].sum()),
    ),
    Mistake(
        "mean-of-rows",
        "The mean of each sequence is taken first, then the mean of those: a token of a short "
        "sequence counts for more. Here every token counts alike.",
        reduced(mean_of_rows),
    ),
    Mistake(
        "mean-of-positions",
        "The mean of each position is taken first, then the mean of those. Every token should "
        "count alike.",
        reduced(mean_of_positions),
    ),
    Mistake(
        "sum-by-batch",
        "The sum is divided by the number of sequences. Divide by the number of tokens.",
        reduced(lambda losses, padding: losses[padding].sum() / len(padding)),
    ),
    Mistake(
        "sum-by-length",
        "The sum is divided by the number of positions in a row. Divide by the number of tokens.",
        reduced(lambda losses, padding: losses[padding].sum() / padding.shape[1]),
    ),
    Mistake(
        "one-for-each-row",
        "A loss for each sequence comes back. Asked for is one number, the mean over all tokens.",
        reduced(lambda losses, padding: (losses * padding).sum(dim=1) / padding.sum(dim=1)),
    ),
    Mistake(
        "not-reduced",
        "A loss for every token comes back. Asked for is one number, their mean.",
        reduced(lambda losses, padding: losses[padding]),
        also=(reduced(lambda losses, padding: losses * padding),),
    ),
    Mistake(
        "zero-is-padding",
        "Every target 0 is left out. What is padding is said by the mask: 0 is a token like "
        "others.",
        zero_put_in,
        also=(ignores_zero,),
    ),
    Mistake(
        "padding-as-class-zero",
        "Padded targets are set to 0 and counted: the model would be taught to write that token.",
        zero_without_ignore,
    ),
    Mistake(
        "axes-by-reshape",
        "The classes are brought to axis 1 by a reshape, which cuts the numbers anew instead of "
        "exchanging axes. Where n is the number of classes nothing tells.",
        viewed,
    ),
    Mistake(
        "positions-as-classes",
        "The softmax runs over the positions: cross_entropy takes axis 1 for the classes, and "
        "logits are (b, n, vocab). Where n is the number of classes nothing tells.",
        lambda logits, targets, padding: F.cross_entropy(logits, targets, reduction="none")[
            padding
        ].mean(),
    ),
    Mistake(
        "softmax-twice",
        "A softmax is taken before F.cross_entropy, which takes one itself: the loss then never "
        "gets near 0.",
        reduced(mean_of_tokens, lambda logits, targets: losses_of(logits.softmax(-1), targets)),
    ),
    Mistake(
        "no-softmax",
        "The logit of the target is taken as it is: it has to be set against all others, "
        "logit − log Σ exp(logits).",
        reduced(mean_of_tokens, unnormalised),
    ),
    Mistake(
        "no-log",
        "The probability of the target is taken, not its logarithm.",
        reduced(mean_of_tokens, probabilities),
    ),
    Mistake(
        "sign",
        "The sign is wrong: a loss is minus the log-probability, so never below 0.",
        reduced(lambda losses, padding: -losses[padding].mean()),
    ),
    Mistake(
        "bits",
        "The logarithm has base 2. Losses are in nats here, base e.",
        reduced(lambda losses, padding: losses[padding].mean() / torch.tensor(2.0).log()),
    ),
    Mistake(
        "perplexity",
        "This is the exponential of the loss, the perplexity.",
        reduced(lambda losses, padding: losses[padding].mean().exp()),
    ),
    Mistake(
        "log-of-zero",
        "With large logits the softmax underflows to 0, and its logarithm is infinite. "
        "log_softmax, or logit − logsumexp, holds.",
        reduced(mean_of_tokens, naive_log),
    ),
    Mistake(
        "no-gradient",
        "The value is right, but no gradient reaches the logits.",
        detached_inputs(masked_cross_entropy),
        also=(lambda *args: masked_cross_entropy(*args).item(),),
    ),
)

EXERCISE = Exercise(
    number="8.3",
    reference=masked_cross_entropy,
    outputs=(Output("loss"),),
    difficulty=2,
    minutes=12,
    points=2,
    may_use="torch, F.cross_entropy",
    stages=(
        Stage(
            "one token",
            draw_one_token,
            "For one token the loss should be minus the log-probability of its target.",
        ),
        Stage(
            "no padding",
            draw_unpadded,
            "Without padding the loss should be the mean over all positions of all sequences.",
        ),
        Stage(
            "padding",
            draw_padded,
            "With padding the loss differs: it should be the mean over the tokens, all alike.",
        ),
        Stage(
            "any number",
            draw_real_zeros,
            "Where 0 is a token, or padding stands elsewhere than at the end, the loss differs: "
            "only the mask says what is padding.",
        ),
        Stage("large logits", draw_extreme, "With logits of some hundred the loss differs."),
        gradient_stage(draw_gradient, ("logits", "targets", "padding"), {"logits": "b n v"}),
    ),
    mistakes=MISTAKES,
    hints=(
        "Two steps: a loss for every position, (b, n); then the mean of those at which padding is "
        "True.",
        "A boolean mask picks: logits[padding] is (tokens, vocab) and targets[padding] is "
        "(tokens,).",
        "F.cross_entropy(logits[padding], targets[padding]) takes classes on the last axis of two, "
        "and the mean.",
    ),
)

EXERCISES = (EXERCISE,)
