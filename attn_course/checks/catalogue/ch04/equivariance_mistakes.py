"""Known-wrong tests for permutation equivariance: exercise 4.5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attn_course.checks.exercise import Answer, Mistake
from attn_course.self_attention import is_permutation_equivariant

Orders = Callable[[int], list[Tensor]]


def shuffles(n: int) -> list[Tensor]:
    """A handful of permutations."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randperm(n, generator=generator) for _ in range(8)]


def one_left(n: int, place: int) -> Tensor:
    """A shuffle without symmetry, of all positions but one."""
    others = [k for k in range(n) if k != place]
    moved = [*others[2:], *others[:2]]
    moved[0], moved[-1] = moved[-1], moved[0]
    return torch.tensor([*moved[:place], place, *moved[place:]])


def once(n: int) -> list[Tensor]:
    """One shuffle, as torch draws it next."""
    return [torch.randperm(n)]


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


MISTAKES = (
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
        found_by(lambda layer, x, p: torch.allclose(layer(x[..., p]), layer(x)[..., p]), axis=2),
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
        examples=tuple(found_by(comparing(lambda y: y, within(t))) for t in (0.1, 0.03)),
    ),
    Mistake(
        "one-shuffle",
        "One shuffle is tried, or of several one alone counts.",
        examples=tuple(
            found_by(WHOLE, lambda n, place=place: [one_left(n, place)]) for place in (1, 3)
        ),
    ),
    Mistake(
        "one-sequence",
        "The layer is only given the first sequence of the batch. What it does with the others "
        "goes unnoticed.",
        examples=(lambda layer, x: is_permutation_equivariant(layer, x[:1]),),
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
        also=(found_by(WHOLE, lambda n: [torch.arange(n).roll(k) for k in range(1, n)]),),
    ),
    Mistake(
        "symmetric-shuffles",
        "Positions are only moved along by the same step, or turned round as a whole. In a "
        "symmetric convolution that goes round everybody keeps the same neighbours: use shuffles "
        "without any symmetry, and several.",
        found_by(WHOLE, lambda n: [*rotation(n), *reversal(n)]),
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
        also=(found_by(comparing(lambda y: y.sum())),),
    ),
    Mistake(
        "sums-compared-once",
        "The outputs are added up (or averaged) over the positions before they are compared, and "
        "one shuffle is tried. Compare the outputs token by token, and try several shuffles.",
        found_by(comparing(lambda y: y.sum(dim=1)), once),
        also=(found_by(comparing(lambda y: y.sum()), once),),
    ),
    Mistake(
        "features-summed",
        "The features of each output are added up, or its length is taken, before you compare. "
        "Behind a layer norm those are the same for all tokens: compare the features one by one.",
        found_by(comparing(lambda y: y.sum(dim=-1))),
    ),
    Mistake(
        "sequences-summed",
        "The outputs are added up (or averaged) over the batch before they are compared. What one "
        "sequence gains another may lose: compare them one by one.",
        found_by(comparing(lambda y: y.sum(dim=0))),
    ),
    Mistake(
        "outputs-sorted",
        "The outputs are sorted before they are compared. That asks whether the same numbers come "
        "out, not whether each token keeps its own.",
        found_by(comparing(lambda y: y.sort(dim=1).values)),
    ),
    Mistake(
        "first-and-last-exchanged",
        "Only the first and the last position are ever exchanged. What a layer does with the "
        "others goes unnoticed: use shuffles of the whole sequence, and several.",
        found_by(WHOLE, lambda n: [torch.tensor([n - 1, *range(1, n - 1), 0])]),
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
)
