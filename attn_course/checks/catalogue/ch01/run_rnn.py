"""Exercise 1.2, run_rnn: its known mistakes and its probes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks import ready_made
from attn_course.checks.catalogue.ch01.rnn_step import GRADIENT_CUT, small
from attn_course.checks.catalogue.families.gradient import detached
from attn_course.checks.exercise import Exercise, Mistake, Output, Stage, normal
from attn_course.checks.gradients import CHANGED_IN_PLACE, gradient_stage
from attn_course.recurrent import rnn_step, run_rnn

# -- known mistakes ---------------------------------------------------------------------------


def right(inputs: Tensor, h0: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor) -> Tensor:
    """The loop as a learner may write it; each mistake is an edit of it."""
    h = h0
    states = []
    for x in inputs.unbind(dim=1):
        new = rnn_step(x, h, W_x, W_h, b)
        states.append(new)
        h = new
    return torch.stack(states, dim=1)


def read_back_from_the_table(
    inputs: Tensor, h0: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor
) -> Tensor:
    """Writes the states into one table, and takes each step's old state from there."""
    table = inputs.new_zeros(*inputs.shape[:2], h0.shape[-1])
    for t, x in enumerate(inputs.unbind(dim=1)):
        table[:, t] = rnn_step(x, table[:, t - 1] if t else h0, W_x, W_h, b)
    return table


STEP, STACK = "rnn_step(x, h, W_x, W_h, b)", "torch.stack(states, dim=1)"

MISTAKES = (
    Mistake(
        "last-state-only",
        "Only the last state comes back. All n of them are asked for, (b, n, d_h).",
        {STACK: "states[-1]"},
    ),
    Mistake(
        "first-state-only",
        "Only the first state comes back: does a `return` stand inside the loop?",
        {STACK: "states[0]"},
    ),
    Mistake(
        "last-state-as-a-sequence",
        "Only the last state comes back, as a sequence of one. All n of them are asked for.",
        {STACK: "states[-1][:, None]"},
    ),
    Mistake(
        "h0-among-the-states",
        "h0 is returned too, so there are n + 1 states. It is where the run starts, not "
        "what an input led to.",
        {STACK: "torch.stack([h0, *states], dim=1)"},
    ),
    Mistake(
        "one-step-late",
        "State t is the one from before input t: the list begins with h0 and lacks the last "
        "state. Is the state stored before the step is taken?",
        {"append(new)": "append(h)"},
    ),
    Mistake(
        "h0-ignored",
        "The run starts from zeros, whatever h0 is.",
        {"h = h0": "h = torch.zeros_like(h0)"},
    ),
    Mistake(
        "every-step-from-h0",
        "Every step starts from h0: the new state is not carried over to the next step, so "
        "nothing is remembered.",
        {"h = new": "h = h0"},
    ),
    Mistake(
        "reset-after-each-step",
        "After the first step the state is lost: each later step starts from zeros.",
        {"h = new": "h = torch.zeros_like(h0)"},
    ),
    Mistake(
        "carried-states-add-up",
        "The old state is added to what is carried over: the next step should start from the "
        "new state alone.",
        {"h = new": "h = h + new"},
    ),
    Mistake(
        "read-backwards",
        "The sequence is read from its end: the first state comes from the last input.",
        {"inputs.unbind": "inputs.flip(1).unbind"},
    ),
    Mistake(
        "read-backwards-and-put-back",
        "The sequence is read from its end, and the states are put back into its order: state t "
        "knows what comes after t, not what comes before.",
        {"inputs.unbind": "inputs.flip(1).unbind", STACK: "torch.stack(states[::-1], dim=1)"},
    ),
    Mistake(
        "states-reversed",
        "The states come in reversed order: the last one stands first.",
        {STACK: "torch.stack(states[::-1], dim=1)"},
    ),
    Mistake(
        "time-first",
        "The states are stacked along the first axis, (n, b, d_h). The batch comes first here, "
        "as in the inputs: (b, n, d_h).",
        {STACK: "torch.stack(states)"},
    ),
    Mistake(
        "reshaped-not-transposed",
        "The states are stacked as (n, b, d_h) and then get the shape (b, n, d_h), but the "
        "numbers stay in their old order: `view` and `reshape` count through, they exchange no "
        "axes. States of different sequences are mixed.",
        {STACK: "torch.stack(states).reshape(len(h0), len(states), -1)"},
    ),
    Mistake(
        "features-last-but-one",
        "The states are stacked along the last axis, (b, d_h, n). The features come last.",
        {STACK: "torch.stack(states, dim=-1)"},
    ),
    Mistake(
        "concatenated",
        "`cat` glues the states into one long row, (b, n·d_h). They need an axis of their own: "
        "that is what `stack` makes.",
        {STACK: "torch.cat(states, dim=-1)"},
    ),
    Mistake(
        "concatenated-down-the-batch",
        "`cat` glues the states below each other, (n·b, d_h). They need an axis of their own: "
        "that is what `stack` makes.",
        {STACK: "torch.cat(states)"},
    ),
    Mistake(
        "list-returned",
        "A list of states comes back. Stack them into one tensor, (b, n, d_h).",
        {STACK: "states"},
    ),
    Mistake(
        "tuple-returned",
        "Two things come back, the states and the last state, as from `nn.RNN`. Here only the "
        "states are asked for; the last one is among them.",
        {STACK: "torch.stack(states, dim=1), states[-1]"},
    ),
    Mistake(
        "sequences-for-steps",
        "The loop goes along the first axis, which is the batch: one sequence is taken for one "
        "step. Time is axis 1.",
        {"inputs.unbind(dim=1)": "inputs"},
    ),
    Mistake(
        "sequences-for-steps-stacked-first",
        "The loop goes along the first axis, which is the batch: one sequence is taken for one "
        "step. (And the results are stacked along it.) Time is axis 1.",
        {"inputs.unbind(dim=1)": "inputs", STACK: "torch.stack(states)"},
    ),
    Mistake(
        "last-input-unread",
        "The last input is never read, so there are n - 1 states: a loop that ends one too early?",
        {"inputs.unbind": "inputs[:, :-1].unbind"},
    ),
    Mistake(
        "first-input-unread",
        "The first input is never read, so there are n - 1 states: a loop that begins at 1?",
        {"inputs.unbind": "inputs[:, 1:].unbind"},
    ),
    Mistake(
        "first-input-always",
        "Every step reads the first input: the loop never moves on.",
        {"inputs.unbind(dim=1)": "[inputs[:, 0]] * inputs.shape[1]"},
    ),
    Mistake(
        "last-state-everywhere",
        "All states are the last one. The list holds the same tensor n times: it is written "
        "over in place at each step. Make a new tensor for each state.",
        {"h = h0": "h = h0.clone()", "append(new)": "append(h)", "h = new": "h.data = new"},
    ),
    Mistake(
        "h0-overwritten",
        "The caller's h0 is changed in place: the run writes into it.",
        {"return": "with torch.no_grad():\n        h0.copy_(h)\n    return"},
    ),
    Mistake(
        "step-without-tanh",
        "The loop is right, but its step has no tanh.",
        {STEP: "x @ W_x + h @ W_h + b"},
    ),
    Mistake(
        "step-without-bias",
        "The loop is right, but its step has no bias.",
        {STEP: "torch.tanh(x @ W_x + h @ W_h)"},
    ),
    Mistake(
        "step-without-state",
        "The step does not use the state it is given: state t depends on input t alone.",
        {STEP: "torch.tanh(x @ W_x + b)"},
    ),
    Mistake(
        "step-arguments-exchanged",
        "In each step the input meets W_h and the state meets W_x: two arguments are exchanged. "
        "Their order is x, h, W_x, W_h, b.",
        {STEP: "rnn_step(h, x, W_x, W_h, b)"},
    ),
    Mistake(
        "step-weight-transposed",
        "The loop is right, but its step transposes W_h.",
        {STEP: "rnn_step(x, h, W_x, W_h.T, b)"},
    ),
    Mistake(
        "old-state-added",
        "Each step adds the old state to the new one. In this step it enters through W_h only.",
        {STEP: "h + rnn_step(x, h, W_x, W_h, b)"},
    ),
    Mistake(
        "gradient-cut-between-steps",
        "The values are right, but the state is detached between two steps: the gradient goes "
        "back one step only, and the network could not learn to remember.",
        {"h = new": "h = new.detach()"},
    ),
    Mistake(
        "gradient-cut-at-h0",
        "The values are right, but h0 is detached: no gradient reaches it.",
        {"h = h0": "h = h0.detach()"},
    ),
    Mistake(
        "table-read-back",
        "The values are right, but each step reads its old state from the table that the later "
        "steps write into, and the backward pass finds it altered. Keep the state in a variable "
        "of its own, or the states in a list.",
        read_back_from_the_table,
        error=CHANGED_IN_PLACE,
    ),
    Mistake(
        "gradient-cut",
        GRADIENT_CUT,
        detached(STACK),
    ),
)

# -- probes -----------------------------------------------------------------------------------


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
    right=right,
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
