"""Exercise 4.4, leaks_future: a test that is judged on layers, right and wrong: its stages."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch04 import layers as parts
from attn_course.checks.catalogue.ch04.layers import Function, at, attend
from attn_course.checks.catalogue.ch04.leaks_mistakes import MISTAKES, sees_what_follows
from attn_course.checks.exercise import Exercise, Output, Stage, tenths
from attn_course.masks import causal_mask
from attn_course.positions import sinusoidal_encoding
from attn_course.self_attention import leaks_future

# -- the layers -------------------------------------------------------------------------------


def causal(x: Tensor) -> Tensor:
    """Causal attention."""
    return attend(x, causal_mask(x.shape[1]))


def normalised_first(x: Tensor) -> Tensor:
    """Attention to all tokens, each normalised before."""
    return attend(parts.normalised(x, -1))


def placed(x: Tensor) -> Tensor:
    """Causal attention with positions, and a feed-forward network, with residuals."""
    x = x + sinusoidal_encoding(x.shape[1], x.shape[2]).to(x)
    x = x + causal(x)
    return x + parts.mlp(x)


def by_difference(x: Tensor) -> Tensor:
    """The sum so far, as the sum of all less the sum of what follows."""
    following = x.flip(1).cumsum(dim=1).flip(1) - x
    return x.sum(dim=1, keepdim=True) - following


def cancelled(x: Tensor) -> Tensor:
    """Causal attention, and the next token in three parts whose sum is nothing but rounding."""
    ahead = parts.shift(x, -1)
    return causal(x) + (0.1 * ahead + 0.2 * ahead - 0.3 * ahead)


def running_mean(x: Tensor) -> Tensor:
    """The mean of all tokens so far."""
    return x.cumsum(dim=1) / torch.arange(1, x.shape[1] + 1)[:, None]


TIGHT: dict[str, tuple[Function, str]] = {
    "causal attention": (
        causal,
        "Each position sees itself and what came before. That an output depends on its own input, "
        "or on the past, is no leak.",
    ),
    "causal attention that excludes the token itself": (
        lambda x: attend(x, parts.apart(x) > 0),
        "It sees less than it might, and nothing of the future.",
    ),
    "causal attention in a window": (
        lambda x: attend(x, (parts.apart(x) >= 0) & (parts.apart(x) < 2)),
        "It looks at two tokens, none of them later.",
    ),
    "a block with positions, causal attention and residuals": (
        placed,
        "It uses order as much as it likes, but only of what came before.",
    ),
    "two layers of causal attention": (
        lambda x: causal(x + causal(x)),
        "Going through the past twice is still the past.",
    ),
    "layer norm on each token": (lambda x: parts.normalised(x, -1), "No token sees another in it."),
    "a feed-forward network on each token": (parts.mlp, "No token sees another in it."),
    "a convolution over the past": (
        lambda x: parts.convolve(x, [0.3, -0.7, 1.0], 2),
        "It reads two tokens before and the token itself.",
    ),
    "the token before": (
        lambda x: parts.shift(x, 1),
        "It moves tokens to later positions: an output depends on an earlier input, not a later.",
    ),
    "the running mean": (running_mean, "It reads what came before, and the token itself."),
    "the running sum, computed from both ends": (
        by_difference,
        "It is the sum so far, up to rounding: the future is added and taken off again. A "
        "difference in the last digit is no leak.",
    ),
    "causal attention and a future that cancels out": (
        cancelled,
        "What it reads of the future adds up to nothing, but for rounding. A difference, or a "
        "gradient, of 1e-17 is no leak.",
    ),
    "a recurrent network": (parts.recurrent, "Its state knows the past only."),
}
LEAKY: dict[str, tuple[Function, str]] = {
    "attention to all tokens": (attend, "Every position sees all later ones."),
    "attention whose causal mask is inverted": (
        lambda x: attend(x, parts.apart(x) < 0),
        "It sees the future and nothing else.",
    ),
    "attention that looks exactly one token ahead": (
        lambda x: attend(x, parts.apart(x) >= -1),
        "Its mask is off by one. Change the very next token, and compare up to the one before it.",
    ),
    "the next token": (
        lambda x: parts.shift(x, -1),
        "Its output is the token one ahead. Change the very next token, and compare up to the one "
        "before it.",
    ),
    "the token two ahead": (
        lambda x: parts.shift(x, -2),
        "Nothing of the next token is seen, but the one behind it. Change all that follows, not "
        "one token of it.",
    ),
    "a convolution to both sides": (
        lambda x: parts.convolve(x, [0.3, 1.0, -0.7], 1),
        "It reads one token ahead.",
    ),
    "the mean of all tokens, added to each": (
        lambda x: x + x.mean(dim=1, keepdim=True),
        "Every later token is in the mean.",
    ),
    "normalisation over the positions": (
        lambda x: parts.normalised(x, 1),
        "Mean and variance are taken over the sequence, the later tokens among them. Adding the "
        "same number to some tokens, or scaling them, may hide in it.",
    ),
    "normalisation over batch and positions": (
        lambda x: parts.normalised(x, 0, 1),
        "Mean and variance are taken over batch and sequence, the later tokens among them.",
    ),
    "attention to all tokens, each normalised before": (
        normalised_first,
        "It normalises each token first, so a number that is added to all features of a token, or "
        "multiplied with them, is taken off again. Replace tokens by others.",
    ),
    "attention to all tokens, each taken less its mean": (
        lambda x: attend(x - x.mean(dim=-1, keepdim=True)),
        "It takes the mean off each token first, so a number that is added to all features is "
        "taken off again. Replace tokens by others.",
    ),
    "attention to all tokens, normalised after": (
        lambda x: parts.normalised(attend(x), -1),
        "Its features add up to zero, always, so the gradient of their sum is zero too. Look at "
        "the features one by one, or replace tokens and compare.",
    ),
    "a causal layer whose first position sees the second": (
        lambda x: causal(x) + at(x, 0) * parts.shift(x, -1),
        "The leak is at the first position only: test every position.",
    ),
    "a causal layer whose last position but one sees the last": (
        lambda x: causal(x) + at(x, x.shape[1] - 2) * parts.shift(x, -1),
        "The leak is at the end only: test every position.",
    ),
    "attention within blocks of three": (
        lambda x: attend(
            x, torch.arange(x.shape[1])[:, None] // 3 == torch.arange(x.shape[1]) // 3
        ),
        "Nothing crosses from one block to the next, but inside a block all see each other. One "
        "cut may fall between two blocks: test every position.",
    ),
    "causal attention with a weak look ahead": (
        lambda x: causal(x) + 0.0015 * parts.shift(x, -1),
        "The future comes in weakly, in the third decimal. How much do you let pass as rounding?",
    ),
    "a causal layer that sees one feature of the next token": (
        lambda x: causal(x) + 0.3 * parts.shift(x, -1)[..., 1:2],
        "It reads one feature of what follows, neither the first nor the last. Change all of them.",
    ),
    "a causal layer that sees how large the next token is": (
        lambda x: causal(x) + 0.3 * parts.shift(x, -1).square().sum(dim=-1, keepdim=True),
        "It reads how large the next token is, whatever its sign. Replace tokens by others.",
    ),
    "causal attention, except in the last sequence of the batch": (
        lambda x: parts.in_one_sample(causal(x), attend(x)),
        "Only one sequence of the batch leaks. Compare all of them.",
    ),
    "causal attention, except in the second sequence of the batch": (
        lambda x: parts.in_the_second_sample(causal(x), attend(x)),
        "Only one sequence of the batch leaks. Hand the layer all of them, and compare all.",
    ),
    "causal attention, except in the last feature": (
        lambda x: parts.in_one_feature(causal(x), attend(x)),
        "Only one feature leaks. Compare all of them.",
    ),
}
LAYERS = TIGHT | LEAKY
REASONS = {name: reason for name, (_, reason) in LAYERS.items()}
ALONE = {
    "causal attention and a future that cancels out": "exact-equality",
    "the running sum, computed from both ends": "exact-equality",
    "causal attention with a weak look ahead": "loose-tolerance",
    "causal attention, except in the second sequence of the batch": "one-sequence",
}
CALL = parts.verdict({name: function for name, (function, _) in LAYERS.items()})


def draw_two(rng: Generator) -> Iterator[tuple]:
    """One layer of each kind, on four tokens."""
    x = tenths(rng, 1, 4, 3).double()
    yield "causal attention", x
    yield "attention to all tokens", x


def draw_all(rng: Generator) -> Iterator[tuple]:
    """All layers, in random order, each with its own tokens."""
    names = list(LAYERS)
    for k in torch.randperm(len(names), generator=rng).tolist():
        yield names[k], torch.randn(3, 6, 4, generator=rng, dtype=torch.float64)


EXERCISE = Exercise(
    number="4.4",
    reference=leaks_future,
    right=sees_what_follows,
    wire="callable",
    outputs=(Output("verdict"),),
    difficulty=3,
    minutes=25,
    points=4,
    may_use="torch",
    stages=(
        Stage(
            "two layers",
            draw_two,
            "The test misjudges one of the two plainest layers.",
            call=CALL,
            diagnose=parts.read_verdicts(REASONS, ALONE),
        ),
        Stage(
            "all layers",
            draw_all,
            "The test misjudges some layers.",
            call=CALL,
            diagnose=parts.read_verdicts(REASONS, ALONE),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Change what comes later, and see whether anything earlier moves. No need to look inside "
        "the layer.",
        "For a cut t: keep the tokens 0 … t − 1, replace those from t on by other random ones, and "
        "compare the outputs 0 … t − 1. Which of both slices contains position t?",
        "Go through all cuts t = 1 … n − 1, compare all sequences and features with "
        "torch.allclose, and say True at the first cut where they differ.",
    ),
)
