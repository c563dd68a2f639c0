"""Answers to exercise 6.3 that the check has to judge right: correct variants and wrong ones."""

import math

import torch

from attn_course.positions import apply_rope, relative_shift, sinusoidal_encoding


def refuse(d_model):
    if d_model % 2:
        raise ValueError(f"d_model={d_model} is odd")


def by_loops(shift, d_model):
    refuse(d_model)
    matrix = torch.zeros(d_model, d_model)
    for k in range(0, d_model, 2):
        b = shift / 10000 ** (k / d_model)
        matrix[k, k] = matrix[k + 1, k + 1] = math.cos(b)
        matrix[k, k + 1], matrix[k + 1, k] = -math.sin(b), math.sin(b)
    return matrix


def by_rope(shift, d_model):
    refuse(d_model)
    return apply_rope(torch.eye(d_model), torch.full((d_model,), -shift))


def by_matrix_exponential(shift, d_model):
    refuse(d_model)
    rates = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    return torch.matrix_exp(shift * torch.block_diag(*[rate * turn for rate in rates])).float()


def from_the_encoding_itself(shift, d_model):
    refuse(d_model)
    sin, cos = sinusoidal_encoding(abs(shift) + 1, d_model)[-1].unflatten(-1, (-1, 2)).unbind(-1)
    sin = sin if shift >= 0 else -sin
    return torch.block_diag(*[torch.tensor([[c, -s], [s, c]]) for s, c in zip(sin, cos)])  # noqa: B905


def for_column_vectors(shift, d_model):
    return relative_shift(shift, d_model).mT


def for_cosine_first(shift, d_model):
    refuse(d_model)
    return apply_rope(torch.eye(d_model), torch.full((d_model,), shift))


def from_the_encoding_without_the_sign(shift, d_model):
    return relative_shift(abs(shift), d_model)


def one_rotation_for_all(shift, d_model):
    refuse(d_model)
    c, s = math.cos(shift), math.sin(shift)
    return torch.block_diag(*[torch.tensor([[c, -s], [s, c]])] * (d_model // 2))


def permutation(shift, d_model):
    refuse(d_model)
    return torch.eye(d_model).roll(shift, dims=0)


def a_function(shift, d_model):
    return lambda encoding: encoding @ relative_shift(shift, d_model)


def odd_last_row_left(shift, d_model):
    if d_model % 2 == 0:
        return relative_shift(shift, d_model)
    return torch.block_diag(relative_shift(shift, d_model - 1), torch.ones(1, 1))


RIGHT = {"relative_shift": [by_loops, by_rope, by_matrix_exponential, from_the_encoding_itself]}
WRONG = {
    "relative_shift": [
        (for_column_vectors, "transposed", "row to the left"),
        (for_cosine_first, "transposed", "in this order"),
        (from_the_encoding_without_the_sign, "never-back", "not back"),
        (one_rotation_for_all, "one-rate", "own rate"),
        (permutation, "features-rolled", "Features stay"),
        (a_function, None, "must be a tensor"),
        (odd_last_row_left, "odd-accepted", "odd d_model"),
        (lambda k, d: relative_shift(k, d).long(), None, "torch.int64"),
        (lambda k, d: relative_shift(k, d)[None], "batch-axis", "axes of size 1"),
    ]
}
