"""Answers to exercise 6.1 that the check has to judge right: correct variants and wrong ones."""

import math

import numpy as np
import torch
from einops import rearrange

from attn_course.positions import sinusoidal_encoding


def by_exp_and_log(n, d_model):
    encoding = torch.zeros(n, d_model)
    position = torch.arange(0, n, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    encoding[:, 0::2] = torch.sin(position * div_term)
    encoding[:, 1::2] = torch.cos(position * div_term[: d_model // 2])
    return encoding


def by_loops(n, d_model):
    encoding = torch.zeros(n, d_model)
    for pos in range(n):
        for j in range(d_model):
            angle = pos / 10000 ** (2 * (j // 2) / d_model)
            encoding[pos, j] = math.sin(angle) if j % 2 == 0 else math.cos(angle)
    return encoding


def by_every_feature(n, d_model):
    features = torch.arange(d_model)
    angles = torch.arange(n)[:, None] / 10000 ** (features // 2 * 2 / d_model)
    return torch.where(features % 2 == 0, angles.sin(), angles.cos())


def by_a_shifted_sine(n, d_model):
    features = torch.arange(d_model)
    rates = torch.pow(10000.0, -(features - features % 2) / d_model)
    return (torch.outer(torch.arange(n).float(), rates) + features % 2 * math.pi / 2).sin()


def by_complex_numbers(n, d_model):
    rates = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(n)[:, None] * rates
    turned = torch.polar(torch.ones_like(angles), angles)
    return rearrange(torch.view_as_real(turned).flip(-1), "n pair two -> n (pair two)")[:, :d_model]


def in_float64(n, d_model):
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = torch.arange(n, dtype=torch.float64)[:, None] / 10000.0 ** (even / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=2).reshape(n, -1)[:, :d_model].float()


def through_numpy(n, d_model):
    angles = np.arange(n)[:, None] / 10000 ** (np.arange(d_model) // 2 * 2 / d_model)
    angles[:, 0::2], angles[:, 1::2] = np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])
    return torch.from_numpy(angles).float()


def numpy_array(n, d_model):
    return through_numpy(n, d_model).numpy()


def doubled_index(n, d_model):
    encoding = torch.zeros(n, d_model)
    for pos in range(n):
        for i in range(0, d_model, 2):
            encoding[pos, i] = math.sin(pos / 10000 ** (2 * i / d_model))
            if i + 1 < d_model:
                encoding[pos, i + 1] = math.cos(pos / 10000 ** (2 * (i + 1) / d_model))
    return encoding


def doubled_index_in_both(n, d_model):
    i = torch.arange(0, d_model, 2)
    angles = torch.arange(n).unsqueeze(1) / 10000 ** (2 * i / d_model)
    encoding = torch.zeros(n, d_model)
    encoding[:, 0::2] = angles.sin()
    encoding[:, 1::2] = angles.cos()[:, : d_model // 2]
    return encoding


def base_thousand_by_log(n, d_model):
    rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(1000.0) / d_model))
    angles = torch.arange(n)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model]


def minus_lost_in_the_log(n, d_model):
    rates = torch.exp(torch.arange(0, d_model, 2) * (math.log(10000.0) / d_model))
    angles = torch.arange(n)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model]


def sine_in_place(n, d_model):
    angles = torch.arange(n)[:, None] * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin_(), angles.cos()], -1).flatten(1)[:, :d_model]


def even_widths_only(n, d_model):
    encoding = torch.zeros(n, d_model)
    angles = torch.arange(n)[:, None] * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    encoding[:, 0::2] = torch.sin(angles)
    encoding[:, 1::2] = torch.cos(angles)
    return encoding


def stacked_and_flattened_the_other_way(n, d_model):
    angles = torch.arange(n)[:, None] * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], -2).flatten(1)[:, :d_model]


def whole_numbers(n, d_model):
    return sinusoidal_encoding(n, d_model).long()


RIGHT = {
    "sinusoidal_encoding": [
        by_exp_and_log,
        by_loops,
        by_every_feature,
        by_a_shifted_sine,
        by_complex_numbers,
        in_float64,
        through_numpy,
        lambda n, d: sinusoidal_encoding(n, d).double(),
    ]
}
WRONG = {
    "sinusoidal_encoding": [
        (doubled_index, "own-rate-for-each-feature", "do not sum to 1"),
        (doubled_index_in_both, "exponent-doubled", "4i"),
        (base_thousand_by_log, "base", "1000"),
        (minus_lost_in_the_log, "exponent-sign", "divided"),
        (sine_in_place, "angles-overwritten", "in place"),
        (even_widths_only, "odd-width-fails", "one cosine fewer"),
        (stacked_and_flattened_the_other_way, "not-interleaved", "in turn"),
        (whole_numbers, None, "torch.int64"),
        (numpy_array, None, "must be a tensor"),
        (lambda n, d: sinusoidal_encoding(n + 1, d)[1:], "positions-from-one", "Position 0"),
        (lambda n, d: sinusoidal_encoding(n, d).T, "transposed", "rows"),
        (lambda n, d: 2 * sinusoidal_encoding(n, d), None, "2 times"),
        (lambda n, d: sinusoidal_encoding(n - 1, d), None, "shape"),
        (lambda n, d: sinusoidal_encoding(n, 64)[:, :d], "fixed-width", "64"),
    ]
}
