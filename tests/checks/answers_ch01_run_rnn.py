"""Answers to exercise 1.2 that the check has to judge right: correct variants and wrong ones."""

from itertools import accumulate

import torch
from einops import rearrange

from attn_course.recurrent import rnn_step


def by_index(inputs, h0, W_x, W_h, b):
    states = []
    h = h0
    for t in range(inputs.size(1)):
        h = torch.tanh(inputs[:, t, :] @ W_x + h @ W_h + b)
        states.append(h.unsqueeze(1))
    return torch.cat(states, dim=1)


def into_a_table(inputs, h0, W_x, W_h, b):
    states = inputs.new_empty(inputs.shape[0], inputs.shape[1], h0.shape[-1])
    h = h0
    for t in range(inputs.shape[1]):
        h = rnn_step(inputs[:, t], h, W_x, W_h, b)
        states[:, t] = h
    return states


def inputs_first(inputs, h0, W_x, W_h, b):
    from_x = inputs @ W_x + b  # needs no state: all positions at once
    states = [h0]
    for part in from_x.unbind(1):
        states.append(torch.tanh(part + states[-1] @ W_h))
    return rearrange(states[1:], "n b d -> b n d")


def sequence_by_sequence(inputs, h0, W_x, W_h, b):
    rows = []
    for sequence, h in zip(inputs, h0, strict=True):
        states = []
        for x in sequence:
            h = torch.tanh(x @ W_x + h @ W_h + b)
            states.append(h)
        rows.append(torch.stack(states))
    return torch.stack(rows)


def recursive(inputs, h0, W_x, W_h, b):
    h = rnn_step(inputs[:, 0], h0, W_x, W_h, b)
    if inputs.shape[1] == 1:
        return h[:, None]
    return torch.cat([h[:, None], recursive(inputs[:, 1:], h, W_x, W_h, b)], dim=1)


def time_first_then_turned(inputs, h0, W_x, W_h, b):
    states, h = [], h0
    for x in inputs.transpose(0, 1):
        h = rnn_step(x, h, W_x, W_h, b)
        states.append(h)
    return torch.stack(states).transpose(0, 1)


def in_float64(inputs, h0, W_x, W_h, b):
    wide = [tensor.double() for tensor in (inputs, h0, W_x, W_h, b)]
    return by_index(*wide).to(inputs.dtype)


def forgotten_return(inputs, h0, W_x, W_h, b):
    by_index(inputs, h0, W_x, W_h, b)


def zeros_of_a_fixed_kind(inputs, h0, W_x, W_h, b):
    states = torch.zeros(inputs.shape[0], inputs.shape[1], h0.shape[-1])
    h = h0
    for t in range(inputs.shape[1]):
        h = rnn_step(inputs[:, t], h, W_x, W_h, b)
        states[:, t] = h
    return states


def for_x_in_inputs(inputs, h0, W_x, W_h, b):
    h, states = h0, []
    for x in inputs:
        h = rnn_step(x, h, W_x, W_h, b)
        states.append(h)
    return torch.stack(states, dim=1)


def appended_after_the_loop(inputs, h0, W_x, W_h, b):
    states, h = [], h0
    for x in inputs.unbind(1):
        h = rnn_step(x, h, W_x, W_h, b)
    states.append(h)
    return torch.stack(states, dim=1)


def h_never_reassigned(inputs, h0, W_x, W_h, b):
    states = []
    for t in range(inputs.shape[1]):
        states.append(rnn_step(inputs[:, t], h0, W_x, W_h, b))
    return torch.stack(states, dim=1)


def stored_before_the_step(inputs, h0, W_x, W_h, b):
    h, states = h0, []
    for x in inputs.unbind(1):
        states.append(h)
        h = rnn_step(x, h, W_x, W_h, b)
    return torch.stack(states, dim=1)


def return_in_the_loop(inputs, h0, W_x, W_h, b):
    states, h = [], h0
    for x in inputs.unbind(1):
        h = rnn_step(x, h, W_x, W_h, b)
        states.append(h)
        return torch.stack(states, dim=1)


def viewed(inputs, h0, W_x, W_h, b):
    states, h = [], h0
    for x in inputs.unbind(1):
        h = rnn_step(x, h, W_x, W_h, b)
        states.append(h)
    return torch.cat(states).view(inputs.shape[0], inputs.shape[1], -1)


def in_place(inputs, h0, W_x, W_h, b):
    h = h0
    states = []
    for x in inputs.unbind(1):
        h[:] = torch.tanh(x @ W_x + h @ W_h + b)
        states.append(h)
    return torch.stack(states, dim=1)


def cut_by_data(inputs, h0, W_x, W_h, b):
    states, h = [], h0
    for x in inputs.unbind(1):
        new = rnn_step(x, h, W_x, W_h, b)
        states.append(new)
        h = new.data
    return torch.stack(states, dim=1)


def step_with_exchanged_weights(inputs, h0, W_x, W_h, b):
    states, h = [], h0
    for x in inputs.unbind(1):
        h = rnn_step(x, h, W_h, W_x, b)
        states.append(h)
    return torch.stack(states, dim=1)


def summed_up(inputs, h0, W_x, W_h, b):
    return by_index(inputs, h0, W_x, W_h, b).cumsum(dim=1)


def three_steps_at_most(inputs, h0, W_x, W_h, b):
    states, h = [], h0
    for t in range(3):
        h = rnn_step(inputs[:, t], h, W_x, W_h, b)
        states.append(h)
    return torch.stack(states, dim=1)


def mean_input(inputs, h0, W_x, W_h, b):
    states, h = [], h0
    for _ in range(inputs.shape[1]):
        h = rnn_step(inputs.mean(dim=1), h, W_x, W_h, b)
        states.append(h)
    return torch.stack(states, dim=1)


def first_h0_for_all(inputs, h0, W_x, W_h, b):
    return by_index(inputs, h0[:1].expand_as(h0), W_x, W_h, b)


class Runner:
    def __call__(self, inputs, h0, W_x, W_h, b):
        self.h, states = h0, []
        for x in rearrange(inputs, "b n d -> n b d"):
            self.h = rnn_step(x, self.h, W_x, W_h, b)
            states.append(self.h)
        return torch.stack(states, dim=-2)


def by_accumulate(inputs, h0, W_x, W_h, b):
    def step(h, x):
        return rnn_step(x, h, W_x, W_h, b)

    return torch.stack([*accumulate(inputs.unbind(1), step, initial=h0)][1:], dim=1)


def kept_by_time_in_a_dict(inputs, h0, W_x, W_h, b):
    states = {-1: h0}
    for t in range(inputs.size(1)):
        states[t] = torch.tanh(inputs[:, t] @ W_x + states[t - 1] @ W_h + b)
    return torch.stack([states[t] for t in range(inputs.size(1))], dim=1)


def growing(inputs, h0, W_x, W_h, b):
    states = h0[:, None]
    for t in range(inputs.shape[1]):
        new = torch.tanh(inputs[:, t : t + 1] @ W_x + states[:, -1:] @ W_h + b)
        states = torch.cat((states, new), dim=1)
    return states[:, 1:]


def read_back_from_a_table(inputs, h0, W_x, W_h, b):
    states = torch.zeros(inputs.shape[0], inputs.shape[1], h0.shape[1], dtype=inputs.dtype)
    for t in range(inputs.shape[1]):
        h = h0 if t == 0 else states[:, t - 1]
        states[:, t] = torch.tanh(inputs[:, t] @ W_x + h @ W_h + b)
    return states


def all_positions_at_once(inputs, h0, W_x, W_h, b):
    return torch.tanh(inputs @ W_x + (h0 @ W_h)[:, None] + b)


def wrapped_around_to_zeros(inputs, h0, W_x, W_h, b):
    states = torch.zeros(inputs.shape[0], inputs.shape[1], h0.shape[1], dtype=inputs.dtype)
    for t in range(inputs.shape[1]):
        states[:, t] = rnn_step(inputs[:, t], states[:, t - 1].clone(), W_x, W_h, b)
    return states


def cut_every_second_step(inputs, h0, W_x, W_h, b):
    h, states = h0, []
    for t, x in enumerate(inputs.unbind(1)):
        h = rnn_step(x, h.detach() if t and t % 2 == 0 else h, W_x, W_h, b)
        states.append(h)
    return torch.stack(states, dim=1)


def kept_from_call_to_call(inputs, h0, W_x, W_h, b, memory={}):  # noqa: B006
    states = by_index(inputs, memory.get(h0.shape, h0), W_x, W_h, b)
    memory[h0.shape] = states[:, -1].detach()
    return states


RIGHT = {
    "run_rnn": [
        by_index,
        into_a_table,
        inputs_first,
        sequence_by_sequence,
        recursive,
        time_first_then_turned,
        in_float64,
        Runner(),
        by_accumulate,
        kept_by_time_in_a_dict,
        growing,
    ]
}
WRONG = {
    "run_rnn": [
        (forgotten_return, None, "return"),
        (zeros_of_a_fixed_kind, None, "coarser"),
        (for_x_in_inputs, "sequences-for-steps", "axis 1"),
        # the shape is told, not the gradients that follow from it
        (appended_after_the_loop, "last-state-as-a-sequence", "has shape (1, 1, 1)"),
        (h_never_reassigned, "every-step-from-h0", "carried"),
        (stored_before_the_step, "one-step-late", "before the step"),
        (return_in_the_loop, None, "shape (1, 1, 1), expected (1, 3, 1)"),
        (viewed, "reshaped-not-transposed", "mixed"),
        (in_place, "h0-overwritten", "`h0` is altered in place"),
        (cut_by_data, "gradient-cut-between-steps", "between two steps"),
        (step_with_exchanged_weights, "step-arguments-exchanged", "W_x, W_h"),
        (summed_up, None, "position"),
        (three_steps_at_most, None, "IndexError"),
        (mean_input, None, "the state that the one before"),
        (first_h0_for_all, None, "batch entry"),
        (read_back_from_a_table, "table-read-back", "variable of its own"),
        (all_positions_at_once, "every-step-from-h0", "remembered"),
        (wrapped_around_to_zeros, "h0-ignored", "zeros"),
        (cut_every_second_step, None, "gradient"),
        (kept_from_call_to_call, None),
    ]
}
