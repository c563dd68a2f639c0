"""Mistakes in the scale."""

from attn_course.checks.catalogue.families.family import Family
from attn_course.checks.exercise import Mistake

DIVIDED = " / sqrt(query.shape[-1])"

SCALE = Family(
    Mistake(
        "no-scale",
        "Look at the factor between the dot product and the softmax: there is none.",
        {DIVIDED: ""},
    ),
    Mistake(
        "scale-by-d",
        "Look at the factor between the dot product and the softmax: the scores are divided by "
        "d_k, or twice by its root.",
        {"sqrt(query.shape[-1])": "query.shape[-1]"},
    ),
    Mistake(
        "scale-inverted",
        "Look at the factor between the dot product and the softmax: the scores are multiplied by "
        "√d_k, which makes them larger.",
        {"/ sqrt(": "* sqrt("},
    ),
    Mistake(
        "scale-by-keys",
        "Look at the factor between the dot product and the softmax: it follows the number of "
        "keys, not the width d_k.",
        {"query.shape[-1]": "key.shape[-2]"},
    ),
    Mistake(
        "scale-by-queries",
        "Look at the factor between the dot product and the softmax: it follows the number of "
        "queries, not the width d_k.",
        {"query.shape[-1]": "query.shape[-2]"},
    ),
    Mistake(
        "scale-by-values",
        "Look at the factor between the dot product and the softmax: it follows the width of the "
        "values, not that of query and key.",
        {"query.shape[-1]": "value.shape[-1]"},
    ),
    Mistake(
        "scale-axis-counted-from-left",
        "Look at the factor between the dot product and the softmax: its axis is counted from the "
        "left, so it is d_k only as long as there are no leading axes (batch, heads).",
        {"query.shape[-1]": "query.shape[1]"},
    ),
    Mistake(
        "scale-by-first-axis",
        "Look at the factor between the dot product and the softmax: it follows the size of a "
        "first axis, not that of query's last.",
        {"query.shape[-1]": "query.shape[0]"},
        also=({"query.shape[-1]": "key.shape[0]"},),
    ),
    Mistake(
        "scale-after-softmax",
        "The scale is applied to the weights, after the softmax, so they no longer sum to one.",
        {DIVIDED: "", "weights =": "weights = 1 / sqrt(query.shape[-1]) *"},
    ),
    Mistake(
        "scale-on-output",
        "The scale is applied to the output. It belongs to the scores: after the softmax it "
        "only makes the result smaller.",
        {DIVIDED: "", "weights @ value": "weights @ value / sqrt(query.shape[-1])"},
    ),
    Mistake(
        "fixed-scale",
        "The scores are multiplied by the same number whatever d_k is: "
        "the scale must come from the vectors' own width.",
        examples=({DIVIDED: " / 8"}, {DIVIDED: " * 0.3"}),
    ),
    Mistake(
        "cosine",
        "The vectors are divided by their lengths: a cosine, not a dot product. The scale "
        "depends on d_k alone; how long a query or a key is stays part of the score.",
        {f"query{DIVIDED} @ key.mT": "F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT"},
    ),
)
"""Edits of `scores = query / sqrt(query.shape[-1]) @ key.mT`, and of what comes after it."""
