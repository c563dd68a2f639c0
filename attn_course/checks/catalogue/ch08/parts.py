"""Parts with known weights that take the place of a learner's own, for exercises 8.3 and 8.6.

What is judged is how the parts are put together. So the check puts the course's parts, with
weights that it has drawn, where the learner's stand: a fault in an earlier exercise does not
count twice, and the order in which parts are made does not matter.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from attn_course.blocks import DecoderBlock, EncoderBlock, FeedForward, LayerNorm
from attn_course.checks.modules import (
    copied,
    drawn,
    part_at,
    place,
    put_at,
    require_module,
    require_roles,
)
from attn_course.multihead import MultiHeadAttention

ROLES = ("self_attention", "cross_attention", "feed_forward", "norm_1", "norm_2", "norm_3")
PLACES = {
    "norm_1": "around_self.norm",
    "norm_2": "around_cross.norm",
    "norm_3": "around_feed_forward.norm",
}
"""Where the course's block, which wraps each sublayer in a `Residual`, has its norms."""


def decoder_parts(d_model: int, num_heads: int, d_ff: int, like: Tensor) -> dict[str, nn.Module]:
    """The six parts of a decoder block by role, each with weights of its own."""
    # making them takes longer than running them; copies, so that no answer can spoil them
    made = _decoder_parts(d_model, num_heads, d_ff, like.dtype)
    return {role: copied(part) for role, part in made.items()}


@cache
def _decoder_parts(
    d_model: int, num_heads: int, d_ff: int, dtype: torch.dtype
) -> dict[str, nn.Module]:
    parts = {
        "self_attention": MultiHeadAttention(d_model, num_heads),
        "cross_attention": MultiHeadAttention(d_model, num_heads),
        "feed_forward": FeedForward(d_model, d_ff),
        **{f"norm_{k}": LayerNorm(d_model) for k in (1, 2, 3)},
    }
    like = torch.empty(0, dtype=dtype)
    return {role: drawn(part, seed, like) for seed, (role, part) in enumerate(parts.items())}


def part(block: Any, role: str) -> Any:
    """The part of a block that plays this role; None if there is none."""
    return part_at(block, place(block, role, PLACES))


def require_parts(block: Any) -> None:
    """Raise TypeError unless the block is a module with a module in each role."""
    require_module(block)
    require_roles(block, ROLES, part)


def install(block: Any, parts: dict[str, nn.Module]) -> Any:
    """The block, with these parts in the place of its own."""
    require_parts(block)
    for role, replacement in parts.items():
        put_at(block, place(block, role, PLACES), replacement)
    return block


def encoder_block(d_model: int, num_heads: int, d_ff: int, seed: int, like: Tensor) -> Any:
    """The course's encoder block (post-norm), with drawn weights."""
    return drawn(EncoderBlock(d_model, num_heads, d_ff), seed, like)


def decoder_block(d_model: int, num_heads: int, d_ff: int, seed: int, like: Tensor) -> Any:
    """The course's decoder block (post-norm), with drawn weights."""
    return drawn(DecoderBlock(d_model, num_heads, d_ff), seed, like)
