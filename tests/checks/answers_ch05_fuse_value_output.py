"""Answers to exercise 5.4 that the check has to judge right: correct variants and wrong ones."""

import torch
from einops import einsum, rearrange


def check_sizes(W_v, W_o, num_heads):
    if W_v.shape[1] != W_o.shape[0] or W_o.shape[0] % num_heads != 0:
        raise ValueError(f"{tuple(W_v.shape)} {tuple(W_o.shape)} {num_heads}")


def by_slices(W_v, W_o, num_heads):
    check_sizes(W_v, W_o, num_heads)
    d = W_o.shape[0] // num_heads
    return torch.stack(
        [W_v[:, m * d : (m + 1) * d] @ W_o[m * d : (m + 1) * d] for m in range(num_heads)]
    )


def by_chunks(W_v, W_o, num_heads):
    check_sizes(W_v, W_o, num_heads)
    pairs = zip(W_v.chunk(num_heads, dim=1), W_o.chunk(num_heads, dim=0), strict=True)
    return torch.stack([values @ outputs for values, outputs in pairs])


def by_bmm(W_v, W_o, num_heads):
    check_sizes(W_v, W_o, num_heads)
    values = W_v.reshape(len(W_v), num_heads, -1).transpose(0, 1)
    return torch.bmm(values, W_o.reshape(num_heads, -1, W_o.shape[1]))


def by_one_einsum(W_v, W_o, num_heads):
    check_sizes(W_v, W_o, num_heads)
    values = rearrange(W_v, "i (h d) -> i h d", h=num_heads)
    return einsum(values, rearrange(W_o, "(h d) o -> h d o", h=num_heads), "i h d, h d o -> h i o")


def by_masks(W_v, W_o, num_heads):
    check_sizes(W_v, W_o, num_heads)
    head = torch.arange(W_o.shape[0]) // (W_o.shape[0] // num_heads)
    keep = (head == torch.arange(num_heads)[:, None]).to(W_v.dtype)
    return (W_v * keep[:, None]) @ W_o


def one_matrix(W_v, W_o, num_heads):
    check_sizes(W_v, W_o, num_heads)
    return W_v @ W_o


def elementwise(W_v, W_o, num_heads):
    check_sizes(W_v, W_o, num_heads)
    return (W_v * W_o.T)[None]


def chunks_unchecked(W_v, W_o, num_heads):
    pairs = zip(W_v.chunk(num_heads, dim=1), W_o.chunk(num_heads, dim=0), strict=True)
    return torch.stack([values @ outputs for values, outputs in pairs])


def cut_as_nn_linear_stores(W_v, W_o, num_heads):
    check_sizes(W_v, W_o, num_heads)
    parts = zip(W_v.chunk(num_heads, dim=0), W_o.chunk(num_heads, dim=1), strict=False)
    return torch.stack([values @ outputs for values, outputs in parts])


RIGHT = {"fuse_value_output": [by_slices, by_chunks, by_bmm, by_one_einsum, by_masks]}
WRONG = {
    "fuse_value_output": [
        (one_matrix, "heads-fused-together", "(h, d_in, d_out)"),
        (cut_as_nn_linear_stores, "both-on-the-wrong-side", "columns of W_v"),
        (elementwise, None, "product"),
        (chunks_unchecked, "unfit-allowed", "ValueError"),
    ]
}
