"""Exercise 7.2, FeedForward: its probes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attn_course.blocks import FeedForward
from attn_course.checks.catalogue.ch07.feed_forward_mistakes import MISTAKES, Layer
from attn_course.checks.exercise import (
    Answer,
    Diagnosis,
    Exercise,
    Output,
    Seen,
    Stage,
    normal,
    tenths,
)
from attn_course.checks.gradients import LOST_GRADIENT, gradient_of, gradients_at
from attn_course.checks.modules import named_shapes, repeats, require_module
from attn_course.sentences import say

ROLES = ("W_1", "W_2")
_SEED = 7_200

# -- how an answer is called ------------------------------------------------------------------


def parts(answer: Answer, d_model: int, d_ff: int) -> str:
    """The names and shapes of a new layer's parameters."""
    return named_shapes(answer, d_model, d_ff) or "none"


def built(answer: Answer, d_ff: int, like: Tensor) -> Any:
    """A layer of the learner's class with the check's weights and biases, by role."""
    layer = answer(like.shape[-1], d_ff)
    require_module(layer)
    rng = torch.Generator().manual_seed(_SEED)
    for role in ROLES:
        linear = getattr(layer, role, None)
        if not isinstance(linear, nn.Linear):
            words = "self.{role} should be an nn.Linear, it is {found}"
            raise TypeError(say(words, role=role, found=type(linear).__name__))
        width = linear.weight.shape[-1]
        linear.weight = nn.Parameter((normal(rng, *linear.weight.shape) / sqrt(width)).to(like))
        if linear.bias is not None:
            linear.bias = nn.Parameter(normal(rng, *linear.bias.shape).to(like))
    return layer


def repeated(answer: Answer, x: Tensor, d_ff: int) -> Any:
    """Whether two calls agree, in training and in evaluation; what comes back if no tensor does."""
    return repeats(built(answer, d_ff, x), x)


def transform(answer: Answer, x: Tensor, d_ff: int) -> Any:
    """One call, after one with another length, which may not be kept."""
    layer = built(answer, d_ff, x)
    layer(x[..., :1, :] if x.ndim > 1 else x)
    return layer(x)


def gradients(answer: Answer, x: Tensor, d_ff: int) -> Any:
    """The gradients of the sum of squares of the output: of x, weights and biases."""
    layer = built(answer, d_ff, x)
    x = x.clone().requires_grad_()
    inputs = [x, layer.W_1.weight, layer.W_1.bias, layer.W_2.weight, layer.W_2.bias]
    return gradients_at(inputs, [layer(x)])


# -- probes -----------------------------------------------------------------------------------


def draw_sizes(rng: Generator) -> Iterator[tuple]:
    """A hidden layer wider than the token, as wide, and narrower."""
    yield 2, 3
    yield 5, 5
    yield 6, 4


def draw_repeated(rng: Generator) -> Iterator[tuple]:
    """Enough features for a dropout of any size to show."""
    yield normal(rng, 2, 12, 8), 16


def draw_tokens(rng: Generator) -> Iterator[tuple]:
    """One token first; then several, with any number of axes before the last."""
    yield tenths(rng, 1, 1, 2), 3
    for shape, d_ff in (((2, 3, 4), 7), ((5,), 11), ((3, 4), 3), ((2, 1, 3, 5), 9)):
        yield normal(rng, *shape), d_ff
    yield normal(rng, 2, 3, 4).double(), 6
    yield 10 * normal(rng, 2, 3, 4), 6  # a function that levels off above shows here


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """As many hidden features as there are in a token, and as many tokens."""
    yield tenths(rng, 1, 2, 2), 2
    yield normal(rng, 4, 4, 4), 4


def draw_gradients(rng: Generator) -> Iterator[tuple]:
    """One token, then several."""
    yield tenths(rng, 1, 1, 3), 4
    yield normal(rng, 2, 3, 4), 7


def read_parts(seen: Sequence[Seen]) -> Diagnosis | None:
    """The right shapes under other names."""
    found, wanted = (_parts_in(text) for text in (seen[0].actual, seen[0].expected))
    if found and sorted(found.values()) == sorted(wanted.values()):
        names = ", ".join(sorted({name.rpartition(".")[0] or name for name in found}))
        words = (
            "The projections are called {names}. The check copies its weights in by name: "
            "self.W_1 and self.W_2."
        )
        return Diagnosis(say(words, names=names), "other-names")
    return None


def _parts_in(text: str) -> dict[str, str]:
    """Name -> shape, from what `parts` says."""
    found = (part.rsplit(" (", 1) for part in text.removesuffix(")").split("), "))
    return dict(pair for pair in found if len(pair) == 2)


EXERCISE = Exercise(
    number="7.2",
    reference=FeedForward,
    right=Layer,
    wire="class",
    outputs=(Output("output", "b n d"),),
    difficulty=1,
    minutes=10,
    points=2,
    may_use="torch",
    stages=(
        Stage(
            "parts",
            draw_sizes,
            "A new layer should have two projections and nothing else that is learnt: "
            "self.W_1 = nn.Linear(d_model, d_ff) and self.W_2 = nn.Linear(d_ff, d_model).",
            call=parts,
            outputs=(Output(say("the layer's parameters")),),
            inputs=("d_model", "d_ff"),
            diagnose=read_parts,
        ),
        Stage(
            "repeated calls",
            draw_repeated,
            "Two calls with the same input should agree: nothing is dropped here, and nothing "
            "drawn in forward.",
            call=repeated,
            outputs=(
                Output(say("two calls agree in training")),
                Output(say("two calls agree in evaluation")),
            ),
        ),
        Stage(
            "output",
            draw_tokens,
            "The output differs. Project, put to zero what is negative, project back.",
            call=transform,
        ),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "Here d_ff is d_model, and the output differs.",
            call=transform,
        ),
        Stage(
            "gradients",
            draw_gradients,
            LOST_GRADIENT,
            call=gradients,
            outputs=(
                gradient_of("x", "b n d"),
                *(gradient_of(f"W_{k}.{kind}") for k in "12" for kind in ("weight", "bias")),
            ),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Three steps, of which only the middle one is not linear. What would be left of the layer "
        "without that step?",
        "__init__ makes self.W_1, from d_model to d_ff features, and self.W_2 back. forward "
        "applies one to x and the other to what the ReLU lets through.",
        "torch.relu(…) goes around self.W_1(x), and self.W_2 around that.",
    ),
)
