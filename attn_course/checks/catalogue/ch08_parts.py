"""Parts with known weights that take the place of a learner's own, for exercises 8.4 and 8.6.

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
from attn_course.multihead import MultiHeadAttention

EXERCISES = ()

ROLES = ("self_attention", "cross_attention", "feed_forward", "norm_1", "norm_2", "norm_3")
_SEED = 8_404


def drawn(module: nn.Module, seed: int, like: Tensor) -> Any:
    """The module with normal weights, biases and gains, in the dtype of `like`."""
    generator = torch.Generator().manual_seed(_SEED + seed)
    with torch.no_grad():
        for parameter in module.parameters():
            fan_in = parameter.shape[-1] if parameter.ndim > 1 else 4
            noise = torch.randn(parameter.shape, generator=generator) / fan_in**0.5
            parameter.copy_(noise + (1 if parameter.ndim == 1 else 0))
    return module.to(like.dtype)


def copied(module: nn.Module) -> Any:
    """A copy with weights of its own, as copy.deepcopy makes it, in a quarter of the time."""
    twin = object.__new__(type(module))
    twin.__dict__.update(vars(module))
    twin.__dict__["_parameters"] = {
        name: None if weight is None else nn.Parameter(weight.detach().clone())
        for name, weight in module._parameters.items()
    }
    twin.__dict__["_modules"] = {
        name: None if child is None else copied(child) for name, child in module._modules.items()
    }
    return twin


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
    """The part of a block that plays this role: the course's block has its norms elsewhere."""
    if isinstance(block, DecoderBlock) and role.startswith("norm"):
        around = (block.around_self, block.around_cross, block.around_feed_forward)
        return around[int(role[-1]) - 1].norm
    return getattr(block, role, None)


def require_parts(block: Any) -> None:
    """Raise TypeError unless the block is a module with a module in each role."""
    require_module(block)
    for role in ROLES:
        if not isinstance(part(block, role), nn.Module):
            found = type(part(block, role)).__name__
            raise TypeError(f"self.{role} should be an nn.Module, it is {found}")


def install(block: Any, parts: dict[str, nn.Module]) -> Any:
    """The block, with these parts in the place of its own."""
    require_parts(block)
    for role, replacement in parts.items():
        if isinstance(block, DecoderBlock) and role.startswith("norm"):
            around = (block.around_self, block.around_cross, block.around_feed_forward)
            around[int(role[-1]) - 1].norm = replacement
        else:
            setattr(block, role, replacement)
    return block


def require_module(made: Any) -> None:
    """Raise TypeError unless a class made an nn.Module."""
    if not isinstance(made, nn.Module):
        raise TypeError(f"{type(made).__name__} is no nn.Module: write a class that inherits it")


def encoder_block(d_model: int, num_heads: int, d_ff: int, seed: int, like: Tensor) -> Any:
    """The course's encoder block (post-norm), with drawn weights."""
    return drawn(EncoderBlock(d_model, num_heads, d_ff), seed, like)


def decoder_block(d_model: int, num_heads: int, d_ff: int, seed: int, like: Tensor) -> Any:
    """The course's decoder block (post-norm), with drawn weights."""
    return drawn(DecoderBlock(d_model, num_heads, d_ff), seed, like)


def unreached(module: nn.Module, loss: Tensor) -> str:
    """The names of the parameters that the gradient of a loss does not reach; "" if none."""
    if not loss.requires_grad:
        return "all of them"
    named = dict(module.named_parameters())
    gradients = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return ", ".join(name for name, g in zip(named, gradients, strict=True) if g is None)
