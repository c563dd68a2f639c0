"""The known mistakes of exercise 5.3, MultiHeadAttention."""

from __future__ import annotations

from math import sqrt

from torch import nn

from attn_course.checks.catalogue.ch05 import multi_head_versions as v
from attn_course.checks.catalogue.ch05.multi_head_masks import OF_MASKS, OF_RESULTS
from attn_course.checks.catalogue.ch05.multi_head_parts import OF_CHANCE, OF_PARTS
from attn_course.checks.exercise import Mistake

OF_HEADS = (
    Mistake(
        "split-and-merged-by-view",
        "Heads are mixed up with tokens: the numbers are counted off as (b, h, n, d) where n stood "
        "before h. A head then gets all features of some tokens. Every shape is right, and it "
        "even trains. Cut the features into (h, d) first, then move h.",
        v.with_step(split=v.view_split, merge=v.view_merge),
        also=(v.with_step(split=v.view_split),),
    ),
    Mistake(
        "merged-by-view",
        "The heads are joined without being moved back: the numbers of several tokens end up in "
        "one row. The weights are right, so look behind the attention.",
        v.with_step(merge=v.view_merge),
    ),
    Mistake(
        "features-first",
        "The features are dealt out to the heads in turn, (d h). They lie head after head, (h d): "
        "the first d_model / num_heads features are head 0's. Only with loaded weights does this "
        "show, and they are loaded here.",
        v.with_step(split=v.features_first_split, merge=v.features_first_merge),
        also=(
            v.with_step(split=v.features_first_split),
            v.with_step(merge=v.features_first_merge),
        ),
    ),
    Mistake(
        "not-split",
        "The features are not split: it is one head, as wide as the model.",
        v.version(v.as_one_head),
    ),
    Mistake(
        "heads-averaged",
        "The heads are averaged. They are laid side by side, so that W_o can tell them apart.",
        v.with_step(merge=v.averaged_heads),
    ),
    Mistake(
        "heads-summed",
        "The heads are added up. They are laid side by side, so that W_o can tell them apart.",
        v.with_step(merge=v.summed_heads),
    ),
    Mistake(
        "weights-averaged",
        "The weights come back as (b, i, j), averaged over the heads, as nn.MultiheadAttention "
        "does unless it is told otherwise. Asked for are those of each head, (b, h, i, j).",
        v.version(v.averaged),
    ),
    Mistake(
        "attends-over-heads",
        "The axis of the heads is not moved, so that each token attends to its own heads and no "
        "token sees another. Attention works on the last two axes: they should be n and d.",
        v.version(v.over_the_heads),
    ),
    Mistake(
        "length-of-the-queries",
        "Keys and values are cut with the number of queries. There may be more of them, or fewer: "
        "take each input's own length.",
        v.version(v.of_the_querys_length),
    ),
    Mistake(
        "sequence-first",
        "The layer attends over the batch: sequences see each other, tokens do not. The inputs "
        "are (b, n, d_model), batch first.",
        v.version(v.sequence_first),
    ),
)

OF_ROLES = (
    Mistake(
        "query-and-key-exchanged",
        "Queries are made with W_k, and keys with W_q.",
        v.with_step(roles=("W_k", "W_q", "W_v")),
    ),
    Mistake(
        "key-by-query-weights",
        "The keys are made with W_q: a line copied and not changed?",
        v.with_step(roles=("W_q", "W_q", "W_v")),
    ),
    Mistake(
        "query-by-key-weights",
        "The queries are made with W_k: a line copied and not changed?",
        v.with_step(roles=("W_k", "W_k", "W_v")),
    ),
    Mistake(
        "value-by-key-weights",
        "The values are made with W_k, and W_v is not used.",
        v.with_step(roles=("W_q", "W_k", "W_k")),
        also=(v.with_step(roles=("W_q", "W_k", "W_q")),),
    ),
    Mistake(
        "key-and-value-weights-exchanged",
        "Keys are made with W_v, and values with W_k.",
        v.with_step(roles=("W_q", "W_v", "W_k")),
    ),
    Mistake(
        "not-projected",
        "Queries, keys and values are the inputs themselves: W_q, W_k and W_v are not used.",
        v.with_step(project=lambda linear, x: x),
    ),
    Mistake(
        "all-from-the-query",
        "Keys and values are made from `query`. That goes unseen in self-attention, where all "
        "three are the same; a decoder that asks an encoder gives others.",
        v.fed(lambda q, k, val: (q, q, q)),
    ),
    Mistake(
        "value-from-key",
        "The values are made from `key`: `value` is not used.",
        v.fed(lambda q, k, val: (q, k, k)),
    ),
    Mistake(
        "key-from-value",
        "The keys are made from `value`: `key` is not used.",
        v.fed(lambda q, k, val: (q, val, val)),
    ),
    Mistake(
        "key-from-query",
        "The keys are made from `query`.",
        v.fed(lambda q, k, val: (q, q, val)),
    ),
    Mistake(
        "keys-and-values-exchanged",
        "`key` and `value` are exchanged: scores are made with what should be passed on.",
        v.fed(lambda q, k, val: (q, val, k)),
    ),
    Mistake(
        "roles-reversed",
        "The keys ask, and the queries are asked. The output has one row for each query.",
        v.fed(lambda q, k, val: (k, q, q)),
    ),
    Mistake(
        "output-not-projected",
        "The heads are joined, but W_o is not used.",
        v.with_step(out=lambda layer, x: x),
    ),
    Mistake(
        "output-by-value-weights",
        "The output is projected with W_v. That is W_o's part.",
        v.with_step(out=lambda layer, x: layer.W_v(x)),
    ),
    Mistake(
        "weights-not-transposed",
        "A projection is written out as x @ W.weight. nn.Linear stores its weight as (out, in), so "
        "that product takes the wrong axis; calling the layer, self.W_q(x), also adds the bias.",
        v.with_step(project=lambda linear, x: x @ linear.weight + linear.bias),
        also=(
            v.with_step(
                project=lambda linear, x: x @ linear.weight,
                out=lambda layer, x: x @ layer.W_o.weight,
            ),
            v.with_step(project=lambda linear, x: x @ linear.weight),
            v.with_step(out=lambda layer, x: x @ layer.W_o.weight),
            v.with_step(out=lambda layer, x: x @ layer.W_o.weight + layer.W_o.bias),
        ),
    ),
    Mistake(
        "bias-not-used",
        "The biases are not used: x @ W.weight.T leaves them out. Call the layer: self.W_q(x).",
        v.with_step(
            project=lambda linear, x: x @ linear.weight.T,
            out=lambda layer, x: x @ layer.W_o.weight.T,
        ),
        also=(
            v.with_step(project=lambda linear, x: x @ linear.weight.T),
            v.with_step(out=lambda layer, x: x @ layer.W_o.weight.T),
        ),
    ),
    Mistake(
        "not-linear-at-the-end",
        "Something that is not linear stands beside W_o, and changes or loses features below zero. "
        "The output is W_o of the joined heads, and nothing more.",
        v.with_step(out=lambda layer, x: layer.W_o(x).relu()),
        also=(
            v.with_step(out=lambda layer, x: nn.functional.gelu(layer.W_o(x))),
            v.with_step(out=lambda layer, x: layer.W_o(x).tanh()),
            v.with_step(out=lambda layer, x: layer.W_o(x.relu())),
        ),
    ),
    Mistake(
        "residual",
        "The queries are added to the output. That residual comes in chapter 07, outside of "
        "attention.",
        v.version(
            lambda layer, q, *others: (
                (found := v.right(layer, q, *others))[0] + q,
                found[1],
            )
        ),
    ),
)

OF_SCORES = (
    Mistake(
        "scale-of-the-model",
        "The scores are divided by √d_model. A head's query has d_model / num_heads features, and "
        "it is their number that counts.",
        v.by_hand(scale=lambda q, k: sqrt(q.shape[-1] * q.shape[1])),
    ),
    Mistake("no-scale", "The scores are not divided by √d_k.", v.by_hand(scale=lambda q, k: 1.0)),
    Mistake(
        "scale-of-d-k",
        "The scores are divided by d_k, or by its root twice. It should be its root, once.",
        v.by_hand(scale=lambda q, k: q.shape[-1]),
    ),
    Mistake(
        "scale-of-the-heads",
        "The scores are divided by the root of the number of heads. It should be the root of the "
        "width of a head.",
        v.by_hand(scale=lambda q, k: sqrt(q.shape[1])),
    ),
    Mistake(
        "scale-of-the-length",
        "The scores are divided by the root of the number of tokens. It should be the root of the "
        "width of a head.",
        v.by_hand(scale=lambda q, k: sqrt(k.shape[2])),
        also=(v.by_hand(scale=lambda q, k: sqrt(q.shape[2])),),
    ),
    Mistake(
        "scaled-up",
        "The scores are multiplied by √d_k instead of divided.",
        v.by_hand(scale=lambda q, k: 1 / sqrt(q.shape[-1])),
    ),
    Mistake(
        "fixed-scale",
        "The scores are divided by a number that does not come from the width of a head.",
        examples=(
            v.by_hand(scale=lambda q, k: 8.0),
            v.by_hand(scale=lambda q, k: 3.0),
            v.by_hand(scale=lambda q, k: 0.5),
        ),
    ),
    Mistake(
        "softmax-over-heads",
        "The softmax runs over the heads: for each pair, the heads share out one whole. Each "
        "query of each head should share it out among the keys.",
        v.by_hand(dim=1),
    ),
    Mistake(
        "softmax-over-queries",
        "The softmax runs over the queries. Each query should share out one whole among the keys.",
        v.by_hand(dim=2),
    ),
    Mistake(
        "softmax-over-the-batch",
        "The softmax runs over the batch: the weights of one sequence depend on the others.",
        v.by_hand(dim=0),
    ),
    Mistake(
        "no-softmax",
        "The values are weighted by bare scores: there is no softmax.",
        v.with_step(attend=v.no_softmax),
    ),
)

MISTAKES = (
    *OF_PARTS,
    *OF_CHANCE,
    *OF_HEADS,
    *OF_ROLES,
    *OF_SCORES,
    *OF_MASKS,
    *OF_RESULTS,
)
