"""Exercise 0.1, dot_products: its probes and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Generator, Tensor

from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage, normal, tenths
from attn_course.primer import dot_products
from attn_course.sentences import say

TABLE = (Output(say("products"), "row_of_a row_of_b"),)


# -- probes -----------------------------------------------------------------------------------


def draw_values(rng: Generator) -> Iterator[tuple]:
    """All three sizes different, so that no axis can be taken for another."""
    yield tenths(rng, 2, 2), tenths(rng, 3, 2)
    yield normal(rng, 4, 6), normal(rng, 7, 6)
    yield normal(rng, 6, 5), normal(rng, 3, 5)


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """n = m = d: a product taken along the wrong axis has the right shape here."""
    yield tenths(rng, 2, 2), tenths(rng, 2, 2)
    yield normal(rng, 5, 5), normal(rng, 5, 5)


def draw_ones(rng: Generator) -> Iterator[tuple]:
    """One row, one feature: axes of size 1 broadcast, and must not be dropped."""
    yield tenths(rng, 1, 3), tenths(rng, 1, 3)
    yield tenths(rng, 1, 2), tenths(rng, 3, 2)
    yield tenths(rng, 3, 1), tenths(rng, 2, 1)


def draw_float64(rng: Generator) -> Iterator[tuple]:
    """Inputs of double precision, which a table made in advance would round."""
    yield normal(rng, 3, 4).double(), normal(rng, 2, 4).double()


def keeps_gradient(answer: Answer, a: Tensor, b: Tensor) -> bool:
    """Whether a gradient can flow through the result back to the inputs."""
    return answer(a.requires_grad_(), b).requires_grad


# -- a right answer, and what goes wrong in it ------------------------------------------------


def matrix_product(a: Tensor, b: Tensor) -> Tensor:
    """Rows of a times the columns of b's transpose."""
    return a @ b.T


PRODUCT = "a @ b.T"

MISTAKES = (
    Mistake(
        "elementwise",
        "The rows are multiplied number by number and nothing is added up: `*` is no "
        "matrix product.",
        {PRODUCT: "a * b"},
    ),
    Mistake(
        "rows-paired",
        "Row n of `a` meets row n of `b` only. Every row of `a` should meet every row of `b`.",
        {PRODUCT: "(a * b).sum(dim=-1)"},
    ),
    Mistake(
        "b-not-transposed",
        "The rows of `a` are multiplied with the columns of `b`: a matrix product takes the "
        "columns of its second factor. Which of its axes holds the features?",
        {".T": ""},
    ),
    Mistake(
        "columns-multiplied",
        "The columns are multiplied with each other: the sum runs over the rows. "
        "It should run over the features, d.",
        {PRODUCT: "a.T @ b"},
    ),
    Mistake(
        "both-transposed",
        "The factors are exchanged or transposed so that rows of one meet columns of the "
        "other. Write the three shapes down: the two axes that are summed must be d and d.",
        {"a @": "a.T @"},
    ),
    Mistake(
        "reshaped-not-transposed",
        "`b` gets the shape of its transpose, but its numbers stay in their old order: "
        "reshape and view count through, they exchange no axes.",
        {".T": ".reshape(b.shape[1], b.shape[0])"},
    ),
    Mistake(
        "table-transposed",
        "Rows and columns of the table are exchanged: the first axis belongs to `a`. (An "
        "einsum of torch without an arrow puts its letters into alphabetical order.)",
        {PRODUCT: "b @ a.T"},
    ),
    Mistake(
        "not-summed",
        "All products are there, (n, m, d), but they are not added up over the features.",
        {PRODUCT: "a[:, None] * b[None]"},
    ),
    Mistake(
        "summed-over-b",
        "The rows of `b` are added up as well: one number is left for each row of `a`. "
        "In an einsum, an axis that is missing on the right is summed over.",
        {".T": ".sum(dim=0)"},
    ),
    Mistake(
        "all-summed",
        "Everything is added up to a single number; a table of n times m is asked for.",
        {PRODUCT: "(a @ b.T).sum()"},
    ),
    Mistake(
        "mean-over-features",
        "The products are averaged over the features: a dot product is a sum, no mean.",
        {".T": ".T / a.shape[1]"},
    ),
    Mistake(
        "divided-by-root",
        "The table is divided by √d. That belongs to attention, from chapter 03 on; "
        "a dot product is the plain sum.",
        {".T": ".T / math.sqrt(a.shape[1])"},
    ),
    Mistake(
        "cosine",
        "The rows are divided by their lengths first: this is the cosine of the angle, "
        "not the dot product.",
        {PRODUCT: "F.normalize(a) @ F.normalize(b).T"},
    ),
    Mistake(
        "distance",
        "This is the distance between the rows, not their dot product.",
        {PRODUCT: "torch.cdist(a, b)"},
    ),
    Mistake(
        "first-row-only",
        "Only the first row of the table comes back: does a `return` stand inside the loop?",
        {"a @": "a[0] @"},
    ),
    Mistake(
        "first-pair-only",
        "Only the first dot product comes back: does a `return` stand inside the loops?",
        {PRODUCT: "a[0] @ b[0]"},
    ),
    Mistake(
        "flat",
        "The numbers are right but stand in one long row; they should form a table (n, m).",
        {PRODUCT: "(a @ b.T).flatten()"},
    ),
    Mistake(
        "sum-not-reset",
        "Each entry also holds the sums before it: the sum starts at zero once, not anew for "
        "every pair of rows.",
        {PRODUCT: "(a @ b.T).flatten().cumsum(dim=0).view(len(a), len(b))"},
        also=({PRODUCT: "(a @ b.T).cumsum(dim=1)"},),
    ),
    Mistake(
        "last-feature-missing",
        "The last feature is left out of every sum: a loop that ends one too early?",
        {PRODUCT: "a[:, :-1] @ b[:, :-1].T"},
    ),
    Mistake(
        "last-feature-only",
        "Only the product of the last feature is left: each turn of the loop overwrites "
        "the one before instead of adding to it.",
        {PRODUCT: "a[:, -1:] @ b[:, -1:].T"},
    ),
    Mistake("a-with-itself", "`b` is never used: the rows of `a` meet each other.", {"b.T": "a.T"}),
    Mistake("b-with-itself", "`a` is never used: the rows of `b` meet each other.", {"a @": "b @"}),
)

EXERCISE = Exercise(
    number="0.1",
    reference=dot_products,
    right=matrix_product,
    outputs=TABLE,
    difficulty=1,
    minutes=10,
    points=2,
    may_use="torch, einops, or plain loops",
    stages=(
        Stage(
            "values",
            draw_values,
            "Entry (n, m) should be the dot product of row n of `a` with row m of `b`.",
        ),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "The table is right for unequal sizes and wrong when n, m and d are equal.",
        ),
        Stage(
            "size one",
            draw_ones,
            "One row or one feature is a table too: no axis may vanish or be stretched.",
        ),
        Stage(
            "gradient",
            draw_ones,
            "The numbers are right, but the result is cut off from `a`: no gradient could flow "
            "back through it.",
            call=keeps_gradient,
            outputs=(Output(say("gradient kept")),),
            remark=True,
        ),
        Stage(
            "double precision",
            draw_float64,
            "Inputs of torch.float64 are rounded on the way; make the table in their dtype.",
            remark=True,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Take row n of `a` and row m of `b`, multiply number by number, add up: that is entry "
        "(n, m). Which of the three axes n, m, d is missing in the result?",
        "As a matrix product: (n, d) times (d, m) gives (n, m). One of the two inputs has its "
        "axes the other way round.",
        "As a pattern: einsum(a, b, '… , … -> n m') with each input's own axes named on the left. "
        "The axis that both share and the result lacks is summed over.",
    ),
)
