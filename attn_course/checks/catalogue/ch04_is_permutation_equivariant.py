"""Exercise 4.5, is_permutation_equivariant: a test that is judged on layers, right and wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue import ch04_layers as parts
from attn_course.checks.catalogue.ch04_layers import Function, at, attend
from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage, tenths
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
ORDERED: dict[str, tuple[Function, str]] = {
    "attention under a causal mask": (
        lambda x: attend(x, causal_mask(x.shape[1])),
        "The mask says which position may see which: moved to another place, a token sees others.",
    ),
    "attention with positions added": (
        lambda x: attend(x + places(x)),
        "A token at another place is another vector there.",
    ),
    "attention with weak positions": (
        lambda x: attend(x + 0.01 * places(x)),
        "Its outputs change in the third decimal. How large a difference do you let "
        "pass as rounding?",
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
    "a layer that treats the first position differently": (
        lambda x: x * (1 + at(x, 0)),
        "A shuffle that leaves the first position alone does not show it, nor does one that is "
        "compared at some other position only. Try several shuffles, compare all positions.",
    ),
    "a layer that treats the last position differently": (
        lambda x: x * (1 + at(x, x.shape[1] - 1)),
        "A shuffle that leaves the last position alone does not show it, nor does one that is "
        "compared at some other position only. Try several shuffles, compare all positions.",
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
    "positions in the last feature": (
        lambda x: parts.in_one_feature(x, x + 0.5 * torch.arange(x.shape[1])[:, None]),
        "Only one feature depends on the position. Compare all of them.",
    ),
}
LAYERS = EQUIVARIANT | ORDERED
REASONS = {name: reason for name, (_, reason) in LAYERS.items()}
CALL = parts.verdict({name: function for name, (function, _) in LAYERS.items()})


def draw_two(rng: Generator) -> Iterator[tuple]:
    """One layer of each kind, on four tokens."""
    x = tenths(rng, 1, 4, 2).double()
    yield "attention over all tokens", x
    yield "attention under a causal mask", x


def draw_all(rng: Generator) -> Iterator[tuple]:
    """All layers, in random order, each with its own tokens."""
    names = list(LAYERS)
    for k in torch.randperm(len(names), generator=rng).tolist():
        yield names[k], torch.randn(3, 6, 4, generator=rng, dtype=torch.float64)


# -- known-wrong tests ------------------------------------------------------------------------

Orders = Callable[[int], list[Tensor]]


def shuffles(n: int) -> list[Tensor]:
    """A handful of permutations."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randperm(n, generator=generator) for _ in range(8)]


def reversal(n: int) -> list[Tensor]:
    """The reversed order alone."""
    return [torch.arange(n).flip(0)]


def rotation(n: int) -> list[Tensor]:
    """Every position one on."""
    return [torch.arange(n).roll(1)]


def first_two(n: int) -> list[Tensor]:
    """The first two positions exchanged."""
    return [torch.tensor([1, 0, *range(2, n)])]


def last_two(n: int) -> list[Tensor]:
    """The last two positions exchanged."""
    return [torch.tensor([*range(n - 2), n - 1, n - 2])]


def found_by(
    agrees: Callable[[Any, Tensor, Tensor], bool], orders: Orders = shuffles, axis: int = 1
) -> Answer:
    """A test that says True if `agrees(layer, x, order)` for all orders of this axis."""

    def answer(layer: Any, x: Tensor) -> bool:
        return all(agrees(layer, x, order) for order in orders(x.shape[axis]))

    return answer


def comparing(
    read: Callable[[Tensor], Tensor], close: Callable[[Tensor, Tensor], bool] = torch.allclose
) -> Callable[[Any, Tensor, Tensor], bool]:
    """The right comparison, but for what is read of both outputs, and how closely."""
    return lambda layer, x, order: close(read(layer(x[:, order])), read(layer(x)[:, order]))


def within(tolerance: float) -> Callable[[Tensor, Tensor], bool]:
    """Equal up to an absolute tolerance."""
    return lambda one, other: torch.allclose(one, other, atol=tolerance)


WHOLE = comparing(lambda y: y)
IN_DISORDER = (
    "The order is not the same on both sides. Shuffling the input, then the layer, must equal the "
    "layer, then the very same shuffle of its output. (Does the layer see the shuffled input? Is "
    "the shuffle done on one side, and undone on the other?)"
)

EXERCISE = Exercise(
    number="4.5",
    reference=is_permutation_equivariant,
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
            diagnose=parts.read_verdicts(
                REASONS, {"attention with weak positions": "loose-tolerance"}
            ),
        ),
        Stage(
            "all layers",
            draw_all,
            "The test misjudges some layers.",
            call=CALL,
            diagnose=parts.read_verdicts(
                REASONS, {"attention with weak positions": "loose-tolerance"}
            ),
        ),
    ),
    mistakes=(
        Mistake(
            "always-true",
            "Your test says True whatever the layer. Do the numbers that come out of it play a "
            "part, and not their shape alone?",
            lambda layer, x: True,
        ),
        Mistake(
            "always-false",
            "Your test says False whatever the layer, even where no token sees another. Are both "
            "sides shuffled alike? Is a small difference in the last digits let pass?",
            lambda layer, x: False,
        ),
        Mistake(
            "negated",
            "The verdicts are all turned round: True stands for “is equivariant”.",
            lambda layer, x: not is_permutation_equivariant(layer, x),
        ),
        Mistake(
            "invariance",
            "You test whether the output stays as it was. That is invariance, and attention does "
            "not have it: its output is shuffled as the input was.",
            found_by(lambda layer, x, p: torch.allclose(layer(x[:, p]), layer(x))),
        ),
        Mistake(
            "inverse-order",
            IN_DISORDER,
            found_by(
                lambda layer, x, p: torch.allclose(layer(x[:, p]), layer(x)[:, p.argsort()]),
                lambda n: [*shuffles(n), *rotation(n)],
            ),
        ),
        Mistake(
            "batch-shuffled",
            "The sequences of the batch are shuffled, not the positions in them: x is (b, n, d), "
            "and positions are its second axis.",
            found_by(
                lambda layer, x, p: torch.allclose(layer(x[p]), layer(x)[p]),
                lambda n: [*shuffles(n), *reversal(n)],
                axis=0,
            ),
        ),
        Mistake(
            "features-shuffled",
            "The features are shuffled, not the positions: x is (b, n, d), and positions are its "
            "second axis.",
            found_by(
                lambda layer, x, p: torch.allclose(layer(x[..., p]), layer(x)[..., p]), axis=2
            ),
        ),
        Mistake(
            "exact-equality",
            "Two numbers must be exactly equal for your test. Added up in another order, the same "
            "numbers differ in the last digit: that is rounding, and no order of the tokens.",
            found_by(comparing(lambda y: y, torch.equal)),
        ),
        Mistake(
            "loose-tolerance",
            "What your test lets pass as rounding is too much: some layers use positions a "
            "little. In float64 rounding stays far below a millionth.",
            examples=tuple(found_by(comparing(lambda y: y, within(t))) for t in (0.1, 0.05)),
        ),
        Mistake(
            "reversal-only",
            "Only the reversed order is tried. Whoever looks to both sides alike, as a symmetric "
            "convolution, cannot tell: use shuffles without any symmetry, and several.",
            found_by(WHOLE, reversal),
        ),
        Mistake(
            "rotation-only",
            "All positions are moved along by the same step. In a convolution that goes round "
            "everybody keeps the same neighbours: use shuffles without any symmetry, and several.",
            found_by(WHOLE, rotation),
        ),
        Mistake(
            "first-two-exchanged",
            "Only the first two positions are ever exchanged. What a layer does with the others "
            "goes unnoticed: use shuffles of the whole sequence, and several.",
            found_by(WHOLE, first_two),
        ),
        Mistake(
            "last-two-exchanged",
            "Only the last two positions are ever exchanged. What a layer does with the others "
            "goes unnoticed: use shuffles of the whole sequence, and several.",
            found_by(WHOLE, last_two),
        ),
        Mistake(
            "constant-input",
            "All tokens that you try are equal, so that shuffling them changes nothing. Use the "
            "given x, whose tokens all differ.",
            found_by(lambda layer, x, p: WHOLE(layer, torch.ones_like(x), p)),
        ),
        Mistake(
            "sums-compared",
            "The outputs are added up (or averaged) over the positions before they are compared. "
            "That asks whether the whole is the same, not whether each token keeps its output.",
            found_by(comparing(lambda y: y.sum(dim=1))),
        ),
        Mistake(
            "one-sample",
            "Only the first sequence of the batch is compared.",
            found_by(comparing(lambda y: y[0])),
        ),
        Mistake(
            "one-feature",
            "Only the first feature is compared.",
            found_by(comparing(lambda y: y[..., 0])),
        ),
    ),
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

EXERCISES = (EXERCISE,)
