"""Answers to exercise 6.4 that the check has to judge right: correct variants and wrong ones."""

import math

import torch

from attn_course.positions import apply_rope


def refuse(x):
    if x.shape[-1] % 2:
        raise ValueError(f"d={x.shape[-1]} is odd")


def by_complex_numbers(x, positions, base=10000.0):
    refuse(x)
    d = x.shape[-1]
    angles = torch.outer(positions.float(), 1.0 / base ** (torch.arange(0, d, 2).float() / d))
    turn = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)


def by_repeated_angles(x, positions, base=10000.0):
    refuse(x)
    d = x.shape[-1]
    rates = torch.exp(-math.log(base) * torch.arange(0, d, 2) / d)
    angles = (positions[:, None] * rates).repeat_interleave(2, dim=-1)
    partner = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).reshape(x.shape)
    return (x * angles.cos() + partner * angles.sin()).to(x.dtype)


def by_columns(x, positions, base=10000.0):
    refuse(x)
    d = x.shape[-1]
    turned = torch.empty_like(x)
    for i in range(d // 2):
        angle = positions.float() * base ** (-2 * i / d)
        a, b = x[..., 2 * i].float(), x[..., 2 * i + 1].float()
        turned[..., 2 * i] = (a * angle.cos() - b * angle.sin()).to(x.dtype)
        turned[..., 2 * i + 1] = (a * angle.sin() + b * angle.cos()).to(x.dtype)
    return turned


def by_matrices(x, positions, base=10000.0):
    refuse(x)
    d = x.shape[-1]
    angles = positions[:, None].double() * base ** (-torch.arange(0, d, 2).double() / d)
    c, s = angles.cos(), angles.sin()
    blocks = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)
    pairs = x.double().unflatten(-1, (d // 2, 2))
    return torch.einsum("npij,...npj->...npi", blocks, pairs).flatten(-2).to(x.dtype)


def in_float32_and_wider(x, positions, base=10000.0):
    return by_repeated_angles(x.float(), positions, base)


def half_split(x, positions, base=10000.0):
    refuse(x)
    d = x.shape[-1]
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    angles = torch.cat([angles, angles], dim=-1)
    one, two = x.chunk(2, dim=-1)
    return x * angles.cos() + torch.cat([-two, one], dim=-1) * angles.sin()


def half_split_rotation_of_pairs(x, positions, base=10000.0):
    refuse(x)
    d = x.shape[-1]
    angles = (positions[:, None] * base ** (-torch.arange(0, d, 2) / d)).repeat_interleave(2, -1)
    one, two = x.chunk(2, dim=-1)
    return x * angles.cos() + torch.cat([-two, one], dim=-1) * angles.sin()


def assigned_into_x(x, positions, base=10000.0):
    refuse(x)
    d = x.shape[-1]
    angles = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    x = x.clone()
    x[..., 0::2] = x[..., 0::2] * angles.cos() - x[..., 1::2] * angles.sin()
    x[..., 1::2] = x[..., 0::2] * angles.sin() + x[..., 1::2] * angles.cos()
    return x


def own_arange(x, positions, base=10000.0):
    return apply_rope(x, torch.arange(x.shape[-2]), base)


def base_of_its_own(x, positions, base=10000.0):
    return apply_rope(x, positions, 1000.0)


def clockwise(x, positions, base=10000.0):
    return apply_rope(x, -positions, base)


def positions_on_axis_one(x, positions, base=10000.0):
    """Right for (b, n, h, d), the other layout."""
    if x.ndim < 4:
        return apply_rope(x, positions, base)
    return by_repeated_angles(x.transpose(1, 2), positions, base).transpose(1, 2)


def three_axes_only(x, positions, base=10000.0):
    _, _, _ = x.shape
    return apply_rope(x, positions, base)


def angles_in_the_dtype_of_x(x, positions, base=10000.0):
    refuse(x)
    d = x.shape[-1]
    rates = 1 / base ** (torch.arange(0, d, 2, dtype=x.dtype) / d)
    angles = torch.outer(positions.to(x.dtype), rates)
    even, odd = x[..., ::2], x[..., 1::2]
    turned = [even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()]
    return torch.stack(turned, -1).flatten(-2)


def base_without_default(x, positions, base):
    return apply_rope(x, positions, base)


RIGHT = {
    "apply_rope": [
        by_complex_numbers,
        by_repeated_angles,
        by_columns,
        by_matrices,
        in_float32_and_wider,
    ]
}
WRONG = {
    "apply_rope": [
        (half_split, "half-split", "neighbours"),
        (half_split_rotation_of_pairs, "mixed-layouts", "Two kinds of pairs"),
        (assigned_into_x, "overwritten", "turned already"),
        (own_arange, "positions-ignored", "cache"),
        (base_of_its_own, "base", "1000"),
        (clockwise, "other-way-round", "other way"),
        (positions_on_axis_one, "batch-axis", "second axis from the right"),
        (three_axes_only, None, "_, _, _ = x.shape"),
        (angles_in_the_dtype_of_x, "angles-in-half-precision", "float32"),
        (base_without_default, None, "base"),
        (lambda x, p, base=10000.0: apply_rope(apply_rope(x, p, base), p, base), "twice", "twice"),
    ]
}
