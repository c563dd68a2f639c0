"""Answers to exercise 4.5 that the check has to judge right: correct variants and wrong ones."""

import torch

from attn_course.masks import padding_mask


def refuse(lengths, n_key):
    if lengths.min() < 0 or lengths.max() > n_key:
        raise ValueError(f"{lengths} {n_key}")


def by_loops(lengths, n_key):
    if any(not 0 <= length <= n_key for length in lengths.tolist()):
        raise ValueError("impossible length")
    mask = torch.zeros(len(lengths), n_key, dtype=torch.bool)
    for row, length in zip(mask, lengths.tolist(), strict=True):
        row[:length] = True
    return mask


def negated(lengths, n_key):
    refuse(lengths, n_key)
    return ~(torch.arange(n_key)[None] >= lengths.unsqueeze(1))


def by_lists(lengths, n_key):
    refuse(lengths, n_key)
    return torch.tensor([[j < length for j in range(n_key)] for length in lengths])


def by_cumulated_ones(lengths, n_key):
    refuse(lengths, n_key)
    return torch.ones(len(lengths), n_key).cumsum(dim=1) <= lengths[:, None]


def rows_of_a_triangle(lengths, n_key):
    refuse(lengths, n_key)
    return torch.ones(n_key + 1, n_key, dtype=torch.bool).tril(-1)[lengths.long()]


def not_lifted(lengths, n_key):
    refuse(lengths, n_key)
    return torch.arange(n_key) < lengths


def flipped(lengths, n_key):
    return padding_mask(lengths, n_key).flip(1)


def positions_from_one(lengths, n_key):
    refuse(lengths, n_key)
    return torch.arange(1, n_key + 1) < lengths[:, None]


def only_the_upper_bound(lengths, n_key):
    if lengths.max() > n_key:
        raise ValueError("too long")
    return torch.arange(n_key) < lengths[:, None]


def empty_refused(lengths, n_key):
    if lengths.min() < 1:
        raise ValueError("empty sequence")
    return padding_mask(lengths, n_key)


def full_refused(lengths, n_key):
    if lengths.min() < 0 or lengths.max() >= n_key:
        raise ValueError("too long")
    return padding_mask(lengths, n_key)


def a_table(lengths, n_key):
    refuse(lengths, n_key)
    return torch.arange(512)[:n_key] < lengths[:, None]


def far_below(lengths, n_key):
    return (~padding_mask(lengths, n_key)).float() * -1e9


def as_float(lengths, n_key):
    return padding_mask(lengths, n_key).float()


RIGHT = {"padding_mask": [by_loops, negated, by_lists, by_cumulated_ones, rows_of_a_triangle]}
WRONG = {
    "padding_mask": [
        (not_lifted, "lengths-without-an-axis", "lengths"),
        (flipped, "padding-in-front", "tokens come first"),
        (positions_from_one, "one-too-few", "last token"),
        (only_the_upper_bound, None, "below 0", "no error"),
        (empty_refused, "empty-refused", "ValueError", "empty sequence"),
        (full_refused, "full-length-refused", "no padding"),
        (a_table, None, "shape"),
        (far_below, "additive", "boolean"),
        (as_float, "numbers", "boolean"),
        (lambda lengths, n: ~padding_mask(lengths, n), "inverted"),
        (lambda lengths, n: torch.arange(n) < lengths[:, None], "lengths-not-checked"),
    ]
}
