"""Answers to exercise 0.1 that the check has to judge right: correct variants and wrong ones."""

import numpy as np
import torch
import torch.nn.functional as F
from einops import einsum, repeat
from jaxtyping import Float


def by_transposing(a, b):
    return a @ b.T


def by_nested_loops(a, b):
    table = torch.zeros(a.shape[0], b.shape[0])
    for n in range(a.shape[0]):
        for m in range(b.shape[0]):
            for d in range(a.shape[1]):
                table[n, m] += a[n, d] * b[m, d]
    return table


def by_lists_of_numbers(a, b):
    return torch.tensor(
        [[sum(x * y for x, y in zip(r, s, strict=True)) for s in b.tolist()] for r in a.tolist()]
    )


def by_broadcasting(a, b):
    return (a[:, None, :] * b[None, :, :]).sum(dim=-1)


def by_repeating(a, b):
    wide = repeat(a, "n d -> n m d", m=len(b))
    return torch.einsum("nmd,md->nm", wide, b)


def by_stacking_rows(a, b):
    return torch.stack([b @ row for row in a])


def by_stacking_columns(a, b):
    return torch.stack([einsum(a, column, "n d, d -> n") for column in b], dim=1)


def by_numpy(a, b):
    return torch.from_numpy(np.einsum("nd,md->nm", a.numpy(), b.numpy()))


def by_a_layer(a, b):
    return F.linear(a, b)


def by_inner(a, b):
    return torch.inner(a, b)


def forgotten_return(a, b):
    a @ b.T


def squeezed(a, b):
    return (a @ b.T).squeeze()


def last_row_missing(a, b):
    table = torch.zeros(len(a), len(b))
    for n in range(len(a) - 1):
        table[n] = b @ a[n]
    return table


def rounded_to_integers(a, b):
    return (a @ b.T).long()


def fixed_size(a, b):
    table = torch.zeros(2, 3)
    for n in range(2):
        for m in range(3):
            table[n, m] = a[n] @ b[m]
    return table


def overwriting_its_input(a, b):
    a *= 2
    return a @ b.T / 2


def as_an_array(a, b):
    return a.numpy() @ b.numpy().T


def not_added_up(a, b):
    table = torch.zeros(len(a), len(b))
    for n in range(len(a)):
        for m in range(len(b)):
            for d in range(a.shape[1]):
                table[n, m] = a[n, d] * b[m, d]
    return table


def by_torch_dot(a, b):
    return torch.dot(a, b)


class Multiplier:
    def __call__(self, a: Float[torch.Tensor, "n d"], b: Float[torch.Tensor, "m d"]):
        return (b @ a.mT).T


def by_outer_products(a, b):
    total = 0
    for d in range(a.shape[1]):
        total = total + torch.outer(a[:, d], b[:, d])
    return total


def by_vmap(a, b):
    return torch.vmap(lambda row: torch.vmap(lambda other: torch.dot(row, other))(b))(a)


def einsum_without_an_arrow(a, b):
    return torch.einsum("nd,md", a, b)


def sum_never_reset(a, b):
    table, total = torch.zeros(len(a), len(b)), 0.0
    for n in range(len(a)):
        for m in range(len(b)):
            for d in range(a.shape[1]):
                total += a[n, d] * b[m, d]
            table[n, m] = total
    return table


def sum_reset_for_each_row(a, b):
    table = torch.zeros(len(a), len(b))
    for n in range(len(a)):
        total = 0.0
        for m in range(len(b)):
            total += a[n] @ b[m]
            table[n, m] = total
    return table


def transposed_where_it_must_be(a, b):
    return a @ b if a.shape[1] == b.shape[0] else a @ b.T


def upper_triangle(a, b):
    table = torch.zeros(len(a), len(b))
    for n in range(len(a)):
        for m in range(n, len(b)):
            table[n, m] = a[n] @ b[m]
    return table


def in_half_precision(a, b):
    return (a.half() @ b.half().T).to(a.dtype)


RIGHT = {
    "dot_products": [
        by_transposing,
        by_nested_loops,
        by_lists_of_numbers,
        by_broadcasting,
        by_repeating,
        by_stacking_rows,
        by_stacking_columns,
        by_numpy,
        by_a_layer,
        by_inner,
        Multiplier(),
        by_outer_products,
        by_vmap,
    ]
}
WRONG = {
    "dot_products": [
        (forgotten_return, None, "return"),
        (squeezed, None, "(1, 1)"),
        (last_row_missing, None, "only the first row of a"),
        (rounded_to_integers, None, "int64"),
        (fixed_size, None, "has shape (2, 3)"),
        (overwriting_its_input, None, "`a` is altered in place"),
        (as_an_array, None, "must be a tensor"),
        (not_added_up, "last-feature-only", "overwrites"),
        (by_torch_dot, None, "1D tensors"),
        (einsum_without_an_arrow, "table-transposed", "alphabetical"),
        (sum_never_reset, "sum-not-reset"),
        (sum_reset_for_each_row, "sum-not-reset"),
        (transposed_where_it_must_be, None, "when n, m and d are equal"),
        (upper_triangle, None, "only the first row of a"),
        (in_half_precision, None, "digits"),
    ]
}
