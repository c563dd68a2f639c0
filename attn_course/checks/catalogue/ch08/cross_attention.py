"""Exercise 8.1, cross_attention: its stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import torch
from torch import Generator

from attn_course.attention import cross_attention
from attn_course.checks.catalogue.ch08.cross_attention_mistakes import (
    MISTAKES,
    attention_written_out,
)
from attn_course.checks.compare import number
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
from attn_course.masks import padding_mask
from attn_course.sentences import joined, say

INPUTS = ("x", "memory", "W_q", "W_k", "W_v", "padding")
Probe = tuple[Any, ...]

# -- probes -----------------------------------------------------------------------------------


def probe(rng: Generator, b: int, i: int, j: int, sizes: tuple[int, int, int, int]) -> Probe:
    """x, memory and weights; sizes are d_model, d_memory, d_k, d_v."""
    d_model, d_memory, d_k, d_v = sizes
    shapes = (d_model, d_k), (d_memory, d_k), (d_memory, d_v)
    weights = (normal(rng, *shape) / sqrt(shape[0]) for shape in shapes)
    return normal(rng, b, i, d_model), normal(rng, b, j, d_memory), *weights


def small(rng: Generator, i: int, j: int) -> Probe:
    """One feature everywhere: numbers to do on paper."""
    return (
        tenths(rng, 1, i, 1),
        tenths(rng, 1, j, 1),
        *(tenths(rng, 1, 1) for _ in range(3)),
    )


def draw_one_key(rng: Generator) -> Iterator[Probe]:
    """A memory of one token: each query must take it, whatever it asks."""
    yield small(rng, 2, 1)
    yield probe(rng, 2, 4, 1, (5, 7, 3, 6))


def draw_values(rng: Generator) -> Iterator[Probe]:
    """Queries of zeros: each output is the mean of the memory's values."""
    x, memory, W_q, W_k, W_v = small(rng, 1, 2)
    yield x, memory, torch.zeros_like(W_q), W_k, W_v
    x, memory, W_q, W_k, W_v = probe(rng, 2, 4, 3, (5, 7, 3, 6))
    yield x, memory, torch.zeros_like(W_q), W_k, W_v


def draw_roles(rng: Generator) -> Iterator[Probe]:
    """More keys than queries, fewer, as many; then all sizes equal, where nothing crashes."""
    yield small(rng, 1, 2)
    yield probe(rng, 2, 3, 6, (5, 7, 4, 9))
    yield probe(rng, 3, 6, 2, (7, 5, 4, 3))
    yield probe(rng, 4, 4, 4, (4, 4, 4, 4))
    yield probe(rng, 2, 5, 3, (6, 6, 12, 6))


def draw_padding(rng: Generator) -> Iterator[Probe]:
    """Padding, with as many sequences as queries, as keys, and as neither."""
    yield *small(rng, 1, 2), torch.tensor([[True, False]])
    for b, i, j in ((2, 3, 5), (3, 3, 4), (4, 5, 4), (3, 3, 3)):
        lengths = torch.tensor([j, 1, 2, 2][:b])
        x, memory, *weights = probe(rng, b, i, j, (5, 7, 4, 6))
        padding = padding_mask(lengths, j)
        yield x, memory.masked_fill(~padding[..., None], 9.0), *weights, padding


def draw_in_front(rng: Generator) -> Iterator[Probe]:
    """Padding in front and in the middle: what counts is where it says True."""
    yield *small(rng, 1, 2), torch.tensor([[False, True]])
    padding = torch.tensor([[False, True, True, False], [True, False, False, True]])
    yield *probe(rng, 2, 3, 4, (5, 6, 4, 7)), padding


def draw_empty(rng: Generator) -> Iterator[Probe]:
    """A memory of padding only."""
    yield *small(rng, 1, 2), torch.tensor([[False, False]])
    yield *probe(rng, 3, 2, 4, (5, 7, 4, 6)), padding_mask(torch.tensor([0, 4, 2]), 4)


def draw_large(rng: Generator) -> Iterator[Probe]:
    """Scores of some hundred, and all of them far below zero."""
    one = torch.ones(1, 1)
    yield torch.tensor([[[30.0]]]), torch.tensor([[[10.0], [9.9]]]), one, one, one
    yield torch.tensor([[[-30.0]]]), torch.tensor([[[10.0], [9.9]]]), one, one, one
    x, memory, *weights = probe(rng, 2, 3, 4, (5, 7, 4, 6))
    yield 20 * x, 20 * memory, *weights
    # beside a score of -4000 a hidden key must not win
    far = torch.tensor([[[-400.0]]]), torch.tensor([[[10.0], [0.0]]])
    yield *far, one, one, one, torch.tensor([[True, False]])


def draw_gradient(rng: Generator) -> Iterator[Probe]:
    """Without padding, with it, and with a memory of padding only."""
    yield small(rng, 1, 2)
    yield *probe(rng, 3, 2, 4, (5, 7, 3, 6)), padding_mask(torch.tensor([3, 4, 2]), 4)
    yield *probe(rng, 3, 2, 4, (5, 7, 3, 6)), padding_mask(torch.tensor([0, 4, 2]), 4)


# -- reading the scale off the weights --------------------------------------------------------


def factor(one: Seen) -> float | None:
    """What the dot products were multiplied by before the softmax; None if by no one number."""
    x, memory, W_q, W_k = one.args[:4]
    weights = one.actual[1].double()
    if weights.shape[-1] < 2 or not bool((weights > 0).all()):
        return None
    dots = (x @ W_q) @ (memory @ W_k).mT
    # a softmax keeps the differences of what it is given
    found, differences = (t[..., 1:] - t[..., :1] for t in (weights.log(), dots.double()))
    best = ((found * differences).sum() / differences.square().sum()).item()
    return best if torch.allclose(found, best * differences, atol=1e-3) else None


def other_scale(seen: Sequence[Seen]) -> Diagnosis | None:
    """Right but for one number in the place of 1/√d_k, the same on all probes."""
    factors = [found for found in map(factor, seen) if found is not None]
    if len(factors) < len(seen) or max(factors) - min(factors) > 1e-3:
        return None
    known = next(mistake for mistake in MISTAKES if mistake.id == "fixed-scale")
    found = say("Here it is {factor}.", factor=number(factors[0]))
    return Diagnosis(joined([known.message, found]), known.id)


EXERCISE = Exercise(
    number="8.1",
    reference=cross_attention,
    right=attention_written_out,
    outputs=(Output("output", "b i d"), Output("weights", "b i j")),
    difficulty=1,
    minutes=12,
    points=2,
    may_use="torch, einops, and your own or the course's scaled_dot_product_attention",
    stages=(
        Stage(
            "one key",
            draw_one_key,
            "The memory has one token here, so each output should be its value, memory @ W_v, "
            "with the weight 1.",
        ),
        Stage(
            "values",
            draw_values,
            "All queries are zeros here, so each output should be the plain mean of the memory's "
            "values.",
        ),
        Stage(
            "roles",
            draw_roles,
            "Without padding, output and weights differ from those of queries x W_q, keys "
            "memory W_k and values memory W_v.",
            diagnose=other_scale,
        ),
        Stage("padding", draw_padding, "With padding behind the tokens the result differs."),
        Stage("gaps", draw_in_front, "With padding in front or between the result differs."),
        Stage("empty", draw_empty, "A memory of padding only should give zeros, weights alike."),
        Stage("large scores", draw_large, "With scores of some hundred the result differs."),
        gradient_stage(
            draw_gradient,
            INPUTS,
            {
                "x": "b i d",
                "memory": "b j d",
                "W_q": "d_model d_k",
                "W_k": "d_memory d_k",
                "W_v": "d_memory d_v",
            },
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "It is the attention of chapter 03; new is only what the three projections are made from. "
        "Who asks, and who is looked up?",
        "query = x @ W_q; key and value come from the memory. Padding (b, j) needs an axis of size "
        "1 for the queries before it fits scores (b, i, j).",
        "scaled_dot_product_attention(query, key, value, mask) with mask = None or "
        "rearrange(padding, 'b j -> b 1 j') returns the pair that is asked for.",
    ),
)
