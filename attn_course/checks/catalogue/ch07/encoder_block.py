"""Exercise 7.3, EncoderBlock: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from attn_course.blocks import EncoderBlock
from attn_course.checks.catalogue.ch07.block_parts import in_place_copy, stages
from attn_course.checks.catalogue.ch07.block_versions import (
    around,
    attend,
    common,
    doubled_post,
    either,
    feed,
    from_the_normalised,
    of_the_output,
    post,
    pre,
    steps,
    version,
)
from attn_course.checks.exercise import Exercise, Mistake, Output


def right(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """The forward pass asked for."""
    x = block.norm_1(x + attend(block, x, mask))
    return block.norm_2(x + feed(block, x, mask))


def bare(norm: Any, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """No residual."""
    return norm(sublayer(x))


def kept_stream(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """The second residual starts from the sum before its norm."""
    total = x + attend(block, x, mask)
    return block.norm_2(total + feed(block, block.norm_1(total), mask))


def adds_to_the_input(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """The second residual starts from what came into the block."""
    y = block.norm_1(x + attend(block, x, mask))
    return block.norm_2(x + feed(block, y, mask))


def feeds_the_input(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """The feed-forward works on what came into the block."""
    y = block.norm_1(x + attend(block, x, mask))
    return block.norm_2(y + feed(block, x, mask))


def side_by_side(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """Both sublayers at once."""
    return block.norm_2(block.norm_1(x + attend(block, x, mask) + feed(block, x, mask)))


def written_over(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """Adds in place, to a copy."""
    x = x.clone()
    x += attend(block, x, mask)
    x = block.norm_1(x)
    x += feed(block, x, mask)
    return block.norm_2(x)


def first_written_over(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """Adds in place, to a copy, in the first step only."""
    x = x.clone()
    x += attend(block, x, mask)
    x = block.norm_1(x)
    return block.norm_2(x + feed(block, x, mask))


ORDER = "Asked for is the paper's order, norm(x + sublayer(x))."

MISTAKES = (
    *common(post, right),
    in_place_copy(version(written_over), version(first_written_over)),
    Mistake(
        "pre-norm",
        f"The norm stands before the sublayer: that is pre-norm. {ORDER}",
        **either(pre, post),
    ),
    Mistake(
        "norm-of-the-output",
        f"The norm is taken of the sublayer's output alone, and x is added after it. {ORDER}",
        **either(of_the_output, post),
    ),
    Mistake(
        "residual-of-the-normalised",
        f"x is normalised first, and the residual starts from that. {ORDER}",
        **either(from_the_normalised, post),
    ),
    Mistake(
        "norm-of-the-residual",
        f"Only x is normalised, and the sublayer's output is added to it. {ORDER}",
        **either(lambda norm, x, f: norm(x) + f(x), post),
    ),
    Mistake(
        "norm-twice",
        f"The norm stands before the sublayer and again after the sum. {ORDER}",
        **either(around, post),
    ),
    Mistake(
        "no-residuals",
        "There are no residuals: each step replaces x instead of adding to it.",
        steps(bare, bare),
        also=(steps(lambda norm, x, f: f(norm(x)), lambda norm, x, f: f(norm(x))),),
    ),
    Mistake(
        "no-residual-attention",
        "The residual around self-attention is missing: what a token was is replaced by what the "
        "others bring.",
        steps(bare, post),
    ),
    Mistake(
        "no-residual-feed-forward",
        "The residual around the feed-forward is missing.",
        steps(post, bare),
    ),
    Mistake(
        "doubled",
        "x is overwritten by the sublayer's output before the two are added: it is the output that "
        "is added to itself.",
        **either(doubled_post, post),
    ),
    Mistake(
        "residual-twice",
        "x is added twice.",
        **either(lambda norm, x, f: norm(x + x + f(x)), post),
    ),
    Mistake(
        "subtracted",
        "The sublayer's output is subtracted from x, or x from it.",
        **either(lambda norm, x, f: norm(x - f(x)), post),
    ),
    Mistake(
        "multiplied",
        "x and the sublayer's output are multiplied. A residual is a sum.",
        **either(lambda norm, x, f: norm(x * f(x)), post),
    ),
    Mistake(
        "stream-kept",
        "The second residual starts from the sum before norm_1. It should start from what norm_1 "
        "returns: in post-norm nothing passes a norm by.",
        version(kept_stream),
    ),
    Mistake(
        "adds-to-the-input",
        "The second residual starts from what came into the block, not from what the first step "
        "gave.",
        version(adds_to_the_input),
    ),
    Mistake(
        "feeds-the-input",
        "The feed-forward works on what came into the block, not on what the first step gave.",
        version(feeds_the_input),
    ),
    Mistake(
        "side-by-side",
        "Both sublayers work on the same x, side by side. The feed-forward comes after "
        "self-attention, on its result.",
        version(side_by_side),
        also=(
            version(
                lambda block, x, mask: block.norm_1(
                    x + attend(block, x, mask) + feed(block, x, mask)
                )
            ),
        ),
    ),
    Mistake(
        "feed-forward-unnormalised",
        "The feed-forward works on the sum before norm_1, which comes later or not at all.",
        version(
            lambda block, x, mask: block.norm_2(
                block.norm_1(x + attend(block, x, mask))
                + feed(block, x + attend(block, x, mask), mask)
            )
        ),
    ),
    Mistake(
        "sum-fed",
        "The sublayer gets x where its output should be: the order of adding and applying is "
        "exchanged.",
        **either(lambda norm, x, f: norm(f(x + x)), post),
    ),
    Mistake(
        "residual-detached",
        "The gradient does not pass along the residual. That path is why deep stacks train.",
        **either(lambda norm, x, f: norm(x.detach() + f(x)), post),
    ),
)

EXERCISE = Exercise(
    number="7.3",
    reference=EncoderBlock,
    wire="class",
    outputs=(Output("output", "b n d"),),
    difficulty=2,
    minutes=20,
    points=4,
    may_use="torch, nn.LayerNorm or the course's LayerNorm, your own or the course's "
    "MultiHeadAttention and FeedForward",
    stages=stages(
        MISTAKES,
        "Without a mask the output differs. Two steps, each norm(x + sublayer(x)): self-attention "
        "with norm_1, then the feed-forward with norm_2.",
    ),
    mistakes=MISTAKES,
    hints=(
        "Four parts and two steps. In each step a sublayer works on x, the result is added to x, "
        "and the sum is normalised. What does the second step take for its x?",
        "self.self_attention(x, x, x, mask) returns a pair; the residual wants its first part. "
        "The feed-forward takes x alone.",
        "x = self.norm_1(x + …) with self-attention in the gap, then the same with self.norm_2 and "
        "self.feed_forward, and x is returned.",
    ),
)
