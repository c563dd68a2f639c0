"""Exercise 1.2, run_rnn: its probes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Generator, Tensor

from attn_course.checks import ready_made
from attn_course.checks.catalogue.ch01.rnn_step import small
from attn_course.checks.catalogue.ch01.run_rnn_mistakes import MISTAKES
from attn_course.checks.exercise import Exercise, Output, Stage, normal
from attn_course.checks.gradients import gradient_stage
from attn_course.recurrent import run_rnn


def drawn(
    rng: Generator, b: int, n: int, d_in: int, d_h: int, kind: Any = normal
) -> tuple[Tensor, ...]:
    """Random arguments (inputs, h0, W_x, W_h, b) of these sizes."""
    inputs, h0 = kind(rng, b, n, d_in), kind(rng, b, d_h)
    return inputs, h0, kind(rng, d_in, d_h), kind(rng, d_h, d_h), kind(rng, d_h)


def draw_one_step(rng: Generator) -> Iterator[tuple]:
    """A single input: one step from h0."""
    yield drawn(rng, 1, 1, 1, 2, small)
    yield drawn(rng, 3, 1, 2, 4)


def draw_steps(rng: Generator) -> Iterator[tuple]:
    """A single sequence of a few inputs: what is carried over, and in which order."""
    yield drawn(rng, 1, 3, 1, 1, small)
    yield drawn(rng, 1, 2, 1, 2, small)
    yield drawn(rng, 1, 5, 3, 4)


def draw_batch(rng: Generator) -> Iterator[tuple]:
    """Several sequences, all sizes different; once in float64."""
    yield drawn(rng, 2, 3, 1, 1, small)
    yield drawn(rng, 2, 5, 3, 4)
    yield drawn(rng, 6, 2, 4, 3)
    yield tuple(tensor.double() for tensor in drawn(rng, 3, 4, 2, 5))


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """Sizes that coincide, so that a wrong axis raises no error."""
    yield drawn(rng, 2, 2, 1, 1, small)
    yield drawn(rng, 4, 4, 2, 3)
    yield drawn(rng, 3, 5, 4, 4)
    yield drawn(rng, 3, 3, 3, 3)


def draw_to_train(rng: Generator) -> Iterator[tuple]:
    """Gradients with respect to all five arguments."""
    yield drawn(rng, 1, 3, 1, 1, small)
    yield drawn(rng, 2, 4, 3, 5)


EXERCISE = Exercise(
    number="1.2",
    reference=run_rnn,
    outputs=(Output("states", "b n d"),),
    difficulty=2,
    minutes=15,
    points=3,
    may_use="torch, but no torch.nn.RNN",
    rules_out=ready_made.RECURRENT,
    stages=(
        Stage("one step", draw_one_step, "There is one input, so the result is one step from h0."),
        Stage(
            "steps",
            draw_steps,
            "One step is right, several are not: each starts from the state that the one before "
            "it left.",
        ),
        Stage(
            "batch",
            draw_batch,
            "A single sequence is right, several are not: they never meet, and the batch stays "
            "the first axis.",
        ),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "Here sizes coincide, so that a wrong axis raises no error.",
        ),
        gradient_stage(
            draw_to_train,
            ("inputs", "h0", "W_x", "W_h", "b"),
            {"inputs": "b n d", "h0": "b d", "W_x": "", "W_h": "", "b": "d"},
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "A loop over the n inputs. Before it the state is h0; in it, one call of `rnn_step` makes "
        "the next state.",
        "`inputs.unbind(dim=1)` gives the n inputs, each (b, d_in). Keep each new state in a list.",
        "`torch.stack(states, dim=1)` gives n states (b, d_h) an axis of their own: (b, n, d_h). "
        "The variable that the next step reads must be the new state.",
    ),
)
