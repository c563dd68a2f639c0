"""Known-wrong versions of exercise 8.4, DecoderBlock."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from attn_course.checks.catalogue.ch07.block_parts import OTHER_HEADS, OTHER_WIDTH, in_place_copy
from attn_course.checks.catalogue.ch08.decoder_block_versions import (
    adds_to_the_first,
    always_causal,
    ask_memory,
    ask_self,
    asks_with_the_first,
    cross,
    detached,
    detached_memory,
    dropping,
    feed,
    feeds_onto_the_first,
    first_written_into,
    in_order,
    library_attention,
    made_anew,
    memory_written_into,
    memory_zeroed,
    normalised_queries,
    one_head,
    one_head_for_the_memory,
    other_width,
    plain_norms,
    right,
    shared_attention,
    shared_norm,
    steps,
    stream_not_normalised,
    version,
    with_attention,
    without_norm,
    without_residual,
    without_step,
    written_into,
)
from attn_course.checks.exercise import Mistake
from attn_course.checks.modules import of_repeated_calls

STEPS = "The steps are self-attention, then attention to the memory, then feed-forward."


def pair_of_self(block: Any, x: Tensor, _: Tensor, mask: Any, __: Any) -> Any:
    """The output and the weights of self-attention."""
    return block.self_attention(x, x, x, mask)


def pair_of_memory(block: Any, x: Tensor, memory: Tensor, _: Any, memory_mask: Any) -> Any:
    """The output and the weights of cross-attention."""
    return block.cross_attention(x, memory, memory, memory_mask)


def pair_and_self(block: Any, x: Tensor, *others: Any) -> Any:
    """The same, with x added to the pair."""
    return pair_of_self(block, x, *others) + x


def pair_and_memory(block: Any, x: Tensor, *others: Any) -> Any:
    """The same, with x added to the pair."""
    return pair_of_memory(block, x, *others) + x


def hidden_by_both(
    block: Any, x: Tensor, memory: Tensor, mask: Tensor | None, memory_mask: Tensor | None
) -> Tensor:
    """Self-attention under its own mask and that of the memory, as far as they are given."""
    given = [one for one in (mask, memory_mask) if one is not None]
    both = given[0] & given[-1] if given else None
    return block.self_attention(x, x, x, both)[0]


MISTAKES = (
    Mistake(
        "shared-norm",
        "One norm stands in several places. Each of the three has gains and biases of its own to "
        "learn.",
        version(right, shared_norm),
    ),
    Mistake(
        "shared-attention",
        "One attention stands in both places. To ask oneself and to ask the memory are two things, "
        "with weights of their own.",
        version(right, shared_attention),
    ),
    Mistake("width", OTHER_WIDTH, version(right, other_width)),
    Mistake(
        "heads-not-handed-on",
        OTHER_HEADS,
        version(right, one_head),
        also=(version(right, one_head_for_the_memory),),
    ),
    Mistake(
        "pre-norm",
        "The norm stands before each sublayer. That is pre-norm; asked for is the paper's order, "
        "norm(x + sublayer(x)).",
        in_order(lambda norm, x, step: x + step(norm(x))),
    ),
    Mistake(
        "norm-inside",
        "The norm is taken of the sublayer's output alone, and x is added after it. Asked for is "
        "the norm of the sum.",
        in_order(lambda norm, x, step: x + norm(step(x))),
    ),
    Mistake(
        "residual-inside",
        "The sublayer is given norm(x) + x, and nothing is added to what it returns. The residual "
        "goes round the sublayer: norm(x + sublayer(x)).",
        in_order(lambda norm, x, step: step(norm(x) + x)),
        also=(in_order(lambda norm, x, step: norm(step(x + x))),),
    ),
    Mistake(
        "stream-not-normalised",
        "What goes on from step to step is the sum before its norm: the norm's result is read by "
        "the next sublayer and then lost. Here the norm's result *is* the new x.",
        stream_not_normalised(last=True),
        also=(stream_not_normalised(last=False),),
    ),
    Mistake(
        "queries-normalised",
        "Pre-norm, in which only the queries are normalised and not the keys and values of the "
        "same x. Asked for is the paper's order, norm(x + sublayer(x)).",
        version(normalised_queries),
    ),
    Mistake(
        "norm-before-and-residual-of-it",
        "x is normalised first, and the residual starts from that. Asked for is the norm of the "
        "sum.",
        in_order(lambda norm, x, step: norm(x) + step(norm(x))),
    ),
    Mistake(
        "no-residuals",
        "There are no residuals: each step replaces x instead of adding to it. (Or it overwrites x "
        "before the two are added, so that the sublayer's output is added to itself: the norm "
        "makes the same of both.)",
        in_order(lambda norm, x, step: norm(step(x))),
        also=(in_order(lambda norm, x, step: norm(2 * step(x))),),
    ),
    Mistake(
        "no-norms",
        "The norms are made and not used.",
        in_order(lambda norm, x, step: x + step(x)),
    ),
    Mistake(
        "no-residual-self", "The residual around self-attention is missing.", without_residual(1)
    ),
    Mistake(
        "no-residual-cross",
        "The residual around cross-attention is missing: what x was is replaced by what the memory "
        "gives.",
        without_residual(2),
    ),
    Mistake(
        "no-residual-feed-forward",
        "The residual around the feed-forward is missing.",
        without_residual(3),
    ),
    Mistake(
        "norm-weights-unused",
        "Gain and bias of a norm do not reach the result: in its place stands one without them, or "
        "one that is made anew in each call. Make three in __init__, and use those.",
        plain_norms(1, 2, 3),
        also=(plain_norms(1), plain_norms(2), plain_norms(3)),
    ),
    Mistake(
        "pair-added",
        "An attention returns a pair, (output, weights). Its output alone is added.",
        steps(two=pair_of_memory),
        also=(steps(one=pair_of_self), steps(two=pair_and_memory), steps(one=pair_and_self)),
    ),
    Mistake("norm-1-unused", "The norm after self-attention is missing.", without_norm(1)),
    Mistake("norm-2-unused", "The norm after cross-attention is missing.", without_norm(2)),
    Mistake("norm-3-unused", "The norm after the feed-forward is missing.", without_norm(3)),
    Mistake("no-self-attention", "Self-attention is left out. " + STEPS, without_step(1)),
    Mistake(
        "no-cross-attention",
        "Attention to the memory is left out: the decoder never reads the source. " + STEPS,
        without_step(2),
    ),
    Mistake("no-feed-forward", "The feed-forward is left out. " + STEPS, without_step(3)),
    Mistake(
        "cross-first",
        "The memory is asked before x has asked itself. " + STEPS,
        steps(ask_memory, ask_self, norms="123"),
        also=(steps(ask_memory, ask_self, norms="213"),),
    ),
    Mistake(
        "feed-forward-between",
        "The feed-forward stands before cross-attention. " + STEPS,
        steps(ask_self, feed, ask_memory, norms="123"),
        also=(steps(ask_self, feed, ask_memory, norms="132"),),
    ),
    Mistake(
        "norms-exchanged",
        "The norms stand in another order: norm_1 is for self-attention, norm_2 for "
        "cross-attention, norm_3 for the feed-forward.",
        steps(norms="213"),
        also=(steps(norms="132"), steps(norms="321")),
    ),
    Mistake(
        "one-norm-used",
        "One norm is used in several places, and another in none.",
        steps(norms="111"),
        also=tuple(steps(norms=n) for n in ("112", "113", "122", "133", "223", "233")),
    ),
    Mistake(
        "roles-reversed",
        "The memory asks and x is looked up. The decoder asks: there is one output for each token "
        "of x.",
        cross("memory", "x", "x", "memory_mask"),
        also=(cross("memory", "x", "x", "mask"), cross("memory", "x", "x", "none")),
    ),
    Mistake(
        "memory-not-read",
        "Cross-attention takes its keys and values from x: the memory is not read.",
        cross("x", "x", "x", "memory_mask"),
        also=(cross("x", "x", "x", "mask"), cross("x", "x", "x", "none")),
    ),
    Mistake(
        "values-from-x",
        "The values of cross-attention come from x. What is handed over comes from the memory.",
        cross("x", "memory", "x", "memory_mask"),
    ),
    Mistake(
        "keys-from-x",
        "The keys of cross-attention come from x. What is looked up is the memory.",
        cross("x", "x", "memory", "memory_mask"),
    ),
    Mistake(
        "masks-exchanged",
        "The two masks are exchanged: `mask` is for self-attention, `memory_mask` for the memory.",
        version(
            lambda block, x, memory, mask, memory_mask: right(block, x, memory, memory_mask, mask)
        ),
    ),
    Mistake(
        "target-mask-on-memory",
        "Cross-attention gets the mask of x. At equal lengths nothing tells, and the decoder reads "
        "the source only as far as it has written.",
        cross("x", "memory", "memory", "mask"),
    ),
    Mistake(
        "memory-mask-on-x",
        "Self-attention gets the mask of the memory.",
        steps(
            lambda block, x, memory, mask, memory_mask: block.self_attention(x, x, x, memory_mask)[
                0
            ]
        ),
        also=(steps(hidden_by_both),),
    ),
    Mistake(
        "mask-ignored",
        "The mask on x changes nothing: the decoder sees its own future.",
        version(
            lambda block, x, memory, mask, memory_mask: right(block, x, memory, None, memory_mask)
        ),
    ),
    Mistake(
        "memory-mask-ignored",
        "The mask on the memory changes nothing: padding is read.",
        cross("x", "memory", "memory", "none"),
    ),
    Mistake(
        "memory-zeroed",
        "The padded tokens of the memory are set to zeros, and then attended to: a key of zeros "
        "has a score like others. Hand the mask to cross-attention.",
        version(memory_zeroed),
    ),
    Mistake(
        "masks-inverted",
        "A mask works the other way round: True means “may attend”.",
        version(
            lambda block, x, memory, mask, memory_mask: right(
                block,
                x,
                memory,
                None if mask is None else ~mask,
                None if memory_mask is None else ~memory_mask,
            )
        ),
        also=(
            version(
                lambda block, x, memory, mask, memory_mask: right(
                    block, x, memory, None if mask is None else ~mask, memory_mask
                )
            ),
            version(
                lambda block, x, memory, mask, memory_mask: right(
                    block, x, memory, mask, None if memory_mask is None else ~memory_mask
                )
            ),
        ),
    ),
    Mistake(
        "always-causal",
        "The future of x is hidden without being asked. The mask comes from the caller.",
        version(always_causal),
    ),
    Mistake(
        "self-attention-twice",
        "self.self_attention asks the memory, too; self.cross_attention is not used.",
        with_attention("self_attention", "self_attention"),
    ),
    Mistake(
        "cross-attention-twice",
        "self.cross_attention serves for x, too; self.self_attention is not used.",
        with_attention("cross_attention", "cross_attention"),
    ),
    Mistake(
        "attentions-exchanged",
        "self.cross_attention is used for x, and self.self_attention for the memory.",
        with_attention("cross_attention", "self_attention"),
    ),
    Mistake(
        "asks-with-the-input",
        "The memory is asked with what came in, not with what self-attention has made of it.",
        version(asks_with_the_first),
    ),
    Mistake(
        "adds-to-the-input",
        "A residual starts from what came into the block. It should start from what the step "
        "before gave.",
        version(adds_to_the_first),
        also=(version(feeds_onto_the_first),),
    ),
    Mistake(
        "memory-normalised",
        "The memory is normalised before it is read. The norms here are for x.",
        steps(
            two=lambda block, x, memory, mask, memory_mask: block.cross_attention(
                x, block.norm_2(memory), block.norm_2(memory), memory_mask
            )[0]
        ),
    ),
    Mistake(
        "input-returned",
        "What came in comes back: the result of the steps has another name, and is lost.",
        version(lambda block, x, *others: (right(block, x, *others), x)[1] + 0),
        also=(version(lambda block, x, memory, *masks: memory + 0),),
    ),
    Mistake(
        "in-place",
        "The caller's x or memory is changed in place (`+=` writes into it). Whoever calls still "
        "needs it: every block reads the same memory.",
        version(written_into),
        also=(version(memory_written_into),),
    ),
    in_place_copy(
        version(lambda block, x, *others: written_into(block, x.clone(), *others)),
        version(first_written_into),
    ),
    Mistake(
        "library-attention",
        "The attention is PyTorch's nn.MultiheadAttention. Its fourth argument is a mask of "
        "padding, True where it is *hidden*, and it takes (b, j) alone. Asked for is the course's "
        "MultiHeadAttention, or your own.",
        version(right, library_attention),
    ),
    Mistake(
        "pair",
        "A pair comes back. The block returns its output alone.",
        version(lambda block, *args: (right(block, *args), None)),
        also=(version(lambda block, x, memory, *masks: (right(block, x, memory, *masks), memory)),),
    ),
    Mistake(
        "no-gradient",
        "No gradient comes through: the block runs under no_grad, or detaches.",
        version(detached),
    ),
    Mistake(
        "memory-detached",
        "No gradient reaches the memory, so that the encoder would never be trained.",
        version(detached_memory),
    ),
    *of_repeated_calls(
        dropping=(version(dropping),),
        made_anew=(version(made_anew("cross_attention")), version(made_anew("feed_forward"))),
    ),
)
