"""The known mistakes of exercise 1.2, run_rnn."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from attn_course.checks.exercise import Answer, Mistake
from attn_course.checks.gradients import CHANGED_IN_PLACE, detached_inputs
from attn_course.recurrent import rnn_step, run_rnn


def run(
    inputs: Tensor,
    h0: Tensor,
    W_x: Tensor,
    W_h: Tensor,
    b: Tensor,
    *,
    read: Any = lambda inputs: inputs.unbind(dim=1),
    start: Any = lambda h0: h0,
    step: Any = rnn_step,
    carry: Any = lambda new, h, h0: new,
    gather: Any = lambda states, h0: torch.stack(states, dim=1),
) -> Any:
    """The loop with its joints open: each mistake replaces one of them."""
    h, states = start(h0), []
    for x in read(inputs):
        new = step(x, h, W_x, W_h, b)
        states.append(new)
        h = carry(new, h, h0)
    return gather(states, h0)


def read_by(read: Any, **joints: Any) -> Answer:
    """A version that goes through the inputs in another way."""
    return partial(run, read=read, **joints)


def carried(carry: Any) -> Answer:
    """A version that hands something else on to the next step."""
    return partial(run, carry=carry)


def stepped(step: Any) -> Answer:
    """A version whose step is another one."""
    return partial(run, step=step)


def gathered(gather: Any) -> Answer:
    """A version that puts the right states together in another way."""
    return partial(run, gather=gather)


def one_tensor_for_all(inputs: Tensor, h0: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor) -> Tensor:
    """Writes every state into the same memory, so the list holds one tensor n times."""
    h, states = h0.clone(), []
    for x in inputs.unbind(dim=1):
        h.data = rnn_step(x, h, W_x, W_h, b)
        states.append(h)
    return torch.stack(states, dim=1)


def into_h0(inputs: Tensor, h0: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor) -> Tensor:
    """Writes every state into the caller's h0."""
    states = run_rnn(inputs, h0, W_x, W_h, b)
    with torch.no_grad():
        h0.copy_(states[:, -1])
    return states


def sequences_for_steps(**joints: Any) -> Answer:
    """A version whose loop goes along the first axis, from sequence to sequence."""
    return read_by(lambda inputs: inputs.unbind(dim=0), **joints)


def read_back_from_the_table(
    inputs: Tensor, h0: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor
) -> Tensor:
    """Writes the states into one table, and takes each step's old state from there."""
    table = inputs.new_zeros(*inputs.shape[:2], h0.shape[-1])
    for t, x in enumerate(inputs.unbind(dim=1)):
        table[:, t] = rnn_step(x, table[:, t - 1] if t else h0, W_x, W_h, b)
    return table


MISTAKES = (
    Mistake(
        "last-state-only",
        "Only the last state comes back. All n of them are asked for, (b, n, d_h).",
        gathered(lambda states, h0: states[-1]),
    ),
    Mistake(
        "first-state-only",
        "Only the first state comes back: does a `return` stand inside the loop?",
        gathered(lambda states, h0: states[0]),
    ),
    Mistake(
        "last-state-as-a-sequence",
        "Only the last state comes back, as a sequence of one. All n of them are asked for.",
        gathered(lambda states, h0: states[-1][:, None]),
    ),
    Mistake(
        "h0-among-the-states",
        "h0 is returned too, so there are n + 1 states. It is where the run starts, not "
        "what an input led to.",
        gathered(lambda states, h0: torch.stack([h0, *states], dim=1)),
    ),
    Mistake(
        "one-step-late",
        "State t is the one from before input t: the list begins with h0 and lacks the last "
        "state. Is the state stored before the step is taken?",
        gathered(lambda states, h0: torch.stack([h0, *states[:-1]], dim=1)),
    ),
    Mistake(
        "h0-ignored",
        "The run starts from zeros, whatever h0 is.",
        partial(run, start=torch.zeros_like),
    ),
    Mistake(
        "every-step-from-h0",
        "Every step starts from h0: the new state is not carried over to the next step, so "
        "nothing is remembered.",
        carried(lambda new, h, h0: h0),
    ),
    Mistake(
        "reset-after-each-step",
        "After the first step the state is lost: each later step starts from zeros.",
        carried(lambda new, h, h0: torch.zeros_like(h0)),
    ),
    Mistake(
        "carried-states-add-up",
        "The old state is added to what is carried over: the next step should start from the "
        "new state alone.",
        carried(lambda new, h, h0: new + h),
    ),
    Mistake(
        "read-backwards",
        "The sequence is read from its end: the first state comes from the last input.",
        read_by(lambda inputs: inputs.flip(1).unbind(dim=1)),
    ),
    Mistake(
        "read-backwards-and-put-back",
        "The sequence is read from its end, and the states are put back into its order: state t "
        "knows what comes after t, not what comes before.",
        read_by(
            lambda inputs: inputs.flip(1).unbind(dim=1),
            gather=lambda states, h0: torch.stack(states[::-1], dim=1),
        ),
    ),
    Mistake(
        "states-reversed",
        "The states come in reversed order: the last one stands first.",
        gathered(lambda states, h0: torch.stack(states[::-1], dim=1)),
    ),
    Mistake(
        "time-first",
        "The states are stacked along the first axis, (n, b, d_h). The batch comes first here, "
        "as in the inputs: (b, n, d_h).",
        gathered(lambda states, h0: torch.stack(states)),
    ),
    Mistake(
        "reshaped-not-transposed",
        "The states are stacked as (n, b, d_h) and then get the shape (b, n, d_h), but the "
        "numbers stay in their old order: `view` and `reshape` count through, they exchange no "
        "axes. States of different sequences are mixed.",
        gathered(
            lambda states, h0: torch.stack(states).reshape(len(h0), len(states), h0.shape[-1])
        ),
    ),
    Mistake(
        "features-last-but-one",
        "The states are stacked along the last axis, (b, d_h, n). The features come last.",
        gathered(lambda states, h0: torch.stack(states, dim=-1)),
    ),
    Mistake(
        "concatenated",
        "`cat` glues the states into one long row, (b, n·d_h). They need an axis of their own: "
        "that is what `stack` makes.",
        gathered(lambda states, h0: torch.cat(states, dim=-1)),
    ),
    Mistake(
        "concatenated-down-the-batch",
        "`cat` glues the states below each other, (n·b, d_h). They need an axis of their own: "
        "that is what `stack` makes.",
        gathered(lambda states, h0: torch.cat(states)),
    ),
    Mistake(
        "list-returned",
        "A list of states comes back. Stack them into one tensor, (b, n, d_h).",
        gathered(lambda states, h0: states),
    ),
    Mistake(
        "tuple-returned",
        "Two things come back, the states and the last state, as from `nn.RNN`. Here only the "
        "states are asked for; the last one is among them.",
        gathered(lambda states, h0: (torch.stack(states, dim=1), states[-1])),
    ),
    Mistake(
        "sequences-for-steps",
        "The loop goes along the first axis, which is the batch: one sequence is taken for one "
        "step. Time is axis 1.",
        sequences_for_steps(),
    ),
    Mistake(
        "sequences-for-steps-stacked-first",
        "The loop goes along the first axis, which is the batch: one sequence is taken for one "
        "step. (And the results are stacked along it.) Time is axis 1.",
        sequences_for_steps(gather=lambda states, h0: torch.stack(states)),
    ),
    Mistake(
        "last-input-unread",
        "The last input is never read, so there are n - 1 states: a loop that ends one too early?",
        read_by(lambda inputs: inputs[:, :-1].unbind(dim=1)),
    ),
    Mistake(
        "first-input-unread",
        "The first input is never read, so there are n - 1 states: a loop that begins at 1?",
        read_by(lambda inputs: inputs[:, 1:].unbind(dim=1)),
    ),
    Mistake(
        "first-input-always",
        "Every step reads the first input: the loop never moves on.",
        read_by(lambda inputs: [inputs[:, 0]] * inputs.shape[1]),
    ),
    Mistake(
        "last-state-everywhere",
        "All states are the last one. The list holds the same tensor n times: it is written "
        "over in place at each step. Make a new tensor for each state.",
        one_tensor_for_all,
    ),
    Mistake(
        "h0-overwritten",
        "The caller's h0 is changed in place: the run writes into it.",
        into_h0,
    ),
    Mistake(
        "step-without-tanh",
        "The loop is right, but its step has no tanh.",
        stepped(lambda x, h, W_x, W_h, b: x @ W_x + h @ W_h + b),
    ),
    Mistake(
        "step-without-bias",
        "The loop is right, but its step has no bias.",
        stepped(lambda x, h, W_x, W_h, b: torch.tanh(x @ W_x + h @ W_h)),
    ),
    Mistake(
        "step-without-state",
        "The step does not use the state it is given: state t depends on input t alone.",
        stepped(lambda x, h, W_x, W_h, b: torch.tanh(x @ W_x + b)),
    ),
    Mistake(
        "step-arguments-exchanged",
        "In each step the input meets W_h and the state meets W_x: two arguments are exchanged. "
        "Their order is x, h, W_x, W_h, b.",
        stepped(lambda x, h, W_x, W_h, b: rnn_step(h, x, W_x, W_h, b)),
    ),
    Mistake(
        "step-weight-transposed",
        "The loop is right, but its step transposes W_h.",
        stepped(lambda x, h, W_x, W_h, b: rnn_step(x, h, W_x, W_h.T, b)),
    ),
    Mistake(
        "old-state-added",
        "Each step adds the old state to the new one. In this step it enters through W_h only.",
        stepped(lambda x, h, W_x, W_h, b: h + rnn_step(x, h, W_x, W_h, b)),
    ),
    Mistake(
        "gradient-cut-between-steps",
        "The values are right, but the state is detached between two steps: the gradient goes "
        "back one step only, and the network could not learn to remember.",
        carried(lambda new, h, h0: new.detach()),
    ),
    Mistake(
        "gradient-cut-at-h0",
        "The values are right, but h0 is detached: no gradient reaches it.",
        partial(run, start=torch.detach),
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
        "The values are right, but no gradient comes back: something takes the numbers out of "
        "torch's graph (`detach`, `.data`, `no_grad`, numpy, `torch.tensor`).",
        detached_inputs(run_rnn),
    ),
)
