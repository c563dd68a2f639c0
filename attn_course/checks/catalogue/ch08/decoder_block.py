"""Exercise 8.3, DecoderBlock: its stages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.blocks import DecoderBlock
from attn_course.checks.catalogue.ch07.block_parts import heads_in, read_parts
from attn_course.checks.catalogue.ch08.decoder_block_mistakes import MISTAKES, PostNormBlock
from attn_course.checks.catalogue.ch08.parts import (
    ROLES,
    decoder_parts,
    install,
    part,
    require_parts,
)
from attn_course.checks.exercise import Answer, Exercise, Output, Stage, normal, tenths
from attn_course.checks.gradients import LOST_GRADIENT, gradient_of, input_gradients
from attn_course.checks.modules import repeated_calls, repeats, sizes_by_role, unreached
from attn_course.masks import causal_mask, padding_mask
from attn_course.sentences import say

# -- how an answer is called ------------------------------------------------------------------


def parts_of(answer: Answer, d_model: int, num_heads: int, d_ff: int) -> str:
    """How many numbers are trained in each part, and in all, a shared one counted once."""
    block = answer(d_model, num_heads, d_ff)
    require_parts(block)
    kinds = ("self", block.self_attention), ("cross", block.cross_attention)
    heads = [f"heads in {kind}-attention {heads_in(one, d_model)}" for kind, one in kinds]
    return ", ".join((sizes_by_role(block, ROLES, part), *heads))


def built(answer: Answer, x: Tensor, num_heads: int) -> Any:
    """A block of the learner's class around the check's parts."""
    d_model, d_ff = x.shape[-1], 2 * x.shape[-1] + 1
    parts = decoder_parts(d_model, num_heads, d_ff, x)
    return install(answer(d_model, num_heads, d_ff), parts)


def repeated(answer: Answer, x: Tensor, memory: Tensor, num_heads: int) -> Any:
    """Whether two calls agree, in training and in evaluation."""
    return repeats(built(answer, x, num_heads), x, memory)


def run(answer: Answer, x: Tensor, memory: Tensor, num_heads: int) -> Any:
    """One call without masks, after one with another memory, which may not be kept."""
    block = built(answer, x, num_heads)
    block(x[:, :1], memory[:, :1] + 1)
    return block(x, memory)


def run_masked(
    answer: Answer,
    x: Tensor,
    memory: Tensor,
    num_heads: int,
    mask: Tensor | None,
    memory_mask: Tensor | None = None,
) -> Any:
    """One call with masks."""
    return built(answer, x, num_heads)(x, memory, mask, memory_mask)


def gradients(answer: Answer, x: Tensor, memory: Tensor, num_heads: int) -> Any:
    """The gradients of the sum of squares of what comes out, of x and of the memory."""
    block = built(answer, x, num_heads)
    return input_gradients(lambda x, memory: block(x, memory), x, memory)


def untrained(answer: Answer, d_model: int, num_heads: int, d_ff: int) -> str:
    """Which parameters of a new block, with its own parts, no gradient reaches."""
    block = answer(d_model, num_heads, d_ff)
    require_parts(block)
    x, memory = (torch.linspace(-1, 1, n * d_model).view(1, n, d_model) for n in (2, 3))
    memory_mask = torch.tensor([True, True, False])[None, None, None]
    return unreached(block, block(x, memory, causal_mask(2), memory_mask).square().sum())


# -- probes -----------------------------------------------------------------------------------


def draw_sizes(rng: Generator) -> Iterator[tuple]:
    """Unequal sizes."""
    yield 4, 2, 6
    yield 6, 3, 5


def draw_repeated(rng: Generator) -> Iterator[tuple]:
    """Enough features for a dropout of any size to show."""
    yield normal(rng, 2, 8, 12), normal(rng, 2, 6, 12), 3


def draw_plain(rng: Generator) -> Iterator[tuple]:
    """More memory than tokens, and as much."""
    yield tenths(rng, 1, 1, 4), tenths(rng, 1, 2, 4), 1
    for b, n, n_memory in ((2, 3, 5), (3, 4, 4)):
        yield normal(rng, b, n, 6), normal(rng, b, n_memory, 6), 3


def draw_causal(rng: Generator) -> Iterator[tuple]:
    """A causal mask on x, which may be longer than the memory."""
    yield tenths(rng, 1, 2, 3), tenths(rng, 1, 1, 3), 1, causal_mask(2)
    yield normal(rng, 2, 4, 6), normal(rng, 2, 3, 6), 2, causal_mask(4)


def padded(rng: Generator, b: int, n: int, n_memory: int) -> tuple[Tensor, Tensor, Tensor]:
    """x, a memory with padding, and the mask (b, 1, 1, j) that hides it."""
    lengths = torch.tensor([n_memory, 1, 2, 3][:b])
    padding = padding_mask(lengths, n_memory)
    memory = normal(rng, b, n_memory, 6).masked_fill(~padding[..., None], 5.0)
    return normal(rng, b, n, 6), memory, padding[:, None, None]


def draw_memory_mask(rng: Generator) -> Iterator[tuple]:
    """Padding in the memory and no mask on x."""
    hidden = torch.tensor([[[[True, False]]]])
    yield tenths(rng, 1, 2, 3), tenths(rng, 1, 2, 3), 1, None, hidden
    x, memory, memory_mask = padded(rng, 2, 3, 5)
    yield x, memory, 2, None, memory_mask


def draw_both(rng: Generator) -> Iterator[tuple]:
    """Both masks, at unequal lengths and at equal ones, where exchanging them is silent."""
    hidden = torch.tensor([[[[False, True]]]])
    yield tenths(rng, 1, 2, 2), tenths(rng, 1, 2, 2), 1, causal_mask(2), hidden
    for b, n, n_memory in ((2, 3, 5), (4, 4, 4)):
        x, memory, memory_mask = padded(rng, b, n, n_memory)
        yield x, memory, 3, causal_mask(n), memory_mask


def draw_gradients(rng: Generator) -> Iterator[tuple]:
    """Small and larger."""
    yield tenths(rng, 1, 1, 4), tenths(rng, 1, 2, 4), 2
    yield normal(rng, 2, 3, 6), normal(rng, 2, 4, 6), 3


EXERCISE = Exercise(
    number="8.3",
    reference=DecoderBlock,
    right=PostNormBlock,
    wire="class",
    outputs=(Output("output", "b n d"),),
    difficulty=2,
    minutes=20,
    points=4,
    may_use="torch, and your own or the course's MultiHeadAttention, FeedForward and LayerNorm",
    stages=(
        Stage(
            "parts",
            draw_sizes,
            "A new block should have six parts, none of them shared: self.self_attention and "
            "self.cross_attention, self.feed_forward, self.norm_1, self.norm_2 and self.norm_3.",
            call=parts_of,
            outputs=(Output(say("the block's parts")),),
            inputs=("d_model", "num_heads", "d_ff"),
            diagnose=read_parts,
        ),
        repeated_calls(MISTAKES, draw_repeated, repeated, ("x", "memory", "num_heads")),
        Stage(
            "output",
            draw_plain,
            "Without masks the output differs. Three steps, each norm(x + sublayer(x)): "
            "self-attention, attention to the memory, feed-forward.",
            call=run,
        ),
        Stage(
            "causal",
            draw_causal,
            "With a mask on x the output differs; without one it is right.",
            call=run_masked,
        ),
        Stage(
            "memory mask",
            draw_memory_mask,
            "With a mask on the memory the output differs.",
            call=run_masked,
        ),
        Stage("both masks", draw_both, "With both masks the output differs.", call=run_masked),
        Stage(
            "gradients",
            draw_gradients,
            LOST_GRADIENT,
            call=gradients,
            outputs=(gradient_of("x", "b n d"), gradient_of("memory", "b j d")),
        ),
        Stage(
            "trained",
            draw_sizes,
            "Not every weight of a new block is reached by the gradient.",
            call=untrained,
            outputs=(Output(say("weights without a gradient")),),
            inputs=("d_model", "num_heads", "d_ff"),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "It is the EncoderBlock of chapter 07 with a second attention between its two steps. Who "
        "asks in it, and who is looked up?",
        "self.cross_attention(x, memory, memory, memory_mask): queries from x, keys and values "
        "from the memory. It returns a pair; the residual wants its first part.",
        "Three lines: x = self.norm_1(x + self.self_attention(x, x, x, mask)[0]), then the same "
        "around cross_attention with norm_2 and around feed_forward with norm_3.",
    ),
)
