"""Exercise 4.2, is_permutation_equivariant: a test that is judged on layers, right and wrong."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch04 import layers as parts
from attn_course.checks.catalogue.ch04.equivariance_mistakes import MISTAKES, shuffled_alike
from attn_course.checks.catalogue.ch04.layers import Function, Layer, at, attend
from attn_course.checks.exercise import Exercise, Output, Stage, tenths
from attn_course.masks import causal_mask
from attn_course.positions import sinusoidal_encoding
from attn_course.self_attention import is_permutation_equivariant

# -- the layers -------------------------------------------------------------------------------


def places(x: Tensor) -> Tensor:
    """The sinusoidal encoding of x's positions."""
    return sinusoidal_encoding(x.shape[1], x.shape[2]).to(x)


def blocks(x: Tensor) -> Tensor:
    """Attention and feed-forward, added to the tokens."""
    x = x + attend(x)
    return x + parts.mlp(x)


EQUIVARIANT: dict[str, tuple[Function, str]] = {
    "attention over all tokens": (
        attend,
        "It treats all positions alike. Is the order of the outputs the same as that of the "
        "inputs in your comparison? And is rounding let pass? Sums in another order differ in "
        "the last digit.",
    ),
    "a feed-forward network on each token": (
        parts.mlp,
        "No token sees another in it: shuffled tokens give shuffled outputs.",
    ),
    "the tanh of each number": (
        torch.tanh,
        "Each number goes its own way: shuffled tokens give shuffled outputs, to the last digit.",
    ),
    "the mean of all tokens, added to each": (
        lambda x: x + x.mean(dim=1, keepdim=True),
        "A mean does not change when tokens change places, but for rounding.",
    ),
    "attention and a feed-forward network, with residuals": (
        blocks,
        "Each of its parts is equivariant, and so is what is built of them.",
    ),
    "normalisation over the positions": (
        lambda x: parts.normalised(x, 1),
        "Mean and variance over all positions stay the same when tokens change places. That one "
        "position depends on the others is no order.",
    ),
    "the largest of all tokens, at every position": (
        lambda x: x.amax(dim=1, keepdim=True).expand_as(x),
        "All its outputs are equal, so in whatever order they stand, they agree.",
    ),
}
ORDERED: dict[str, tuple[Layer, str]] = {
    "attention under a causal mask": (
        lambda x: attend(x, causal_mask(x.shape[1])),
        "The mask says which position may see which: moved to another place, a token sees others.",
    ),
    "attention with positions added": (
        lambda x: attend(x + places(x)),
        "A token at another place is another vector there.",
    ),
    "attention with weak positions": (
        # far from zero, where a share of the value is much
        lambda x: 2 + attend(x) + 0.0015 * places(x),
        "Its outputs change in the third decimal. How large a difference do you let "
        "pass as rounding?",
    ),
    "attention with positions, normalised after": (
        lambda x: parts.normalised(attend(x + places(x)), -1),
        "Its features add up to zero, always. Compare them one by one.",
    ),
    "positions added in one sequence and taken off in the next": (
        lambda x: torch.cat([x[:1] + places(x), x[1:2] - places(x), x[2:]]),
        "Added up over the batch, its outputs show nothing. Compare the sequences one by one.",
    ),
    "a layer that minds few orders of the tokens": (
        parts.Sometimes,
        "It treats most orders of the tokens alike: one shuffle does not show it, nor does it if "
        "only the last of several counts. Try several, and say False as soon as one disagrees.",
    ),
    "attention that falls with distance": (
        lambda x: attend(x, bias=-0.5 * parts.apart(x).abs()),
        "Reversed, each token has the same neighbours, as near as before: turning the whole "
        "sequence round shows nothing here.",
    ),
    "attention within a window": (
        lambda x: attend(x, parts.apart(x).abs() <= 1),
        "Reversed, each token has the same neighbours: turning the whole sequence round shows "
        "nothing here.",
    ),
    "a convolution": (
        lambda x: parts.convolve(x, [0.5, 1.0, -0.7], 1),
        "It reads neighbours, and shuffled tokens have others.",
    ),
    "a symmetric convolution": (
        lambda x: parts.convolve(x, [0.5, 1.0, 0.5], 1),
        "Reversed, each token has the same neighbours: turning the whole sequence round shows "
        "nothing here.",
    ),
    "a convolution that goes round": (
        lambda x: parts.convolve(x, [0.5, 1.0, -0.7], 1, circular=True),
        "Moving all tokens along by the same step shows nothing here: everybody keeps the "
        "neighbours that they had.",
    ),
    "a symmetric convolution that goes round": (
        lambda x: parts.convolve(x, [0.5, 1.0, 0.5], 1, circular=True),
        "Moved along by the same step, or turned round as a whole, everybody keeps the neighbours "
        "that they had. Shuffle without any symmetry.",
    ),
    "the running mean": (
        lambda x: x.cumsum(dim=1) / torch.arange(1, x.shape[1] + 1)[:, None],
        "Each output depends on who came before.",
    ),
    "a recurrent network": (parts.recurrent, "Its state depends on the order of what it read."),
    "the tokens in reverse order": (
        lambda x: x.flip(1),
        "It sends tokens to other positions. If only one reversal or one symmetric shuffle is "
        "tried, that does not show.",
    ),
    "the tokens sorted by size": (
        lambda x: x.sort(dim=1).values,
        "Its output stays the same however the input is shuffled. That is called invariant. "
        "Equivariant is another property: the output must be shuffled as the input was.",
    ),
    "attention whose heads are cut by a view": (
        parts.heads_by_view,
        "A view over the wrong axes mixes tokens with features. Are all positions and features "
        "compared?",
    ),
    "positions in the last sequence of the batch": (
        lambda x: parts.in_one_sample(x, x + places(x)),
        "Only one sequence of the batch has positions. Compare all of them.",
    ),
    "positions in the second sequence of the batch": (
        lambda x: parts.in_the_second_sample(x, x + places(x)),
        "Only one sequence of the batch has positions. Hand the layer all, and compare all.",
    ),
    "positions in the last feature": (
        lambda x: parts.in_one_feature(x, x + 0.5 * torch.arange(x.shape[1])[:, None]),
        "Only one feature depends on the position. Compare all of them.",
    ),
}
SINGLE: dict[str, tuple[Function, str]] = {
    f"a layer that treats position {place} differently": (
        lambda x, place=place: x * (1 + at(x, place)),
        "A shuffle that leaves this very position alone does not show it, nor does one that is "
        "compared at other positions only. Try several shuffles, and compare all positions.",
    )
    for place in range(7)
}
"""Each of seven positions is, in one of these layers, the one that is treated differently."""

ORDERED |= SINGLE
LAYERS: dict[str, tuple[Layer, str]] = {**EQUIVARIANT, **ORDERED}
REASONS = {name: reason for name, (_, reason) in LAYERS.items()}
ALONE = {
    "attention with weak positions": "loose-tolerance",
    "positions in the second sequence of the batch": "one-sequence",
} | dict.fromkeys([*SINGLE, "a layer that minds few orders of the tokens"], "one-shuffle")
CALL = parts.verdict({name: function for name, (function, _) in LAYERS.items()})


def draw_two(rng: Generator) -> Iterator[tuple]:
    """One layer of each kind, on four tokens."""
    x = tenths(rng, 1, 4, 3).double()
    yield "attention over all tokens", x
    yield "attention under a causal mask", x


def draw_all(rng: Generator) -> Iterator[tuple]:
    """All layers, in random order, each with its own tokens."""
    names = list(LAYERS)
    for k in torch.randperm(len(names), generator=rng).tolist():
        n = len(SINGLE) if names[k] in SINGLE else 6
        yield names[k], torch.randn(3, n, 4, generator=rng, dtype=torch.float64)


EXERCISE = Exercise(
    number="4.2",
    reference=is_permutation_equivariant,
    right=shuffled_alike,
    wire="callable",
    outputs=(Output("verdict"),),
    difficulty=3,
    minutes=20,
    points=3,
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
        "Two ways to the same place: shuffle the tokens and call the layer, or call the layer and "
        "shuffle its output. An equivariant layer gives the same both ways.",
        "order = torch.randperm(n) is a shuffle of positions, and x[:, order] are the tokens in "
        "that order. Compare with torch.allclose, which lets rounding pass.",
        "One shuffle may be a lucky one: the identity, a reversal, or one that leaves alone the "
        "very position that is treated differently. Try ten of them, and say False at the first "
        "that disagrees.",
    ),
)
