"""A right answer of exercise 2.6, additive_attention, and its known mistakes."""

from __future__ import annotations

from torch import Tensor

from attn_course.checks.catalogue.families.gradient import GRADIENT
from attn_course.checks.catalogue.families.result import RESULT
from attn_course.checks.catalogue.families.softmax import SOFTMAX
from attn_course.checks.exercise import Mistake
from attn_course.sentences import joined


def attended(
    query: Tensor, key: Tensor, value: Tensor, W_q: Tensor, W_k: Tensor, w: Tensor
) -> tuple[Tensor, Tensor]:
    """The right answer that the mistakes edit."""
    asked, offered = query @ W_q, key @ W_k
    met = asked[..., :, None, :] + offered[..., None, :, :]
    scores = met.tanh() @ w
    weights = scores.softmax(dim=-1)
    output = weights @ value
    return output, weights


PROJECTED = "query @ W_q, key @ W_k"
ASKED = "asked[..., :, None, :]"
OFFERED = "offered[..., None, :, :]"
SCORES = "met.tanh() @ w"

QUERY_CANCELS = (
    "All queries get the same weights. What a query adds to its scores is the same for every key, "
    "and the softmax does not see what all scores of a row have in common."
)

MISTAKES = (
    Mistake(
        "no-tanh",
        joined(["The tanh is missing.", QUERY_CANCELS]),
        {SCORES: "met @ w"},
    ),
    Mistake(
        "tanh-after-w",
        "The tanh is taken of the score, after the sum with w: no score then lies beyond ±1, "
        "and the weights stay nearly even. It belongs on the hidden vector.",
        {SCORES: "(met @ w).tanh()"},
    ),
    Mistake(
        "w-inside-tanh",
        "w is multiplied in before the tanh. It belongs outside: it weighs the hidden features "
        "after the tanh.",
        {SCORES: "(met * w).tanh().sum(dim=-1)"},
    ),
    Mistake(
        "tanh-on-both-sides",
        "A tanh is taken of the query's and of the key's part before they meet as well.",
        {PROJECTED: "(query @ W_q).tanh(), (key @ W_k).tanh()"},
    ),
    Mistake(
        "sigmoid-for-tanh",
        "The hidden vector goes through a sigmoid, not a tanh.",
        {SCORES: "met.sigmoid() @ w"},
    ),
    Mistake(
        "relu-for-tanh",
        "The hidden vector goes through a ReLU, not a tanh.",
        {SCORES: "met.relu() @ w"},
    ),
    Mistake(
        "w-forgotten",
        "The hidden features are added up as they are: w, which weighs them, is not used.",
        {SCORES: "met.tanh().sum(dim=-1)"},
    ),
    Mistake(
        "mean-over-hidden",
        "The hidden features are averaged, where the product with w is a sum.",
        {SCORES: "met.tanh() @ w / len(w)"},
    ),
    Mistake(
        "scaled",
        "The scores are divided by √d_hidden. Additive scores are taken as they are.",
        {SCORES: "met.tanh() @ w / math.sqrt(len(w))"},
    ),
    Mistake(
        "product-for-sum",
        "Query and key meet in another way than by a sum of q W_q and k W_k: they are multiplied.",
        {" + ": " * "},
    ),
    Mistake(
        "difference-for-sum",
        "Query and key meet in another way than by a sum of q W_q and k W_k: one is taken from the "
        "other.",
        {" + ": " - "},
    ),
    Mistake(
        "query-cancels",
        joined(
            [
                QUERY_CANCELS,
                "Either the query never enters, or query and key each get a score of their own "
                "and the two are added: they must meet before the tanh.",
            ]
        ),
        {ASKED: f"0 * {ASKED}"},
    ),
    Mistake(
        "key-ignored",
        "The key never enters the scores, so all keys match equally well.",
        {OFFERED: f"0 * {OFFERED}"},
    ),
    Mistake(
        "weights-exchanged",
        "W_q and W_k are exchanged. With queries as wide as keys no error tells you so.",
        {PROJECTED: "query @ W_k, key @ W_q"},
    ),
    Mistake(
        "one-weight-for-both",
        "Query and key both go through W_q: a line copied and not changed?",
        {PROJECTED: "query @ W_q, key @ W_q"},
    ),
    Mistake(
        "weights-transposed",
        "W_q and W_k are transposed. They are drawn (in, out) and stand to the right. With "
        "square weights no error tells you so.",
        {PROJECTED: "query @ W_q.mT, key @ W_k.mT"},
    ),
    Mistake(
        "axes-of-the-sum-exchanged",
        "The new axes are exchanged: rows of the scores belong to keys, columns to queries. "
        "With as many queries as keys no error tells you so. Which of the two needs its new "
        "axis before its own positions, which after?",
        {ASKED: "asked[..., None, :, :]", OFFERED: "offered[..., :, None, :]"},
    ),
    Mistake(
        "same-position-only",
        "Query i meets key i only: no axis was added before the sum. Every query meets every key.",
        {ASKED: "asked", OFFERED: "offered"},
    ),
    Mistake(
        "three-axes-only",
        "It takes a batch of sequences, three axes, and nothing else: the new axes of the sum are "
        "counted from the left, and there may be no leading axis, or several. Counted from the "
        "right they are the same for all.",
        {ASKED: "asked[:, :, None]", OFFERED: "offered[:, None]"},
        also=({ASKED: "asked.unsqueeze(2)", OFFERED: "offered.unsqueeze(1)"},),
    ),
    Mistake(
        "score-keeps-an-axis",
        "w is multiplied as a column, so the scores keep an axis of size 1 at their end, and the "
        "softmax over that axis gives 1 everywhere. Take the axis away first.",
        {SCORES: "met.tanh() @ w[:, None]"},
    ),
    SOFTMAX.told(
        "softmax-over-queries",
        "The weights of one query do not sum to one; those of one key do. The softmax runs over "
        "the queries, and the keys should share one whole.",
    ),
    SOFTMAX["softmax-axis-counted-from-left"],
    SOFTMAX.told(
        "no-softmax",
        "The weights of one query do not sum to one: the scores are used as they are, without a "
        "softmax.",
    ),
    SOFTMAX.told(
        "unstable-softmax",
        "exp of a large score is infinite. The softmax does not change when the same number is "
        "taken from all scores of a row (exercise 2.2).",
    ),
    SOFTMAX.told("hard-choice", "All weight goes to the best key."),
    RESULT.told(
        "keys-summed",
        "The weighted sum is taken over the keys; it is the values that are summed.",
    ),
    Mistake(
        "weights-transposed-in-the-sum",
        "In the weighted sum the weights stand transposed: the sum must run over the keys. "
        "With as many queries as keys no error tells you so.",
        {"weights @ value": "weights.mT @ value"},
    ),
    RESULT["result-exchanged"],
    RESULT.told(
        "scores-returned",
        "The output is right, but the second result is the scores, not the weights.",
    ),
    GRADIENT.told(
        "detached",
        "The values are right, but no gradient passes through, so nothing could be trained. "
        "`.detach()`, `.data`, `.item()`, numpy and `torch.tensor(…)` cut it off.",
    ),
    GRADIENT.told(
        "weights-detached",
        "The output is right, but the weights are cut off from the gradient: W_q, W_k and w "
        "would never be trained.",
        like="softmax-detached",
    ),
)
