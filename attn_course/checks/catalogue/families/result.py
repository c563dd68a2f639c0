"""Mistakes in what is multiplied with what, and in what is returned."""

from attn_course.checks.catalogue.families.family import Family
from attn_course.checks.exercise import Mistake

RETURN = "return output, weights"

RESULT = Family(
    Mistake(
        "key-axes-reversed",
        "The wrong axes of key are exchanged: it works for two axes only. Exchange the "
        "last two and leave all leading ones (batch, heads) where they are.",
        {"key.mT": "key.transpose(0, 1)"},
        also=({"key.mT": "key.permute(*reversed(range(key.ndim)))"},),
    ),
    Mistake(
        "key-axes-for-three-axes",
        "The axes of key that are exchanged are counted from the left: 1 and 2 are its last two "
        "only where there is exactly one leading axis.",
        {"key.mT": "key.transpose(1, 2)"},
    ),
    Mistake(
        "scores-returned",
        "The second value is the scores that go into the softmax, not the weights.",
        {RETURN: "return output, scores"},
    ),
    Mistake(
        "weights-summed-away",
        "The second value is summed over the keys; it should hold each weight.",
        {RETURN: "return output, weights.sum(dim=-1)"},
    ),
    Mistake(
        "multiplied-number-by-number",
        "query and key are multiplied number by number. A score is a sum of such products, one "
        "for each pair (i, j): a matrix product.",
        {"@ key.mT": "* key"},
        also=({"@ key.mT": "* key", "weights @ value": "weights * value"},),
    ),
    Mistake(
        "dropout",
        "A part of the numbers is dropped. Nothing is to be dropped here.",
        examples=({"scores.softmax(dim=-1)": "torch.dropout(scores.softmax(dim=-1), 0.1, True)"},),
    ),
    Mistake(
        "keys-summed",
        "The weighted sum is taken over the keys, not over the values.",
        {"weights @ value": "weights @ key"},
    ),
    Mistake(
        "result-exchanged",
        "The two results are exchanged: the output comes first, then the weights.",
        {RETURN: "return weights, output"},
    ),
    Mistake(
        "output-only",
        "Only the output comes back. Asked for is the pair (output, weights).",
        {RETURN: "return output"},
    ),
)
"""Edits of `@ key.mT`, of `output = weights @ value` and of `return output, weights`."""
