"""Exercise 5.1, split_heads: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from einops import rearrange
from torch import Generator, Tensor

from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage, normal, tenths
from attn_course.checks.gradients import detached_inputs, gradient_stage
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


# -- known-wrong versions ---------------------------------------------------------------------


def checked(rule: Callable[[Tensor, int, int], Any]) -> Answer:
    """A version that refuses what it should, and splits by `rule(x, h, d)`."""

    def answer(x: Tensor, num_heads: int) -> Any:
        if x.shape[-1] % num_heads != 0:
            raise ValueError(f"{x.shape[-1]} features, {num_heads} heads")
        return rule(x, num_heads, x.shape[-1] // num_heads)

    return answer


def patterned(pattern: str, name: str = "h") -> Answer:
    """A version that rearranges by this pattern, with `num_heads` for the named axis."""
    return checked(lambda x, h, d: rearrange(x, pattern, **{name: h}))


def floored(x: Tensor, num_heads: int) -> Tensor:
    """Drops the features that are left over."""
    d = x.shape[-1] // num_heads
    return rearrange(x[..., : num_heads * d], "b n (h d) -> b h n d", h=num_heads)


def asserted(x: Tensor, num_heads: int) -> Tensor:
    """Refuses with an assert."""
    assert x.shape[-1] % num_heads == 0
    return split_heads(x, num_heads)


def by_view(x: Tensor, num_heads: int) -> Tensor:
    """Leaves it to `view` to complain."""
    b, n, d_model = x.shape
    return x.reshape(b, n, num_heads, d_model // num_heads).transpose(1, 2)


def by_einops(x: Tensor, num_heads: int) -> Tensor:
    """Leaves it to einops to complain."""
    return rearrange(x, "b n (h d) -> b h n d", h=num_heads)


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
        checked(lambda x, h, d: x.reshape(len(x), h, -1, d)),
    ),
    Mistake(
        "features-first",
        "The heads are interleaved: head m gets the features m, m + h, m + 2h, … In (h d) order "
        "each head gets d features that lie side by side. From scratch both would train; with "
        "weights from elsewhere only the latter is right.",
        patterned("b n (d h) -> b h n d"),
    ),
    Mistake(
        "heads-not-moved",
        "The features are cut right, but the result is (b, n, h, d). Attention works on the last "
        "two axes: they should be n and d, so h moves in front of n.",
        patterned("b n (h d) -> b n h d"),
    ),
    Mistake(
        "tokens-and-features-exchanged",
        "The result is (b, h, d, n): the last two axes should be n, then d.",
        patterned("b n (h d) -> b h d n"),
    ),
    Mistake(
        "heads-in-front",
        "The result is (h, b, n, d). The batch stays in front: (b, h, n, d).",
        patterned("b n (h d) -> h b n d"),
    ),
    Mistake(
        "heads-in-the-batch",
        "Batch and heads are one axis, (b·h, n, d). Asked for are two: (b, h, n, d).",
        patterned("b n (h d) -> (b h) n d"),
        also=(patterned("b n (h d) -> (h b) n d"),),
    ),
    Mistake(
        "width-for-number",
        "num_heads is taken for the width of a head. It says how many there are; each is "
        "d_model / num_heads wide.",
        patterned("b n (h d) -> b h n d", "d"),
        also=(
            checked(lambda x, h, d: x.reshape(*x.shape[:2], d, h).transpose(1, 2)),
            checked(lambda x, h, d: x.reshape(len(x), d, -1, h)),
        ),
    ),
    Mistake(
        "heads-reversed",
        "The heads come in the reverse order: head 0 should get the first d features.",
        checked(lambda x, h, d: split_heads(x, h).flip(1)),
    ),
    Mistake(
        "tokens-split",
        "The tokens are dealt out to the heads, each with all its features. It is the features "
        "that are cut; every head sees every token.",
        patterned("b (h n) d -> b h n d"),
    ),
    Mistake(
        "copied",
        "Every head gets all features: x is repeated. Each should get d_model / num_heads of them.",
        checked(lambda x, h, d: x[:, None].expand(-1, h, -1, -1)),
        also=(checked(lambda x, h, d: x[:, None].repeat(1, h, 1, 1)),),
    ),
    Mistake(
        "same-part",
        "Every head gets the same features. Head m should get its own, from m·d on.",
        checked(lambda x, h, d: x[:, None, :, :d].expand(-1, h, -1, -1)),
    ),
    Mistake(
        "a-list",
        "The heads come as a list or tuple. One tensor (b, h, n, d) is asked for.",
        checked(lambda x, h, d: x.split(d, dim=-1)),
    ),
    Mistake(
        "only-one-head",
        "A single head comes back: the axis of the heads is lost.",
        checked(lambda x, h, d: x[..., :d]),
        also=(checked(lambda x, h, d: x[..., -d:]),),
    ),
    Mistake(
        "no-gradient",
        "The values are right, but no gradient gets back to x: it is detached, or rebuilt from "
        "bare numbers, and the layers before it would not be trained.",
        detached_inputs(split_heads),
    ),
    Mistake(
        "floored",
        "Where the features cannot be cut evenly, some of them are dropped and nothing tells. "
        "Raise a ValueError with both numbers.",
        floored,
    ),
    Mistake(
        "asserted",
        "Where the features cannot be cut evenly an assert fails. An assert is left out under "
        "`python -O`; a user's mistake is a ValueError with the numbers.",
        asserted,
    ),
    Mistake("shape-error", NOT_REFUSED, by_view, also=(by_einops,)),
)

EXERCISE = Exercise(
    number="5.1",
    reference=split_heads,
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
