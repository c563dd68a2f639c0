"""Known-wrong versions of exercise 8.3, masked_cross_entropy."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from attn_course.checks.exercise import Answer, Mistake
from attn_course.checks.gradients import detached_inputs
from attn_course.losses import masked_cross_entropy

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


def log_of_a_sum(logits: Tensor, targets: Tensor) -> Tensor:
    """Keeps the logarithm finite by a small number."""
    return -(logits.softmax(-1) + 1e-9).log().gather(-1, targets[..., None])[..., 0]


def clamped_log(logits: Tensor, targets: Tensor) -> Tensor:
    """Keeps the logarithm finite by a smallest probability."""
    return -logits.softmax(-1).clamp(min=1e-12).log().gather(-1, targets[..., None])[..., 0]


def normalised_over(dim: int) -> Answer:
    """Takes the softmax over another axis than the classes."""
    return reduced(
        mean_of_tokens,
        lambda logits, targets: -logits.log_softmax(dim).gather(-1, targets[..., None])[..., 0],
    )


def shifted_inside(logits: Tensor, targets: Tensor, padding: Tensor) -> Tensor:
    """Holds each position's logits against the next one's target."""
    later = padding[:, 1:]
    return F.cross_entropy(logits[:, :-1][later], targets[:, 1:][later])


def other_sentinel(logits: Tensor, targets: Tensor, padding: Tensor) -> Tensor:
    """Marks padding by a number that the loss does not leave out."""
    marked = targets.masked_fill(~padding, -1)
    return F.cross_entropy(logits.flatten(0, 1), marked.flatten())


def minus_infinity(logits: Tensor, targets: Tensor, padding: Tensor) -> Tensor:
    """Hides padded positions as attention hides keys."""
    hidden = logits.masked_fill(~padding[..., None], -torch.inf)
    return losses_of(hidden, targets).mean()


MISTAKES = (
    Mistake(
        "shifted-inside",
        "Each position is held against the *next* one's target. The targets are already what each "
        "position is to predict: nothing is shifted here.",
        shifted_inside,
        also=(
            lambda logits, targets, padding: (
                shifted_inside(logits, targets, padding)
                if logits.shape[1] > 1
                else masked_cross_entropy(logits, targets, padding)
            ),
        ),
    ),
    Mistake(
        "other-sentinel",
        "Padded targets are set to a number that the loss takes for a class: F.cross_entropy "
        "leaves out −100, or what it is told as ignore_index, and no other.",
        other_sentinel,
    ),
    Mistake(
        "logits-minus-infinity",
        "The logits at padding are set to minus infinity, and the loss is taken over all "
        "positions: a softmax over nothing but minus infinity is NaN. Leave padded positions out "
        "of the mean.",
        minus_infinity,
    ),
    Mistake(
        "softmax-over-positions",
        "The softmax runs over the positions. It should run over the vocabulary, the last axis.",
        normalised_over(1),
    ),
    Mistake(
        "softmax-over-the-batch",
        "The softmax runs over the batch. It should run over the vocabulary, the last axis.",
        normalised_over(0),
    ),
    Mistake(
        "smoothed",
        "The target is smoothed: a part of it is given to the other classes. Asked for is the loss "
        "of the target alone.",
        lambda logits, targets, padding: F.cross_entropy(
            logits[padding], targets[padding], label_smoothing=0.1
        ),
    ),
    Mistake(
        "entropy",
        "This is the entropy of what the model predicts. The targets do not come into it.",
        reduced(
            mean_of_tokens,
            lambda logits, targets: -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1),
        ),
    ),
    Mistake(
        "mean-over-classes",
        "The mean is taken over the vocabulary as well. One class of each position counts, that of "
        "the target, and the mean is that of the tokens.",
        reduced(
            lambda losses, padding: losses[padding].mean(),
            lambda logits, targets: losses_of(logits, targets) / logits.shape[-1],
        ),
    ),
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
        # without a case for a sequence of padding only
        also=(
            reduced(lambda losses, padding: (losses * padding).sum(1).div(padding.sum(1)).mean()),
            reduced(
                lambda losses, padding: (losses * padding).sum(1).div(padding.sum(1)).nanmean()
            ),
        ),
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
        "epsilon-in-the-logarithm",
        "A small number keeps the logarithm finite, and cuts large losses off, with their "
        "gradient. log_softmax, or logit − logsumexp, needs none.",
        reduced(mean_of_tokens, log_of_a_sum),
        also=(reduced(mean_of_tokens, clamped_log),),
    ),
    Mistake(
        "no-gradient",
        "The value is right, but no gradient reaches the logits.",
        detached_inputs(masked_cross_entropy),
        also=(lambda *args: masked_cross_entropy(*args).item(),),
    ),
)
