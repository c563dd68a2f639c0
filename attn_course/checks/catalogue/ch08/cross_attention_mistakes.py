"""Known-wrong versions of exercise 8.1, cross_attention."""

from __future__ import annotations

from math import sqrt

from attn_course.attention import cross_attention, scaled_dot_product_attention
from attn_course.checks.catalogue.ch03 import scaled_dot_product_attention as of_attention
from attn_course.checks.catalogue.ch05.multi_head_versions import weakly_hidden
from attn_course.checks.catalogue.ch08.cross_attention_versions import (
    added,
    attending,
    by_hand,
    causal_from_the_top,
    causal_too,
    cleaned_at_the_end,
    crossed,
    cut_out,
    filled_and_cleaned,
    joined,
    no_softmax,
    projected,
    returning,
    right,
    unshifted,
    width_scale,
    zeroed_after,
    zeroed_memory,
)
from attn_course.checks.exercise import Answer, Mistake
from attn_course.checks.gradients import detached_inputs


def from_chapter_03(mistake_id: str, message: str = "", *others: Answer) -> Mistake:
    """A mistake of `scaled_dot_product_attention`, made here."""
    known = of_attention.EXERCISE.mistake(mistake_id)
    first, *also = map(crossed, of_attention.EXERCISE.versions(known))
    return Mistake(mistake_id, message or known.message, first, also=(*also, *others))


PADDING_AXIS = (
    "The padding mask (b, j) has to become (b, 1, j): it says which keys of each sequence may be "
    "attended to, the same for every query."
)

MISTAKES = (
    Mistake(
        "roles-reversed",
        "The memory asks and x is looked up. In cross-attention x asks: there is one output for "
        "each token of x.",
        projected(lambda x, memory, W_q, W_k, W_v: (memory @ W_q, x @ W_k, x @ W_v)),
        also=(projected(lambda x, memory, W_q, W_k, W_v: (memory @ W_k, x @ W_q, memory @ W_v)),),
    ),
    Mistake(
        "self-attention",
        "Keys and values are made from x: this is self-attention, and the memory is not read.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, x @ W_k, x @ W_v)),
    ),
    Mistake(
        "memory-alone",
        "The queries are made from the memory: x is not read.",
        projected(lambda x, memory, W_q, W_k, W_v: (memory @ W_q, memory @ W_k, memory @ W_v)),
    ),
    Mistake(
        "keys-from-x",
        "The keys are made from x, so the scores say how x matches x. The keys belong to what is "
        "looked up, like the values.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, x @ W_k, memory @ W_v)),
    ),
    Mistake(
        "values-from-x",
        "The values are made from x. What is handed over should come from the memory.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_k, x @ W_v)),
    ),
    Mistake(
        "key-and-value-exchanged",
        "Keys are made with W_v, and values with W_k.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_v, memory @ W_k)),
    ),
    Mistake(
        "query-and-key-exchanged",
        "Queries are made with W_k, and keys with W_q.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_k, memory @ W_q, memory @ W_v)),
    ),
    Mistake(
        "value-from-key",
        "The values are made with W_k, and W_v is not used: a line copied?",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_k, memory @ W_k)),
    ),
    Mistake(
        "key-with-the-query-weight",
        "The keys are made with W_q: a line copied?",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_q, memory @ W_v)),
    ),
    Mistake(
        "values-not-projected",
        "The values are the memory as it is: W_v is not used.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q, memory @ W_k, memory)),
    ),
    Mistake(
        "weights-transposed",
        "The weights are used transposed. They are drawn (in, out), so x @ W is all there is; "
        "nn.Linear stores them the other way round.",
        projected(lambda x, memory, W_q, W_k, W_v: (x @ W_q.T, memory @ W_k.T, memory @ W_v.T)),
    ),
    Mistake("no-scale", "The scores are not divided by √d_k.", by_hand(scale=lambda q, s: 1.0)),
    Mistake(
        "scale-of-d-k",
        "The scores are divided by d_k. It should be its root.",
        by_hand(scale=lambda q, s: q.shape[-1]),
    ),
    Mistake(
        "scale-of-d-model",
        "The scores are divided by the root of the width of x. It should be the root of d_k, the "
        "size of a query.",
        width_scale(0),
    ),
    Mistake(
        "scale-of-d-memory",
        "The scores are divided by the root of the memory's width. It should be the root of d_k, "
        "the size of a query.",
        width_scale(1),
    ),
    Mistake(
        "scale-of-the-length",
        "The scores are divided by the root of the number of keys. It should be the root of d_k.",
        by_hand(scale=lambda q, s: sqrt(s.shape[-1])),
    ),
    from_chapter_03("scale-inverted"),
    from_chapter_03("scale-by-queries"),
    from_chapter_03("scale-by-values"),
    from_chapter_03("scale-after-softmax"),
    from_chapter_03("scale-on-output"),
    Mistake(
        "fixed-scale",
        "The scores are multiplied by the same number, whatever d_k is. It should be 1/√d_k.",
        examples=(by_hand(scale=lambda q, s: 8.0), by_hand(scale=lambda q, s: 3.0)),
    ),
    from_chapter_03("cosine"),
    from_chapter_03("softmax-over-all-pairs"),
    from_chapter_03("softmax-twice"),
    from_chapter_03("uniform-weights"),
    from_chapter_03("sign-of-the-scores"),
    from_chapter_03("hard-choice"),
    from_chapter_03("unstable-softmax", "", attending(unshifted)),
    Mistake(
        "softmax-over-queries",
        "The softmax runs over the queries. Each query should share out one whole among the keys.",
        by_hand(dim=-2),
    ),
    Mistake(
        "softmax-over-the-batch",
        "The softmax runs over the batch. Each query should share out one whole among the keys.",
        by_hand(dim=0),
    ),
    Mistake("no-softmax", "The values are weighted by bare scores.", attending(no_softmax)),
    Mistake(
        "padding-ignored",
        "The padding changes nothing: padded keys are attended to.",
        attending(lambda q, k, v, padding: scaled_dot_product_attention(q, k, v)),
    ),
    Mistake(
        "padding-inverted",
        "The padding mask works the other way round: True means a token, which may be attended to.",
        attending(lambda q, k, v, p: right(q, k, v, None if p is None else ~p)),
    ),
    Mistake(
        "padding-on-the-queries",
        "The padding is laid along the axis of the queries, (b, j, 1). " + PADDING_AXIS,
        attending(
            lambda q, k, v, p: scaled_dot_product_attention(
                q, k, v, None if p is None else p[:, :, None]
            )
        ),
        also=(by_hand(lift=lambda p: p[:, :, None]),),
    ),
    Mistake(
        "padding-as-it-is",
        "The padding (b, j) meets the scores (b, i, j) as it is, and is taken for (i, j). "
        + PADDING_AXIS,
        attending(scaled_dot_product_attention),
        also=(by_hand(lift=lambda p: p),),
    ),
    Mistake(
        "causal-too",
        "Part of the memory is hidden as if it lay in the future. The memory is complete before "
        "the first query is asked: only padding is hidden.",
        attending(causal_from_the_top),
        also=(attending(causal_too),),
    ),
    Mistake(
        "fill-zero",
        "The scores of padded keys are set to 0, and a key with score 0 still gets weight.",
        by_hand(fill=0.0),
        also=(by_hand(fill=1e-9),),
    ),
    Mistake(
        "fill-too-small",
        "Padded keys get a score that is only somewhat low; beside lower ones it wins.",
        crossed(weakly_hidden(-100.0)),
        also=tuple(crossed(weakly_hidden(fill)) for fill in (-10.0, -1000.0)),
    ),
    from_chapter_03(
        "mask-filled-with-plus-infinity",
        "The scores of padded keys become plus infinity: the sign is lost.",
    ),
    from_chapter_03(
        "mask-filled-with-a-large-number",
        "The scores of padded keys become large and positive, so that they get all the weight: the "
        "sign is lost.",
    ),
    from_chapter_03("mask-times-infinity"),
    Mistake(
        "memory-zeroed",
        "The padded tokens of the memory are set to zeros, and then attended to: a key of zeros "
        "has the score 0, and still gets weight.",
        zeroed_memory,
    ),
    Mistake(
        "padding-added",
        "The mask's ones and zeros are added to the scores: a padded key still gets weight.",
        attending(added),
    ),
    Mistake(
        "mask-after-softmax",
        "The weights of padded keys are set to 0 after the softmax: the others no longer sum to "
        "one.",
        attending(zeroed_after),
    ),
    Mistake(
        "empty-row-nan",
        "A memory of padding only gives NaN: a softmax over nothing but minus infinity. Here it "
        "should give zeros.",
        by_hand(),
    ),
    Mistake(
        "empty-row-mean",
        "A memory of padding only gives the mean of its values, which nobody may see. Here it "
        "should give zeros.",
        by_hand(fill=-1e9),
    ),
    Mistake(
        "gradient-nan",
        "The output is clean, but with a memory of padding only the gradient is NaN: NaN arose "
        "inside and was replaced only at the end. It must not arise.",
        attending(cleaned_at_the_end),
        also=(
            attending(filled_and_cleaned),
            *map(
                crossed,
                of_attention.EXERCISE.versions(of_attention.EXERCISE.mistake("gradient-nan")),
            ),
        ),
    ),
    Mistake(
        "weights-before-the-padding",
        "The output is right, but the weights that come back are those before the padding was "
        "hidden.",
        returning(lambda output, weights, *args: (output, cross_attention(*args[:5])[1])),
    ),
    from_chapter_03("scores-returned"),
    Mistake(
        "residual",
        "x is added to the output. The residual stands outside of attention, in the block.",
        returning(lambda output, weights, x, *args: (output + x, weights)),
    ),
    Mistake(
        "query-returned",
        "The queries come back in the place of the output: the weighted sum is lost on the way.",
        returning(lambda output, weights, x, memory, W_q, *args: (x @ W_q, weights)),
        also=(returning(lambda output, weights, x, *args: (x, weights)),),
    ),
    Mistake(
        "values-returned",
        "The values come back, not their weighted sum.",
        returning(lambda out, weights, x, memory, W_q, W_k, W_v, *_: (memory @ W_v, weights)),
    ),
    Mistake(
        "joined",
        "x and the memory are joined, and looked up together. What is looked up is the memory "
        "alone.",
        joined,
    ),
    Mistake(
        "padding-cut-out",
        "The padded tokens are cut out of the memory: the weights lose their columns, and in a "
        "batch the sequences run together. Padded keys stay where they are and get the weight 0.",
        cut_out,
    ),
    Mistake(
        "output-only",
        "Only the output comes back. Asked for is the pair (output, weights).",
        lambda *args: cross_attention(*args)[0],
    ),
    Mistake(
        "pair-exchanged",
        "The pair is (weights, output). Asked for is (output, weights).",
        lambda *args: cross_attention(*args)[::-1],
    ),
    Mistake(
        "no-gradient",
        "The values are right, but no gradient reaches the weights: something detaches them.",
        detached_inputs(cross_attention),
    ),
)
