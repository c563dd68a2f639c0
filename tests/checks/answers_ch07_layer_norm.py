"""Answers to exercise 7.1 that the check has to judge right: correct variants and wrong ones."""

import torch
from einops import reduce


def by_var(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    variance = x.var(-1, unbiased=False, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + eps) * gain + bias


def by_squares_in_float64(x, gain, bias, eps=1e-5):
    wide = x.double()
    mean = wide.mean(dim=-1, keepdim=True)
    variance = (wide**2).mean(dim=-1, keepdim=True) - mean**2
    return ((wide - mean) / (variance + eps) ** 0.5).to(x.dtype) * gain + bias


def by_sums(x, gain, bias, eps=1e-5):
    d = x.shape[-1]
    mean = (x.sum(dim=x.ndim - 1) / d).unsqueeze(-1)
    squares = ((x - mean) ** 2).sum(dim=-1, keepdim=True) / d
    return torch.addcmul(bias, gain, (x - mean) / torch.sqrt(squares + eps))


def token_by_token(x, gain, bias, eps=1e-5):
    rows = []
    for token in x.reshape(-1, x.shape[-1]):
        mean = sum(token) / len(token)
        variance = sum((feature - mean) ** 2 for feature in token) / len(token)
        rows.append(gain * (token - mean) / (variance + eps).sqrt() + bias)
    return torch.stack(rows).reshape(x.shape)


def by_einops(x, gain, bias, eps=1e-5):
    centred = x - reduce(x, "... d -> ... 1", "mean")
    return centred / (reduce(centred**2, "... d -> ... 1", "mean") + eps).sqrt() * gain + bias


def transposed(x, gain, bias, eps=1e-5):
    return by_var(x, gain, bias, eps).mT


def three_axes_only(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=2, keepdim=True)
    return gain * (x - mean) / (x.var(dim=2, keepdim=True, correction=0) + eps).sqrt() + bias


def deviation_outside_and_sample(x, gain, bias, eps=1e-6):
    mean = x.mean(-1, keepdim=True)
    return gain * (x - mean) / (x.std(-1, keepdim=True) + eps) + bias


def in_single_precision(x, gain, bias, eps=1e-5):
    return by_var(x.float(), gain.float(), bias.float(), eps)


def without_return(x, gain, bias, eps=1e-5):
    by_var(x, gain, bias, eps)


def statistics_returned(x, gain, bias, eps=1e-5):
    return by_var(x, gain, bias, eps), x.mean(-1)


def width_fixed(x, gain, bias, eps=1e-5):
    mean = x.sum(-1, keepdim=True) / 4
    return gain * (x - mean) / (((x - mean) ** 2).sum(-1, keepdim=True) / 4 + eps).sqrt() + bias


def epsilon_of_another_size(x, gain, bias, eps=1e-5):
    return by_var(x, gain, bias, 1e-5 if eps > 0.1 else eps)


RIGHT = {"layer_norm": [by_var, by_squares_in_float64, by_sums, token_by_token, by_einops]}
WRONG = {
    "layer_norm": [
        (transposed, None, "two axes are exchanged"),
        (three_axes_only, None, "IndexError"),
        (deviation_outside_and_sample, "sample-deviation", "d − 1"),
        (in_single_precision, None, "coarser"),
        (without_return, None, "return"),
        (statistics_returned, None, "must be a tensor"),
        (width_fixed, None, "mean 0 and variance 1"),
        (epsilon_of_another_size, "epsilon-fixed", "Epsilon"),
    ]
}
