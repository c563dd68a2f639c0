"""Answers to exercise 6.5 that the check has to judge right: correct variants and wrong ones."""

import math

import torch

from attn_course.positions import alibi_bias


def refuse(n_query, n_key):
    if n_query > n_key:
        raise ValueError(f"{n_query} queries, {n_key} keys")


def slopes_as_published(n):
    def of_a_power_of_two(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return of_a_power_of_two(n)
    lower = 2 ** math.floor(math.log2(n))
    return of_a_power_of_two(lower) + slopes_as_published(2 * lower)[0::2][: n - lower]


def as_published(num_heads, n_query, n_key):
    refuse(n_query, n_key)
    slopes = torch.tensor(slopes_as_published(num_heads))
    query = torch.arange(n_key - n_query, n_key)
    distance = (query[:, None] - torch.arange(n_key)[None, :]).abs()
    return -slopes.view(-1, 1, 1) * distance


def by_loops(num_heads, n_query, n_key):
    refuse(n_query, n_key)
    bias = torch.zeros(num_heads, n_query, n_key)
    for h, slope in enumerate(slopes_as_published(num_heads)):
        for i in range(n_query):
            for j in range(n_key):
                bias[h, i, j] = -slope * abs(n_key - n_query + i - j)
    return bias


def rows_of_a_square(num_heads, n_query, n_key):
    refuse(n_query, n_key)
    return as_published(num_heads, n_key, n_key)[:, n_key - n_query :]


def in_float64(num_heads, n_query, n_key):
    return as_published(num_heads, n_query, n_key).double()


def simple_rule(num_heads, n_query, n_key):
    refuse(n_query, n_key)
    slopes = 2 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)
    at = torch.arange(n_key)
    return -slopes[:, None, None] * (at[n_key - n_query :, None] - at).abs()


def rows_from_the_top(num_heads, n_query, n_key):
    refuse(n_query, n_key)
    return alibi_bias(num_heads, n_key, n_key)[:, :n_query]


def square_over_queries(num_heads, n_query, n_key):
    return alibi_bias(num_heads, n_query, n_query)


def causal(num_heads, n_query, n_key):
    bias = alibi_bias(num_heads, n_query, n_key)
    hidden = torch.ones(n_query, n_key).triu(1 + n_key - n_query).bool()
    return bias.masked_fill(hidden, -torch.inf)


def keys_only(num_heads, n_query, n_key):
    refuse(n_query, n_key)
    slopes = torch.tensor(slopes_as_published(num_heads))
    return slopes[:, None, None] * torch.arange(n_key).expand(n_query, n_key)


def per_query(num_heads, n_query, n_key):
    return alibi_bias(num_heads, n_query, n_key).softmax(dim=-1)


def signed_and_halved(num_heads, n_query, n_key):
    refuse(n_query, n_key)
    slopes = 1 / 2 ** torch.arange(1, num_heads + 1)
    at = torch.arange(n_key)
    return slopes[:, None, None] * (at - at[n_key - n_query :, None])


def steeper_ahead(num_heads, n_query, n_key):
    bias = alibi_bias(num_heads, n_query, n_key)
    return bias + bias.triu()


RIGHT = {"alibi_bias": [as_published, by_loops, rows_of_a_square, in_float64]}
WRONG = {
    "alibi_bias": [
        (simple_rule, "power-of-two-rule-for-all", "next lower power"),
        (rows_from_the_top, "top-left", "last positions"),
        (square_over_queries, "square-by-queries", "keys may be more"),
        (causal, "future-hidden", "no mask"),
        (keys_only, "key-position-alone", "equal within a row"),
        (per_query, None, "own position"),
        (lambda h, i, j: -alibi_bias(h, i, j), "sign", "favoured"),
        (lambda h, i, j: alibi_bias(h, i, j).T, "heads-last", "last axis"),
        (lambda h, i, j: 2 * alibi_bias(h, i, j), None, "slopes are not", "1/8, 1/128", "2 times"),
        (lambda h, i, j: alibi_bias(2 * h, i, j)[:h], None, "slopes are not"),
        (signed_and_halved, "signed-distance", "absolute value", "half of the one before"),
        (steeper_ahead, None, "different biases"),
        (lambda h, i, j: -2 * alibi_bias(h, i, j), "sign", "favoured"),
        (lambda h, i, j: alibi_bias(8, i, j)[:h], "slopes-of-eight-heads", "eight heads"),
        (lambda h, i, j: alibi_bias(h, i, j).long(), None, "torch.int64"),
    ]
}
