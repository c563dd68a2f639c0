"""Answers to exercise 8.1 that the check has to judge right: correct variants and wrong ones."""

import math

import torch
import torch.nn.functional as F

from attn_course.attention import scaled_dot_product_attention
from attn_course.masks import combine_masks


def by_hand(x, memory, W_q, W_k, W_v, padding=None):
    scores = torch.einsum("bid,bjd->bij", x @ W_q, memory @ W_k) * W_q.shape[1] ** -0.5
    if padding is None:
        weights = torch.softmax(scores, -1)
    else:
        visible = padding.unsqueeze(1).expand_as(scores)
        scores = scores.masked_fill(~visible, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, -1) * visible
    return torch.bmm(weights, memory @ W_v), weights


def with_combine_masks(x, memory, W_q, W_k, W_v, padding=None):
    mask = combine_masks(padding=padding)
    mask = None if mask is None else mask[:, 0]
    return list(scaled_dot_product_attention(x @ W_q, memory @ W_k, memory @ W_v, mask))


def one_by_one(x, memory, W_q, W_k, W_v, padding=None):
    outputs, rows = [], []
    for k in range(len(x)):
        mask = None if padding is None else padding[k].expand(x.shape[1], -1)
        query, key, value = x[k] @ W_q, memory[k] @ W_k, memory[k] @ W_v
        output, weights = scaled_dot_product_attention(query, key, value, mask)
        outputs.append(output)
        rows.append(weights)
    return torch.stack(outputs), torch.stack(rows)


def renormalised(x, memory, W_q, W_k, W_v, padding=None):
    weights = (x @ W_q @ (memory @ W_k).mT / math.sqrt(W_k.shape[-1])).softmax(-1)
    if padding is not None:
        weights = weights * padding[:, None]
        total = weights.sum(-1, keepdim=True)
        weights = weights / total.where(total > 0, 1.0)
    return weights @ (memory @ W_v), weights


def fused(x, memory, W_q, W_k, W_v, padding=None):
    mask = None if padding is None else padding[:, None]
    return F.scaled_dot_product_attention(x @ W_q, memory @ W_k, memory @ W_v, mask)


def concatenated(x, memory, W_q, W_k, W_v, padding=None):
    both = torch.cat([memory, x], dim=1)
    return scaled_dot_product_attention(x @ W_q, both @ W_k, both @ W_v)


def squeezed(x, memory, W_q, W_k, W_v, padding=None):
    output, weights = by_hand(x, memory, W_q, W_k, W_v, padding)
    return output.squeeze(), weights.squeeze()


def in_place(x, memory, W_q, W_k, W_v, padding=None):
    if padding is not None:
        memory.mul_(padding[..., None])
    return by_hand(x, memory, W_q, W_k, W_v, padding)


def zeroed_memory(x, memory, W_q, W_k, W_v, padding=None):
    if padding is not None:
        memory = memory * padding[..., None]
    return scaled_dot_product_attention(x @ W_q, memory @ W_k, memory @ W_v)


def no_padding_argument(x, memory, W_q, W_k, W_v):
    return scaled_dot_product_attention(x @ W_q, memory @ W_k, memory @ W_v)


def padding_by_length(x, memory, W_q, W_k, W_v, padding=None):
    if padding is not None:
        padding = torch.arange(memory.shape[1]) < padding.sum(1, keepdim=True)
    return by_hand(x, memory, W_q, W_k, W_v, padding)


RIGHT = {"cross_attention": [by_hand, with_combine_masks, one_by_one]}
WRONG = {
    "cross_attention": [
        (fused, "output-only", "(output, weights)"),
        (concatenated, None, "`output` is wrong"),
        (squeezed, None, "shape"),
        (in_place, None, "altered in place", "memory"),
        (zeroed_memory, "memory-zeroed", "still gets weight"),
        (no_padding_argument, None, "TypeError", "positional argument"),
        (padding_by_length, None, "in front"),
        (renormalised, "mask-renormalised", "hide the scores before"),
    ]
}
