"""The known mistakes of exercise 5.3, MultiHeadAttention."""

from __future__ import annotations

from attn_course.checks.catalogue.ch05.multi_head_by_hand import (
    COURSES_ATTENTION,
    MERGED,
    Q_K_V,
    RETURNED,
    ROLES,
    SPLIT,
    called,
)
from attn_course.checks.catalogue.ch05.multi_head_masks import OF_MASKS, OF_RESULTS
from attn_course.checks.catalogue.ch05.multi_head_parts import OF_CHANCE, OF_PARTS
from attn_course.checks.catalogue.families.mask import MASK, no_softmax
from attn_course.checks.catalogue.families.scale import DIVIDED, SCALE
from attn_course.checks.catalogue.families.softmax import over
from attn_course.checks.exercise import Mistake

VIEW_SPLIT = "x.reshape(len(x), self.num_heads, x.shape[1], -1)"
VIEW_MERGED = "x.reshape(len(x), x.shape[2], -1)"
OF_THE_QUERYS_LENGTH = (
    "x.view(len(x), self.n, self.num_heads, x.shape[-1] // self.num_heads).transpose(1, 2)"
)
SEQUENCE_FIRST = {
    "q = self.split": """query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q = self.split""",
    RETURNED: "return self.W_o(self.merge(output)).transpose(0, 1), weights",
}
STORED = "{x} @ {W}.weight"
NO_BIAS = "{x} @ {W}.weight.T"

OF_HEADS = (
    Mistake(
        "split-and-merged-by-view",
        "Heads are mixed up with tokens: the numbers are counted off as (b, h, n, d) where n stood "
        "before h. A head then gets all features of some tokens. Every shape is right, and it "
        "even trains. Cut the features into (h, d) first, then move h.",
        {SPLIT: VIEW_SPLIT, MERGED: VIEW_MERGED},
        also=({SPLIT: VIEW_SPLIT},),
    ),
    Mistake(
        "merged-by-view",
        "The heads are joined without being moved back: the numbers of several tokens end up in "
        "one row. The weights are right, so look behind the attention.",
        {MERGED: VIEW_MERGED},
    ),
    Mistake(
        "features-first",
        "The features are dealt out to the heads in turn, (d h). They lie head after head, (h d): "
        "the first d_model / num_heads features are head 0's. Only with loaded weights does this "
        "show, and they are loaded here.",
        {"b n (h d) ->": "b n (d h) ->", "-> b n (h d)": "-> b n (d h)"},
        also=({"b n (h d) ->": "b n (d h) ->"}, {"-> b n (h d)": "-> b n (d h)"}),
    ),
    Mistake(
        "not-split",
        "The features are not split: it is one head, as wide as the model.",
        {"h=self.num_heads": "h=1"},
    ),
    Mistake(
        "heads-averaged",
        "The heads are averaged. They are laid side by side, so that W_o can tell them apart.",
        {MERGED: "x.mean(dim=1).repeat(1, 1, self.num_heads)"},
    ),
    Mistake(
        "heads-summed",
        "The heads are added up. They are laid side by side, so that W_o can tell them apart.",
        {MERGED: "x.sum(dim=1).repeat(1, 1, self.num_heads)"},
    ),
    Mistake(
        "weights-averaged",
        "The weights come back as (b, i, j), averaged over the heads, as nn.MultiheadAttention "
        "does unless it is told otherwise. Asked for are those of each head, (b, h, i, j).",
        {RETURNED: f"{RETURNED}.mean(dim=1)"},
    ),
    Mistake(
        "attends-over-heads",
        "The axis of the heads is not moved, so that each token attends to its own heads and no "
        "token sees another. Attention works on the last two axes: they should be n and d.",
        {"-> b h n d": "-> b n h d", MERGED: "x.flatten(2)", **MASK.edits("mask-ignored")},
    ),
    Mistake(
        "length-of-the-queries",
        "Keys and values are cut with the number of queries. There may be more of them, or fewer: "
        "take each input's own length.",
        {
            "q = self.split": "self.n = query.shape[1]\n        q = self.split",
            SPLIT: OF_THE_QUERYS_LENGTH,
        },
    ),
    Mistake(
        "sequence-first",
        "The layer attends over the batch: sequences see each other, tokens do not. The inputs "
        "are (b, n, d_model), batch first.",
        {**SEQUENCE_FIRST, **COURSES_ATTENTION},
        also=(SEQUENCE_FIRST,),
    ),
)

OF_ROLES = (
    Mistake(
        "query-and-key-exchanged",
        "Queries are made with W_k, and keys with W_q.",
        {"self.W_q(query)": "self.W_k(query)", "self.W_k(key)": "self.W_q(key)"},
    ),
    Mistake(
        "key-by-query-weights",
        "The keys are made with W_q: a line copied and not changed?",
        {"self.W_k(key)": "self.W_q(key)"},
    ),
    Mistake(
        "query-by-key-weights",
        "The queries are made with W_k: a line copied and not changed?",
        {"self.W_q(query)": "self.W_k(query)"},
    ),
    Mistake(
        "value-by-key-weights",
        "The values are made with W_k, and W_v is not used.",
        {"self.W_v(value)": "self.W_k(value)"},
        also=({"self.W_v(value)": "self.W_q(value)"},),
    ),
    Mistake(
        "key-and-value-weights-exchanged",
        "Keys are made with W_v, and values with W_k.",
        {"self.W_k(key)": "self.W_v(key)", "self.W_v(value)": "self.W_k(value)"},
    ),
    Mistake(
        "not-projected",
        "Queries, keys and values are the inputs themselves: W_q, W_k and W_v are not used.",
        called("{x}", *Q_K_V),
    ),
    Mistake(
        "all-from-the-query",
        "Keys and values are made from `query`. That goes unseen in self-attention, where all "
        "three are the same; a decoder that asks an encoder gives others.",
        {"self.W_k(key)": "self.W_k(query)", "self.W_v(value)": "self.W_v(query)"},
    ),
    Mistake(
        "value-from-key",
        "The values are made from `key`: `value` is not used.",
        {"self.W_v(value)": "self.W_v(key)"},
    ),
    Mistake(
        "key-from-value",
        "The keys are made from `value`: `key` is not used.",
        {"self.W_k(key)": "self.W_k(value)"},
    ),
    Mistake(
        "key-from-query",
        "The keys are made from `query`.",
        {"self.W_k(key)": "self.W_k(query)", **COURSES_ATTENTION},
        also=({"self.W_k(key)": "self.W_k(query)"},),
    ),
    Mistake(
        "keys-and-values-exchanged",
        "`key` and `value` are exchanged: scores are made with what should be passed on.",
        {"self.W_k(key)": "self.W_k(value)", "self.W_v(value)": "self.W_v(key)"},
    ),
    Mistake(
        "roles-reversed",
        "The keys ask, and the queries are asked. The output has one row for each query.",
        {
            "self.W_q(query)": "self.W_q(key)",
            "self.W_k(key)": "self.W_k(query)",
            "self.W_v(value)": "self.W_v(query)",
        },
    ),
    Mistake(
        "output-not-projected", "The heads are joined, but W_o is not used.", called("{x}", "W_o")
    ),
    Mistake(
        "output-by-value-weights",
        "The output is projected with W_v. That is W_o's part.",
        called("self.W_v({x})", "W_o"),
    ),
    Mistake(
        "weights-not-transposed",
        "A projection is written out as x @ W.weight. nn.Linear stores its weight as (out, in), so "
        "that product takes the wrong axis; calling the layer, self.W_q(x), also adds the bias.",
        called(f"{STORED} + {{W}}.bias", *Q_K_V),
        also=(
            called(STORED, *ROLES),
            called(STORED, *Q_K_V),
            called(STORED, "W_o"),
            called(f"{STORED} + {{W}}.bias", "W_o"),
        ),
    ),
    Mistake(
        "bias-not-used",
        "The biases are not used: x @ W.weight.T leaves them out. Call the layer: self.W_q(x).",
        called(NO_BIAS, *ROLES),
        also=(called(NO_BIAS, *Q_K_V), called(NO_BIAS, "W_o")),
    ),
    Mistake(
        "not-linear-at-the-end",
        "Something that is not linear stands beside W_o, and changes or loses features below zero. "
        "The output is W_o of the joined heads, and nothing more.",
        called("{W}({x}).relu()", "W_o"),
        also=(
            called("nn.functional.gelu({W}({x}))", "W_o"),
            called("{W}({x}).tanh()", "W_o"),
            called("{W}({x}.relu())", "W_o"),
        ),
    ),
    Mistake(
        "residual",
        "The queries are added to the output. That residual comes in chapter 07, outside of "
        "attention.",
        called("{W}({x}) + query", "W_o"),
    ),
)

OF_SCORES = (
    Mistake(
        "scale-of-the-model",
        "The scores are divided by √d_model. A head's query has d_model / num_heads features, and "
        "it is their number that counts.",
        {"query.shape[-1]": "query.shape[-1] * query.shape[1]"},
    ),
    SCALE.told(
        "no-scale",
        "The scores are not divided by √d_k.",
    ),
    SCALE.told(
        "scale-of-d-k",
        "The scores are divided by d_k, or by its root twice. It should be its root, once.",
        like="scale-by-d",
    ),
    SCALE.told(
        "scale-of-the-heads",
        "The scores are divided by the root of the number of heads. It should be the root of the "
        "width of a head.",
        like="scale-axis-counted-from-left",
    ),
    SCALE.told(
        "scale-of-the-length",
        "The scores are divided by the root of the number of tokens. It should be the root of the "
        "width of a head.",
        like="scale-by-keys",
        also=(SCALE.edits("scale-by-queries"),),
    ),
    SCALE.told(
        "scaled-up",
        "The scores are multiplied by √d_k instead of divided.",
        like="scale-inverted",
    ),
    Mistake(
        "fixed-scale",
        "The scores are divided by a number that does not come from the width of a head.",
        examples=({DIVIDED: " / 8"}, {DIVIDED: " / 3"}, {DIVIDED: " / 0.5"}),
    ),
    Mistake(
        "softmax-over-heads",
        "The softmax runs over the heads: for each pair, the heads share out one whole. Each "
        "query of each head should share it out among the keys.",
        over("1"),
    ),
    Mistake(
        "softmax-over-queries",
        "The softmax runs over the queries. Each query should share out one whole among the keys.",
        over("2"),
    ),
    Mistake(
        "softmax-over-the-batch",
        "The softmax runs over the batch: the weights of one sequence depend on the others.",
        over("0"),
    ),
    Mistake(
        "no-softmax", "The values are weighted by bare scores: there is no softmax.", no_softmax()
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
