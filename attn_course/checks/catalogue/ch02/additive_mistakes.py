"""The known mistakes of exercise 2.6, additive_attention."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attn_course.attention import additive_attention
from attn_course.checks.exercise import Answer, Mistake
from attn_course.checks.gradients import detached_inputs

# -- known-wrong versions ---------------------------------------------------------------------


def add(asked: Tensor, offered: Tensor) -> Tensor:
    """Every query beside every key, (…, i, j, d_hidden)."""
    return asked[..., :, None, :] + offered[..., None, :, :]


def soft(scores: Tensor) -> Tensor:
    """The weights of every query."""
    return scores.softmax(-1)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    W_q: Tensor,
    W_k: Tensor,
    w: Tensor,
    *,
    project: Any = lambda query, key, W_q, W_k: (query @ W_q, key @ W_k),
    meet: Any = add,
    score: Any = lambda met, w: met.tanh() @ w,
    normalise: Any = soft,
    combine: Any = lambda weights, key, value: weights @ value,
) -> tuple[Tensor, Tensor]:
    """The mechanism with its joints open: each mistake replaces one of them."""
    asked, offered = project(query, key, W_q, W_k)
    weights = normalise(score(meet(asked, offered), w))
    return combine(weights, key, value), weights


def met(meet: Any) -> Answer:
    """A version in which query and key meet in another way."""
    return partial(attend, meet=meet)


def scored(score: Any) -> Answer:
    """A version that makes a number of what has met in another way."""
    return partial(attend, score=score)


def normalised(normalise: Any) -> Answer:
    """A version that makes weights of the scores in another way."""
    return partial(attend, normalise=normalise)


def projected(project: Any) -> Answer:
    """A version that projects query and key in another way."""
    return partial(attend, project=project)


def keys_by_queries(asked: Tensor, offered: Tensor) -> Tensor:
    """The new axes exchanged: (…, j, i, d_hidden)."""
    return asked[..., None, :, :] + offered[..., :, None, :]


def hard(scores: Tensor) -> Tensor:
    """All weight on the best key."""
    return torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)


def scores_returned(query, key, value, W_q, W_k, w) -> tuple[Tensor, Tensor]:
    """Returns the scores for the weights."""
    output, _ = additive_attention(query, key, value, W_q, W_k, w)
    return output, add(query @ W_q, key @ W_k).tanh() @ w


def exchanged(query, key, value, W_q, W_k, w) -> tuple[Tensor, Tensor]:
    """Returns (weights, output)."""
    output, weights = additive_attention(query, key, value, W_q, W_k, w)
    return weights, output


QUERY_CANCELS = (
    "All queries get the same weights. What a query adds to its scores is the same for every key, "
    "and the softmax does not see what all scores of a row have in common."
)
NOT_ONE = "The weights of one query do not sum to one"
MEETING = "Query and key meet in another way than by a sum of q W_q and k W_k: "

MISTAKES = (
    Mistake(
        "no-tanh",
        f"The tanh is missing. {QUERY_CANCELS}",
        scored(lambda met, w: met @ w),
    ),
    Mistake(
        "tanh-after-w",
        "The tanh is taken of the score, after the sum with w: no score then lies beyond ±1, "
        "and the weights stay nearly even. It belongs on the hidden vector.",
        scored(lambda met, w: (met @ w).tanh()),
    ),
    Mistake(
        "w-inside-tanh",
        "w is multiplied in before the tanh. It belongs outside: it weighs the hidden features "
        "after the tanh.",
        scored(lambda met, w: (met * w).tanh().sum(-1)),
    ),
    Mistake(
        "tanh-on-both-sides",
        "A tanh is taken of the query's and of the key's part before they meet as well.",
        met(lambda asked, offered: add(asked.tanh(), offered.tanh())),
    ),
    Mistake(
        "sigmoid-for-tanh",
        "The hidden vector goes through a sigmoid, not a tanh.",
        scored(lambda met, w: met.sigmoid() @ w),
    ),
    Mistake(
        "relu-for-tanh",
        "The hidden vector goes through a ReLU, not a tanh.",
        scored(lambda met, w: met.relu() @ w),
    ),
    Mistake(
        "w-forgotten",
        "The hidden features are added up as they are: w, which weighs them, is not used.",
        scored(lambda met, w: met.tanh().sum(-1)),
    ),
    Mistake(
        "mean-over-hidden",
        "The hidden features are averaged, where the product with w is a sum.",
        scored(lambda met, w: met.tanh() @ w / len(w)),
    ),
    Mistake(
        "scaled",
        "The scores are divided by √d_hidden. Additive scores are taken as they are.",
        scored(lambda met, w: met.tanh() @ w / math.sqrt(len(w))),
    ),
    Mistake(
        "product-for-sum",
        f"{MEETING}they are multiplied.",
        met(lambda asked, offered: asked[..., :, None, :] * offered[..., None, :, :]),
    ),
    Mistake(
        "difference-for-sum",
        f"{MEETING}one is taken from the other.",
        met(lambda asked, offered: add(asked, -offered)),
    ),
    Mistake(
        "query-cancels",
        f"{QUERY_CANCELS} Either the query never enters, or query and key each get a score of "
        "their own and the two are added: they must meet before the tanh.",
        met(lambda asked, offered: add(torch.zeros_like(asked), offered)),
    ),
    Mistake(
        "key-ignored",
        "The key never enters the scores, so all keys match equally well.",
        met(lambda asked, offered: add(asked, torch.zeros_like(offered))),
    ),
    Mistake(
        "weights-exchanged",
        "W_q and W_k are exchanged. With queries as wide as keys no error tells you so.",
        projected(lambda query, key, W_q, W_k: (query @ W_k, key @ W_q)),
    ),
    Mistake(
        "one-weight-for-both",
        "Query and key both go through W_q: a line copied and not changed?",
        projected(lambda query, key, W_q, W_k: (query @ W_q, key @ W_q)),
    ),
    Mistake(
        "weights-transposed",
        "W_q and W_k are transposed. They are drawn (in, out) and stand to the right. With "
        "square weights no error tells you so.",
        projected(lambda query, key, W_q, W_k: (query @ W_q.mT, key @ W_k.mT)),
    ),
    Mistake(
        "axes-of-the-sum-exchanged",
        "The new axes are exchanged: rows of the scores belong to keys, columns to queries. "
        "With as many queries as keys no error tells you so. Which of the two needs its new "
        "axis before its own positions, which after?",
        met(keys_by_queries),
    ),
    Mistake(
        "same-position-only",
        "Query i meets key i only: no axis was added before the sum. Every query meets every key.",
        met(lambda asked, offered: asked + offered),
    ),
    Mistake(
        "three-axes-only",
        "It takes a batch of sequences, three axes, and nothing else: the new axes of the sum are "
        "counted from the left, and there may be no leading axis, or several. Counted from the "
        "right they are the same for all.",
        met(lambda asked, offered: asked[:, :, None] + offered[:, None]),
        also=(met(lambda asked, offered: asked.unsqueeze(2) + offered.unsqueeze(1)),),
    ),
    Mistake(
        "score-keeps-an-axis",
        "w is multiplied as a column, so the scores keep an axis of size 1 at their end, and the "
        "softmax over that axis gives 1 everywhere. Take the axis away first.",
        scored(lambda met, w: met.tanh() @ w[:, None]),
    ),
    Mistake(
        "softmax-over-queries",
        f"{NOT_ONE}; those of one key do. The softmax runs over the queries, and the keys "
        "should share one whole.",
        normalised(lambda scores: scores.softmax(-2)),
    ),
    Mistake(
        "softmax-axis-counted-from-left",
        "The axis of the softmax is counted from the left, so it is another one as soon as "
        "there are more leading axes.",
        normalised(lambda scores: scores.softmax(1)),
    ),
    Mistake(
        "no-softmax",
        f"{NOT_ONE}: the scores are used as they are, without a softmax.",
        normalised(lambda scores: scores),
    ),
    Mistake(
        "unstable-softmax",
        "exp of a large score is infinite. The softmax does not change when the same number is "
        "taken from all scores of a row (exercise 2.2).",
        normalised(lambda scores: scores.exp() / scores.exp().sum(-1, keepdim=True)),
    ),
    Mistake("hard-choice", "All weight goes to the best key.", normalised(hard)),
    Mistake(
        "keys-summed",
        "The weighted sum is taken over the keys; it is the values that are summed.",
        partial(attend, combine=lambda weights, key, value: weights @ key),
    ),
    Mistake(
        "weights-transposed-in-the-sum",
        "In the weighted sum the weights stand transposed: the sum must run over the keys. "
        "With as many queries as keys no error tells you so.",
        partial(attend, combine=lambda weights, key, value: weights.mT @ value),
    ),
    Mistake(
        "result-exchanged",
        "The two results are exchanged: the output comes first, then the weights.",
        exchanged,
    ),
    Mistake(
        "scores-returned",
        "The output is right, but the second result is the scores, not the weights.",
        scores_returned,
    ),
    Mistake(
        "detached",
        "The values are right, but no gradient passes through, so nothing could be trained. "
        "`.detach()`, `.data`, `.item()`, numpy and `torch.tensor(…)` cut it off.",
        detached_inputs(additive_attention),
    ),
    Mistake(
        "weights-detached",
        "The output is right, but the weights are cut off from the gradient: W_q, W_k and w "
        "would never be trained.",
        normalised(lambda scores: scores.softmax(-1).detach()),
    ),
)
