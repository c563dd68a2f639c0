"""Exercise 4.1, SelfAttention: its stages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attn_course.checks.catalogue.ch04.self_attention_mistakes import MISTAKES, ROLES, OneHead
from attn_course.checks.exercise import Answer, Exercise, Output, Stage, normal, tensors_in, tenths
from attn_course.checks.gradients import LOST_GRADIENT, gradient_of, gradients_at
from attn_course.checks.modules import named_shapes, repeated_calls, require_module
from attn_course.masks import causal_mask, combine_masks, padding_mask
from attn_course.self_attention import SelfAttention
from attn_course.sentences import say

ATTENDED = (Output("output", "b n d"), Output("weights", "b i j"))

# -- how an answer is called ------------------------------------------------------------------


def built(answer: Answer, *weights: Tensor) -> nn.Module:
    """A layer of the learner's class, with these weights (d_model, d_k) copied in by role."""
    d_model, d_k = weights[0].shape
    layer = answer(d_model, d_k)
    require_module(layer)
    for role, weight in zip(ROLES, weights, strict=True):
        linear = getattr(layer, role, None)
        if not isinstance(linear, nn.Linear):
            words = "self.{role} should be an nn.Linear, it is {found}"
            raise TypeError(say(words, role=role, found=type(linear).__name__))
        linear.weight = nn.Parameter(weight.T.clone())
    return layer


def repeated(answer: Answer, x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Any:
    """Whether two calls give the same output, in training and in evaluation."""
    layer = built(answer, W_q, W_k, W_v)
    first, second = (tensors_in(layer(x))[:1] for _ in range(2))
    third, fourth = (tensors_in(layer.eval()(x))[:1] for _ in range(2))
    return all(map(torch.equal, first, second)), all(map(torch.equal, third, fourth))


def attend(answer: Answer, x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Any:
    """One call without a mask."""
    return built(answer, W_q, W_k, W_v)(x)


def attend_masked(
    answer: Answer, x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, mask: Tensor
) -> Any:
    """One call with a mask, after others: their masks may not be kept, nor their length."""
    layer = built(answer, W_q, W_k, W_v)
    layer(x[..., :1, :])
    layer(x[..., :1, :], torch.ones(1, 1, dtype=torch.bool))
    return layer(x, mask)


def gradients(
    answer: Answer, x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, mask: Tensor | None = None
) -> Any:
    """The gradients of the sum of squares of output and weights: of x and of the three weights."""
    x = x.clone().requires_grad_()
    layer: Any = built(answer, W_q, W_k, W_v)
    inputs = (x, *(getattr(layer, role).weight for role in ROLES))
    results = layer(x) if mask is None else layer(x, mask)
    return gradients_at(inputs, tensors_in(results))


# -- probes -----------------------------------------------------------------------------------


def weights(rng: Generator, d_model: int, d_k: int) -> tuple[Tensor, ...]:
    """Weights (d_model, d_k) for query, key and value."""
    return tuple(normal(rng, d_model, d_k) for _ in ROLES)


def draw_sizes(rng: Generator) -> Iterator[tuple]:
    """Two unequal widths."""
    yield 3, 2
    yield 4, 5


def draw_repeated(rng: Generator) -> Iterator[tuple]:
    """Enough features for a dropout of any size to show."""
    yield normal(rng, 3, 4, 8), *weights(rng, 8, 12)


def draw_one_token(rng: Generator) -> Iterator[tuple]:
    """A token alone has the weight 1: its output is its value, whatever query and key are."""
    yield tenths(rng, 1, 2), tenths(rng, 2, 1), tenths(rng, 2, 1), tenths(rng, 2, 1)
    yield normal(rng, 3, 1, 5), *weights(rng, 5, 4)


def draw_values(rng: Generator) -> Iterator[tuple]:
    """Queries of zeros: each output is the mean of all values."""
    yield tenths(rng, 2, 2), torch.zeros(2, 1), tenths(rng, 2, 1), tenths(rng, 2, 1)
    _, W_k, W_v = weights(rng, 5, 3)
    yield normal(rng, 2, 4, 5), torch.zeros(5, 3), W_k, W_v


def draw_roles(rng: Generator) -> Iterator[tuple]:
    """No leading axis, a batch, and a batch of as many sequences as tokens."""
    yield tenths(rng, 2, 2), tenths(rng, 2, 2), tenths(rng, 2, 2), tenths(rng, 2, 2)
    yield normal(rng, 6, 5), *weights(rng, 5, 3)
    yield normal(rng, 2, 4, 5), *weights(rng, 5, 3)
    yield normal(rng, 4, 4, 4), *weights(rng, 4, 4)
    yield normal(rng, 2, 3, 4, 6), *weights(rng, 6, 9)


def draw_hidden(rng: Generator) -> Iterator[tuple]:
    """Masks that hide a key from every query, and leave it one, so that none is empty inverted."""
    small = tenths(rng, 2, 1), tenths(rng, 1, 1), tenths(rng, 1, 1), tenths(rng, 1, 1)
    yield *small, torch.tensor([[True, False], [False, True]])
    yield normal(rng, 2, 4, 5), *weights(rng, 5, 3), ~torch.eye(4).bool().roll(1, dims=0)
    lengths = padding_mask(torch.tensor([2, 1, 3]), 4)
    yield normal(rng, 3, 4, 5), *weights(rng, 5, 3), lengths[:, None]


def draw_masked(rng: Generator) -> Iterator[tuple]:
    """Causal, padded, both: (i, j), (b, 1, j), and beside two leading axes."""
    small = tenths(rng, 2, 1), tenths(rng, 1, 1), tenths(rng, 1, 1), tenths(rng, 1, 1)
    yield *small, torch.tensor([[True, False], [True, True]])
    yield normal(rng, 2, 4, 5), *weights(rng, 5, 3), causal_mask(4)
    lengths = padding_mask(torch.tensor([2, 4, 3]), 4)
    yield normal(rng, 3, 4, 5), *weights(rng, 5, 3), lengths[:, None]
    both = combine_masks(causal_mask(4), padding=lengths)
    assert both is not None
    yield normal(rng, 3, 4, 5), *weights(rng, 5, 3), both[:, 0]
    yield normal(rng, 3, 2, 4, 5), *weights(rng, 5, 3), lengths[:, None, None]
    yield normal(rng, 3, 2, 4, 5), *weights(rng, 5, 3), causal_mask(4)
    # a hidden score of 0, far above the open ones of about -3000
    one = torch.ones(1, 1)
    x, mask = torch.tensor([[[55.0], [54.9], [0.0]]]), torch.tensor([[True, True, False]])
    yield x, -one, one, one, mask.expand(3, 3)


def draw_empty_rows(rng: Generator) -> Iterator[tuple]:
    """A query that may attend to nothing."""
    small = tenths(rng, 2, 1), tenths(rng, 1, 1), tenths(rng, 1, 1), tenths(rng, 1, 1)
    yield *small, torch.tensor([[False, False], [True, True]])
    lengths = padding_mask(torch.tensor([0, 4, 2]), 4)
    yield normal(rng, 3, 4, 5), *weights(rng, 5, 3), lengths[:, None]


def draw_gradients(rng: Generator) -> Iterator[tuple]:
    """A sequence, a batch, and queries that may attend to nothing."""
    yield tenths(rng, 2, 2), tenths(rng, 2, 1), tenths(rng, 2, 1), tenths(rng, 2, 1)
    yield normal(rng, 2, 4, 5), *weights(rng, 5, 3)
    lengths = padding_mask(torch.tensor([0, 4, 2]), 4)
    yield normal(rng, 3, 4, 5), *weights(rng, 5, 3), lengths[:, None]


EXERCISE = Exercise(
    number="4.1",
    reference=SelfAttention,
    right=OneHead,
    wire="class",
    outputs=ATTENDED,
    difficulty=2,
    minutes=20,
    points=4,
    may_use="torch, einops, and your own or the course's scaled_dot_product_attention",
    stages=(
        Stage(
            "parameters",
            draw_sizes,
            "A new layer should have three weights and nothing else: W_q, W_k and W_v, each "
            "nn.Linear(d_model, d_k, bias=False), set in __init__ as self.W_q, …",
            call=named_shapes,
            outputs=(Output(say("the layer's parameters")),),
            inputs=("d_model", "d_k"),
        ),
        repeated_calls(MISTAKES, draw_repeated, repeated, ("x", "W_q", "W_k", "W_v")),
        Stage(
            "one token",
            draw_one_token,
            "A token alone attends to itself with the weight 1, so its output should be its own "
            "value, x W_v.",
            call=attend,
        ),
        Stage(
            "values",
            draw_values,
            "All queries are zeros here, so each output should be the plain mean of the values.",
            call=attend,
        ),
        Stage(
            "roles",
            draw_roles,
            "Without a mask, output and weights differ from those of queries x W_q, keys x W_k and "
            "values x W_v.",
            call=attend,
        ),
        Stage(
            "hidden keys",
            draw_hidden,
            "With a mask the result differs; without one it is right.",
            call=attend_masked,
        ),
        Stage(
            "mask",
            draw_masked,
            "Under a causal mask, padding or both, the result differs.",
            call=attend_masked,
        ),
        Stage(
            "empty rows",
            draw_empty_rows,
            "A query that may attend to nothing should get zeros, output and weights alike.",
            call=attend_masked,
        ),
        Stage(
            "gradients",
            draw_gradients,
            LOST_GRADIENT,
            call=gradients,
            outputs=(
                gradient_of("x"),
                *(gradient_of(f"{role}.weight") for role in ROLES),
            ),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Two things to write: in __init__ three projections, after super().__init__(); in forward "
        "three products, then attention as in chapter 03.",
        "query = self.W_q(x), and key and value likewise, all three from the same x. The mask "
        "goes on to the attention function as it came.",
        "scaled_dot_product_attention(query, key, value, mask) returns (output, weights), and so "
        "does forward. There is no W_o yet, and no bias.",
    ),
)
