"""Exercise 2.1, embed: its probes and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Generator, Tensor

from attn_course.attention import embed
from attn_course.checks import ready_made
from attn_course.checks.catalogue.families.gradient import detached
from attn_course.checks.exercise import (
    Diagnosis,
    Exercise,
    Mistake,
    Output,
    Seen,
    Stage,
    normal,
    tenths,
)
from attn_course.checks.gradients import gradient_stage
from attn_course.sentences import Sentence, say

# -- probes -----------------------------------------------------------------------------------


def draw_sequences(rng: Generator) -> Iterator[tuple]:
    """One sequence: ids out of order and repeated; more of them than rows, then far fewer."""
    yield torch.tensor([3, 0, 3]), tenths(rng, 4, 2)
    yield torch.tensor([4, 1, 0, 2, 1, 3]), normal(rng, 5, 3)
    yield torch.tensor([1, 0]), normal(rng, 9, 4)


def draw_leading(rng: Generator) -> Iterator[tuple]:
    """Ids with more axes, some of size 1, which must all come back."""
    yield torch.tensor([[2, 0, 1]]), tenths(rng, 4, 2)
    for shape in ((2, 3), (4, 1), (3, 3), (2, 1, 4)):
        yield torch.randint(0, 7, shape, generator=rng), normal(rng, 7, 5)


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """As many rows as features and ids, where rows and columns have the same length."""
    yield torch.tensor([2, 0, 3, 2]), normal(rng, 4, 4)
    yield torch.randint(0, 3, (3, 3), generator=rng), normal(rng, 3, 3)


def draw_repeated(rng: Generator) -> Iterator[tuple]:
    """A row used twice, one not at all, and the first and the last among the others."""
    yield torch.tensor([2, 0, 2, 1, 4]), tenths(rng, 5, 2)


def read_rows(seen: Sequence[Seen]) -> Diagnosis | None:
    """Say which row of the table an id got, if what it got is a row at all."""
    wrong, shifts = None, set()
    for probe in seen:
        ids, table = probe.args
        got = probe.actual.double().reshape(-1, table.shape[-1])
        for position, (wanted, row) in enumerate(zip(ids.flatten().tolist(), got, strict=True)):
            found = [k for k, other in enumerate(table.double()) if torch.allclose(other, row)]
            if found:
                shifts.add((wanted - found[0]) % len(table))
            if found and wanted not in found:
                wrong = wrong or {"id": wanted, "place": _ordinal(position), "row": found[0]}
    if wrong is None:
        return None
    return Diagnosis(say(COUNTED_FROM_0 if len(shifts) == 1 else ANOTHER_ROW, **wrong))


ANOTHER_ROW = (
    "Id {id}, the {place} of the sequence, gets row {row} of the table, where it should get row "
    "{id}."
)
COUNTED_FROM_0 = (
    "Id {id}, the {place} of the sequence, gets row {row} of the table, where it should get row "
    "{id}: rows are counted from 0."
)


def _ordinal(position: int) -> Sentence:
    words = ("first", "second", "third", "fourth", "fifth", "sixth")
    return say(words[min(position, 5)])


# -- a right answer and what goes wrong in it --------------------------------------------------


def embedded(ids: Tensor, table: Tensor) -> Tensor:
    """The right answer that the mistakes edit."""
    rows = table[ids]
    return rows


ROWS = "table[ids]"
RETURN = "return rows"


def row_0_overwritten(ids: Tensor, table: Tensor) -> Tensor:
    """Clears row 0 of the caller's table."""
    table[0] = 0.0
    return table[ids]


TRANSPOSED_TABLE = (
    "The ids pick columns of the table, not rows. The table is drawn (vocab, d): "
    "one row for each id."
)

MISTAKES = (
    Mistake(
        "one-row-before",
        "Every id gets the row before its own, and id 0 gets the last one: rows are "
        "counted from 0, as the ids are.",
        {"[ids]": "[ids - 1]"},
    ),
    Mistake(
        "one-row-after",
        "Every id gets the row after its own, and for the last id there is none: rows "
        "are counted from 0, as the ids are.",
        {"[ids]": "[ids + 1]"},
    ),
    Mistake(
        "from-the-end",
        "The rows are counted from the end of the table.",
        {"table[": "table.flip(0)["},
    ),
    Mistake(
        "by-position",
        "A token gets the row of the place where it stands, whatever its id is.",
        {"[ids]": "[torch.arange(ids.shape[-1]).expand_as(ids)]"},
        also=({"[ids]": "[: ids.shape[-1]]"},),
    ),
    Mistake("columns", TRANSPOSED_TABLE, {"table[": "table.mT["}),
    Mistake("columns-in-place", TRANSPOSED_TABLE, {"[ids]": "[:, ids]"}),
    Mistake(
        "features-before-positions",
        "The features stand before the positions: they belong on the last axis.",
        {RETURN: "return rows.mT"},
    ),
    Mistake(
        "sequence-first",
        "The first two axes are exchanged: the result keeps the axes of the ids as they are.",
        {RETURN: "return rows.transpose(0, 1) if ids.ndim > 1 else rows"},
    ),
    Mistake(
        "flattened",
        "All sequences are joined into one: the result must keep every axis of the ids.",
        {"[ids]": "[ids.flatten()]"},
    ),
    Mistake(
        "squeezed",
        "Axes of size 1 are gone: a batch of one sequence is still a batch.",
        {RETURN: "return rows.squeeze()"},
    ),
    Mistake(
        "mean-of-rows",
        "The rows are averaged over the sequence: every token keeps a vector of its own.",
        {RETURN: "return rows.mean(dim=-2)"},
    ),
    Mistake(
        "sum-of-rows",
        "The rows are added up over the sequence: every token keeps a vector of its own.",
        {RETURN: "return rows.sum(dim=-2)"},
    ),
    Mistake(
        "sorted",
        "The ids are sorted first: the order of the tokens is lost.",
        {"[ids]": "[ids.sort(dim=-1).values]"},
    ),
    Mistake(
        "each-id-once",
        "Each id counts once, in sorted order: a token that occurs twice needs its row twice.",
        {"[ids]": "[ids.unique()]"},
    ),
    Mistake(
        "one-hot-returned",
        "These are the one-hot vectors themselves. The product with the table is missing.",
        {ROWS: "F.one_hot(ids, len(table)).to(table.dtype)"},
    ),
    Mistake(
        "one-hot-of-those-present",
        "The one-hot vectors are only as long as the largest id that occurs, so the product "
        "fails as soon as the last id is not there. How many ids are there in all?",
        {ROWS: "F.one_hot(ids).to(table.dtype) @ table"},
    ),
    Mistake(
        "id-as-a-quantity",
        "The id is used as a quantity, by which a vector is multiplied. It is only a name: "
        "id 4 is not twice id 2.",
        {ROWS: "ids[..., None] * table[0]"},
    ),
    Mistake(
        "table-of-its-own",
        "The table that is passed in is never used: a new `nn.Embedding` has rows of its own.",
        {ROWS: "nn.Embedding(len(table), table.shape[1])(ids)"},
    ),
    Mistake(
        "scaled",
        "The rows are multiplied by √d. Some models do that to their embeddings; here it "
        "is not asked for.",
        {RETURN: "return rows * math.sqrt(table.shape[-1])"},
    ),
    Mistake(
        "normalised",
        "The rows are brought to length 1: return them as they are.",
        {RETURN: "return F.normalize(rows, dim=-1)"},
    ),
    Mistake(
        "row-0-cleared",
        "Id 0 gets zeros, as if it were padding. Here it is a token like any other.",
        {RETURN: "return rows * (ids != 0)[..., None]"},
    ),
    Mistake(
        "row-0-overwritten",
        "Row 0 of the caller's own table is set to zero: a function that looks up must "
        "not change what it looks up in.",
        row_0_overwritten,
    ),
    Mistake(
        "row-0-untrained",
        "The values are right, but row 0 gets no gradient, as if id 0 were padding. "
        "Here it is a token like any other.",
        {ROWS: "F.embedding(ids, table, padding_idx=0)"},
    ),
    Mistake(
        "detached",
        "The values are right, but no gradient reaches the table, so the embeddings would "
        "never be trained. Does the answer pass through `.detach()`, `.data`, `.item()`, "
        "`.tolist()`, `torch.tensor(…)` or a new `nn.Embedding`?",
        detached("rows"),
    ),
)

EXERCISE = Exercise(
    number="2.1",
    reference=embed,
    right=embedded,
    outputs=(Output("embeddings", "b n d"),),
    difficulty=1,
    minutes=5,
    points=1,
    may_use="torch and einops, but no ready-made embedding",
    rules_out=ready_made.EMBEDDING,
    stages=(
        Stage(
            "rows",
            draw_sequences,
            "Each id should be replaced by the row of the table that has this number.",
            diagnose=read_rows,
        ),
        Stage(
            "leading axes",
            draw_leading,
            "One sequence is right, but ids with more axes are not: the result has the "
            "axes of the ids, in their order, and one more for the features.",
            diagnose=read_rows,
        ),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "Here rows and columns are equally long, so that mixing them up raises no error.",
            diagnose=read_rows,
        ),
        gradient_stage(draw_repeated, ("ids", "table"), {"table": "v d"}),
    ),
    mistakes=MISTAKES,
    hints=(
        "A tensor of whole numbers may stand between the brackets of another tensor.",
        "`table[3]` is one row. What does `table[torch.tensor([3, 0, 3])]` give, and with a "
        "(2, 5) tensor of ids?",
        "The answer is one indexing expression: the table, indexed by the ids. It needs no loop "
        "and keeps all leading axes.",
    ),
)
