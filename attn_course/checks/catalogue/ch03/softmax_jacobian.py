"""Exercise 3.4, softmax_jacobian: its probes and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from attn_course.attention import softmax_jacobian
from attn_course.checks import ready_made
from attn_course.checks.exercise import Exercise, Mistake, Output, Stage, normal


def draw_rows(rng: Generator) -> Iterator[tuple]:
    """One row of weights."""
    yield (torch.tensor([0.5, 0.3, 0.2]),)
    for n in (2, 5, 8):
        yield (normal(rng, n).softmax(-1),)


def draw_leading_axes(rng: Generator) -> Iterator[tuple]:
    """One to three leading axes, all sizes different; then equal ones, where slips are silent."""
    yield (torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]),)
    for shape in ((4, 6), (2, 4, 3), (2, 3, 4, 5), (4, 4), (3, 3, 3)):
        yield (normal(rng, *shape).softmax(-1),)


def draw_one_hot(rng: Generator) -> Iterator[tuple]:
    """One key takes all, and no key at all: nothing moves."""
    yield (torch.eye(3),)
    yield (torch.stack([torch.zeros(4), torch.eye(4)[2]]),)


def jacobian(weights: Tensor) -> Tensor:
    """The right answer that the mistakes edit."""
    diagonal = torch.diag_embed(weights)
    products = weights[..., :, None] * weights[..., None, :]
    return diagonal - products


DIAGONAL = "torch.diag_embed(weights)"
IDENTITY = "torch.eye(weights.shape[-1], dtype=weights.dtype)"
PRODUCTS = "weights[..., :, None] * weights[..., None, :]"
RETURN = "return diagonal - products"


def averaged(weights: Tensor) -> Tensor:
    """Takes the mean over all rows, where there are several."""
    found = jacobian(weights)
    return found.flatten(0, -3).mean(dim=0) if weights.ndim > 1 else found


def turned(weights: Tensor) -> Tensor:
    """Moves the first of several leading axes to the end."""
    found = jacobian(weights)
    return found.movedim(0, -1) if weights.ndim > 1 else found


MISTAKES = (
    Mistake(
        "no-diagonal",
        "Only −p_i p_j is there. On the diagonal a term is missing: how a weight answers to "
        "its own score.",
        {RETURN: "return -products"},
    ),
    Mistake(
        "products-only",
        "Only p_i p_j is there: the sign, and the term on the diagonal.",
        {RETURN: "return products"},
    ),
    Mistake(
        "diagonal-of-weights-only",
        "Only diag(p) is there: raising a score also lowers all other weights.",
        {RETURN: "return diagonal"},
    ),
    Mistake(
        "own-score-only",
        "Only the diagonal p(1 − p) is there: a score moves the other weights too.",
        {DIAGONAL: "torch.diag_embed(weights * (1 - weights))", RETURN: "return diagonal"},
    ),
    Mistake(
        "vector",
        "This is the diagonal p(1 − p) as a vector; asked for is the whole matrix.",
        {RETURN: "return weights * (1 - weights)"},
    ),
    Mistake(
        "sign",
        "The sign is wrong: raising a score raises its own weight: a positive diagonal.",
        {RETURN: "return products - diagonal"},
    ),
    Mistake(
        "sum-for-difference",
        "The two terms are added: off the diagonal a weight falls when another score rises.",
        {RETURN: "return diagonal + products"},
    ),
    Mistake(
        "identity-for-diagonal",
        "The diagonal has 1 where it should have p_i.",
        {DIAGONAL: IDENTITY},
    ),
    Mistake(
        "ones-for-identity",
        "This is p_i (1 − p_j) everywhere: δ_ij is 1 on the diagonal only, and 0 elsewhere.",
        {DIAGONAL: "weights[..., :, None]"},
    ),
    Mistake(
        "log-softmax",
        "This is δ_ij − p_j, the Jacobian of log softmax: the factor p_i is missing.",
        {DIAGONAL: IDENTITY, PRODUCTS: "weights[..., None, :]"},
    ),
    Mistake(
        "column-index-twice",
        "This is p_j (δ_ij − p_j): both factors have the same index. One of the two vectors "
        "needs its axis turned.",
        {PRODUCTS: "weights[..., None, :] * weights[..., None, :]"},
    ),
    Mistake(
        "row-index-twice",
        "This is p_i (δ_ij − p_i): both factors have the same index. One of the two vectors "
        "needs its axis turned.",
        {PRODUCTS: "weights[..., :, None] * weights[..., :, None]"},
    ),
    Mistake(
        "softmax-again",
        "The argument holds weights already; a softmax over them makes them nearly equal.",
        lambda weights: jacobian(weights.softmax(dim=-1)),
    ),
    Mistake(
        "one-row-only",
        "Right for one row; with leading axes it fails: torch.outer and torch.diag know "
        "vectors only.",
        {DIAGONAL: "torch.diag(weights)", PRODUCTS: "torch.outer(weights, weights)"},
    ),
    Mistake(
        "diag-of-a-matrix",
        "With leading axes torch.diag (or .diagonal) takes the diagonal of the weights "
        "themselves; each row is to become a diagonal matrix.",
        {DIAGONAL: "weights.diag()"},
    ),
    Mistake(
        "rows-mixed",
        "The products are summed over the rows of weights: pᵀp of the whole tensor mixes "
        "rows that have nothing to do with each other.",
        {PRODUCTS: "torch.outer(weights, weights) if weights.ndim == 1 else weights.mT @ weights"},
    ),
    Mistake(
        "one-number-for-all-products",
        "p · p is one number, the sum of all p_i²; asked for is the table of all p_i p_j. One "
        "of the two vectors needs its axis turned.",
        {PRODUCTS: "weights @ (weights if weights.ndim == 1 else weights.mT)"},
        also=({DIAGONAL: "torch.diag(weights)", PRODUCTS: "weights @ weights"},),
    ),
    Mistake(
        "averaged-over-rows",
        "This is the mean over all rows; each row has a Jacobian of its own.",
        averaged,
    ),
    Mistake(
        "transposed-leading-axes",
        "The leading axes stand in another order: the last two are (i, j), all others stay.",
        turned,
    ),
)

EXERCISE = Exercise(
    number="3.4",
    reference=softmax_jacobian,
    right=jacobian,
    outputs=(Output("jacobian", "b row column"),),
    difficulty=2,
    minutes=15,
    points=2,
    optional=True,
    may_use="torch and einops, no autograd",
    rules_out=ready_made.AUTOGRAD,
    stages=(
        Stage(
            "one row",
            draw_rows,
            "Entry (i, j) should be ∂ p_i / ∂ s_j. Each row of the Jacobian sums to 0 (moving all "
            "scores together changes nothing), and the diagonal is positive.",
        ),
        Stage(
            "leading axes",
            draw_leading_axes,
            "Each row of weights has a Jacobian of its own; for one row alone it is right.",
        ),
        Stage(
            "one key takes all",
            draw_one_hot,
            "Where one weight is 1 and the others are 0, no score moves anything.",
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Two terms: p_i on the diagonal, and −p_i p_j everywhere.",
        "`torch.diag_embed` makes a diagonal matrix of each row, however many leading axes there "
        "are. For the products, give the weights once a column's axis and once a row's.",
        "`einsum(weights, weights, '... i, ... j -> ... i j')` holds all products.",
    ),
)
