"""Exercise 2.5, lookup: its probes and its known mistakes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Generator, Tensor

from attn_course.attention import lookup
from attn_course.checks import ready_made
from attn_course.checks.catalogue.families.gradient import GRADIENT
from attn_course.checks.catalogue.families.result import RESULT
from attn_course.checks.catalogue.families.softmax import SOFTMAX
from attn_course.checks.exercise import (
    Diagnosis,
    Exercise,
    Mistake,
    Output,
    Seen,
    Stage,
    normal,
    tenths,
)
from attn_course.checks.gradients import gradient_stage
from attn_course.sentences import joined, say

# -- probes -----------------------------------------------------------------------------------


def draw_equal_keys(rng: Generator) -> Iterator[tuple]:
    """Equal keys match equally well, so the output is the plain mean of the values."""
    yield tenths(rng, 1, 2), torch.zeros(3, 2), tenths(rng, 3, 1)
    yield normal(rng, 4, 5), torch.zeros(6, 5), normal(rng, 6, 2)


def draw_thermometer(rng: Generator) -> Iterator[tuple]:
    """Scores (1, 0) and values (1, 0): the log-odds of the output are what 1 was multiplied by."""
    for d_k in (2, 5, 12):
        query, key = torch.zeros(1, d_k), torch.zeros(2, d_k)
        query[0, 0] = key[0, 0] = 1.0
        yield query, key, torch.tensor([[1.0], [0.0]])


def draw_shapes(rng: Generator) -> Iterator[tuple]:
    """All sizes different, with zero to two leading axes."""
    yield tenths(rng, 2, 1), tenths(rng, 3, 1), tenths(rng, 3, 2)
    for leading in ((), (5,), (2, 3)):
        yield normal(rng, *leading, 4, 6), normal(rng, *leading, 7, 6), normal(rng, *leading, 7, 3)


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """Sizes that coincide, so that no wrong axis raises an error."""
    for shape in ((4, 3), (4, 4), (3, 3, 5), (3, 3, 3)):
        yield normal(rng, *shape), normal(rng, *shape), normal(rng, *shape)


def draw_large(rng: Generator) -> Iterator[tuple]:
    """Scores in the thousands, of both signs."""
    query, key = torch.zeros(2, 2), torch.zeros(3, 2)
    query[:, 0], key[:, 0] = torch.tensor([50.0, -50.0]), torch.tensor([30.0, 29.0, 28.0])
    yield query, key, tenths(rng, 3, 1)
    yield 60 * normal(rng, 2, 3, 4), 60 * normal(rng, 2, 5, 4), normal(rng, 2, 5, 2)


def draw_to_train(rng: Generator) -> Iterator[tuple]:
    """Gradients with respect to all three arguments."""
    yield tenths(rng, 3, 2), tenths(rng, 4, 2), tenths(rng, 4, 2)


def read_thermometer(seen: Sequence[Seen]) -> Diagnosis | None:
    """Read off the outputs what the score of 1 was multiplied by."""
    read = []
    for probe in seen:
        share = probe.actual[0].double().flatten()[0].item()
        if not 1e-9 < share < 1 - 1e-9:
            return None
        read.append((probe.args[0].shape[-1], math.log(share / (1 - share))))
    shown = joined(
        (say("{factor} at d_k = {d_k}", factor=f"{factor:.3g}", d_k=d_k) for d_k, factor in read),
        ", ",
    )
    words = (
        "The score of the first key is 1 and that of the second 0, but the weights answer as if "
        "the scores had been multiplied by {shown}."
    )
    return Diagnosis(say(words, shown=shown))


# -- a right answer and what goes wrong in it --------------------------------------------------


def looked_up(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """The right answer that the mistakes edit."""
    scores = query @ key.mT
    weights = scores.softmax(dim=-1)
    output = weights @ value
    return output, weights


def value_matched(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Takes keys for values and values for keys."""
    return lookup(query, value, key)


SCORES = "query @ key.mT"
SUM = "weights @ value"

MISTAKES = (
    Mistake(
        "scaled",
        "The scores are divided by √d_k. Why they want that is chapter 03's matter; here they "
        "are the dot products themselves.",
        {SCORES: "query @ key.mT / math.sqrt(query.shape[-1])"},
    ),
    Mistake(
        "scaled-by-d",
        "The scores are divided by d_k: a dot product is a sum over the features, not their mean.",
        {SCORES: "query @ key.mT / query.shape[-1]"},
    ),
    Mistake(
        "cosine",
        "Query and key are brought to length 1 before they meet; their lengths should count.",
        {SCORES: "F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT"},
    ),
    SOFTMAX.told(
        "no-softmax",
        "The weights of one query do not sum to one: the scores are used as they are, without a "
        "softmax.",
    ),
    SOFTMAX.told(
        "not-divided",
        "The weights of one query do not sum to one: the exponentials of the scores are not "
        "divided by their sum.",
        like="not-normalised",
    ),
    SOFTMAX.told(
        "sigmoid",
        "The weights of one query do not sum to one: each score goes through a sigmoid by itself, "
        "where the keys should share one whole.",
    ),
    SOFTMAX.told(
        "softmax-over-queries",
        "The weights of one query do not sum to one; those of one key do. The softmax runs over "
        "the queries, and the keys should share one whole.",
    ),
    SOFTMAX["softmax-axis-counted-from-left"],
    SOFTMAX.told(
        "softmax-first-axis",
        "The weights of one query do not sum to one: the softmax runs over the first axis.",
        like="softmax-over-first-axis",
    ),
    SOFTMAX.told(
        "softmax-over-everything",
        "The weights of one query do not sum to one: all queries together share one whole, where "
        "each should have its own.",
        like="softmax-over-all-pairs",
    ),
    SOFTMAX.told(
        "softmax-twice",
        "The softmax is taken twice, so the weights are far too even.",
    ),
    SOFTMAX.told(
        "unstable-softmax",
        "exp of a large score is infinite. The softmax does not change when the same number is "
        "taken from all scores of a row (exercise 2.2).",
    ),
    SOFTMAX.told(
        "hard-choice",
        "All weight goes to the best key: the hard choice of a dictionary, not the soft one.",
    ),
    SOFTMAX.told(
        "negative-scores",
        "The worst key gets the largest weight: the sign of the scores is turned round.",
        like="sign-of-the-scores",
    ),
    RESULT.told(
        "keys-summed",
        "The weighted sum is taken over the keys. They are only what a value is found by: it "
        "is the values that are summed.",
    ),
    Mistake(
        "mean-of-weighted-values",
        "The weighted values are averaged over the keys, so the output is too small by their "
        "number: the weights sum to one already.",
        {SUM: "weights @ value / value.shape[-2]"},
    ),
    Mistake(
        "weights-transposed",
        "In the weighted sum the weights stand transposed: the sum must run over the keys. "
        "With as many queries as keys no error tells you so.",
        {SUM: "weights.mT @ value"},
    ),
    Mistake(
        "weights-ignored",
        "Every query gets the plain mean of the values: the weights are not used.",
        {SUM: "torch.ones_like(weights) @ value / value.shape[-2]"},
    ),
    Mistake(
        "key-not-transposed",
        "The key is multiplied as it stands, so its positions meet the query's features.",
        {SCORES: "query @ key"},
    ),
    Mistake(
        "query-with-itself",
        "The queries are scored against each other; the keys never enter.",
        {SCORES: "query @ query.mT"},
    ),
    Mistake(
        "scores-transposed",
        "Queries and keys are exchanged in the scores: a row belongs to a query, a column to a "
        "key.",
        {SCORES: "key @ query.mT"},
    ),
    Mistake(
        "key-axes-exchanged",
        "The wrong axes of key are exchanged: exchange the last two and leave all leading ones "
        "where they are.",
        {SCORES: "query @ key.transpose(0, 1)"},
    ),
    Mistake(
        "key-and-value-exchanged",
        "Key and value are exchanged: the query is matched with the keys, and the values are "
        "what is summed.",
        value_matched,
    ),
    RESULT["result-exchanged"],
    RESULT.told(
        "scores-returned",
        "The output is right, but the second result is the scores that go into the softmax, "
        "not the weights.",
    ),
    GRADIENT.told(
        "detached",
        "The values are right, but no gradient passes through the look-up, so it could not be "
        "trained. `.detach()`, `.data`, `.item()`, numpy and `torch.tensor(…)` cut it off.",
    ),
    GRADIENT.told(
        "weights-detached",
        "The output is right, but the weights are cut off from the gradient: query and key "
        "would never learn what to match.",
        like="softmax-detached",
    ),
)

EXERCISE = Exercise(
    number="2.5",
    reference=lookup,
    right=looked_up,
    outputs=(Output("output", "b i d"), Output("weights", "b i j")),
    difficulty=2,
    minutes=15,
    points=3,
    may_use="torch and einops, but no ready-made attention",
    rules_out=ready_made.ATTENTION,
    stages=(
        Stage(
            "equal keys",
            draw_equal_keys,
            "All keys are equal here, so every query should get the plain mean of the values.",
        ),
        Stage(
            "scores",
            draw_thermometer,
            "The weights should be the softmax of the dot products themselves.",
            diagnose=read_thermometer,
        ),
        Stage("shapes", draw_shapes, "The result differs from softmax(q kᵀ) v."),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "Here some sizes are equal, so that a wrong axis raises no error.",
        ),
        Stage("large scores", draw_large, "Scores in the thousands break it."),
        gradient_stage(
            draw_to_train,
            ("query", "key", "value"),
            {"query": "i d", "key": "j d", "value": "j d"},
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Three steps, of which you have written two: scores for every pair, weights along the "
        "keys, a weighted sum of values.",
        "The weights are (…, i, j) and the values (…, j, d_v). Over which axis does the sum run, "
        "and which axis must the softmax therefore run over?",
        "Scores as in exercise 2.3, then a softmax over j, then `... i j, ... j d -> ... i d`. "
        "Return the sum and the weights, in this order.",
    ),
)
