"""Exercise 4.5, padding_mask: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch04.additive import additive
from attn_course.checks.catalogue.families.refusal import asserted
from attn_course.checks.exercise import Exercise, Mistake, Output, Stage, whole
from attn_course.checks.refusals import refusal_stages
from attn_course.masks import padding_mask


def lengths_to(rng: Generator, longest: int) -> Tensor:
    """Drawn lengths of five sequences, and one as long as may be."""
    return torch.tensor([*(whole(rng, 1, longest) for _ in range(5)), longest])


def draw_small(rng: Generator) -> Iterator[tuple]:
    """Two and three sequences, none of them empty; one as long as the keys."""
    yield torch.tensor([1, 3]), 3
    yield torch.tensor([2]), 4
    yield torch.tensor([4, 1, 2, 4, 3]), 4
    yield lengths_to(rng, 9), 9


def draw_wide(rng: Generator) -> Iterator[tuple]:
    """More keys than the longest sequence has; int32 lengths."""
    yield torch.tensor([1, 2]), 4
    yield torch.tensor([3, 5, 2], dtype=torch.int32), 9
    yield lengths_to(rng, 7), whole(rng, 8, 30)
    # beyond every size that somebody might have built into a table
    yield torch.tensor([5, 1, 2]), whole(rng, 1030, 1100)


def draw_square(rng: Generator) -> Iterator[tuple]:
    """As many sequences as keys: an exchange of axes keeps the shape."""
    yield torch.tensor([1, 3, 1]), 3
    yield torch.tensor([2, 4, 1, 1]), 4


def draw_empty(rng: Generator) -> Iterator[tuple]:
    """Sequences without any token."""
    yield torch.tensor([0, 2]), 2
    yield torch.tensor([3, 0, 5]), 5


def draw_outside(rng: Generator) -> Iterator[tuple]:
    """A length that no sequence of n_key tokens can have."""
    yield torch.tensor([1, 4]), 3
    yield torch.tensor([-1, 2]), 3
    yield torch.tensor([2, 3, 6]), 5


def numbers_outside(lengths: Tensor, n_key: int) -> list:
    """One of the impossible lengths, and what it was held against if it is too long."""
    outside = [length for length in lengths.tolist() if not 0 <= length <= n_key]
    return [outside, n_key] if max(outside) > n_key else [outside]


# -- the answer that the mistakes are edits of ------------------------------------------------


def places_of_tokens(lengths: Tensor, n_key: int) -> Tensor:
    """The mask asked for."""
    impossible = (lengths < 0) | (lengths > n_key)
    if impossible.any():
        raise ValueError(f"lengths {lengths.tolist()} with n_key={n_key}")
    length = lengths[:, None]
    place = torch.arange(n_key)
    mask = place < length
    return mask


EXERCISE = Exercise(
    number="4.5",
    reference=padding_mask,
    right=places_of_tokens,
    outputs=(Output("mask", "b j"),),
    difficulty=1,
    minutes=10,
    points=2,
    may_use="torch and einops",
    stages=(
        Stage("lengths", draw_small, "The mask is not the one asked for."),
        Stage(
            "more keys",
            draw_wide,
            "There may be more keys than the longest sequence has tokens: the mask is n_key wide.",
        ),
        Stage(
            "as many sequences as keys",
            draw_square,
            "Here the mask is square, so that an exchange of its axes raises no error.",
        ),
        Stage("empty sequences", draw_empty, "A length may be 0: nothing may be attended to."),
        *refusal_stages(
            "impossible lengths",
            draw_outside,
            "A length below 0 or above n_key is a ValueError, with the numbers in its message.",
            inputs=("lengths", "n_key"),
            numbers=numbers_outside,
        ),
    ),
    mistakes=(
        Mistake(
            "inverted",
            "True and False are exchanged: your True marks the padding, as the key_padding_mask of "
            "nn.MultiheadAttention does. Here True means “may attend”.",
            {"return mask": "return ~mask"},
        ),
        Mistake(
            "one-too-many",
            "Each sequence keeps one place of padding: positions count from 0, so the last token "
            "stands at length − 1.",
            {"place < length": "place <= length"},
        ),
        Mistake(
            "one-too-few",
            "The last token of each sequence is hidden: positions count from 0, so it stands at "
            "length − 1.",
            {"place < length": "place < length - 1"},
        ),
        Mistake(
            "padding-in-front",
            "Your padding stands in front of the tokens. Here the tokens come first, the padding "
            "after them.",
            {"place < length": "place >= n_key - length"},
        ),
        Mistake(
            "lengths-count-padding",
            "The lengths are read as the number of places that are padding. They count tokens.",
            {"place < length": "place < n_key - length"},
        ),
        Mistake(
            "last-token-only",
            "Only the last token of each sequence is open; all tokens before it should be, too.",
            {"place < length": "place == length - 1"},
        ),
        Mistake(
            "transposed",
            "The mask is (j, b): sequences should be its rows, keys its columns. As soon as there "
            "are as many of the one as of the other, no error tells you so.",
            {"return mask": "return mask.mT"},
        ),
        Mistake(
            "width-of-the-longest",
            "The mask is as wide as the longest sequence, not as n_key says. Batches may be padded "
            "to a fixed width.",
            {"arange(n_key)": "arange(int(lengths.max()))"},
        ),
        Mistake(
            "longest-for-all",
            "All sequences get the length of the longest one.",
            {"lengths[:, None]": "lengths.max().expand(len(lengths), 1)"},
        ),
        Mistake(
            "first-for-all",
            "All sequences get the length of the first one.",
            {"lengths[:, None]": "lengths[:1].expand(len(lengths), 1)"},
        ),
        Mistake(
            "nothing-hidden", "Nothing is hidden.", {"return mask": "return torch.ones_like(mask)"}
        ),
        Mistake(
            "numbers",
            "The mask holds ones and zeros. Asked for is a boolean tensor, True: may attend.",
            {"return mask": "return mask.float()"},
        ),
        additive(
            "This is a mask to be added to scores: 0 and minus infinity. Asked for is a boolean "
            "one, True where a key may be attended to.",
        ),
        Mistake(
            "lengths-without-an-axis",
            "The lengths (b,) are compared with the positions (j,) as they are, number by number. "
            "To compare each length with each position, give lengths a second axis of size 1.",
            {"lengths[:, None]": "lengths"},
        ),
        Mistake(
            "full-length-refused",
            "A sequence that fills all n_key places is refused. It has no padding, and that is "
            "allowed; only a longer one is impossible.",
            {"lengths > n_key": "lengths >= n_key"},
        ),
        Mistake(
            "empty-refused",
            "A length of 0 is refused. It is allowed: such a sequence has nothing that may be "
            "attended to.",
            {"lengths < 0": "lengths <= 0"},
        ),
        Mistake(
            "lifted",
            "The mask has axes for heads and queries already. Asked for is exactly (b, j): "
            "combine_masks adds them.",
            {"return mask": "return mask[:, None, None]"},
        ),
        Mistake(
            "query-axis",
            "The mask has an axis for the queries already. Asked for is exactly (b, j): "
            "combine_masks adds what is missing.",
            {"return mask": "return mask[:, None]"},
        ),
        Mistake(
            "queries-hidden",
            "The mask is one of queries and keys, (b, i, j). Padding hides keys alone: asked for "
            "is (b, j).",
            {"return mask": "return mask[:, None] & mask[:, :, None]"},
        ),
        Mistake(
            "lengths-not-checked",
            "An impossible length gives a mask. Longer than the keys, it would hide a mistake "
            "made elsewhere: raise a ValueError with the numbers, for a length below 0, too.",
            {"if impossible.any()": "if False"},
        ),
        asserted("For an impossible length an assert fails."),
    ),
    hints=(
        "Which positions does a sequence of two tokens have? Compare the positions 0 … n_key − 1 "
        "with its length.",
        "torch.arange(n_key) is (j,), lengths is (b,). To compare each with each, give lengths a "
        "second axis of size 1.",
        "place < lengths[:, None] has the shape (b, j). Before it, look for lengths below 0 or "
        "above n_key: (…).any() says whether there are any.",
    ),
)
