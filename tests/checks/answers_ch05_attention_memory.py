"""Answers to exercise 5.5 that the check has to judge right: correct variants and wrong ones."""

from collections import namedtuple

from attn_course.memory import AttentionMemory

Account = namedtuple("Account", ["parameters", "projected", "merged", "weights"])


def numbers(d_model, num_heads, n_query, n_key):
    if d_model % num_heads:
        raise ValueError(f"{d_model} / {num_heads}")
    n_key = n_key or n_query
    d_k = d_model // num_heads
    parameters = 3 * num_heads * (d_model * d_k + d_k) + d_model * d_model + d_model
    projected = num_heads * (n_query * d_k + n_key * d_k + n_key * d_k)
    return parameters, projected, num_heads * n_query * d_k, num_heads * n_query * n_key


def as_a_record(d_model, num_heads, n_query, n_key=None):
    return AttentionMemory(*(4 * n for n in numbers(d_model, num_heads, n_query, n_key)))


def as_a_tuple(d_model, num_heads, n_query, n_key=None):
    return tuple(4.0 * n for n in numbers(d_model, num_heads, n_query, n_key))


def as_a_dict(d_model, num_heads, n_query, n_key=None):
    found = (32 * n // 8 for n in numbers(d_model, num_heads, n_query, n_key))
    return dict(zip(Account._fields, found, strict=True))


def as_a_named_tuple(d_model, num_heads, n_query, n_key=None):
    return Account(*(n * 4 for n in numbers(d_model, num_heads, n_query, n_key)))


def in_numbers(d_model, num_heads, n_query, n_key=None):
    return AttentionMemory(*numbers(d_model, num_heads, n_query, n_key))


def in_another_order(d_model, num_heads, n_query, n_key=None):
    return as_a_tuple(d_model, num_heads, n_query, n_key)[::-1]


def the_whole(d_model, num_heads, n_query, n_key=None):
    return sum(as_a_tuple(d_model, num_heads, n_query, n_key))


def three_numbers(d_model, num_heads, n_query, n_key=None):
    return as_a_tuple(d_model, num_heads, n_query, n_key)[:3]


def square_only(d_model, num_heads, n_query, n_key=None):
    return as_a_record(d_model, num_heads, n_query)


RIGHT = {"attention_memory": [as_a_record, as_a_tuple, as_a_dict, as_a_named_tuple]}
WRONG = {
    "attention_memory": [
        (in_numbers, "numbers-for-bytes", "four"),
        (in_another_order, None, "parameters"),
        (the_whole, "one-number", "Asked for are four"),
        (three_numbers, None, "must be a number"),
        (square_only, "queries-for-keys", "n_key"),
    ]
}
