"""Exercise 6.2, add_positions: its known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from attn_course.checks.exercise import Answer, Mistake

Add = Callable[[Tensor, Tensor, int], Any]


def checked(add: Add) -> Answer:
    """A version that refuses what it should, and adds in this way."""

    def answer(x: Tensor, table: Tensor, offset: int = 0) -> Any:
        if offset + x.shape[-2] > len(table):
            raise ValueError(f"{offset + x.shape[-2]} positions, {len(table)} rows")
        return add(x, table, offset)

    return answer


def unchecked(add: Add) -> Answer:
    """A version that takes any length."""
    return lambda x, table, offset=0: add(x, table, offset)


def rows(x: Tensor, table: Tensor, offset: int) -> Tensor:
    """The rows asked for."""
    return table[offset : offset + x.shape[-2]]


def right(x: Tensor, table: Tensor, offset: int) -> Tensor:
    """The sum asked for."""
    return x + rows(x, table, offset)


def in_place(add: Add) -> Add:
    """Writes the sum into x itself."""

    def changed(x: Tensor, table: Tensor, offset: int) -> Tensor:
        x.data.copy_(add(x, table, offset).data)
        return x

    return changed


def by_sequence(x: Tensor, table: Tensor, offset: int) -> Tensor:
    """A row for each sequence instead of each position."""
    return x + table[offset : offset + len(x)][:, None]


def first_axis_sliced(x: Tensor, table: Tensor, offset: int) -> Tensor:
    """As many rows as sequences, at the positions' axis."""
    return x + table[offset : offset + len(x)]


def second_axis_counted(x: Tensor, table: Tensor, offset: int) -> Tensor:
    """The positions' axis counted from the left."""
    return x + table[offset : offset + x.shape[1]]


def slice_ends_at_n(x: Tensor, table: Tensor, offset: int) -> Tensor:
    """An end that is a count."""
    return x + table[offset : x.shape[-2]]


def the_faulty_one(x: Tensor, table: Tensor, offset: int = 0) -> Tensor:
    """What the exercise starts from."""
    x += table[offset : len(x)][:, None]
    return x


def run_on(x: Tensor, table: Tensor, offset: int) -> Tensor:
    """Positions that run on from one sequence to the next."""
    flat = x.reshape(-1, x.shape[-1])
    at = (torch.arange(len(flat)) + offset) % len(table)
    return (flat + table[at]).reshape(x.shape)


def off_by(step: int) -> Add:
    """Every position gets the row of another one."""
    return lambda x, t, o: x + t[(torch.arange(x.shape[-2]) + o + step).clamp(0, len(t) - 1)]


def asserted(x: Tensor, table: Tensor, offset: int = 0) -> Tensor:
    """Refuses with an assert."""
    assert offset + x.shape[-2] <= len(table)
    return right(x, table, offset)


AXIS = (
    "The axis of the batch is taken for that of the positions: the tokens of one sequence all get "
    "the same row, and two sequences get different ones. x is (*b, n, d_model), so positions are "
    "its second axis from the right. To such a model “dog bites man” is a bag of words."
)

MISTAKES = (
    Mistake(
        "in-place",
        "x itself is altered. Whoever called still needs it, and a leaf that is to be trained "
        "raises an error. Return a new tensor.",
        checked(in_place(right)),
        also=(
            unchecked(in_place(right)),
            the_faulty_one,
            unchecked(in_place(by_sequence)),
            unchecked(in_place(slice_ends_at_n)),
            unchecked(in_place(first_axis_sliced)),
        ),
    ),
    Mistake(
        "batch-axis",
        AXIS,
        checked(by_sequence),
        also=(
            unchecked(by_sequence),
            lambda x, table, offset=0: x + table[offset : len(x)][:, None],
            checked(lambda x, t, o: x + t[o + torch.arange(len(x))][:, None, :]),
        ),
    ),
    Mistake(
        "rows-along-the-batch",
        "The rows are as many as positions, but they are laid along the axis of the batch. Axes "
        "meet from the right: (n, d_model) meets (*b, n, d_model) as it is.",
        checked(lambda x, t, o: x + rows(x, t, o)[:, None]),
        also=(unchecked(lambda x, t, o: x + rows(x, t, o)[:, None]),),
    ),
    Mistake(
        "rows-counted-by-the-batch",
        "The table is cut to as many rows as there are sequences (`x.shape[0]`, `len(x)`). It "
        "needs one row for each position: the second axis of x from the right.",
        checked(first_axis_sliced),
        also=(
            unchecked(first_axis_sliced),
            lambda x, table, offset=0: x + table[offset : len(x)],
        ),
    ),
    Mistake(
        "axis-counted-from-the-left",
        "The positions are counted on axis 1, which is theirs only where x has three axes. "
        "Counted from the right it is always the second.",
        checked(second_axis_counted),
        also=(
            unchecked(second_axis_counted),
            checked(lambda x, t, o: x + t[o : o + x.shape[1]][None]),
        ),
    ),
    Mistake(
        "whole-table",
        "The whole table is added, not its first n rows: it only fits where both are equally long.",
        checked(lambda x, t, o: x + t),
        also=(unchecked(lambda x, t, o: x + t), unchecked(lambda x, t, o: x + t[o:])),
    ),
    Mistake(
        "last-rows",
        "The last rows of the table are added, not those of the positions that x has.",
        checked(lambda x, t, o: x + t[-x.shape[-2] :]),
    ),
    Mistake(
        "one-row-for-all",
        "All positions get one and the same row: the table is indexed where it should be sliced.",
        checked(lambda x, t, o: x + t[o]),
        also=(
            checked(lambda x, t, o: x + t[min(o + x.shape[-2], len(t) - 1)]),
            unchecked(lambda x, t, o: x + t[x.shape[-2]]),
            checked(lambda x, t, o: x + t[o + x.shape[-2] - 1]),
            unchecked(lambda x, t, o: x + t[o + x.shape[-2]]),
        ),
    ),
    Mistake(
        "mean-row",
        "All positions get the sum or the mean of the rows.",
        checked(lambda x, t, o: x + rows(x, t, o).mean(dim=0)),
        also=(checked(lambda x, t, o: x + rows(x, t, o).sum(dim=0)),),
    ),
    Mistake(
        "one-too-far",
        "Every position gets the row after its own. The first one is position `offset`, counted "
        "from 0.",
        checked(off_by(1)),
        also=(unchecked(lambda x, t, o: x + t[o + 1 : o + 1 + x.shape[-2]]),),
    ),
    Mistake(
        "one-too-few",
        "Every position gets the row before its own.",
        checked(off_by(-1)),
    ),
    Mistake(
        "rows-reversed",
        "The rows are added in reverse order.",
        checked(lambda x, t, o: x + rows(x, t, o).flip(0)),
    ),
    Mistake(
        "runs-on",
        "The positions run on from one sequence to the next. Each sequence begins at `offset`.",
        unchecked(run_on),
    ),
    Mistake(
        "offset-ignored",
        "The offset has no effect: a token that is decoded alone would always stand at position 0.",
        checked(lambda x, t, o: right(x, t, 0)),
        also=(unchecked(lambda x, t, o: right(x, t, 0)),),
    ),
    Mistake(
        "slice-ends-at-n",
        "The slice ends at n. Its end is a position, not a count: with an offset it lies further "
        "on.",
        checked(slice_ends_at_n),
        also=(unchecked(slice_ends_at_n),),
    ),
    Mistake(
        "offset-skips-one",
        "With an offset every position gets the row after its own: `offset` positions came before, "
        "0 … offset − 1, so the first new one is `offset`.",
        checked(lambda x, t, o: off_by(int(o > 0))(x, t, o)),
        also=(unchecked(lambda x, t, o: x + t[o + (o > 0) :][: x.shape[-2]]),),
    ),
    Mistake(
        "offset-times-n",
        "The offset is multiplied by n. It counts positions, not batches.",
        unchecked(lambda x, t, o: x + t[o * x.shape[-2] :][: x.shape[-2]]),
    ),
    Mistake(
        "x-scaled",
        "x is multiplied by √d_model as well. The embedding does that, where it is done (section "
        "3.4 of the paper); here only the rows are added.",
        checked(lambda x, t, o: x * sqrt(x.shape[-1]) + rows(x, t, o)),
    ),
    Mistake(
        "multiplied",
        "The rows are multiplied with x. They are added.",
        checked(lambda x, t, o: x * rows(x, t, o)),
    ),
    Mistake(
        "subtracted",
        "The rows are subtracted from x. They are added.",
        checked(lambda x, t, o: x - rows(x, t, o)),
        also=(checked(lambda x, t, o: rows(x, t, o) - x),),
    ),
    Mistake(
        "concatenated",
        "The rows are put beside the features of x. They are added to them, so that the width "
        "stays.",
        checked(lambda x, t, o: torch.cat([x, rows(x, t, o).expand_as(x)], dim=-1)),
    ),
    Mistake(
        "x-forgotten",
        "What comes back are the positions alone; x has no effect.",
        checked(lambda x, t, o: rows(x, t, o).expand_as(x)),
        also=(checked(rows),),
    ),
    Mistake(
        "nothing-added",
        "x comes back as it was: the sum is made, but not returned.",
        checked(lambda x, t, o: x),
        also=(unchecked(lambda x, t, o: x),),
    ),
    Mistake(
        "table-detached",
        "The values are right, but no gradient reaches the table: learned positions would never "
        "be trained.",
        checked(lambda x, t, o: right(x, t.detach(), o)),
        also=(unchecked(lambda x, t, o: right(x, t.detach(), o)),),
    ),
    Mistake(
        "x-detached",
        "The values are right, but no gradient reaches x: nothing below would be trained.",
        checked(lambda x, t, o: right(x.detach(), t, o)),
        also=(checked(lambda x, t, o: right(x.detach(), t.detach(), o)),),
    ),
    Mistake(
        "row-of-another-position",
        "A position without a row gets that of another one, from the beginning of the table or its "
        "end. Nothing then tells that the model reads further than it was made for: raise a "
        "ValueError.",
        unchecked(lambda x, t, o: x + t[(torch.arange(x.shape[-2]) + o) % len(t)]),
        also=(unchecked(off_by(0)),),
    ),
    Mistake(
        "not-refused",
        "A position without a row is not refused by a ValueError. A slice beyond the end is short, "
        "or empty, and raises nothing by itself; what happens then is a matter of broadcasting. "
        "Compare offset + n with the number of rows, and raise a ValueError with both.",
        unchecked(right),
        also=(unchecked(lambda x, t, o: x + t[torch.arange(o, o + x.shape[-2])]),),
    ),
    Mistake(
        "only-n-is-checked",
        "n is compared with the number of rows, without the offset.",
        lambda x, table, offset=0: (
            right(x, table, offset)
            if x.shape[-2] <= len(table)
            else checked(right)(x, table, offset)
        ),
    ),
    Mistake(
        "asserted",
        "A position without a row fails an assert. An assert is for the programmer, and is left "
        "out under `python -O`; a user's mistake is a ValueError with the numbers.",
        asserted,
    ),
    Mistake(
        "last-row-refused",
        "A ValueError is raised although the table is just long enough: the last of max_len rows "
        "is position max_len − 1.",
        lambda x, table, offset=0: checked(right)(x, table[:-1], offset),
    ),
)
