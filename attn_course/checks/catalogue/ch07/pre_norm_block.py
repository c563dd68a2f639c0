"""Exercise 7.4, PreNormBlock: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from attn_course.blocks import PreNormBlock
from attn_course.checks.catalogue.ch07.block_parts import in_place_copy, stages
from attn_course.checks.catalogue.ch07.block_versions import (
    around,
    attend,
    common,
    doubled,
    either,
    feed,
    from_the_normalised,
    of_the_output,
    post,
    pre,
    steps,
    version,
)
from attn_course.checks.exercise import Answer, Exercise, Mistake, Output


def right(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """The forward pass asked for."""
    x = x + attend(block, block.norm_1(x), mask)
    return x + feed(block, block.norm_2(x), mask)


def bare(norm: Any, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """No residual."""
    return sublayer(norm(x))


def asking(*normalised: bool) -> Answer:
    """Of query, key and value only some are normalised."""

    def forward(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
        given = [block.norm_1(x) if norm else x for norm in normalised]
        x = x + block.self_attention(*given, mask)[0]
        return x + feed(block, block.norm_2(x), mask)

    return version(forward)


def adds_to_the_input(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """The second residual starts from what came into the block."""
    y = x + attend(block, block.norm_1(x), mask)
    return x + feed(block, block.norm_2(y), mask)


def feeds_the_input(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """The feed-forward works on what came into the block."""
    y = x + attend(block, block.norm_1(x), mask)
    return y + feed(block, block.norm_2(x), mask)


def normalises_the_output(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """A norm at the end as well."""
    return block.norm_2(right(block, x, mask))


def written_over(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """Adds in place, to a copy, which the norm needs as it was."""
    x = x.clone()
    x += attend(block, block.norm_1(x), mask)
    return x + feed(block, block.norm_2(x), mask)


ORDER = "Asked for is x + sublayer(norm(x)): nothing stands on the way through the sums."

MISTAKES = (
    *common(pre, right),
    in_place_copy(version(written_over)),
    Mistake(
        "post-norm",
        f"The norm stands after the sum: that is post-norm. {ORDER}",
        **either(post, pre),
    ),
    Mistake(
        "norm-of-the-output",
        f"The norm is taken of the sublayer's output. It belongs on its input. {ORDER}",
        **either(of_the_output, pre),
    ),
    Mistake(
        "residual-of-the-normalised",
        "The residual starts from the normalised x, as when x is overwritten by its norm. Then the "
        f"norm stands on the way through. {ORDER}",
        **either(from_the_normalised, pre),
    ),
    Mistake(
        "norm-of-the-residual",
        f"The norm is on the residual, and the sublayer gets x as it is. {ORDER}",
        **either(lambda norm, x, f: norm(x) + f(x), pre),
    ),
    Mistake(
        "norm-twice",
        f"The norm stands before the sublayer and again after the sum. {ORDER}",
        steps(around, around),
        also=(steps(around, pre),),
    ),
    Mistake(
        "normalised-at-the-end",
        "What leaves the block is normalised. The model puts one norm after its last block; "
        "within, the sums pass untouched.",
        version(normalises_the_output),
        also=(version(lambda block, x, mask: block.norm_1(right(block, x, mask))),),
    ),
    Mistake(
        "sum-inside",
        "x is added inside the sublayer's argument: f(norm(x) + x). The residual goes around the "
        "sublayer.",
        **either(lambda norm, x, f: f(norm(x) + x), pre),
    ),
    Mistake(
        "input-not-normalised",
        "The sublayer works on norm(x) + x, so that its input is not normalised.",
        **either(lambda norm, x, f: x + f(norm(x) + x), pre),
    ),
    Mistake(
        "no-residuals",
        "There are no residuals: each step replaces x instead of adding to it.",
        steps(bare, bare),
        also=(steps(lambda norm, x, f: norm(f(x)), lambda norm, x, f: norm(f(x))),),
    ),
    Mistake(
        "no-residual-attention",
        "The residual around self-attention is missing: what a token was is replaced by what the "
        "others bring.",
        steps(bare, pre),
    ),
    Mistake(
        "no-residual-feed-forward",
        "The residual around the feed-forward is missing.",
        steps(pre, bare),
    ),
    Mistake(
        "doubled",
        "x is overwritten by the sublayer's output before the two are added: it is the output that "
        "is added to itself.",
        **either(doubled, pre),
    ),
    Mistake(
        "residual-twice", "x is added twice.", **either(lambda norm, x, f: x + x + f(norm(x)), pre)
    ),
    Mistake(
        "subtracted",
        "The sublayer's output is subtracted from x, or x from it.",
        **either(lambda norm, x, f: x - f(norm(x)), pre),
    ),
    Mistake(
        "multiplied",
        "x and the sublayer's output are multiplied. A residual is a sum.",
        **either(lambda norm, x, f: x * f(norm(x)), pre),
    ),
    Mistake(
        "queries-only",
        "Of queries, keys and values only some are made from the normalised x, the others from x "
        "as it is. In self-attention all three come from the same normalised x.",
        asking(True, False, False),
        also=(
            asking(False, True, True),
            asking(True, True, False),
            asking(True, False, True),
            asking(False, False, True),
            asking(False, True, False),
        ),
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
        also=(
            version(
                lambda block, x, mask: (
                    x + attend(block, block.norm_1(x), mask) + feed(block, block.norm_1(x), mask)
                )
            ),
        ),
    ),
    Mistake(
        "residual-detached",
        "The gradient does not pass along the residual. That path is why deep stacks train.",
        **either(lambda norm, x, f: x.detach() + f(norm(x)), pre),
    ),
)

EXERCISE = Exercise(
    number="7.4",
    reference=PreNormBlock,
    wire="class",
    outputs=(Output("output", "b n d"),),
    difficulty=2,
    minutes=10,
    points=3,
    may_use="torch, nn.LayerNorm or the course's LayerNorm, your own or the course's "
    "MultiHeadAttention and FeedForward",
    stages=stages(
        MISTAKES,
        "Without a mask the output differs. Two steps, each x + sublayer(norm(x)): self-attention "
        "with norm_1, then the feed-forward with norm_2.",
    ),
    mistakes=MISTAKES,
    hints=(
        "The parts are those of your EncoderBlock. Only the place of the norm changes: if both "
        "sublayers returned zeros, x should pass unchanged.",
        "Normalise into a variable of another name, so that x is still there for the sum. All "
        "three of query, key and value are the normalised x.",
        "y = self.norm_1(x), then x = x + … with self-attention of y in the gap; the same with "
        "self.norm_2 and the feed-forward.",
    ),
)
