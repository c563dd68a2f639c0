"""Answers to exercise 3.2 that the check has to judge right: correct variants and wrong ones."""

import math

import torch
import torch.nn.functional as F


def by_matmul(query, key, value, mask=None):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights * mask.any(-1, keepdim=True)
    return weights @ value, weights


def scale_split_between_both(query, key, value, mask=None):
    root = query.shape[-1] ** 0.25
    scores = (query / root) @ (key / root).mT
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill_(
            ~mask, torch.finfo(scores.dtype).min
        )
    weights = F.softmax(scores, -1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0)
    return torch.einsum("...ij,...jd->...id", weights, value), weights


def renormalised_after_the_softmax(query, key, value, mask=None):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    if mask is not None:
        weights = weights * mask
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    return weights @ value, weights


def computed_in_float64(query, key, value, mask=None):
    q, k, v = query.double(), key.double(), value.double()
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
        scores = scores.masked_fill(~mask.any(-1, keepdim=True), 0)
    weights = scores.softmax(-1)
    if mask is not None:
        weights = weights * mask.any(-1, keepdim=True)
    return [(weights @ v).to(query.dtype), weights.to(query.dtype)]


def no_scale_and_zero_fill(query, key, value, mask=None):
    scores = query @ key.mT
    if mask is not None:
        scores = scores * mask
    weights = scores.softmax(-1)
    return weights @ value, weights


def forgotten_return(query, key, value, mask=None):
    by_matmul(query, key, value, mask)


def only_the_output(query, key, value, mask=None):
    return by_matmul(query, key, value, mask)[0]


def fixed_width(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(64)
    weights = scores.softmax(-1)
    return weights @ value, weights


def triangle_of_its_own(query, key, value, mask=None):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    hidden = torch.ones(scores.shape[-2:]).triu(1).bool()
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    return weights @ value, weights


RIGHT = {
    "scaled_dot_product_attention": [
        by_matmul,
        scale_split_between_both,
        renormalised_after_the_softmax,
        computed_in_float64,
    ]
}
WRONG = {
    "scaled_dot_product_attention": [
        (no_scale_and_zero_fill, "no-scale", "factor"),
        (forgotten_return, None, "return"),
        (only_the_output, None, "(output, weights)"),
        (fixed_width, "fixed-scale", "0.125"),
        (triangle_of_its_own, None),
    ]
}
