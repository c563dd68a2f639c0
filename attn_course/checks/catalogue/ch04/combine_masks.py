"""Exercise 4.6, combine_masks: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch04.additive import additive
from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage
from attn_course.masks import causal_mask, combine_masks, padding_mask

INPUTS = ("masks", "padding")


def combine(answer: Answer, masks: tuple[Tensor | None, ...], padding: Tensor | None) -> Any:
    """Pass the masks by position, and padding by its name, where there is any."""
    return answer(*masks, padding=padding) if padding is not None else answer(*masks)


def random_mask(rng: Generator, *shape: int) -> Tensor:
    """A mask with True and False in about equal shares."""
    return torch.rand(shape, generator=rng) < 0.6


def each_hiding(rng: Generator, count: int, *shape: int) -> list[Tensor]:
    """Masks of which each hides a place that all others leave open, so that none can be missed."""
    masks = [random_mask(rng, *shape) for _ in range(count)]
    for own, mask in enumerate(masks):
        for place in range(count):
            mask.view(-1)[place] = place != own
    return masks


def draw_two(rng: Generator) -> Iterator[tuple]:
    """Masks (i, j) alone."""
    yield (torch.tensor([[True, True, False]]), torch.tensor([[False, True, True]])), None
    yield (causal_mask(2, 3),), None
    yield (causal_mask(4), random_mask(rng, 4, 4)), None
    yield tuple(each_hiding(rng, 3, 3, 5)), None


def draw_padding(rng: Generator) -> Iterator[tuple]:
    """Padding alone."""
    yield (), torch.tensor([[True, False], [True, True]])
    yield (), padding_mask(torch.tensor([3, 1, 2, 5]), 5)


def draw_both(rng: Generator) -> Iterator[tuple]:
    """Padding with masks, all sizes different."""
    yield (torch.tensor([[True, False]]),), torch.tensor([[True, True], [False, True]])
    yield (causal_mask(3, 5),), padding_mask(torch.tensor([5, 2]), 5)
    yield tuple(each_hiding(rng, 4, 3, 5)), padding_mask(torch.tensor([5, 2, 4, 1]), 5)


def draw_coincidences(rng: Generator) -> Iterator[tuple]:
    """Batch, queries and keys of one size, where what stands at the wrong axis raises no error."""
    yield (causal_mask(2),), torch.tensor([[True, False], [True, True]])
    yield (causal_mask(4),), padding_mask(torch.tensor([4, 1, 3, 2]), 4)


def draw_heads(rng: Generator) -> Iterator[tuple]:
    """A mask with four axes, as one of this function's own results."""
    yield (random_mask(rng, 2, 1, 1, 2), random_mask(rng, 3, 2)), None
    yield (random_mask(rng, 2, 4, 3, 5), causal_mask(3, 5)), padding_mask(torch.tensor([5, 2]), 5)
    yield (random_mask(rng, 1, 2, 3, 3),), padding_mask(torch.tensor([3, 2]), 3)


def draw_none(rng: Generator) -> Iterator[tuple]:
    """None in place of a mask, and nothing but None."""
    yield (None,), None
    yield (), None
    yield (None, causal_mask(2)), None
    yield (None,), torch.tensor([[True, False]])


# -- the answer that the mistakes are edits of ------------------------------------------------


def open_in_all(*masks: Tensor | None, padding: Tensor | None = None) -> Tensor | None:
    """The mask asked for."""
    given = [mask for mask in masks if mask is not None]
    lifted = [mask if mask.ndim == 4 else mask[None, None] for mask in given]
    if padding is not None:
        lifted.append(padding[:, None, None])
    if not lifted:
        return None
    mask = lifted[0]
    for other in lifted[1:]:
        mask = mask & other
    return mask


HIDE_QUERIES_WHERE_SQUARE = """
    if padding is not None and mask.shape[2] == padding.shape[1]:
        mask = mask & padding[:, None, :, None]
    return mask
"""

JOIN_MASKS_IN_PLACE = """
    for other in lifted[1:]:
        lifted[0] &= other
"""


EXERCISE = Exercise(
    number="4.6",
    reference=combine_masks,
    right=open_in_all,
    outputs=(Output("mask", "b h i j"),),
    difficulty=2,
    minutes=15,
    points=3,
    may_use="torch and einops",
    stages=(
        Stage(
            "masks of queries and keys",
            draw_two,
            "Of masks (i, j), the result should be (1, 1, i, j), True where all of them are.",
            call=combine,
            inputs=INPUTS,
        ),
        Stage(
            "padding alone",
            draw_padding,
            "Padding (b, j) alone should become (b, 1, 1, j).",
            call=combine,
            inputs=INPUTS,
        ),
        Stage(
            "masks and padding",
            draw_both,
            "Of a mask (i, j) and padding (b, j), the result should be (b, 1, i, j), True where "
            "both are.",
            call=combine,
            inputs=INPUTS,
        ),
        Stage(
            "equal sizes",
            draw_coincidences,
            "Batch, queries and keys have one size here, so what stands at the wrong axis raises "
            "no error. With different sizes the result is right.",
            call=combine,
            inputs=INPUTS,
        ),
        Stage(
            "four axes",
            draw_heads,
            "A mask that has four axes already, (b, h, i, j), should stay as it is.",
            call=combine,
            inputs=INPUTS,
        ),
        Stage(
            "None",
            draw_none,
            "None in place of a mask allows everything, and None comes back when no mask is left.",
            call=combine,
            inputs=INPUTS,
        ),
    ),
    mistakes=(
        Mistake(
            "or-for-and",
            "A place is open as soon as one mask opens it. It must be open in all of them: with "
            "“or”, padding opens the future, and the causal mask opens the padding.",
            {"mask & other": "mask | other"},
        ),
        Mistake(
            "exclusive-or",
            "A place is open where the masks differ. It must be open in all of them.",
            {"mask & other": "mask ^ other"},
        ),
        Mistake(
            "sum",
            "The masks are added, and become counts, or an “or” of booleans. A place is open "
            "where all masks are True.",
            {"mask = lifted[0]": "mask = lifted[0].long()", "mask & other": "mask + other"},
        ),
        Mistake(
            "numbers",
            "The result holds ones and zeros. Asked for is a boolean mask.",
            {"return mask": "return mask.float()"},
        ),
        additive(
            "This is a mask to be added to scores: 0 and a number far below. Asked for is a "
            "boolean one, True where a query may attend.",
        ),
        Mistake(
            "padding-hides-queries",
            "Padding stands at the axis of the queries, (b, 1, j, 1). It hides keys: what a padded "
            "query computes is left out by the loss, while a padded key would be read by others.",
            {"padding[:, None, None]": "padding[:, None, :, None]"},
        ),
        Mistake(
            "padding-hides-both",
            "Padding hides keys and queries alike. It should hide keys alone: a query without any "
            "key is no use to anybody, and there may be more keys than queries.",
            {"padding[:, None, None]": "padding[:, None, None] & padding[:, None, :, None]"},
            also=({"return mask": HIDE_QUERIES_WHERE_SQUARE},),
        ),
        Mistake(
            "padding-as-queries-by-keys",
            "Padding (b, j) is read as if it were (i, j), so that sequences are taken for queries. "
            "As soon as there are as many of the one as of the other, no error tells you so.",
            {"padding[:, None, None]": "padding[None, None]"},
        ),
        Mistake(
            "batch-at-heads",
            "Padding is lifted to (b, 1, j) only. Beside a mask with four axes, the batch then "
            "stands where the heads are.",
            {"padding[:, None, None]": "padding[:, None]"},
        ),
        Mistake(
            "batch-second",
            "The batch stands at the axis of the heads: (1, b, 1, j) in place of (b, 1, 1, j).",
            {"padding[:, None, None]": "padding[None, :, None]"},
        ),
        Mistake(
            "no-head-axis",
            "The result has no axis for the heads: (b, i, j), or (i, j). Asked for are four axes, "
            "always, so that it fits scores (b, h, i, j).",
            {"mask[None, None]": "mask", "padding[:, None, None]": "padding[:, None]"},
            also=({"return mask": "return mask.squeeze(1)"},),
        ),
        Mistake(
            "not-lifted",
            "Masks (i, j) come back as they are. Asked for are four axes, always, (1, 1, i, j).",
            {"mask[None, None]": "mask"},
        ),
        Mistake(
            "lifted-always",
            "Two axes are put before every mask, also before one that has four already.",
            {"mask if mask.ndim == 4 else mask[None, None]": "mask[None, None]"},
        ),
        Mistake(
            "padding-inverted",
            "Padding is turned round. It is True where a token stands, as padding_mask makes it.",
            {"padding[:, None, None]": "~padding[:, None, None]"},
        ),
        Mistake(
            "inverted",
            "The result is turned round: True means “may attend”.",
            {"return mask": "return ~mask"},
        ),
        Mistake(
            "padding-ignored", "The padding is not used.", {"if padding is not None": "if False"}
        ),
        Mistake(
            "padding-needs-masks",
            "Padding alone gives None. None comes back when there is no padding either.",
            {"if not lifted": "if not masks or not lifted"},
        ),
        Mistake(
            "first-only", "Of several masks only the first is used.", {"in given": "in given[:1]"}
        ),
        Mistake(
            "two-only",
            "Of several masks only two are used. There may be any number of them.",
            {"in given": "in given[:2]"},
        ),
        Mistake(
            "last-only",
            "Only what comes last is used: each mask takes the place of the one before.",
            {"mask & other": "other"},
        ),
        Mistake(
            "none-not-taken",
            "None in place of a mask is not taken: it stands for “allows everything”.",
            {" if mask is not None": ""},
        ),
        Mistake(
            "nothing-becomes-true",
            "Without any mask something else than None comes back.",
            {"return None": "return torch.ones(1, 1, 1, 1, dtype=torch.bool)"},
        ),
        Mistake(
            "altered-in-place",
            "A mask that was passed in is changed by `&=`: the caller's causal mask has the "
            "padding of this batch in it from now on.",
            {"mask = mask & other": "mask &= other"},
            also=({"in given]": f"in given]{JOIN_MASKS_IN_PLACE}"},),
        ),
    ),
    hints=(
        "Three steps: leave out every None, give each mask its four axes, join them by “and”.",
        'Padding tells about keys, so j comes last and b first: "b j -> b 1 1 j". A mask (i, j) is '
        'the same for all sequences and heads: "i j -> 1 1 i j".',
        "`a & b` of two boolean masks broadcasts axes of size 1. Collect the lifted masks in a "
        "list, and join them one after another; an empty list gives None.",
    ),
)
