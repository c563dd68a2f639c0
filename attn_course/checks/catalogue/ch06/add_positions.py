"""Exercise 6.2, add_positions: its probes."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Generator, Tensor

from attn_course.checks.catalogue.ch06.add_mistakes import MISTAKES, added
from attn_course.checks.exercise import Exercise, Output, Stage, normal, tenths
from attn_course.checks.gradients import gradient_stage
from attn_course.checks.refusals import not_refused, refusal_stages
from attn_course.positions import add_positions

INPUTS = ("x", "table", "offset")


def draw_one_sequence(rng: Generator) -> Iterator[tuple]:
    """A batch of one, with more rows in the table than positions."""
    yield tenths(rng, 1, 2, 2), tenths(rng, 3, 2)
    yield tenths(rng, 1, 3, 4), tenths(rng, 7, 4)


def draw_batch(rng: Generator) -> Iterator[tuple]:
    """More sequences than positions, fewer, and a table that is just long enough."""
    yield tenths(rng, 2, 3, 1), tenths(rng, 4, 1)
    yield normal(rng, 4, 3, 6), normal(rng, 9, 6)
    yield normal(rng, 2, 5, 3), normal(rng, 5, 3)


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """As many sequences as positions, and as features: the wrong axis raises no error."""
    yield tenths(rng, 2, 2, 2), tenths(rng, 2, 2)
    yield normal(rng, 4, 4, 4), normal(rng, 7, 4)
    yield normal(rng, 3, 3, 5), normal(rng, 3, 5)


def draw_leading_axes(rng: Generator) -> Iterator[tuple]:
    """No batch axis, and two of them."""
    yield tenths(rng, 2, 2), tenths(rng, 3, 2)
    yield normal(rng, 4, 3), normal(rng, 6, 3)
    yield normal(rng, 2, 3, 4, 5), normal(rng, 6, 5)


def draw_offset(rng: Generator) -> Iterator[tuple]:
    """Positions that came before: one new token, several, and the last that have a row."""
    yield tenths(rng, 1, 2, 2), tenths(rng, 4, 2), 1
    yield normal(rng, 2, 1, 4), normal(rng, 9, 4), 6
    yield normal(rng, 3, 2, 4), normal(rng, 9, 4), 5
    yield normal(rng, 2, 3, 5), normal(rng, 8, 5), 5


def draw_no_row(rng: Generator) -> Iterator[tuple]:
    """More positions than rows, at once or by the offset."""
    yield tenths(rng, 1, 3, 2), tenths(rng, 2, 2), 0
    yield normal(rng, 2, 3, 4), normal(rng, 6, 4), 4
    yield normal(rng, 2, 1, 4), normal(rng, 6, 4), 6
    yield normal(rng, 2, 1, 4), normal(rng, 6, 4), 9


def what_is_missing(x: Tensor, table: Tensor, offset: int) -> list:
    """Which positions, how many, or which of them have a row: there are several ways to say it."""
    end, rows = offset + x.shape[-2], len(table)
    return [{x.shape[-2], offset, end - 1, end, rows - 1, rows}]


def draw_gradient(rng: Generator) -> Iterator[tuple]:
    """All sizes different."""
    yield normal(rng, 2, 3, 4), normal(rng, 6, 4), 1


EXERCISE = Exercise(
    number="6.2",
    reference=add_positions,
    right=added,
    outputs=(Output("sum", "b n d"),),
    difficulty=1,
    minutes=15,
    points=2,
    may_use="torch and einops",
    stages=(
        Stage(
            "one sequence",
            draw_one_sequence,
            "The first position should get the first row of the table, the second one the second.",
        ),
        Stage(
            "a batch",
            draw_batch,
            "One sequence is right; with several, every one of them should get the same rows.",
        ),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "There are as many sequences as positions here, so what stands at the wrong axis "
            "raises no error. With different sizes the sum is right.",
        ),
        Stage(
            "other leading axes",
            draw_leading_axes,
            "x has no batch axis here, or two. Positions are its second axis from the right.",
        ),
        Stage(
            "offset",
            draw_offset,
            "Without an offset the sum is right. With one, the first position is `offset`.",
        ),
        gradient_stage(draw_gradient, INPUTS, {"x": "b n d", "table": "n d"}),
        *refusal_stages(
            "no row",
            draw_no_row,
            "There are more positions than rows here: raise a ValueError with the numbers.",
            inputs=INPUTS,
            numbers=what_is_missing,
            diagnose=not_refused(MISTAKES, "not-refused"),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Call it with a batch of two equal sequences, and compare the two results; then with one "
        "sequence of equal tokens.",
        "Write the shape behind each line. x is (*b, n, d_model); which axis do the rows of the "
        "table have to meet, and what does broadcasting do with the missing ones?",
        "n is x.shape[-2], and table[offset : offset + n] has the shape (n, d_model), which meets "
        "x from the right. Return x + …, and before it compare offset + n with len(table).",
    ),
)
