"""Exercise 5.1, split_heads: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator

from einops import rearrange
from torch import Generator, Tensor

from attn_course.checks.catalogue.families.gradient import detached
from attn_course.checks.catalogue.families.refusal import asserted
from attn_course.checks.exercise import Exercise, Mistake, Output, Stage, normal, tenths
from attn_course.checks.gradients import gradient_stage
from attn_course.checks.refusals import refusal_stages
from attn_course.multihead import split_heads

INPUTS = ("x", "num_heads")


def draw_one_token(rng: Generator) -> Iterator[tuple]:
    """A token alone: only the order of its features can go wrong."""
    yield tenths(rng, 1, 1, 4), 2
    yield tenths(rng, 1, 1, 6), 3
    yield normal(rng, 2, 1, 20), 4


def draw_tokens(rng: Generator) -> Iterator[tuple]:
    """Several tokens, all sizes different; one head, and heads of one feature."""
    yield tenths(rng, 1, 2, 4), 2
    yield normal(rng, 2, 3, 20), 4
    yield normal(rng, 3, 4, 10), 2
    yield normal(rng, 2, 5, 6), 1
    yield normal(rng, 3, 2, 5), 5
    yield normal(rng, 2, 4, 15).double(), 3


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """Sizes that agree, where axes may be exchanged unseen; another layout in memory."""
    yield normal(rng, 2, 2, 4), 2
    yield normal(rng, 3, 5, 9), 3
    yield normal(rng, 2, 3, 12), 3
    yield normal(rng, 4, 3, 12), 2
    yield normal(rng, 5, 2, 6).transpose(0, 1), 3


def draw_uneven(rng: Generator) -> Iterator[tuple]:
    """Features that cannot be cut evenly."""
    yield tenths(rng, 1, 1, 4), 3
    yield normal(rng, 2, 3, 10), 4
    yield normal(rng, 2, 3, 4), 8


def draw_gradients(rng: Generator) -> Iterator[tuple]:
    """Small, and with all sizes different."""
    yield tenths(rng, 1, 2, 4), 2
    yield normal(rng, 2, 3, 20), 4


# -- the answer that the mistakes are edits of ------------------------------------------------


def cut_into_heads(x: Tensor, num_heads: int) -> Tensor:
    """The features of each token cut into heads."""
    if x.shape[-1] % num_heads != 0:
        raise ValueError(f"{x.shape[-1]} features, {num_heads} heads")
    d = x.shape[-1] // num_heads
    heads = rearrange(x, "b n (h d) -> b h n d", h=num_heads, d=d)
    return heads


UNEVEN = "x.shape[-1] % num_heads != 0"
HEADS = 'rearrange(x, "b n (h d) -> b h n d", h=num_heads, d=d)'

NOT_REFUSED = (
    "Features that cannot be cut evenly are refused, but by another error than asked for. Its "
    "message speaks of shapes; raise a ValueError that says d_model and num_heads."
)

MISTAKES = (
    Mistake(
        "view-without-transpose",
        "The numbers are only counted off anew, as (b, h, n, d): head 0 gets all features of the "
        "first tokens. A head should get some features of all tokens, so the axis of the heads "
        "must be cut out of the features first, and then moved.",
        {HEADS: "x.reshape(len(x), num_heads, -1, d)"},
    ),
    Mistake(
        "features-first",
        "The heads are interleaved: head m gets the features m, m + h, m + 2h, … In (h d) order "
        "each head gets d features that lie side by side. From scratch both would train; with "
        "weights from elsewhere only the latter is right.",
        {"(h d) ->": "(d h) ->"},
    ),
    Mistake(
        "heads-not-moved",
        "The features are cut right, but the result is (b, n, h, d). Attention works on the last "
        "two axes: they should be n and d, so h moves in front of n.",
        {"-> b h n d": "-> b n h d"},
    ),
    Mistake(
        "tokens-and-features-exchanged",
        "The result is (b, h, d, n): the last two axes should be n, then d.",
        {"-> b h n d": "-> b h d n"},
    ),
    Mistake(
        "heads-in-front",
        "The result is (h, b, n, d). The batch stays in front: (b, h, n, d).",
        {"-> b h n d": "-> h b n d"},
    ),
    Mistake(
        "heads-in-the-batch",
        "Batch and heads are one axis, (b·h, n, d). Asked for are two: (b, h, n, d).",
        {"-> b h n d": "-> (b h) n d"},
        also=({"-> b h n d": "-> (h b) n d"},),
    ),
    Mistake(
        "width-for-number",
        "num_heads is taken for the width of a head. It says how many there are; each is "
        "d_model / num_heads wide.",
        {"h=num_heads, d=d": "d=num_heads"},
        also=(
            {HEADS: "x.reshape(*x.shape[:2], d, num_heads).transpose(1, 2)"},
            {HEADS: "x.reshape(len(x), d, -1, num_heads)"},
        ),
    ),
    Mistake(
        "heads-reversed",
        "The heads come in the reverse order: head 0 should get the first d features.",
        {"return heads": "return heads.flip(1)"},
    ),
    Mistake(
        "tokens-split",
        "The tokens are dealt out to the heads, each with all its features. It is the features "
        "that are cut; every head sees every token.",
        {"b n (h d) ->": "b (h n) d ->", ", d=d": ""},
    ),
    Mistake(
        "copied",
        "Every head gets all features: x is repeated. Each should get d_model / num_heads of them.",
        {HEADS: "x[:, None].expand(-1, num_heads, -1, -1)"},
        also=({HEADS: "x[:, None].repeat(1, num_heads, 1, 1)"},),
    ),
    Mistake(
        "same-part",
        "Every head gets the same features. Head m should get its own, from m·d on.",
        {HEADS: "x[:, None, :, :d].expand(-1, num_heads, -1, -1)"},
    ),
    Mistake(
        "a-list",
        "The heads come as a list or tuple. One tensor (b, h, n, d) is asked for.",
        {HEADS: "x.split(d, dim=-1)"},
    ),
    Mistake(
        "only-one-head",
        "A single head comes back: the axis of the heads is lost.",
        {HEADS: "x[..., :d]"},
        also=({HEADS: "x[..., -d:]"},),
    ),
    Mistake(
        "no-gradient",
        "The values are right, but no gradient gets back to x: it is detached, or rebuilt from "
        "bare numbers, and the layers before it would not be trained.",
        detached("heads"),
    ),
    Mistake(
        "floored",
        "Where the features cannot be cut evenly, some of them are dropped and nothing tells. "
        "Raise a ValueError with both numbers.",
        {UNEVEN: "False", "rearrange(x": "rearrange(x[..., : num_heads * d]"},
    ),
    asserted("Where the features cannot be cut evenly an assert fails."),
    Mistake(
        "shape-error",
        NOT_REFUSED,
        {UNEVEN: "False", HEADS: "x.reshape(*x.shape[:2], num_heads, d).transpose(1, 2)"},
        also=({UNEVEN: "False"},),
    ),
)

EXERCISE = Exercise(
    number="5.1",
    reference=split_heads,
    right=cut_into_heads,
    outputs=(Output("heads", "b h n d"),),
    difficulty=1,
    minutes=10,
    points=2,
    may_use="torch and einops",
    stages=(
        Stage(
            "one token",
            draw_one_token,
            "With a single token, head m should get the features m·d … m·d + d − 1.",
        ),
        Stage("tokens", draw_tokens, "With several tokens, the heads get wrong numbers."),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "Here some sizes agree, or x lies in memory in another order, and the heads get wrong "
            "numbers.",
        ),
        gradient_stage(draw_gradients, INPUTS, {"x": "b n d"}),
        *refusal_stages(
            "uneven",
            draw_uneven,
            "A d_model that num_heads does not divide is a ValueError, with both numbers.",
            inputs=INPUTS,
            numbers=lambda x, num_heads: (x.shape[-1], num_heads),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Two steps: cut the last axis in two, then move the new axis of the heads. Which of the "
        "two does a reshape do, and which does it not do?",
        "In (h d) order the feature axis counts h slowly and d fast: the first d features belong "
        "to head 0. einops wants to know one of the two sizes, by name.",
        'rearrange(x, "b n (h d) -> …", h=num_heads). Before it, look at the remainder of '
        "x.shape[-1] by num_heads.",
    ),
)
