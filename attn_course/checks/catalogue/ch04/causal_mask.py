"""Exercise 4.3, causal_mask: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch04.additive import additive
from attn_course.checks.catalogue.families.refusal import FOR_THE_PROGRAMMER, asserted
from attn_course.checks.exercise import Exercise, Mistake, Output, Stage, whole
from attn_course.checks.refusals import refusal_stages
from attn_course.masks import causal_mask

MASK = (Output("mask", "i j"),)


def draw_square(rng: Generator) -> Iterator[tuple]:
    """As many queries as keys: n_key is left out, or given."""
    for n in (3, 1, 2, 6):
        yield (n,)
    yield 4, 4
    yield (whole(rng, 7, 40),)


def draw_rectangular(rng: Generator) -> Iterator[tuple]:
    """Fewer queries than keys: the queries are the last positions."""
    yield from ((2, 4), (1, 3), (3, 4), (2, 7), (5, 8))
    yield whole(rng, 6, 20), whole(rng, 21, 40)
    # beyond every size that somebody might have built into a table
    yield 2, whole(rng, 1030, 1100)


def draw_too_many(rng: Generator) -> Iterator[tuple]:
    """More queries than keys: a query would stand where no key is."""
    yield from ((3, 2), (5, 1), (4, 3))


# -- the answer that the mistakes are edits of ------------------------------------------------


def mask_of_the_past(n_query: int, n_key: int | None = None) -> Tensor:
    """The mask asked for."""
    if n_key is None:
        n_key = n_query
    elif n_query > n_key:
        raise ValueError(f"{n_query} queries, {n_key} keys")
    past = n_key - n_query
    ones = torch.ones(n_query, n_key, dtype=torch.bool)
    mask = ones.tril(past)
    return mask


TOP_LEFT = (
    "The mask is aligned at its upper left. With fewer queries than keys, the queries are the last "
    "positions: the last query stands at the last key and may see all keys. Square masks cannot "
    "show this."
)

EXERCISE = Exercise(
    number="4.3",
    reference=causal_mask,
    right=mask_of_the_past,
    outputs=MASK,
    difficulty=1,
    minutes=10,
    points=2,
    may_use="torch",
    stages=(
        Stage("square", draw_square, "The mask is not the one asked for."),
        Stage(
            "fewer queries than keys",
            draw_rectangular,
            "Square masks are right; with fewer queries than keys, the queries being the last "
            "positions, the mask differs.",
        ),
        *refusal_stages(
            "more queries than keys",
            draw_too_many,
            "More queries than keys make no sense here: raise a ValueError, with both numbers in "
            "its message.",
            inputs=("n_query", "n_key"),
            numbers=lambda n_query, n_key: (n_query, n_key),
        ),
    ),
    mistakes=(
        Mistake(
            "inverted",
            "True and False are exchanged: here True means “may attend”. Your True marks what "
            "must be hidden.",
            {"return mask": "return ~mask"},
        ),
        Mistake(
            "future-kept",
            "The mask lets each position see itself and the future, and hides the past: the other "
            "triangle. Rows are queries, columns are keys.",
            {"ones.tril(past)": "ones.triu(past)"},
        ),
        Mistake(
            "diagonal-excluded",
            "No position may see itself. The first one then has nothing to look at, and its row "
            "is empty. Is it off by one?",
            {"ones.tril(past)": "ones.tril(past - 1)"},
        ),
        Mistake(
            "one-ahead",
            "Every position sees one token of the future: off by one.",
            {"ones.tril(past)": "ones.tril(past + 1)"},
        ),
        Mistake("top-left", TOP_LEFT, {"ones.tril(past)": "ones.tril()"}),
        Mistake(
            "offset-reversed",
            "The mask is moved, but to the wrong side: the last query, at the last key, may see "
            "all keys.",
            {"n_key - n_query": "n_query - n_key"},
        ),
        Mistake(
            "last-column-too-early",
            "With fewer queries than keys the mask is moved one place too far: only the last query "
            "may see the last key.",
            {"ones.tril(past)": "ones.tril(past + (past > 0))"},
        ),
        Mistake(
            "last-column-too-late",
            "With fewer queries than keys the mask is moved one place too few: the last query may "
            "see all keys.",
            {"ones.tril(past)": "ones.tril(past - (past > 0))"},
        ),
        Mistake(
            "past-hidden",
            "With fewer queries than keys, the first keys are hidden from all queries. They are "
            "the past, before the first query: every query may see them.",
            {"return mask": "mask[:, :past] = False\n    return mask"},
        ),
        Mistake(
            "past-put-last",
            "With fewer queries than keys, the keys without a query of their own are put last and "
            "left open. They are the past: they come first.",
            {"return mask": "return mask.roll(-past, dims=1)"},
        ),
        Mistake(
            "square-refused",
            "As many queries as keys are refused. That is the commonest case; only more queries "
            "than keys make no sense.",
            {"elif n_query > n_key": "if n_query >= n_key"},
            also=({"n_query > n_key": "n_query >= n_key"},),
        ),
        Mistake(
            "rectangle-refused",
            "Fewer queries than keys are refused. That is what a cache needs: the queries are the "
            "last positions.",
            {"n_query > n_key": "n_query != n_key"},
        ),
        Mistake(
            "square-by-queries",
            "The mask is always square: n_key is not used.",
            {"ones(n_query, n_key,": "ones(n_query, n_query,", "tril(past)": "tril()"},
        ),
        Mistake(
            "square-by-keys",
            "The mask has a row for every key: n_query is not used.",
            {"ones(n_query, n_key,": "ones(n_key, n_key,", "tril(past)": "tril()"},
        ),
        Mistake(
            "sizes-exchanged",
            "The mask is (n_key, n_query): rows are queries, columns are keys.",
            {"return mask": "return mask.mT"},
        ),
        Mistake("all-open", "Every position may see every other.", {"ones.tril(past)": "ones"}),
        Mistake(
            "only-itself",
            "Each position sees itself and nothing else: the past is hidden, too.",
            {"ones.tril(past)": "ones.tril(past).triu(past)"},
        ),
        additive(
            "This is a mask to be added to scores: 0 and minus infinity. Asked for is a boolean "
            "one, True where a query may attend.",
        ),
        Mistake(
            "numbers",
            "The mask holds ones and zeros. Asked for is a boolean tensor: `~` of a mask of ones "
            "is no longer a mask.",
            {"return mask": "return mask.float()"},
        ),
        Mistake(
            "extra-axes",
            "The mask has axes for batch and heads. Asked for is exactly (i, j): combine_masks "
            "adds them.",
            {"return mask": "return mask[None, None]"},
        ),
        Mistake(
            "one-extra-axis",
            "The mask has an axis for the batch. Asked for is exactly (i, j): combine_masks adds "
            "the others.",
            {"return mask": "return mask[None]"},
        ),
        Mistake(
            "too-many-queries",
            "With more queries than keys a mask comes back. The first queries would stand before "
            "the first key, with nothing to see: raise a ValueError with both numbers.",
            {"elif n_query > n_key": "elif False"},
        ),
        asserted("With more queries than keys an assert fails.", FOR_THE_PROGRAMMER),
    ),
    hints=(
        "Draw it for three positions: row i is a query, column j a key. Where may j be, seen from "
        "i? A table of True, cut along its diagonal, is nearly there.",
        "torch.ones(…, dtype=torch.bool).tril(diagonal) keeps what is on and below a diagonal. "
        "With n_key keys and n_query queries, at which column does the first query stand?",
        "The last query stands at column n_key − 1, so the first one at n_key − n_query: that is "
        "the diagonal to keep. Raise the ValueError before, when that number is negative.",
    ),
)
