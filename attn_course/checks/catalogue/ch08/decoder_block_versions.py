"""What the known-wrong versions of exercise 8.4, DecoderBlock, are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attn_course.blocks import FeedForward, LayerNorm
from attn_course.checks.exercise import Answer
from attn_course.masks import causal_mask
from attn_course.multihead import MultiHeadAttention

Forward = Callable[[Any, Tensor, Tensor, Tensor | None, Tensor | None], Any]
Make = Callable[[Any, int, int, int], None]


@cache
def _parts(d_model: int, num_heads: int, d_ff: int) -> dict[str, nn.Module]:
    return {
        "self_attention": MultiHeadAttention(d_model, num_heads),
        "cross_attention": MultiHeadAttention(d_model, num_heads),
        "feed_forward": FeedForward(d_model, d_ff),
        **{f"norm_{k}": LayerNorm(d_model) for k in (1, 2, 3)},
    }


def all_parts(block: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """The six parts asked for."""
    # nobody trains these versions, so they may share what takes long to make
    for role, part in _parts(d_model, num_heads, d_ff).items():
        setattr(block, role, part)


def version(forward: Forward, make: Make = all_parts) -> Answer:
    """A block with this forward pass."""

    class Block(nn.Module):
        def __init__(self, d_model: int, num_heads: int, d_ff: int) -> None:
            super().__init__()
            make(self, d_model, num_heads, d_ff)

        def forward(
            self,
            x: Tensor,
            memory: Tensor,
            mask: Tensor | None = None,
            memory_mask: Tensor | None = None,
        ) -> Any:
            return forward(self, x, memory, mask, memory_mask)

    return Block


Step = Callable[[Any, Tensor, Tensor, Tensor | None, Tensor | None], Tensor]


def ask_self(block: Any, x: Tensor, memory: Tensor, mask: Any, memory_mask: Any) -> Tensor:
    """What self-attention gives."""
    return block.self_attention(x, x, x, mask)[0]


def ask_memory(block: Any, x: Tensor, memory: Tensor, mask: Any, memory_mask: Any) -> Tensor:
    """What cross-attention gives."""
    return block.cross_attention(x, memory, memory, memory_mask)[0]


def feed(block: Any, x: Tensor, memory: Tensor, mask: Any, memory_mask: Any) -> Tensor:
    """What the feed-forward gives."""
    return block.feed_forward(x)


def steps(
    one: Step = ask_self, two: Step = ask_memory, three: Step = feed, norms: str = "123"
) -> Answer:
    """A post-norm block of these three steps, with the norms in this order."""

    def forward(block: Any, x: Tensor, *others: Any) -> Tensor:
        for step, number in zip((one, two, three), norms, strict=True):
            x = getattr(block, f"norm_{number}")(x + step(block, x, *others))
        return x

    return version(forward)


def in_order(combine: Callable[[Any, Tensor, Callable[[Tensor], Tensor]], Tensor]) -> Answer:
    """The three steps, each put together with its norm in this way."""

    def forward(block: Any, x: Tensor, *others: Any) -> Tensor:
        for number, step in enumerate((ask_self, ask_memory, feed), start=1):
            norm = getattr(block, f"norm_{number}")
            x = combine(norm, x, lambda y, step=step: step(block, y, *others))
        return x

    return version(forward)


def right(block: Any, x: Tensor, *others: Any) -> Tensor:
    """The forward pass asked for."""
    x = block.norm_1(x + ask_self(block, x, *others))
    x = block.norm_2(x + ask_memory(block, x, *others))
    return block.norm_3(x + feed(block, x, *others))


def without_residual(which: int) -> Answer:
    """One step replaces what it should be added to."""

    def forward(block: Any, x: Tensor, *others: Any) -> Tensor:
        for number, step in enumerate((ask_self, ask_memory, feed), start=1):
            kept = 0 if number == which else x
            x = getattr(block, f"norm_{number}")(kept + step(block, x, *others))
        return x

    return version(forward)


def without_norm(which: int) -> Answer:
    """One of the norms is made and not used."""

    def forward(block: Any, x: Tensor, *others: Any) -> Tensor:
        for number, step in enumerate((ask_self, ask_memory, feed), start=1):
            x = x + step(block, x, *others)
            x = x if number == which else getattr(block, f"norm_{number}")(x)
        return x

    return version(forward)


def without_step(which: int) -> Answer:
    """One of the steps is left out, with its norm."""

    def forward(block: Any, x: Tensor, *others: Any) -> Tensor:
        for number, step in enumerate((ask_self, ask_memory, feed), start=1):
            if number != which:
                x = getattr(block, f"norm_{number}")(x + step(block, x, *others))
        return x

    return version(forward)


def asks_with_the_first(block: Any, x: Tensor, *others: Any) -> Tensor:
    """The memory is asked by what came in, not by what self-attention made of it."""
    y = block.norm_1(x + ask_self(block, x, *others))
    y = block.norm_2(y + ask_memory(block, x, *others))
    return block.norm_3(y + feed(block, y, *others))


def adds_to_the_first(block: Any, x: Tensor, *others: Any) -> Tensor:
    """Every residual starts from what came in."""
    y = block.norm_1(x + ask_self(block, x, *others))
    y = block.norm_2(x + ask_memory(block, y, *others))
    return block.norm_3(x + feed(block, y, *others))


def feeds_onto_the_first(block: Any, x: Tensor, *others: Any) -> Tensor:
    """The last residual alone starts from what came in."""
    y = block.norm_1(x + ask_self(block, x, *others))
    y = block.norm_2(y + ask_memory(block, y, *others))
    return block.norm_3(x + feed(block, y, *others))


def always_causal(block: Any, x: Tensor, memory: Tensor, mask: Any, memory_mask: Any) -> Tensor:
    """Hides the future of x unasked."""
    causal = causal_mask(x.shape[1])
    mask = causal if mask is None else mask & causal
    return right(block, x, memory, mask, memory_mask)


def shared_norm(block: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """One norm under three names."""
    all_parts(block, d_model, num_heads, d_ff)
    block.norm_2 = block.norm_3 = block.norm_1


def shared_attention(block: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """One attention under two names."""
    all_parts(block, d_model, num_heads, d_ff)
    block.cross_attention = block.self_attention


def one_head(block: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """Attentions with a number of heads of their own."""
    all_parts(block, d_model, num_heads, d_ff)
    block.self_attention = MultiHeadAttention(d_model, 1)
    block.cross_attention = MultiHeadAttention(d_model, 1)


def one_head_for_the_memory(block: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """A cross-attention with a number of heads of its own."""
    all_parts(block, d_model, num_heads, d_ff)
    block.cross_attention = MultiHeadAttention(d_model, 1)


def other_width(block: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """A feed-forward of the wrong width."""
    all_parts(block, d_model, num_heads, d_ff)
    block.feed_forward = FeedForward(d_model, 4 * d_model)


def detached(block: Any, x: Tensor, *others: Any) -> Tensor:
    """Runs without a graph."""
    with torch.no_grad():
        return right(block, x, *others)


def detached_memory(block: Any, x: Tensor, memory: Tensor, mask: Any, memory_mask: Any) -> Tensor:
    """Lets no gradient through to the encoder."""
    return right(block, x, memory.detach(), mask, memory_mask)


def cross(query: str, key: str, value: str, mask: str) -> Answer:
    """Cross-attention from these sources: "x" or "memory"; "mask", "memory_mask" or "none"."""

    def ask(block: Any, x: Tensor, memory: Tensor, on_x: Any, on_memory: Any) -> Tensor:
        source = {"x": x, "memory": memory}
        given = {"mask": on_x, "memory_mask": on_memory, "none": None}[mask]
        return block.cross_attention(source[query], source[key], source[value], given)[0]

    return steps(two=ask)


def with_attention(role: str, other: str) -> Answer:
    """One of the two attentions is used in both places."""

    def ask_x(block: Any, x: Tensor, memory: Tensor, mask: Any, memory_mask: Any) -> Tensor:
        return getattr(block, role)(x, x, x, mask)[0]

    def ask_other(block: Any, x: Tensor, memory: Tensor, mask: Any, memory_mask: Any) -> Tensor:
        return getattr(block, other)(x, memory, memory, memory_mask)[0]

    return steps(ask_x, ask_other)


def stream_not_normalised(last: bool) -> Answer:
    """Sublayers read what is normalised, and the sum that goes on is not."""

    def forward(block: Any, x: Tensor, *others: Any) -> Tensor:
        x = x + ask_self(block, x, *others)
        x = x + ask_memory(block, block.norm_1(x), *others)
        x = x + feed(block, block.norm_2(x), *others)
        return block.norm_3(x) if last else x

    return version(forward)


def normalised_queries(
    block: Any, x: Tensor, memory: Tensor, mask: Any, memory_mask: Any
) -> Tensor:
    """Pre-norm in which the keys and values of self-attention are left as they are."""
    x = x + block.self_attention(block.norm_1(x), x, x, mask)[0]
    x = x + block.cross_attention(block.norm_2(x), memory, memory, memory_mask)[0]
    return x + block.feed_forward(block.norm_3(x))


def written_into(block: Any, x: Tensor, *others: Any) -> Tensor:
    """Adds to x in place."""
    x += ask_self(block, x, *others)
    x = block.norm_1(x)
    x += ask_memory(block, x, *others)
    x = block.norm_2(x)
    x += feed(block, x, *others)
    return block.norm_3(x)


def first_written_into(block: Any, x: Tensor, *others: Any) -> Tensor:
    """Adds in place in the first step, to a copy, and the right way in the others."""
    x = x.clone()
    x += ask_self(block, x, *others)
    x = block.norm_1(x)
    x = block.norm_2(x + ask_memory(block, x, *others))
    return block.norm_3(x + feed(block, x, *others))


def memory_written_into(block: Any, x: Tensor, memory: Tensor, *masks: Any) -> Tensor:
    """Normalises the memory in place."""
    memory -= memory.mean(dim=-1, keepdim=True)
    return right(block, x, memory, *masks)


def memory_zeroed(block: Any, x: Tensor, memory: Tensor, mask: Any, memory_mask: Any) -> Tensor:
    """Sets padded tokens of the memory to zeros, and attends to them."""
    if memory_mask is not None:
        memory = memory * memory_mask[:, 0, 0, :, None]
    return right(block, x, memory, mask, None)


def dropping(block: Any, x: Tensor, *others: Any) -> Tensor:
    """Drops features in training."""
    return right(block, F.dropout(x, 0.1, block.training), *others)


def made_anew(role: str) -> Forward:
    """Makes one of its parts in each call."""

    def forward(block: Any, x: Tensor, *others: Any) -> Tensor:
        d_model = x.shape[-1]
        made = {
            "cross_attention": lambda: MultiHeadAttention(d_model, 1),
            "feed_forward": lambda: FeedForward(d_model, 2 * d_model),
        }[role]()
        kept = getattr(block, role)
        setattr(block, role, made.to(x.dtype))
        try:
            return right(block, x, *others)
        finally:
            setattr(block, role, kept)

    return forward


def library_attention(block: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """PyTorch's attention, whose fourth argument is a mask of padding."""
    all_parts(block, d_model, num_heads, d_ff)
    block.self_attention = nn.MultiheadAttention(d_model, num_heads, batch_first=True)
    block.cross_attention = nn.MultiheadAttention(d_model, num_heads, batch_first=True)


def plain_norms(*which: int) -> Answer:
    """Some of the norms have no gain and bias, as one that was just made."""

    def forward(block: Any, x: Tensor, *others: Any) -> Tensor:
        for number, step in enumerate((ask_self, ask_memory, feed), start=1):
            total = x + step(block, x, *others)
            norm = getattr(block, f"norm_{number}")
            x = F.layer_norm(total, total.shape[-1:]) if number in which else norm(total)
        return x

    return version(forward)
