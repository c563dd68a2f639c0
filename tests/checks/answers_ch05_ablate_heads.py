"""Answers to exercise 5.6 that the check has to judge right: correct variants and wrong ones."""

import copy

import torch
from torch import nn

from attn_course.multihead import MultiHeadAttention


def check_heads(attention, heads):
    for head in heads:
        if head < 0 or head >= attention.num_heads:
            raise ValueError(f"there is no head {head} among {attention.num_heads}")


def by_slices(attention, heads):
    check_heads(attention, heads)
    new = copy.deepcopy(attention)
    d = new.W_o.in_features // new.num_heads
    with torch.no_grad():
        for head in heads:
            new.W_o.weight[:, head * d : (head + 1) * d].zero_()
    return new


def by_a_new_weight(attention, heads):
    check_heads(attention, heads)
    new = copy.deepcopy(attention)
    d = new.W_o.in_features // new.num_heads
    keep = torch.tensor([k // d not in heads for k in range(new.W_o.in_features)])
    new.W_o.weight = nn.Parameter(attention.W_o.weight.detach() * keep)
    return new


def by_silent_values(attention, heads):
    check_heads(attention, heads)
    new = copy.deepcopy(attention)
    d = new.W_v.out_features // new.num_heads
    for head in heads:
        new.W_v.weight.data[head * d : head * d + d] = 0
        new.W_v.bias.data[head * d : head * d + d] = 0
    return new


def by_loading(attention, heads):
    check_heads(attention, heads)
    new = MultiHeadAttention(attention.W_q.in_features, attention.num_heads)
    new = new.to(attention.W_q.weight.dtype)
    state = {name: weight.clone() for name, weight in attention.state_dict().items()}
    state["W_o.weight"].unflatten(1, (attention.num_heads, -1))[:, heads] = 0
    new.load_state_dict(state)
    return new


def by_wrapping(attention, heads):
    check_heads(attention, heads)

    class Quiet(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = copy.deepcopy(attention)
            d = attention.W_o.in_features // attention.num_heads
            for head in heads:
                self.inner.W_o.weight.data[:, head * d : (head + 1) * d] = 0

        def forward(self, *inputs):
            return self.inner(*inputs)

    return Quiet()


def in_place(attention, heads):
    check_heads(attention, heads)
    d = attention.W_o.in_features // attention.num_heads
    for head in heads:
        attention.W_o.weight.data[:, head * d : (head + 1) * d] = 0
    return attention


def rows_for_columns(attention, heads):
    check_heads(attention, heads)
    new = copy.deepcopy(attention)
    d = new.W_o.in_features // new.num_heads
    for head in heads:
        new.W_o.weight.data[head * d : (head + 1) * d] = 0
    return new


def without_no_grad(attention, heads):
    check_heads(attention, heads)
    new = copy.deepcopy(attention)
    new.W_o.weight.unflatten(1, (new.num_heads, -1))[:, heads] = 0.0
    return new


def fewer_heads(attention, heads):
    check_heads(attention, heads)
    left = attention.num_heads - len(heads)
    return MultiHeadAttention(attention.W_q.in_features, left)


def an_output(attention, heads):
    check_heads(attention, heads)
    return attention(torch.zeros(1, 1, 2), torch.zeros(1, 1, 2), torch.zeros(1, 1, 2))


def by_name(attention, heads):
    check_heads(attention, heads)
    return rows_for_columns(attention, heads).state_dict()


def around_the_old_projections(attention, heads):
    check_heads(attention, heads)
    new = MultiHeadAttention(attention.W_q.in_features, attention.num_heads)
    new.W_q, new.W_k, new.W_v = attention.W_q, attention.W_k, attention.W_v
    new.W_o = by_slices(attention, heads).W_o
    return new


def early_return(attention, heads):
    return by_slices(attention, heads) if heads else attention


def silent_keys(attention, heads):
    check_heads(attention, heads)
    new = copy.deepcopy(attention)
    d = new.W_k.out_features // new.num_heads
    for head in heads:
        new.W_k.weight.data[head * d : head * d + d] = 0
        new.W_k.bias.data[head * d : head * d + d] = 0
    return new


RIGHT = {"ablate_heads": [by_slices, by_a_new_weight, by_silent_values, by_loading, by_wrapping]}
WRONG = {
    "ablate_heads": [
        (in_place, "in-place", "Return a copy"),
        (rows_for_columns, "outputs-for-heads", "columns"),
        (without_no_grad, "leaf-in-place", "no_grad"),
        (fewer_heads, None, "lack what this head adds"),
        (an_output, None, "tuple comes back", "a layer"),
        (by_name, None, "dict comes back", "a layer"),
        (around_the_old_projections, "shared", "shares weights"),
        (early_return, "shared", "no head to silence"),
        (silent_keys, "query-silenced", "or keys"),
    ]
}
