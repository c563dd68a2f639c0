"""Exercise 6.2, add_positions: a right answer, and its known mistakes as edits of it."""

from __future__ import annotations

from torch import Tensor

from attn_course.checks.catalogue.families.refusal import FOR_THE_PROGRAMMER, asserted
from attn_course.checks.exercise import Mistake


def added(x: Tensor, table: Tensor, offset: int = 0) -> Tensor:
    """A right answer, which the mistakes edit."""
    n = x.shape[-2]
    end = offset + n
    if end > len(table):
        raise ValueError(f"{end} positions, {len(table)} rows")
    rows = table[offset:end]
    return x + rows


def the_faulty_one(x: Tensor, table: Tensor, offset: int = 0) -> Tensor:
    """What the exercise starts from."""
    x += table[offset : len(x)][:, None]
    return x


# the pieces of it that are edited most often
ROWS = "table[offset:end]"
SUM = "x + rows"

UNCHECKED = {"if end > len(table)": "if False"}
IN_PLACE = {f"return {SUM}": f"x.data.copy_(({SUM}).data)\n    return x"}
BY_SEQUENCE = {ROWS: "table[offset : offset + len(x)][:, None]"}
AS_MANY_AS_SEQUENCES = {ROWS: "table[offset : offset + len(x)]"}
TO_N = {ROWS: "table[offset:n]"}


def off_by(step: str) -> dict[str, str]:
    """Every position gets the row of another one, and none is outside the table."""
    return {ROWS: f"table[(torch.arange(n) + offset + {step}).clamp(0, len(table) - 1)]"}


MISTAKES = (
    Mistake(
        "in-place",
        "x itself is altered. Whoever called still needs it, and a leaf that is to be trained "
        "raises an error. Return a new tensor.",
        IN_PLACE,
        also=(
            UNCHECKED | IN_PLACE,
            the_faulty_one,
            UNCHECKED | IN_PLACE | BY_SEQUENCE,
            UNCHECKED | IN_PLACE | TO_N,
            UNCHECKED | IN_PLACE | AS_MANY_AS_SEQUENCES,
        ),
    ),
    Mistake(
        "batch-axis",
        "The axis of the batch is taken for that of the positions: the tokens of one sequence all "
        "get the same row, and two sequences get different ones. x is (*b, n, d_model), so "
        "positions are its second axis from the right. To such a model “dog bites man” is a bag of "
        "words.",
        BY_SEQUENCE,
        also=(
            UNCHECKED | BY_SEQUENCE,
            UNCHECKED | {ROWS: "table[offset : len(x)][:, None]"},
            {ROWS: "table[offset + torch.arange(len(x))][:, None, :]"},
        ),
    ),
    Mistake(
        "rows-along-the-batch",
        "The rows are as many as positions, but they are laid along the axis of the batch. Axes "
        "meet from the right: (n, d_model) meets (*b, n, d_model) as it is.",
        {ROWS: "table[offset:end][:, None]"},
        also=(UNCHECKED | {ROWS: "table[offset:end][:, None]"},),
    ),
    Mistake(
        "rows-counted-by-the-batch",
        "The table is cut to as many rows as there are sequences (`x.shape[0]`, `len(x)`). It "
        "needs one row for each position: the second axis of x from the right.",
        AS_MANY_AS_SEQUENCES,
        also=(
            UNCHECKED | AS_MANY_AS_SEQUENCES,
            UNCHECKED | {ROWS: "table[offset : len(x)]"},
        ),
    ),
    Mistake(
        "axis-counted-from-the-left",
        "The positions are counted on axis 1, which is theirs only where x has three axes. "
        "Counted from the right it is always the second.",
        {ROWS: "table[offset : offset + x.shape[1]]"},
        also=(
            UNCHECKED | {ROWS: "table[offset : offset + x.shape[1]]"},
            {ROWS: "table[offset : offset + x.shape[1]][None]"},
        ),
    ),
    Mistake(
        "whole-table",
        "The whole table is added, not its first n rows: it only fits where both are equally long.",
        {ROWS: "table"},
        also=(
            UNCHECKED | {ROWS: "table"},
            UNCHECKED | {ROWS: "table[offset:]"},
        ),
    ),
    Mistake(
        "last-rows",
        "The last rows of the table are added, not those of the positions that x has.",
        {ROWS: "table[-n:]"},
    ),
    Mistake(
        "one-row-for-all",
        "All positions get one and the same row: the table is indexed where it should be sliced.",
        {ROWS: "table[offset]"},
        also=(
            {ROWS: "table[min(end, len(table) - 1)]"},
            UNCHECKED | {ROWS: "table[n]"},
            {ROWS: "table[end - 1]"},
            UNCHECKED | {ROWS: "table[end]"},
        ),
    ),
    Mistake(
        "mean-row",
        "All positions get the sum or the mean of the rows.",
        {ROWS: "table[offset:end].mean(dim=0)"},
        also=({ROWS: "table[offset:end].sum(dim=0)"},),
    ),
    Mistake(
        "one-too-far",
        "Every position gets the row after its own. The first one is position `offset`, counted "
        "from 0.",
        off_by("1"),
        also=(UNCHECKED | {ROWS: "table[offset + 1 : end + 1]"},),
    ),
    Mistake(
        "one-too-few",
        "Every position gets the row before its own.",
        off_by("-1"),
    ),
    Mistake(
        "rows-reversed",
        "The rows are added in reverse order.",
        {ROWS: "table[offset:end].flip(0)"},
    ),
    Mistake(
        "runs-on",
        "The positions run on from one sequence to the next. Each sequence begins at `offset`.",
        UNCHECKED
        | {ROWS: "table[(torch.arange(x[..., 0].numel()) + offset) % len(table)].view(x.shape)"},
    ),
    Mistake(
        "offset-ignored",
        "The offset has no effect: a token that is decoded alone would always stand at position 0.",
        {ROWS: "table[:n]"},
        also=(UNCHECKED | {ROWS: "table[:n]"},),
    ),
    Mistake(
        "slice-ends-at-n",
        "The slice ends at n. Its end is a position, not a count: with an offset it lies further "
        "on.",
        TO_N,
        also=(UNCHECKED | TO_N,),
    ),
    Mistake(
        "offset-skips-one",
        "With an offset every position gets the row after its own: `offset` positions came before, "
        "0 … offset − 1, so the first new one is `offset`.",
        off_by("(offset > 0)"),
        also=(UNCHECKED | {ROWS: "table[offset + (offset > 0) :][:n]"},),
    ),
    Mistake(
        "offset-times-n",
        "The offset is multiplied by n. It counts positions, not batches.",
        UNCHECKED | {ROWS: "table[offset * n :][:n]"},
    ),
    Mistake(
        "x-scaled",
        "x is multiplied by √d_model as well. The embedding does that, where it is done (section "
        "3.4 of the paper); here only the rows are added.",
        {SUM: "x * math.sqrt(x.shape[-1]) + rows"},
    ),
    Mistake(
        "multiplied",
        "The rows are multiplied with x. They are added.",
        {SUM: "x * rows"},
    ),
    Mistake(
        "subtracted",
        "The rows are subtracted from x. They are added.",
        {SUM: "x - rows"},
        also=({SUM: "rows - x"},),
    ),
    Mistake(
        "concatenated",
        "The rows are put beside the features of x. They are added to them, so that the width "
        "stays.",
        {SUM: "torch.cat([x, rows.expand_as(x)], dim=-1)"},
    ),
    Mistake(
        "x-forgotten",
        "What comes back are the positions alone; x has no effect.",
        {SUM: "rows.expand_as(x)"},
        also=({SUM: "rows"},),
    ),
    Mistake(
        "nothing-added",
        "x comes back as it was: the sum is made, but not returned.",
        {SUM: "x"},
        also=(UNCHECKED | {SUM: "x"},),
    ),
    Mistake(
        "table-detached",
        "The values are right, but no gradient reaches the table: learned positions would never "
        "be trained.",
        {ROWS: "table.detach()[offset:end]"},
        also=(UNCHECKED | {ROWS: "table.detach()[offset:end]"},),
    ),
    Mistake(
        "x-detached",
        "The values are right, but no gradient reaches x: nothing below would be trained.",
        {SUM: "x.detach() + rows"},
        also=({SUM: "x.detach() + rows.detach()"},),
    ),
    Mistake(
        "row-of-another-position",
        "A position without a row gets that of another one, from the beginning of the table or its "
        "end. Nothing then tells that the model reads further than it was made for: raise a "
        "ValueError.",
        UNCHECKED | {ROWS: "table[(torch.arange(n) + offset) % len(table)]"},
        also=(UNCHECKED | off_by("0"),),
    ),
    Mistake(
        "not-refused",
        "A position without a row is not refused by a ValueError. A slice beyond the end is short, "
        "or empty, and raises nothing by itself; what happens then is a matter of broadcasting. "
        "Compare offset + n with the number of rows, and raise a ValueError with both.",
        UNCHECKED,
        also=(UNCHECKED | {ROWS: "table[torch.arange(offset, end)]"},),
    ),
    Mistake(
        "only-n-is-checked",
        "n is compared with the number of rows, without the offset.",
        {"if end >": "if n >"},
    ),
    asserted("A position without a row fails an assert.", FOR_THE_PROGRAMMER),
    Mistake(
        "last-row-refused",
        "A ValueError is raised although the table is just long enough: the last of max_len rows "
        "is position max_len − 1.",
        {"end > len(table)": "end >= len(table)"},
    ),
)
