"""Exercise 8.4, masked_cross_entropy: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.exercise import Exercise, Mistake, Output, Stage, normal, tenths
from attn_course.checks.gradients import gradient_stage
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


# -- a right answer, and what goes wrong in it ------------------------------------------------


def mean_of_tokens(logits: Tensor, targets: Tensor, padding: Tensor) -> Tensor:
    """The loss of every position, then the mean of those that are no padding."""
    log_probs = logits.log_softmax(-1)
    losses = -log_probs.gather(-1, targets[..., None])[..., 0]
    return losses[padding].mean()


FIRST = "log_probs = "
LOSSES = "-log_probs.gather(-1, targets[..., None])[..., 0]"
RESULT = "losses[padding].mean()"
SHIFTED = "logits, targets, padding = logits[:, :-1], targets[:, 1:], padding[:, 1:]"

MISTAKES = (
    Mistake(
        "shifted-inside",
        "Each position is held against the *next* one's target. The targets are already what each "
        "position is to predict: nothing is shifted here.",
        {FIRST: f"{SHIFTED}\n    {FIRST}"},
        # a single position is left as it is
        also=({FIRST: f"if targets.shape[1] > 1:\n        {SHIFTED}\n    {FIRST}"},),
    ),
    Mistake(
        "other-sentinel",
        "Padded targets are set to a number that the loss takes for a class: F.cross_entropy "
        "leaves out −100, or what it is told as ignore_index, and no other.",
        {RESULT: "F.cross_entropy(logits.mT, targets.masked_fill(~padding, -1))"},
    ),
    Mistake(
        "logits-minus-infinity",
        "The logits at padding are set to minus infinity, and the loss is taken over all "
        "positions: a softmax over nothing but minus infinity is NaN. Leave padded positions out "
        "of the mean.",
        {"logits.log": "logits.masked_fill(~padding[..., None], -torch.inf).log", "[padding]": ""},
    ),
    Mistake(
        "softmax-over-positions",
        "The softmax runs over the positions. It should run over the vocabulary, the last axis.",
        {"log_softmax(-1)": "log_softmax(1)"},
    ),
    Mistake(
        "softmax-over-the-batch",
        "The softmax runs over the batch. It should run over the vocabulary, the last axis.",
        {"log_softmax(-1)": "log_softmax(0)"},
    ),
    Mistake(
        "smoothed",
        "The target is smoothed: a part of it is given to the other classes. Asked for is the loss "
        "of the target alone.",
        {RESULT: "F.cross_entropy(logits[padding], targets[padding], label_smoothing=0.1)"},
    ),
    Mistake(
        "entropy",
        "This is the entropy of what the model predicts. The targets do not come into it.",
        {LOSSES: "-(log_probs.exp() * log_probs).sum(-1)"},
    ),
    Mistake(
        "mean-over-classes",
        "The mean is taken over the vocabulary as well. One class of each position counts, that of "
        "the target, and the mean is that of the tokens.",
        {".mean()": ".mean() / logits.shape[-1]"},
    ),
    Mistake(
        "mean-over-all",
        "The sum over the tokens is divided by all positions, padded ones included: the more "
        "padding, the smaller the loss. Divide by the number of tokens.",
        {"losses[padding]": "(losses * padding)"},
    ),
    Mistake(
        "padding-counted",
        "Padded positions enter the loss. Where the mask says False nothing is asked.",
        {"[padding]": ""},
    ),
    Mistake(
        "logits-zeroed",
        "The logits at padding are set to 0, and the loss is taken over all positions: a padded "
        "one then costs log vocab.",
        {"logits.log": "(logits * padding[..., None]).log", "[padding]": ""},
    ),
    Mistake(
        "inverted",
        "The loss is that of the padding: True means a token.",
        {"[padding]": "[~padding]"},
        also=(
            {RESULT: "(losses * ~padding).sum() / (~padding).sum()"},
            {RESULT: "(losses * ~padding).sum() / padding.sum()"},
        ),
    ),
    Mistake(
        "sum",
        "This is the sum over the tokens. Asked for is their mean.",
        {".mean()": ".sum()"},
    ),
    Mistake(
        "mean-of-rows",
        "The mean of each sequence is taken first, then the mean of those: a token of a short "
        "sequence counts for more. Here every token counts alike.",
        {RESULT: "((losses * padding).sum(1) / padding.sum(1).clamp(min=1)).mean()"},
        # without a case for a sequence of padding only
        also=(
            {RESULT: "((losses * padding).sum(1) / padding.sum(1)).mean()"},
            {RESULT: "((losses * padding).sum(1) / padding.sum(1)).nanmean()"},
        ),
    ),
    Mistake(
        "mean-of-positions",
        "The mean of each position is taken first, then the mean of those. Every token should "
        "count alike.",
        {RESULT: "((losses * padding).sum(0) / padding.sum(0).clamp(min=1)).mean()"},
    ),
    Mistake(
        "sum-by-batch",
        "The sum is divided by the number of sequences. Divide by the number of tokens.",
        {".mean()": ".sum() / len(padding)"},
    ),
    Mistake(
        "sum-by-length",
        "The sum is divided by the number of positions in a row. Divide by the number of tokens.",
        {".mean()": ".sum() / padding.shape[1]"},
    ),
    Mistake(
        "one-for-each-row",
        "A loss for each sequence comes back. Asked for is one number, the mean over all tokens.",
        {RESULT: "(losses * padding).sum(1) / padding.sum(1)"},
    ),
    Mistake(
        "not-reduced",
        "A loss for every token comes back. Asked for is one number, their mean.",
        {".mean()": ""},
        also=({RESULT: "losses * padding"},),
    ),
    Mistake(
        "zero-is-padding",
        "Every target 0 is left out. What is padding is said by the mask: 0 is a token like "
        "others.",
        {"[padding]": "[padding & (targets != 0)]"},
        also=({"[padding]": "[targets != 0]"},),
    ),
    Mistake(
        "padding-as-class-zero",
        "Padded targets are set to 0 and counted: the model would be taught to write that token.",
        {"targets[": "targets.masked_fill(~padding, 0)[", "[padding]": ""},
    ),
    Mistake(
        "axes-by-reshape",
        "The classes are brought to axis 1 by a reshape, which cuts the numbers anew instead of "
        "exchanging axes. Where n is the number of classes nothing tells.",
        {"logits.log": "logits.reshape(len(logits), -1, logits.shape[1]).mT.log"},
    ),
    Mistake(
        "positions-as-classes",
        "The softmax runs over the positions: cross_entropy takes axis 1 for the classes, and "
        "logits are (b, n, vocab). Where n is the number of classes nothing tells.",
        {LOSSES: "F.cross_entropy(logits, targets, reduction='none')"},
    ),
    Mistake(
        "softmax-twice",
        "A softmax is taken before F.cross_entropy, which takes one itself: the loss then never "
        "gets near 0.",
        {"logits.log": "logits.softmax(-1).log"},
    ),
    Mistake(
        "no-softmax",
        "The logit of the target is taken as it is: it has to be set against all others, "
        "logit − log Σ exp(logits).",
        {"logits.log_softmax(-1)": "logits"},
    ),
    Mistake(
        "no-log",
        "The probability of the target is taken, not its logarithm.",
        {"log_softmax(-1)": "softmax(-1)"},
    ),
    Mistake(
        "sign",
        "The sign is wrong: a loss is minus the log-probability, so never below 0.",
        {"-log_probs": "log_probs"},
    ),
    Mistake(
        "bits",
        "The logarithm has base 2. Losses are in nats here, base e.",
        {".mean()": ".mean() / math.log(2)"},
    ),
    Mistake(
        "perplexity",
        "This is the exponential of the loss, the perplexity.",
        {".mean()": ".mean().exp()"},
    ),
    Mistake(
        "log-of-zero",
        "With large logits the softmax underflows to 0, and its logarithm is infinite. "
        "log_softmax, or logit − logsumexp, holds.",
        {"log_softmax(-1)": "softmax(-1).log()"},
    ),
    Mistake(
        "epsilon-in-the-logarithm",
        "A small number keeps the logarithm finite, and cuts large losses off, with their "
        "gradient. log_softmax, or logit − logsumexp, needs none.",
        {"logits.log_softmax(-1)": "(logits.softmax(-1) + 1e-9).log()"},
        also=({"log_softmax(-1)": "softmax(-1).clamp(min=1e-12).log()"},),
    ),
    Mistake(
        "no-gradient",
        "The value is right, but no gradient reaches the logits.",
        {"logits.log": "logits.detach().log"},
        also=({".mean()": ".mean().item()"},),
    ),
)

EXERCISE = Exercise(
    number="8.4",
    reference=masked_cross_entropy,
    right=mean_of_tokens,
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
