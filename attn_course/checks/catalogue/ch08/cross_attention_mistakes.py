"""Known mistakes of exercise 8.1, cross_attention."""

from __future__ import annotations

from math import inf, sqrt

import torch
from torch import Tensor

from attn_course.attention import check_fit
from attn_course.checks.catalogue.families.gradient import detached
from attn_course.checks.catalogue.families.mask import (
    CLEARED,
    FILLED,
    MASK,
    filled_with,
    no_softmax,
)
from attn_course.checks.catalogue.families.result import RESULT, RETURN
from attn_course.checks.catalogue.families.scale import DIVIDED, SCALE
from attn_course.checks.catalogue.families.softmax import SOFTMAX, by_hand
from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake
from attn_course.masks import check_mask
from attn_course.sentences import joined


def attention_written_out(
    x: Tensor,
    memory: Tensor,
    W_q: Tensor,
    W_k: Tensor,
    W_v: Tensor,
    padding: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """A right answer: what does not fit fails as in the course's attention, which most call."""
    query = x @ W_q
    key = memory @ W_k
    value = memory @ W_v
    mask = None if padding is None else padding[:, None, :]
    check_fit(query, key, value)
    scores = query / sqrt(query.shape[-1]) @ key.mT
    if mask is not None:
        check_mask(mask, scores.shape)
    hidden = torch.zeros_like(scores, dtype=torch.bool) if mask is None else ~mask
    empty = hidden.all(dim=-1, keepdim=True)
    scores = scores.masked_fill(hidden & ~empty, -inf)
    weights = scores.softmax(dim=-1).masked_fill(empty, 0.0)
    output = weights @ value
    return output, weights


LIFTED = "padding[:, None, :]"
MASKED = f"mask = None if padding is None else {LIFTED}"
CHECKED = "check_mask(mask, scores.shape)"


def first(*statements: str) -> Edits:
    """Statements before the projections."""
    return {"query = ": "\n    ".join((*statements, "query = "))}


def future_hidden(diagonal: str) -> Edits:
    """Keys from this diagonal on are hidden, whatever the mask says."""
    future = f"torch.ones_like(scores, dtype=torch.bool).triu({diagonal})"
    return {"empty = hidden": f"hidden = hidden | {future}\n    empty = hidden"}


UNSTABLE = SOFTMAX.told(
    "unstable-softmax",
    SOFTMAX["unstable-softmax"].message,
    # NaN, where the exponentials overflow, becomes 0
    also=({**filled_with("-inf"), **by_hand("scores.exp()"), CLEARED: ".nan_to_num()"},),
)

PADDING_AXIS = (
    "The padding mask (b, j) has to become (b, 1, j): it says which keys of each sequence may be "
    "attended to, the same for every query."
)

MISTAKES = (
    Mistake(
        "roles-reversed",
        "The memory asks and x is looked up. In cross-attention x asks: there is one output for "
        "each token of x.",
        {"x @ W_q": "memory @ W_q", "memory @ W_k": "x @ W_k", "memory @ W_v": "x @ W_v"},
        also=({"x @ W_q": "memory @ W_k", "memory @ W_k": "x @ W_q"},),
    ),
    Mistake(
        "self-attention",
        "Keys and values are made from x: this is self-attention, and the memory is not read.",
        {"memory @ W_k": "x @ W_k", "memory @ W_v": "x @ W_v"},
    ),
    Mistake(
        "memory-alone",
        "The queries are made from the memory: x is not read.",
        {"x @ W_q": "memory @ W_q"},
    ),
    Mistake(
        "keys-from-x",
        "The keys are made from x, so the scores say how x matches x. The keys belong to what is "
        "looked up, like the values.",
        {"memory @ W_k": "x @ W_k"},
    ),
    Mistake(
        "values-from-x",
        "The values are made from x. What is handed over should come from the memory.",
        {"memory @ W_v": "x @ W_v"},
    ),
    Mistake(
        "key-and-value-exchanged",
        "Keys are made with W_v, and values with W_k.",
        {"memory @ W_k": "memory @ W_v", "memory @ W_v": "memory @ W_k"},
    ),
    Mistake(
        "query-and-key-exchanged",
        "Queries are made with W_k, and keys with W_q.",
        {"x @ W_q": "x @ W_k", "memory @ W_k": "memory @ W_q"},
    ),
    Mistake(
        "value-from-key",
        "The values are made with W_k, and W_v is not used: a line copied?",
        {"memory @ W_v": "memory @ W_k"},
    ),
    Mistake(
        "key-with-the-query-weight",
        "The keys are made with W_q: a line copied?",
        {"memory @ W_k": "memory @ W_q"},
    ),
    Mistake(
        "values-not-projected",
        "The values are the memory as it is: W_v is not used.",
        {"memory @ W_v": "memory"},
    ),
    Mistake(
        "weights-transposed",
        "The weights are used transposed. They are drawn (in, out), so x @ W is all there is; "
        "nn.Linear stores them the other way round.",
        {
            "x @ W_q": "x @ W_q.T",
            "memory @ W_k": "memory @ W_k.T",
            "memory @ W_v": "memory @ W_v.T",
        },
    ),
    SCALE.told("no-scale", "The scores are not divided by √d_k."),
    SCALE.told(
        "scale-of-d-k",
        "The scores are divided by d_k. It should be its root.",
        like="scale-by-d",
    ),
    Mistake(
        "scale-of-d-model",
        "The scores are divided by the root of the width of x. It should be the root of d_k, the "
        "size of a query.",
        {"query.shape[-1]": "x.shape[-1]"},
    ),
    Mistake(
        "scale-of-d-memory",
        "The scores are divided by the root of the memory's width. It should be the root of d_k, "
        "the size of a query.",
        {"query.shape[-1]": "memory.shape[-1]"},
    ),
    SCALE.told(
        "scale-of-the-length",
        "The scores are divided by the root of the number of keys. It should be the root of d_k.",
        like="scale-by-keys",
    ),
    SCALE["scale-inverted"],
    SCALE["scale-by-queries"],
    SCALE["scale-by-values"],
    SCALE["scale-after-softmax"],
    SCALE["scale-on-output"],
    Mistake(
        "fixed-scale",
        "The scores are multiplied by the same number, whatever d_k is. It should be 1/√d_k.",
        examples=({DIVIDED: " / 8.0"}, {DIVIDED: " / 3.0"}),
    ),
    SCALE["cosine"],
    SOFTMAX["softmax-over-all-pairs"],
    SOFTMAX["softmax-twice"],
    SOFTMAX["uniform-weights"],
    SOFTMAX["sign-of-the-scores"],
    SOFTMAX["hard-choice"],
    UNSTABLE,
    SOFTMAX.told(
        "softmax-over-queries",
        "The softmax runs over the queries. Each query should share out one whole among the keys.",
    ),
    SOFTMAX.told(
        "softmax-over-the-batch",
        "The softmax runs over the batch. Each query should share out one whole among the keys.",
        like="softmax-over-first-axis",
    ),
    Mistake("no-softmax", "The values are weighted by bare scores.", no_softmax()),
    MASK.told(
        "padding-ignored",
        "The padding changes nothing: padded keys are attended to.",
        like="mask-ignored",
    ),
    MASK.told(
        "padding-inverted",
        "The padding mask works the other way round: True means a token, which may be attended to.",
        like="mask-inverted",
    ),
    Mistake(
        "padding-on-the-queries",
        joined(["The padding is laid along the axis of the queries, (b, j, 1).", PADDING_AXIS]),
        {LIFTED: "padding[:, :, None]"},
        also=({LIFTED: "padding[:, :, None]", CHECKED: "pass", **filled_with("-inf")},),
    ),
    Mistake(
        "padding-as-it-is",
        joined(
            [
                "The padding (b, j) meets the scores (b, i, j) as it is, and is taken for (i, j).",
                PADDING_AXIS,
            ]
        ),
        {LIFTED: "padding"},
        also=({LIFTED: "padding", CHECKED: "pass", **filled_with("-inf")},),
    ),
    Mistake(
        "causal-too",
        "Part of the memory is hidden as if it lay in the future. The memory is complete before "
        "the first query is asked: only padding is hidden.",
        future_hidden("1"),
        also=(future_hidden("1 + max(memory.shape[1] - x.shape[1], 0)"),),
    ),
    MASK.told(
        "fill-zero",
        "The scores of padded keys are set to 0, and a key with score 0 still gets weight.",
        like="mask-filled-with-zero",
        also=(filled_with("1e-9"),),
    ),
    Mistake(
        "fill-too-small",
        "Padded keys get a score that is only somewhat low; beside lower ones it wins.",
        {FILLED: "scores.masked_fill(hidden, -100.0)"},
        also=tuple({FILLED: f"scores.masked_fill(hidden, {fill})"} for fill in (-10.0, -1000.0)),
    ),
    MASK.told(
        "mask-filled-with-plus-infinity",
        "The scores of padded keys become plus infinity: the sign is lost.",
    ),
    MASK.told(
        "mask-filled-with-a-large-number",
        "The scores of padded keys become large and positive, so that they get all the weight: the "
        "sign is lost.",
    ),
    MASK["mask-times-infinity"],
    Mistake(
        "memory-zeroed",
        "The padded tokens of the memory are set to zeros, and then attended to: a key of zeros "
        "has the score 0, and still gets weight.",
        {
            **first("if padding is not None: memory = memory * padding[..., None]"),
            MASKED: "mask = None",
        },
    ),
    MASK.told(
        "padding-added",
        "The mask's ones and zeros are added to the scores: a padded key still gets weight.",
        like="mask-added",
    ),
    MASK.told(
        "mask-after-softmax",
        "The weights of padded keys are set to 0 after the softmax: the others no longer sum to "
        "one.",
        like="mask-multiplied-after",
    ),
    MASK["mask-renormalised"],
    MASK.told(
        "empty-row-nan",
        "A memory of padding only gives NaN: a softmax over nothing but minus infinity. Here it "
        "should give zeros.",
    ),
    MASK.told(
        "empty-row-mean",
        "A memory of padding only gives the mean of its values, which nobody may see. Here it "
        "should give zeros.",
    ),
    Mistake(
        "gradient-nan",
        "The output is clean, but with a memory of padding only the gradient is NaN: NaN arose "
        "inside and was replaced only at the end. It must not arise.",
        MASK.edits("gradient-nan"),
        also=({**filled_with("-inf"), RETURN: "return output.nan_to_num(), weights.nan_to_num()"},),
    ),
    Mistake(
        "weights-before-the-padding",
        "The output is right, but the weights that come back are those before the padding was "
        "hidden.",
        {RETURN: "return output, (query / sqrt(query.shape[-1]) @ key.mT).softmax(dim=-1)"},
    ),
    RESULT["scores-returned"],
    Mistake(
        "residual",
        "x is added to the output. The residual stands outside of attention, in the block.",
        {"weights @ value": "weights @ value + x"},
    ),
    Mistake(
        "query-returned",
        "The queries come back in the place of the output: the weighted sum is lost on the way.",
        {RETURN: "return query, weights"},
        also=({RETURN: "return x, weights"},),
    ),
    Mistake(
        "values-returned",
        "The values come back, not their weighted sum.",
        {RETURN: "return value, weights"},
    ),
    Mistake(
        "joined",
        "x and the memory are joined, and looked up together. What is looked up is the memory "
        "alone.",
        first(
            "all_of_x = torch.ones(x.shape[:2], dtype=torch.bool)",
            "padding = None if padding is None else torch.cat([all_of_x, padding], dim=1)",
            "memory = torch.cat([x, memory], dim=1)",
        ),
    ),
    Mistake(
        "padding-cut-out",
        "The padded tokens are cut out of the memory: the weights lose their columns, and in a "
        "batch the sequences run together. Padded keys stay where they are and get the weight 0.",
        {**first("if padding is not None: memory = memory[padding][None]"), MASKED: "mask = None"},
    ),
    RESULT["output-only"],
    RESULT.told(
        "pair-exchanged",
        "The pair is (weights, output). Asked for is (output, weights).",
        like="result-exchanged",
    ),
    Mistake(
        "no-gradient",
        "The values are right, but no gradient reaches the weights: something detaches them.",
        detached("output", "weights"),
    ),
)
