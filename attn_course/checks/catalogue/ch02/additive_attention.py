"""Exercise 2.6, additive_attention: its probes and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.attention import additive_attention
from attn_course.checks import ready_made
from attn_course.checks.catalogue.ch02.additive_mistakes import (
    MISTAKES,
    QUERY_CANCELS,
    attended,
)
from attn_course.checks.exercise import (
    Diagnosis,
    Exercise,
    Output,
    Seen,
    Stage,
    normal,
    tenths,
)
from attn_course.checks.gradients import gradient_stage
from attn_course.sentences import joined

# -- probes -----------------------------------------------------------------------------------


def drawn(
    rng: Generator,
    n_query: int,
    n_key: int,
    d_q: int,
    d_k: int,
    d_v: int,
    d_hidden: int,
    leading: tuple[int, ...] = (),
    kind: Any = normal,
) -> tuple[Tensor, ...]:
    """Random arguments of these sizes."""
    query, key = kind(rng, *leading, n_query, d_q), kind(rng, *leading, n_key, d_k)
    value = kind(rng, *leading, n_key, d_v)
    return (
        query,
        key,
        value,
        kind(rng, d_q, d_hidden),
        kind(rng, d_k, d_hidden),
        kind(rng, d_hidden),
    )


def draw_equal_scores(rng: Generator) -> Iterator[tuple]:
    """w = 0: all keys match equally well, so the output is the plain mean of the values."""
    for sizes, kind in (((1, 3, 1, 1, 1, 1), tenths), ((4, 6, 3, 5, 2, 7), normal)):
        *others, w = drawn(rng, *sizes, kind=kind)
        yield *others, torch.zeros_like(w)


def draw_scores(rng: Generator) -> Iterator[tuple]:
    """Few numbers first; then all sizes different."""
    query, key = torch.tensor([[1.0], [-0.5]]), torch.tensor([[0.5], [1.5], [-1.0]])
    W_q, W_k, w = torch.tensor([[1.0, 0.5]]), torch.tensor([[-1.0, 2.0]]), torch.tensor([2.0, -1.0])
    yield query, key, tenths(rng, 3, 1), W_q, W_k, w
    yield drawn(rng, 4, 5, 3, 2, 7, 6)


def draw_leading(rng: Generator) -> Iterator[tuple]:
    """One and two leading axes, all sizes different."""
    yield drawn(rng, 4, 6, 3, 2, 7, 8, (5,))
    yield drawn(rng, 4, 5, 6, 7, 8, 9, (2, 3))


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """Sizes that coincide, so that no wrong axis and no exchanged weight raises an error."""
    yield drawn(rng, 4, 4, 3, 2, 5, 6)
    yield drawn(rng, 3, 5, 4, 4, 2, 4)
    yield drawn(rng, 4, 4, 4, 4, 4, 4)
    yield drawn(rng, 3, 3, 4, 4, 3, 5, (3,))
    yield drawn(rng, 3, 3, 3, 3, 3, 3, (3,))


def draw_large(rng: Generator) -> Iterator[tuple]:
    """Scores in the thousands: w is long."""
    yield far_apart(rng, 2, 3, 1, 1, 1, 2, kind=tenths)
    yield far_apart(rng, 3, 4, 2, 5, 6, 7)


def far_apart(rng: Generator, *sizes: int, kind: Any = normal) -> tuple[Tensor, ...]:
    """Arguments with large scores of which one wins in each row.

    Where two come close, the last digits of a right answer's scores would decide.
    """
    while True:
        *others, w = drawn(rng, *sizes, kind=kind)  # type: ignore[arg-type]
        arguments = *others, 1000 * w
        _, weights = additive_attention(*(tensor.double() for tensor in arguments))
        if weights.amax(dim=-1).min() > 1 - 1e-9:
            return arguments


def draw_to_train(rng: Generator) -> Iterator[tuple]:
    """Gradients with respect to all six arguments."""
    yield drawn(rng, 2, 3, 2, 3, 2, 4, kind=tenths)


def read_queries_alike(seen: Sequence[Seen]) -> Diagnosis | None:
    """Equal weights for all queries: the query's part has cancelled in the softmax."""
    for probe in seen:
        weights = probe.actual[1].double()
        if weights.shape[-2] < 2 or not torch.allclose(weights, weights[..., :1, :], atol=1e-6):
            return None
    must = "Query and key must meet inside the tanh before they become one number."
    return Diagnosis(joined([QUERY_CANCELS, must]))


EXERCISE = Exercise(
    number="2.6",
    reference=additive_attention,
    right=attended,
    outputs=(Output("output", "b i d"), Output("weights", "b i j")),
    difficulty=3,
    minutes=20,
    points=4,
    may_use="torch and einops, but no ready-made attention",
    rules_out=ready_made.ATTENTION,
    stages=(
        Stage(
            "equal scores",
            draw_equal_scores,
            "w is zero here, so all scores are equal and every query should get the plain mean of "
            "the values.",
        ),
        Stage(
            "scores",
            draw_scores,
            "The weights should be the softmax over j of w · tanh(q_i W_q + k_j W_k).",
            diagnose=read_queries_alike,
        ),
        Stage(
            "leading axes",
            draw_leading,
            "Two axes are right, more are not: each batch entry has its own queries, keys and "
            "values.",
        ),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "Here some sizes are equal, so that a wrong axis raises no error.",
            diagnose=read_queries_alike,
        ),
        Stage("large scores", draw_large, "Scores in the thousands break it."),
        gradient_stage(
            draw_to_train,
            ("query", "key", "value", "W_q", "W_k", "w"),
            {"query": "i d", "key": "j d", "value": "j d", "W_q": "", "W_k": "", "w": ""},
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "q W_q is (…, i, d_hidden) and k W_k is (…, j, d_hidden). Their sum for every pair is "
        "(…, i, j, d_hidden). What shapes must the two have so that broadcasting gives that?",
        '`rearrange(…, "... i d -> ... i 1 d")` for the one, `"... j d -> ... 1 j d"` for the '
        "other. The tanh comes after the sum, and w takes the last axis away.",
        "The rest is exercise 2.5: a softmax over j, the weighted sum of the values, and both "
        "results returned.",
    ),
)
