"""How an answer to exercise 7.3 or 7.4 is built and called: parts with known weights, by role.

What is judged is how the parts are put together, so the check puts the course's parts where the
learner's stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attn_course.blocks import FeedForward, LayerNorm
from attn_course.checks.exercise import (
    Answer,
    Diagnosis,
    Mistake,
    Output,
    Seen,
    Stage,
    Version,
    normal,
    tensors_in,
    tenths,
)
from attn_course.checks.gradients import (
    CHANGED_IN_PLACE,
    LOST_GRADIENT,
    gradient_of,
    input_gradients,
)
from attn_course.checks.modules import (
    copied,
    drawn,
    part_at,
    place,
    put_at,
    repeated_calls,
    repeats,
    require_module,
    require_roles,
    sizes_by_role,
    unreached,
)
from attn_course.masks import causal_mask, padding_mask
from attn_course.multihead import MultiHeadAttention
from attn_course.sentences import say

ROLES = ("self_attention", "feed_forward", "norm_1", "norm_2")
PLACES = {"norm_1": "around_self.norm", "norm_2": "around_feed_forward.norm"}
"""Where the course's block, which wraps each sublayer in a `Residual`, has its norms."""


OTHER_WIDTH = "The hidden layer of feed_forward has not d_ff features."
OTHER_HEADS = (
    "An attention is made with another number of heads than num_heads. What is learnt is as large "
    "for any number of them, so that nothing else would tell."
)


def in_place_copy(answer: Version, *also: Version) -> Mistake:
    """The mistake of adding in place to a copy of x, made in these ways."""
    return Mistake(
        "in-place-copy",
        "`+=` writes over numbers that attention still needs for its gradient, in a copy of x as "
        "well. Write x = x + …, which makes a new tensor.",
        answer,
        also=also,
        error=CHANGED_IN_PLACE,
    )


def fresh_parts(d_model: int, num_heads: int, d_ff: int, like: Tensor) -> dict[str, nn.Module]:
    """The four parts of a block by role, each with weights of its own."""
    # making them takes longer than running them; copies, so that no answer can spoil them
    made = _parts(d_model, num_heads, d_ff, like.dtype)
    return {role: copied(part) for role, part in made.items()}


@cache
def _parts(d_model: int, num_heads: int, d_ff: int, dtype: torch.dtype) -> dict[str, nn.Module]:
    made = {
        "self_attention": MultiHeadAttention(d_model, num_heads),
        "feed_forward": FeedForward(d_model, d_ff),
        "norm_1": LayerNorm(d_model),
        "norm_2": LayerNorm(d_model),
    }
    like = torch.empty(0, dtype=dtype)
    return {role: drawn(part, 70 + seed, like) for seed, (role, part) in enumerate(made.items())}


def part(block: Any, role: str) -> Any:
    """The part of a block that plays this role; None if there is none."""
    return part_at(block, place(block, role, PLACES))


def require_parts(block: Any) -> None:
    """Raise TypeError unless the block is a module with a module in each role."""
    require_module(block)
    require_roles(block, ROLES, part)


def built(answer: Answer, x: Tensor, num_heads: int) -> Any:
    """A block of the learner's class around the check's parts."""
    d_model, d_ff = x.shape[-1], 2 * x.shape[-1] + 1
    block = answer(d_model, num_heads, d_ff)
    require_parts(block)
    for role, replacement in fresh_parts(d_model, num_heads, d_ff, x).items():
        put_at(block, place(block, role, PLACES), replacement)
    return block


# -- how an answer is called ------------------------------------------------------------------


def parts_of(answer: Answer, d_model: int, num_heads: int, d_ff: int) -> str:
    """How many numbers are trained in each part, and in all, a shared one counted once."""
    block = answer(d_model, num_heads, d_ff)
    require_parts(block)
    heads = heads_in(block.self_attention, d_model)
    return f"{sizes_by_role(block, ROLES, part)}, heads {heads}"


def heads_in(attention: Any, d_model: int) -> str:
    """How many heads an attention has: what it learns does not tell, its weights do."""
    x = torch.zeros(1, 1, d_model)
    weights = tensors_in(attention(x, x, x))[-1] if attention is not None else x
    return str(weights.shape[1]) if weights.ndim == 4 else "unseen"  # (b, h, i, j)


def read_parts(seen: Sequence[Seen]) -> Diagnosis | None:
    """A width, or a number of heads, of the block's own, whichever it is."""
    found, wanted = (
        dict(part.rsplit(" ", 1) for part in text.split(", "))
        for text in (seen[0].actual, seen[0].expected)
    )
    differing = {name for name in wanted if found.get(name) != wanted[name]}
    if differing == {"feed_forward", "in all"}:
        return Diagnosis(OTHER_WIDTH, "width")
    if differing and all(name.startswith("heads") for name in differing):
        return Diagnosis(OTHER_HEADS, "heads-not-handed-on")
    return None


def repeated(answer: Answer, x: Tensor, num_heads: int) -> Any:
    """Whether two calls agree, in training and in evaluation; what comes back if no tensor does."""
    return repeats(built(answer, x, num_heads), x)


def run(answer: Answer, x: Tensor, num_heads: int) -> Any:
    """One call without a mask, after one with another length, which may not be kept."""
    block = built(answer, x, num_heads)
    block(x[:, :1])
    return block(x)


def run_masked(answer: Answer, x: Tensor, mask: Tensor, num_heads: int) -> Any:
    """One call with a mask."""
    return built(answer, x, num_heads)(x, mask)


def run_after_a_mask(answer: Answer, x: Tensor, num_heads: int) -> Any:
    """One call without a mask, after one with."""
    block = built(answer, x, num_heads)
    block(x, causal_mask(x.shape[1]))
    return block(x)


def gradients(answer: Answer, x: Tensor, num_heads: int) -> Any:
    """The gradient, of x, of the sum of squares of what comes out."""
    block = built(answer, x, num_heads)
    return input_gradients(lambda x: block(x), x)


def untrained(answer: Answer, d_model: int, num_heads: int, d_ff: int) -> str:
    """Which parameters of a new block, with its own parts, no gradient reaches."""
    block = answer(d_model, num_heads, d_ff)
    require_parts(block)
    x = torch.linspace(-1, 1, 2 * d_model).view(1, 2, d_model)
    return unreached(block, block(x).square().sum())


# -- probes -----------------------------------------------------------------------------------


def draw_sizes(rng: Generator) -> Iterator[tuple]:
    """Unequal sizes."""
    yield 4, 2, 6
    yield 6, 3, 5


def draw_repeated(rng: Generator) -> Iterator[tuple]:
    """Enough features for a dropout of any size to show."""
    yield normal(rng, 2, 8, 12), 3


def draw_plain(rng: Generator) -> Iterator[tuple]:
    """One token, two, and more; then as many tokens as sequences and heads."""
    yield tenths(rng, 1, 1, 4), 1
    yield tenths(rng, 1, 2, 4), 2
    for b, n, h in ((2, 5, 3), (3, 3, 3)):
        yield normal(rng, b, n, 6), h
    yield normal(rng, 2, 3, 6).double(), 2


def draw_masked(rng: Generator) -> Iterator[tuple]:
    """Causal, padding, and a mask of its own for each sequence."""
    yield tenths(rng, 1, 2, 4), causal_mask(2), 1
    yield normal(rng, 2, 5, 6), causal_mask(5), 3
    yield normal(rng, 3, 4, 6), padding_mask(torch.tensor([4, 2, 1]), 4)[:, None, None], 2
    each = torch.rand(2, 4, 4, generator=rng) < 0.5
    yield normal(rng, 2, 4, 6), each | torch.eye(4, dtype=torch.bool), 3


def draw_after_a_mask(rng: Generator) -> Iterator[tuple]:
    """As many tokens as in the call before."""
    yield normal(rng, 2, 4, 6), 2


def draw_gradients(rng: Generator) -> Iterator[tuple]:
    """Small and larger."""
    yield tenths(rng, 1, 2, 4), 2
    yield normal(rng, 2, 4, 6), 3


def stages(mistakes: Sequence[Mistake], output_message: str) -> tuple[Stage, ...]:
    """The stages of both exercises; the message says how the steps are put together."""
    sizes = ("d_model", "num_heads", "d_ff")
    return (
        Stage(
            "parts",
            draw_sizes,
            "A new block should have four parts, none of them shared, and nothing else that is "
            "learnt: self.self_attention, self.feed_forward, self.norm_1 and self.norm_2.",
            call=parts_of,
            outputs=(Output(say("the block's parts")),),
            inputs=sizes,
            diagnose=read_parts,
        ),
        repeated_calls(mistakes, draw_repeated, repeated, ("x", "num_heads")),
        Stage("output", draw_plain, output_message, call=run),
        Stage(
            "mask",
            draw_masked,
            "With a mask the output differs; without one it is right.",
            call=run_masked,
        ),
        Stage(
            "after a mask",
            draw_after_a_mask,
            "A call without a mask, after one with, differs.",
            call=run_after_a_mask,
        ),
        Stage(
            "gradients",
            draw_gradients,
            LOST_GRADIENT,
            call=gradients,
            outputs=(gradient_of("x", "b n d"),),
        ),
        Stage(
            "trained",
            draw_sizes,
            "Not every weight of a new block is reached by the gradient.",
            call=untrained,
            outputs=(Output(say("weights without a gradient")),),
            inputs=sizes,
        ),
    )
