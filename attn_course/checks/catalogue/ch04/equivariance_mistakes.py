"""Known-wrong tests for permutation equivariance: exercise 4.5."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake


def shuffled_alike(layer: Callable[[Tensor], Tensor], x: Tensor) -> bool:
    """A right test, in which each of the mistakes is made."""
    output = layer(x)
    n = x.shape[1]
    for order in shuffles(n):
        moved, expected = layer(x[:, order]), output[:, order]
        if not torch.allclose(moved, expected):
            return False
    return True


def shuffles(n: int) -> list[Tensor]:
    """A handful of permutations, a rotation and the reversed order among them."""
    generator = torch.Generator().manual_seed(1)
    drawn = [torch.randperm(n, generator=generator) for _ in range(8)]
    return [*drawn, torch.arange(n).roll(1), torch.arange(n).flip(0)]


def one_left(n: int, place: int) -> Tensor:
    """A shuffle without symmetry, of all positions but one."""
    others = [k for k in range(n) if k != place]
    moved = [*others[2:], *others[:2]]
    moved[0], moved[-1] = moved[-1], moved[0]
    return torch.tensor([*moved[:place], place, *moved[place:]])


def trying(orders: str) -> Edits:
    """No other orders than these are tried."""
    return {"shuffles(n)": f"[{orders}]"}


def comparing(part: str) -> Edits:
    """What is compared is this part of the outputs, or this that is made of them."""
    return {"(moved, expected)": f"(moved{part}, expected{part})"}


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
        {"return False": "return True"},
    ),
    Mistake(
        "always-false",
        "Your test says False whatever the layer, even where no token sees another. Are both "
        "sides shuffled alike? Is a small difference in the last digits let pass?",
        {"return True": "return False"},
    ),
    Mistake(
        "negated",
        "The verdicts are all turned round: True stands for “is equivariant”.",
        {"return False": "return True", "return True": "return False"},
    ),
    Mistake(
        "invariance",
        "You test whether the output stays as it was. That is invariance, and attention does "
        "not have it: its output is shuffled as the input was.",
        {"output[:, order]": "output"},
    ),
    Mistake("inverse-order", IN_DISORDER, {"output[:, order]": "output[:, order.argsort()]"}),
    Mistake(
        "batch-shuffled",
        "The sequences of the batch are shuffled, not the positions in them: x is (b, n, d), "
        "and positions are its second axis.",
        {
            "x.shape[1]": "x.shape[0]",
            "x[:, order]": "x[order]",
            "output[:, order]": "output[order]",
        },
    ),
    Mistake(
        "features-shuffled",
        "The features are shuffled, not the positions: x is (b, n, d), and positions are its "
        "second axis.",
        {
            "x.shape[1]": "x.shape[2]",
            "x[:, order]": "x[..., order]",
            "output[:, order]": "output[..., order]",
        },
    ),
    Mistake(
        "exact-equality",
        "Two numbers must be exactly equal for your test. Added up in another order, the same "
        "numbers differ in the last digit: that is rounding, and no order of the tokens.",
        {"torch.allclose": "torch.equal"},
    ),
    Mistake(
        "loose-tolerance",
        "What your test lets pass as rounding is too much: some layers use positions a "
        "little. In float64 rounding stays far below a millionth.",
        examples=(
            {"moved, expected)": "moved, expected, atol=0.1)"},
            {"moved, expected)": "moved, expected, atol=0.03)"},
        ),
    ),
    Mistake(
        "one-shuffle",
        "One shuffle is tried, or of several one alone counts.",
        examples=(trying("one_left(n, 1)"), trying("one_left(n, 3)")),
    ),
    Mistake(
        "one-sequence",
        "The layer is only given the first sequence of the batch. What it does with the others "
        "goes unnoticed.",
        examples=({"output = layer(x)": "x = x[:1]\n    output = layer(x)"},),
    ),
    Mistake(
        "reversal-only",
        "Only the reversed order is tried. Whoever looks to both sides alike, as a symmetric "
        "convolution, cannot tell: use shuffles without any symmetry, and several.",
        trying("torch.arange(n).flip(0)"),
    ),
    Mistake(
        "rotation-only",
        "All positions are moved along by the same step. In a convolution that goes round "
        "everybody keeps the same neighbours: use shuffles without any symmetry, and several.",
        trying("torch.arange(n).roll(1)"),
        also=(trying("*(torch.arange(n).roll(k) for k in range(1, n))"),),
    ),
    Mistake(
        "symmetric-shuffles",
        "Positions are only moved along by the same step, or turned round as a whole. In a "
        "symmetric convolution that goes round everybody keeps the same neighbours: use shuffles "
        "without any symmetry, and several.",
        trying("torch.arange(n).roll(1), torch.arange(n).flip(0)"),
    ),
    Mistake(
        "first-two-exchanged",
        "Only the first two positions are ever exchanged. What a layer does with the others "
        "goes unnoticed: use shuffles of the whole sequence, and several.",
        trying("torch.tensor([1, 0, *range(2, n)])"),
    ),
    Mistake(
        "last-two-exchanged",
        "Only the last two positions are ever exchanged. What a layer does with the others "
        "goes unnoticed: use shuffles of the whole sequence, and several.",
        trying("torch.tensor([*range(n - 2), n - 1, n - 2])"),
    ),
    Mistake(
        "constant-input",
        "All tokens that you try are equal, so that shuffling them changes nothing. Use the "
        "given x, whose tokens all differ.",
        {"output = layer(x)": "x = torch.ones_like(x)\n    output = layer(x)"},
    ),
    Mistake(
        "sums-compared",
        "The outputs are added up (or averaged) over the positions before they are compared. "
        "That asks whether the whole is the same, not whether each token keeps its output.",
        comparing(".sum(dim=1)"),
        also=(comparing(".sum()"),),
    ),
    Mistake(
        "sums-compared-once",
        "The outputs are added up (or averaged) over the positions before they are compared, and "
        "one shuffle is tried. Compare the outputs token by token, and try several shuffles.",
        {**trying("torch.randperm(n)"), **comparing(".sum(dim=1)")},
        also=({**trying("torch.randperm(n)"), **comparing(".sum()")},),
    ),
    Mistake(
        "features-summed",
        "The features of each output are added up, or its length is taken, before you compare. "
        "Behind a layer norm those are the same for all tokens: compare the features one by one.",
        comparing(".sum(dim=-1)"),
    ),
    Mistake(
        "sequences-summed",
        "The outputs are added up (or averaged) over the batch before they are compared. What one "
        "sequence gains another may lose: compare them one by one.",
        comparing(".sum(dim=0)"),
    ),
    Mistake(
        "outputs-sorted",
        "The outputs are sorted before they are compared. That asks whether the same numbers come "
        "out, not whether each token keeps its own.",
        comparing(".sort(dim=1).values"),
    ),
    Mistake(
        "first-and-last-exchanged",
        "Only the first and the last position are ever exchanged. What a layer does with the "
        "others goes unnoticed: use shuffles of the whole sequence, and several.",
        trying("torch.tensor([n - 1, *range(1, n - 1), 0])"),
    ),
    Mistake("one-sample", "Only the first sequence of the batch is compared.", comparing("[0]")),
    Mistake("one-feature", "Only the first feature is compared.", comparing("[..., 0]")),
)
