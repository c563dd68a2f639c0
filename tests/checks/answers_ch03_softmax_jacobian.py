"""Answers to exercise 3.4 that the check has to judge right: correct variants and wrong ones."""

import torch


def by_broadcasting(weights):
    eye = torch.eye(weights.shape[-1], dtype=weights.dtype)
    return weights.unsqueeze(-1) * (eye - weights.unsqueeze(-2))


def with_the_indices_exchanged(weights):
    eye = torch.eye(weights.shape[-1], dtype=weights.dtype)
    return weights[..., None, :] * (eye - weights[..., :, None])


def by_matmul(weights):
    column = weights[..., None]
    return torch.diag_embed(weights) - column @ column.mT


def row_by_row(weights):
    if weights.ndim > 1:
        return torch.stack([row_by_row(row) for row in weights])
    return torch.diag(weights) - torch.outer(weights, weights)


def entry_by_entry(weights):
    n = weights.shape[-1]
    rows = [
        torch.stack([weights[..., i] * (float(i == j) - weights[..., j]) for j in range(n)], -1)
        for i in range(n)
    ]
    return torch.stack(rows, -2)


def through_autograd(weights):
    # any scores with these weights will do; of two zeros the softmax would make a half
    if weights.ndim > 1:
        return torch.stack([through_autograd(row) for row in weights])
    scores = weights.clamp(min=1e-38).log()
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores)
    return jacobian * (weights.sum() > 0)


def by_baddbmm(weights):
    p = weights.reshape(-1, weights.shape[-1])
    jacobian = torch.baddbmm(torch.diag_embed(p), p[:, :, None], p[:, None, :], alpha=-1)
    return jacobian.reshape(*weights.shape, weights.shape[-1])


def hard_coded_size(weights):
    return torch.eye(3) * weights[..., None] - weights[..., None] * weights[..., None, :]


def dot_product(weights):
    return torch.diag_embed(weights) - weights @ weights.T


def upper_triangle(weights):
    return by_matmul(weights).triu()


def diagonal_overwritten(weights):
    jacobian = -weights[..., :, None] * weights[..., None, :]
    torch.diagonal(jacobian, dim1=-2, dim2=-1).copy_(weights)
    return jacobian


def divided_by_the_size(weights):
    return by_broadcasting(weights) / weights.shape[-1]


def nothing(weights):
    by_broadcasting(weights)


RIGHT = {
    "softmax_jacobian": [
        by_broadcasting,
        with_the_indices_exchanged,
        by_matmul,
        row_by_row,
        entry_by_entry,
        through_autograd,
        by_baddbmm,
    ]
}
WRONG = {
    "softmax_jacobian": [
        (dot_product, "one-number-for-all-products", "one number"),
        (upper_triangle, None, "only the first row (0) is right"),
        (hard_coded_size, None, "it raised RuntimeError", "torch.eye(3)"),
        (diagonal_overwritten, None, "sums to 0"),
        (divided_by_the_size, None, "times what is expected"),
        (nothing, None, "is there a `return`?"),
    ]
}
