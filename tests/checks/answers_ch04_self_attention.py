"""Answers to exercise 4.2 that the check has to judge right: correct variants and wrong ones."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attn_course.attention import scaled_dot_product_attention


class Projections(nn.Module):
    def __init__(self, d_model, d_k):
        super().__init__()
        self.W_v = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_q = nn.Linear(d_model, d_k, bias=False)


class ByHand(Projections):
    def forward(self, x, mask=None):
        query, key, value = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = query @ key.transpose(-2, -1) / math.sqrt(key.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        weights = torch.softmax(scores, dim=-1)
        if mask is not None:
            weights = weights * mask.any(dim=-1, keepdim=True)
        return weights @ value, weights


class AsFunctions(Projections):
    def forward(self, x, mask=None):
        value = F.linear(x, self.W_v.weight)
        query = x @ self.W_q.weight.T
        key = torch.einsum("...nd,kd->...nk", x, self.W_k.weight)
        return tuple(scaled_dot_product_attention(query, key, value, mask=mask))


class AsAList(Projections):
    def forward(self, x, mask=None):
        return list(scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x), mask))


class BatchOnly(Projections):
    def forward(self, x, mask=None):
        query, key, value = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(key.size(-1))
        weights = scores.softmax(dim=-1)
        return torch.bmm(weights, value), weights


class MaskInverted(Projections):
    def forward(self, x, mask=None):
        query, key, value = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = query @ key.transpose(-2, -1) / math.sqrt(key.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return weights @ value, weights


class ScaleOfTheModel(Projections):
    def forward(self, x, mask=None):
        query, key, value = self.W_q(x), self.W_k(x), self.W_v(x)
        key = key * math.sqrt(key.size(-1) / x.size(-1))
        return scaled_dot_product_attention(query, key, value, mask)


class OutputsOnly(Projections):
    def forward(self, x, mask=None):
        return scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)[0]


class NoMaskArgument(Projections):
    def forward(self, x):
        return scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x))


class SuperForgotten(nn.Module):
    def __init__(self, d_model, d_k):
        self.W_q = nn.Linear(d_model, d_k, bias=False)

    def forward(self, x, mask=None):
        return x, x


class NoModule:
    def __init__(self, d_model, d_k):
        self.W_q = self.W_k = self.W_v = nn.Linear(d_model, d_k, bias=False)

    def __call__(self, x, mask=None):
        return scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)


class OtherNames(nn.Module):
    def __init__(self, d_model, d_k):
        super().__init__()
        self.query = nn.Linear(d_model, d_k, bias=False)
        self.key = nn.Linear(d_model, d_k, bias=False)
        self.value = nn.Linear(d_model, d_k, bias=False)

    def forward(self, x, mask=None):
        return scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), mask)


class Biased(Projections):
    def __init__(self, d_model, d_k):
        super().__init__(d_model, d_k)
        self.W_q = nn.Linear(d_model, d_k)
        self.W_k = nn.Linear(d_model, d_k)
        self.W_v = nn.Linear(d_model, d_k)


class NoForward(Projections):
    pass


class KeyMadeWithQuery(Projections):
    def forward(self, x, mask=None):
        return scaled_dot_product_attention(self.W_q(x), self.W_q(x), self.W_v(x), mask)


class Detached(Projections):
    def forward(self, x, mask=None):
        query, key, value = (W(x).detach() for W in (self.W_q, self.W_k, self.W_v))
        return scaled_dot_product_attention(query, key, value, mask)


RIGHT = {"SelfAttention": [ByHand, AsFunctions, AsAList]}
WRONG = {
    "SelfAttention": [
        (BatchOnly, None, "IndexError", "transpose(1, 2)"),
        (MaskInverted, "mask-inverted", "may attend"),
        (ScaleOfTheModel, "scale-of-d-model", "root of d_model"),
        (OutputsOnly, "output-only", "(output, weights)"),
        (NoMaskArgument, None, "TypeError", "positional argument"),
        (SuperForgotten, None, "__init__"),
        (NoModule, None, "no nn.Module"),
        (OtherNames, None, "W_q", "query.weight"),
        (Biased, "bias", "biases"),
        (NoForward, None, "forward"),
        (KeyMadeWithQuery, "key-from-query", "line copied"),
        (Detached, "no-gradient", "trained"),
    ]
}
