"""Answers to exercise 5.1 that the check has to judge right: correct variants and wrong ones."""

import torch
from einops import rearrange
from torch import nn

from attn_course.multihead import split_heads


def check_size(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(f"{x.shape[-1]} / {num_heads}")


def by_view(x, num_heads):
    check_size(x, num_heads)
    b, n, _ = x.shape
    return x.contiguous().view(b, n, num_heads, -1).transpose(1, 2)


def by_permute(x, num_heads):
    check_size(x, num_heads)
    b, n, d_model = x.size()
    return x.reshape(b, n, num_heads, d_model // num_heads).permute(0, 2, 1, 3).contiguous()


def by_unflatten(x, num_heads):
    check_size(x, num_heads)
    return x.unflatten(-1, (num_heads, -1)).movedim(2, 1)


def by_slices(x, num_heads):
    d, left = divmod(x.shape[-1], num_heads)
    if left != 0:
        raise ValueError("d_model is no multiple of num_heads")
    return torch.stack([x[:, :, m * d : m * d + d] for m in range(num_heads)], dim=1)


def by_einops_with_both_sizes(x, num_heads):
    check_size(x, num_heads)
    d = x.shape[-1] // num_heads
    return rearrange(x, "b n (h d) -> b h n d", h=num_heads, d=d)


def with_its_own_error(x, num_heads):
    class Uneven(ValueError):
        pass

    if x.shape[-1] % num_heads:
        raise Uneven("cannot be split")
    return split_heads(x, num_heads)


def straight_view(x, num_heads):
    check_size(x, num_heads)
    return x.view(x.size(0), num_heads, x.size(1), -1)


def always_four_heads(x, num_heads):
    check_size(x, num_heads)
    return rearrange(x, "b n (h d) -> b h n d", h=4)


def in_float32(x, num_heads):
    check_size(x, num_heads)
    b, n, d_model = x.shape
    result = torch.zeros(b, num_heads, n, d_model // num_heads)
    result[:] = split_heads(x, num_heads)
    return result


def left_to_einops(x, num_heads):
    return rearrange(x, "b n (h d) -> b h n d", h=num_heads)


def refuses_with_a_type_error(x, num_heads):
    if x.shape[-1] % num_heads:
        raise TypeError("no")
    return split_heads(x, num_heads)


def through_numpy(x, num_heads):
    check_size(x, num_heads)
    return torch.from_numpy(split_heads(x, num_heads).detach().numpy())


def scaled(x, num_heads):
    return split_heads(x, num_heads) / num_heads


def a_layer(x, num_heads):
    return split_heads(nn.LayerNorm(x.shape[-1]).to(x.dtype)(x), num_heads)


def returns_its_error(x, num_heads):
    if x.shape[-1] % num_heads:
        return ValueError(f"{x.shape[-1]} / {num_heads}")
    return split_heads(x, num_heads)


RIGHT = {
    "split_heads": [
        by_view,
        by_permute,
        by_unflatten,
        by_slices,
        by_einops_with_both_sizes,
        with_its_own_error,
    ]
}
WRONG = {
    "split_heads": [
        (straight_view, "view-without-transpose", "some features of all tokens"),
        (always_four_heads, None, "num_heads = 2", "shape (1, 4, 1, 1)"),
        (in_float32, None, "coarser"),
        (left_to_einops, "shape-error", "ValueError"),
        (refuses_with_a_type_error, None, "TypeError"),
        (returns_its_error, None, "it is returned"),
        (through_numpy, "no-gradient", "trained"),
        (scaled, None, "times what is expected"),
        (a_layer, None, "head m should get the features"),
    ]
}
