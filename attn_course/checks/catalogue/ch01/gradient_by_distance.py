"""Exercise 1.3, gradient_by_distance: its probes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch01.gradient_mistakes import MISTAKES, right
from attn_course.checks.catalogue.ch01.rnn_step import small
from attn_course.checks.exercise import Answer, Exercise, Output, Stage, normal
from attn_course.recurrent import gradient_by_distance, run_rnn
from attn_course.sentences import say

# -- how an answer is called ------------------------------------------------------------------


def mixing(answer: Answer, M: Tensor, inputs: Tensor) -> Any:
    """With a `run` whose output i is Σ_j M[i, j] x_j: its gradients can be read off M."""
    return answer(lambda x: torch.einsum("ij, bjd -> bid", M.to(x.dtype), x), inputs)


def features(answer: Answer, M: Tensor, W: Tensor, inputs: Tensor) -> Any:
    """With a `run` whose output i is Σ_j M[i, j] x_j W."""
    return answer(
        lambda x: torch.einsum("ij, bjd, de -> bie", M.to(x.dtype), x, W.to(x.dtype)), inputs
    )


def recurrent(answer: Answer, W_x: Tensor, W_h: Tensor, inputs: Tensor) -> Any:
    """With a recurrent network as `run`, whose weights want gradients, as those of a module do."""
    return answer(network(W_x, W_h), inputs)


def twice(answer: Answer, W_x: Tensor, W_h: Tensor, inputs: Tensor) -> Any:
    """The result of a second call with the very same objects."""
    run = network(W_x, W_h)
    answer(run, inputs)
    return answer(run, inputs)


def from_embedding(answer: Answer, W_x: Tensor, W_h: Tensor, inputs: Tensor) -> Any:
    """With inputs that come out of a computation of their own, as those of an embedding do."""
    table = inputs.detach().clone().requires_grad_()
    return answer(network(W_x, W_h), table * 1.0)


def traces(answer: Answer, W_x: Tensor, W_h: Tensor, inputs: Tensor) -> Any:
    """How many of the weights have a gradient after the call: 0 or 2."""
    weights = [W.detach().clone().requires_grad_() for W in (W_x, W_h)]
    answer(network(*weights), inputs)
    return sum(W.grad is not None for W in weights)


def network(W_x: Tensor, W_h: Tensor) -> Any:
    """A recurrent network as a function from inputs to states, started from zeros."""
    weights = [W if W.requires_grad else W.detach().clone().requires_grad_() for W in (W_x, W_h)]

    def run(x: Tensor) -> Tensor:
        W_in, W_state = (W.to(x.dtype) for W in weights)
        h0 = x.new_zeros(x.shape[0], W_state.shape[0])
        return run_rnn(x, h0, W_in, W_state, h0.new_zeros(W_state.shape[0]))

    return run


# -- probes -----------------------------------------------------------------------------------


def draw_mixing(rng: Generator) -> Iterator[tuple]:
    """One feature, no sequence with a gradient of its own: entry k is |M[n - 1, n - 1 - k]|."""
    yield torch.tensor([[0.5, 0.0], [-0.8, 0.3]]), small(rng, 1, 2, 1)
    yield torch.tensor([[0.9, 0.0, 0.0], [0.2, 0.7, 0.0], [0.4, -0.1, 0.6]]), small(rng, 1, 3, 1)
    yield normal(rng, 5, 5), normal(rng, 2, 5, 1)


def draw_features(rng: Generator) -> Iterator[tuple]:
    """One sequence, several features in and out; the last W has only one feature out."""
    M, W = torch.tensor([[0.4, 0.0], [-0.3, 0.5]]), torch.tensor([[0.2, 0.4], [0.9, -0.1]])
    yield M, W, small(rng, 1, 2, 2)
    yield normal(rng, 4, 4), normal(rng, 3, 2), normal(rng, 1, 4, 3)
    yield normal(rng, 3, 3), normal(rng, 5, 1), normal(rng, 1, 3, 5)


def draw_batch(rng: Generator) -> Iterator[tuple]:
    """Several sequences, for each of which a recurrent network has gradients of its own."""
    yield small(rng, 1, 1), small(rng, 1, 1), small(rng, 3, 2, 1)
    yield normal(rng, 3, 5), normal(rng, 5, 5) / 2, normal(rng, 2, 6, 3)
    yield normal(rng, 2, 4), normal(rng, 4, 4) / 2, normal(rng, 7, 3, 2)
    yield normal(rng, 2, 3), normal(rng, 3, 3), normal(rng, 4, 1, 2)
    yield tuple(t.double() for t in (normal(rng, 3, 2), normal(rng, 2, 2), normal(rng, 4, 5, 3)))


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """Sizes that coincide, so that a wrong axis raises no error and keeps the shape."""
    yield normal(rng, 4, 3), normal(rng, 3, 3) / 2, normal(rng, 4, 4, 4)
    yield normal(rng, 2, 5), normal(rng, 5, 5) / 2, normal(rng, 4, 4, 2)
    yield normal(rng, 5, 2), normal(rng, 2, 2) / 2, normal(rng, 3, 5, 5)


def draw_recurrent(rng: Generator) -> Iterator[tuple]:
    """Few numbers, then more."""
    yield small(rng, 1, 1), small(rng, 1, 1), small(rng, 2, 3, 1)
    yield normal(rng, 3, 4), normal(rng, 4, 4) / 2, normal(rng, 2, 5, 3)


EXERCISE = Exercise(
    number="1.3",
    reference=gradient_by_distance,
    right=right,
    wire="callable",
    outputs=(Output("result", "distance"),),
    difficulty=3,
    minutes=20,
    points=4,
    may_use="torch and its autograd",
    stages=(
        Stage(
            "distance",
            draw_mixing,
            "Output i of `run` is Σ_j M[i, j] x_j here, with one feature and the same M for each "
            "sequence. So entry k should be the size of M[n - 1, n - 1 - k]: the last row of M, "
            "read from its end, without signs.",
            call=mixing,
        ),
        Stage(
            "features",
            draw_features,
            "Output i of `run` is Σ_j M[i, j] x_j W here, one sequence. With several features the "
            "outputs are added up, and the gradient of that sum at one position is a vector, "
            "which counts by its length.",
            call=features,
        ),
        Stage(
            "batch",
            draw_batch,
            "One sequence is right, several are not. Here `run` is a recurrent network, and each "
            "sequence has a gradient of its own; the mean is taken of their lengths.",
            call=recurrent,
        ),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "Here sizes coincide, so that a wrong axis keeps the shape.",
            call=recurrent,
        ),
        Stage(
            "second call",
            draw_recurrent,
            "The first call is right; a second one with the same `run` and inputs is not.",
            call=twice,
        ),
        Stage(
            "inputs of a computation",
            draw_recurrent,
            "Inputs that were computed from something else (an embedding) break it: they are no "
            "leaf of the graph. A detached copy is.",
            call=from_embedding,
            remark=True,
        ),
        Stage(
            "no traces",
            draw_recurrent,
            "After the call the weights of `run` have a `.grad`, which the next optimizer step "
            "would use: `backward()` fills in all of them, `torch.autograd.grad` only returns "
            "what it is asked for.",
            call=traces,
            outputs=(Output(say("weights with a gradient")),),
            remark=True,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Only one number can be differentiated. Which number stands for the last output of all "
        "sequences at once, given that the sequences never meet in `run`?",
        "Run on a detached copy of the inputs on which `requires_grad_()` was called. "
        "`torch.autograd.grad(number, copy)` returns a tuple with one gradient, (b, n, d_in).",
        "Three steps are left: the length of each vector (d_in goes away), the mean over the "
        "batch (b goes away), and the order: entry 0 is the last position.",
    ),
)
