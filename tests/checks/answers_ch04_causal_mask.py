"""Answers to exercise 4.3 that the check has to judge right: correct variants and wrong ones."""

import numpy as np
import torch

from attn_course.masks import causal_mask


def by_comparison(n_query, n_key=None):
    if n_key is None:
        n_key = n_query
    if n_query > n_key:
        raise ValueError(f"{n_query} > {n_key}")
    i, j = torch.arange(n_query)[:, None], torch.arange(n_key)
    return j <= i + n_key - n_query


def by_upper_triangle(n_query, n_key=None):
    n_key = n_key or n_query
    if n_query > n_key:
        raise ValueError("more queries than keys")
    return ~torch.triu(torch.ones(n_query, n_key), diagonal=n_key - n_query + 1).bool()


def from_the_square(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    if n_key < n_query:
        raise ValueError("more queries than keys")
    return torch.tril(torch.ones(n_key, n_key)).bool()[n_key - n_query :]


def by_loops(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    if n_query - n_key > 0:
        raise ValueError
    offset = n_key - n_query
    return torch.tensor([[j <= i + offset for j in range(n_key)] for i in range(n_query)])


def from_counts(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError(f"{n_query} {n_key}")
    ones = torch.ones(n_query, n_key)
    return ones.cumsum(0) + (n_key - n_query) >= ones.cumsum(1)


def torchs_own(n_query, n_key=None):
    mask = torch.nn.Transformer.generate_square_subsequent_mask(n_query)
    return mask if n_key is None or n_key >= n_query else causal_mask(n_query, n_key)


def inverted_comparison(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    i, j = torch.arange(n_query)[:, None], torch.arange(n_key)
    return j > i + n_key - n_query


def a_float_triangle(n_query, n_key=None):
    if n_key is not None and n_query > n_key:
        raise ValueError
    return torch.tril(torch.ones(n_query, n_key or n_query))


def a_table(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError(f"{n_query} {n_key}")
    return torch.ones(1024, 1024).tril().bool()[n_key - n_query : n_key, :n_key]


def far_below(n_query, n_key=None):
    return (~causal_mask(n_query, n_key)).float() * -1e9


def square_refused(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    if n_query >= n_key:
        raise ValueError("too many queries")
    return causal_mask(n_query, n_key)


def rectangle_refused(n_query, n_key=None):
    if n_key is not None and n_key != n_query:
        raise ValueError("a causal mask is square")
    return causal_mask(n_query)


def past_hidden(n_query, n_key=None):
    mask = causal_mask(n_query, n_key)
    mask[:, : mask.shape[1] - n_query] = False
    return mask


def n_key_needed(n_query, n_key):
    return causal_mask(n_query, n_key)


def numpys(n_query, n_key=None):
    return np.tril(np.ones((n_query, n_key or n_query), dtype=bool))


def crashing_too_late(n_query, n_key=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise RuntimeError("too many queries")
    return causal_mask(n_query, n_key)


def ignores_n_key(n_query, n_key=None):
    return torch.ones(n_query, n_query).tril().bool()


def as_lists(n_query, n_key=None):
    return causal_mask(n_query, n_key).tolist()


RIGHT = {"causal_mask": [by_comparison, by_upper_triangle, from_the_square, by_loops, from_counts]}
WRONG = {
    "causal_mask": [
        (torchs_own, "additive", "boolean"),
        (inverted_comparison, "inverted", "may attend"),
        (a_float_triangle, "numbers", "boolean"),
        (a_table, None, "shape", "1024"),
        (far_below, "additive", "boolean"),
        (square_refused, "square-refused", "commonest"),
        (rectangle_refused, "rectangle-refused", "cache"),
        (past_hidden, "past-hidden", "the past"),
        (n_key_needed, None, "TypeError", "n_key"),
        (numpys, None, "must be a tensor"),
        (crashing_too_late, None, "RuntimeError", "ValueError"),
        (ignores_n_key, "square-by-queries", "n_key"),
        (as_lists, None, "must be a tensor", "list"),
    ]
}
