"""Answers to exercise 5.2 that the check has to judge right: correct variants and wrong ones."""

import torch

from attn_course.multihead import merge_heads


def by_reshape(x):
    b, h, n, d = x.shape
    return x.transpose(1, 2).reshape(b, n, h * d)


def by_contiguous_view(x):
    return x.permute(0, 2, 1, 3).contiguous().view(x.size(0), x.size(2), -1)


def by_flatten(x):
    return x.movedim(1, 2).flatten(start_dim=2)


def by_cat(x):
    return torch.cat([x[:, m] for m in range(x.shape[1])], dim=-1)


def by_unbind(x):
    return torch.cat(x.unbind(1), -1)


def straight_view(x):
    return x.contiguous().view(x.size(0), x.size(2), -1)


def cat_along_the_tokens(x):
    return torch.cat(x.unbind(1), dim=1)


def stacked(x):
    return torch.stack(x.unbind(1), dim=-1).flatten(2)


def two_heads(x):
    return torch.cat([x[:, 0], x[:, 1]], dim=-1)


def in_float32(x):
    b, h, n, d = x.shape
    result = torch.empty(b, n, h * d)
    for m in range(h):
        result[:, :, m * d : (m + 1) * d] = x[:, m]
    return result


def altered(x):
    x *= 2
    return merge_heads(x) / 2


RIGHT = {"merge_heads": [by_reshape, by_contiguous_view, by_flatten, by_cat, by_unbind]}
WRONG = {
    "merge_heads": [
        (straight_view, "not-moved-back", "a model trains with it"),
        (cat_along_the_tokens, "tokens-lengthened", "along the tokens"),
        (stacked, "features-first", "(h d)"),
        (two_heads, None, "shape"),
        (in_float32, None, "coarser"),
        (altered, None, "in place"),
    ]
}
