"""Mistakes of exercise 5.3, MultiHeadAttention, in its masks and in what it returns."""

from __future__ import annotations

from attn_course.attention import scaled_dot_product_attention
from attn_course.checks.catalogue.ch05 import multi_head_versions as v
from attn_course.checks.catalogue.ch05.multi_head_probes import OTHER_WEIGHTS
from attn_course.checks.exercise import Mistake

OF_MASKS = (
    Mistake("mask-ignored", "The mask changes nothing. Is it handed on?", v.masked(lambda m: None)),
    Mistake(
        "mask-inverted",
        "The mask works the other way round. Here True means “may attend”; the masks of "
        "nn.MultiheadAttention say the opposite.",
        v.masked(lambda m: ~v.lift_mask(m)),
        also=(
            v.with_step(
                attend=lambda q, k, val, m: scaled_dot_product_attention(
                    q, k, val, None if m is None else v.lift_mask(~m)
                )
            ),
        ),
    ),
    Mistake(
        "mask-of-heads",
        "A mask (b, i, j) is laid against scores (b, h, i, j) as it is, so that sequence m's mask "
        "hides keys from head m. Where b and h agree nothing tells. It needs an axis for the heads "
        "behind the one of the batch.",
        v.with_step(attend=v.filled),
        also=(
            v.with_step(attend=v.filled_and_cleared),
            v.masked(lambda m: m.reshape((1,) * (4 - m.ndim) + m.shape)),
        ),
    ),
    Mistake(
        "mask-tiled",
        "Sequences are hidden by each other's masks: sequences and heads are one axis, b times h, "
        "and the masks stand on it in another order than the heads. All heads of a sequence come "
        "first, then those of the next (repeat_interleave, not repeat).",
        v.with_step(attend=v.tiled),
    ),
    Mistake(
        "mask-unsqueezed",
        "Every mask gets an axis of size 1 in the second place. That suits (b, i, j) alone: a mask "
        "(i, j) becomes (i, 1, j), and one with four axes gets five.",
        v.version(v.textbook),
        also=(
            v.with_step(
                attend=lambda q, k, val, m: v.filled(
                    q, k, val, None if m is None else m.unsqueeze(1)
                )
            ),
        ),
    ),
    Mistake(
        "always-causal",
        "The future is hidden without being asked: without a mask every query sees all keys.",
        v.version(v.always_causal),
    ),
    Mistake(
        "mask-kept",
        "A mask given in one call is still at work in the next, which gives none.",
        v.version(v.mask_kept),
    ),
    Mistake(
        "mask-added",
        "The mask is added to the scores as ones and zeros: what is open gets a little more, what "
        "is hidden keeps its weight. To be added, it must be 0 and minus infinity.",
        v.with_step(attend=v.added),
    ),
    Mistake(
        "fill-zero",
        "Hidden scores are set to 0, and a key with score 0 still gets weight.",
        v.by_hand(fill=0.0),
        also=(v.by_hand(fill=1e-9), v.by_hand(fill=-1e-9)),
    ),
    Mistake(
        "fill-too-small",
        "Hidden keys get a score that is only somewhat low; beside lower ones it wins.",
        v.attending_under_a_mask(v.weakly_hidden(-100.0)),
        also=tuple(v.attending_under_a_mask(v.weakly_hidden(fill)) for fill in (-10.0, -1000.0)),
    ),
    Mistake(
        "mask-after-softmax",
        "Hidden weights are set to 0 after the softmax: the others no longer sum to one.",
        v.with_step(attend=v.zeroed_after),
    ),
    Mistake(
        "empty-row-nan",
        "A query that may attend to nothing gives NaN: a softmax over nothing but minus infinity. "
        "Here its weights should be zeros.",
        v.by_hand(),
    ),
    Mistake(
        "empty-row-mean",
        "A query that may attend to nothing gets the mean of all values, those that it may not "
        "see. Here its weights should be zeros, and its output is W_o's bias alone.",
        v.by_hand(fill=-1e9),
    ),
    Mistake(
        "empty-row-gradient",
        "NaN is cleared from the result, but it was there: through a softmax over nothing but "
        "minus infinity the gradient is NaN, and so are the weights after one step.",
        v.with_step(attend=v.cleared_afterwards),
    ),
    Mistake(
        "empty-row-output-cleared",
        "For a query that may attend to nothing the output is cleared after W_o. What W_o is given "
        "there is zeros; its bias stays.",
        v.version(v.cleared),
    ),
)

OF_RESULTS = (
    Mistake(
        "output-only",
        "Only the output comes back. Asked for is the pair (output, weights).",
        v.version(lambda layer, *inputs: v.right(layer, *inputs)[0]),
    ),
    Mistake(
        "no-weights",
        "In place of the weights there is None: PyTorch's fused kernel does not have them. Asked "
        "for are those of each head.",
        v.with_step(attend=v.no_weights),
    ),
    Mistake(
        "pair-exchanged",
        "The pair is (weights, output). Asked for is (output, weights).",
        v.version(lambda layer, *inputs: v.right(layer, *inputs)[::-1]),
    ),
    Mistake(
        "other-weights",
        OTHER_WEIGHTS,
        examples=(
            v.reported(lambda q, k, weights: q @ k.mT / q.shape[-1] ** 0.5),
            v.reported(lambda q, k, weights: weights.softmax(dim=-1)),
            v.reported(lambda q, k, weights: weights.log()),
        ),
    ),
    Mistake(
        "no-gradient",
        "No gradient reaches the weights: forward runs under no_grad, or detaches, so nothing of "
        "it would be trained.",
        v.version(v.without_graph),
    ),
    Mistake(
        "weights-detached",
        "The attention weights are detached before the values are summed: W_q and W_k get no "
        "gradient from the output and are never trained.",
        v.with_step(attend=v.detached_weights),
    ),
)
