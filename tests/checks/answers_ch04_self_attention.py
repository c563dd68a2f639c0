"""Answers to exercise 4.1 that the check has to judge right: correct variants and wrong ones."""

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


class MaskForThreeAxes(ByHand):
    def forward(self, x, mask=None):
        if mask is not None and mask.ndim == 2 < x.ndim:
            mask = mask.expand(x.shape[0], -1, -1)
        return super().forward(x, mask)


class MaskKept(ByHand):
    kept = None

    def forward(self, x, mask=None):
        if self.kept is None:
            self.kept = mask
        return super().forward(x, self.kept)


class WeightsAsStored(Projections):
    def forward(self, x, mask=None):
        query, key, value = (x @ W.weight for W in (self.W_q, self.W_k, self.W_v))
        return scaled_dot_product_attention(query, key, value, mask)


class OneUnderThreeNames(nn.Module):
    def __init__(self, d_model, d_k):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = self.W_q
        self.W_v = self.W_q

    def forward(self, x, mask=None):
        return scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)


class BareAsStored(nn.Module):
    def __init__(self, d_model, d_k):
        super().__init__()
        self.W_q = nn.Parameter(torch.randn(d_k, d_model))
        self.W_k = nn.Parameter(torch.randn(d_k, d_model))
        self.W_v = nn.Parameter(torch.randn(d_k, d_model))

    def forward(self, x, mask=None):
        query, key, value = (x @ W.T for W in (self.W_q, self.W_k, self.W_v))
        return scaled_dot_product_attention(query, key, value, mask)


class ScaleOfSize1(Projections):
    def forward(self, x, mask=None):
        query = self.W_q(x)
        query = query * math.sqrt(query.size(-1) / query.size(1))
        return scaled_dot_product_attention(query, self.W_k(x), self.W_v(x), mask)


class FromData(Projections):
    def forward(self, x, mask=None):
        query, key, value = (F.linear(x, W.weight.data) for W in (self.W_q, self.W_k, self.W_v))
        return scaled_dot_product_attention(query, key, value, mask)


class Fused(Projections):
    def forward(self, x, mask=None):
        weight = torch.cat([self.W_q.weight, self.W_k.weight, self.W_v.weight])
        query, key, value = F.linear(x, weight).chunk(3, dim=-1)
        return scaled_dot_product_attention(query, key, value, mask)


class InDouble(Projections):
    def forward(self, x, mask=None):
        n = x.shape[-2]
        query, key, value = (W(x).double() for W in (self.W_q, self.W_k, self.W_v))
        if mask is not None:
            mask = mask.expand(*x.shape[:-1], n)
        results = scaled_dot_product_attention(query, key, value, mask)
        return tuple(result.to(x.dtype) for result in results if result is not None)


RIGHT = {"SelfAttention": [ByHand, AsFunctions, AsAList, Fused, InDouble]}
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
        (MaskForThreeAxes, None, "must match"),
        (MaskKept, "mask-ignored", "earlier one"),
        (WeightsAsStored, "weight-not-transposed", "d_model"),
        (OneUnderThreeNames, "one-projection", "three things"),
        (BareAsStored, "bare-parameters", "nn.Linear"),
        (ScaleOfSize1, "scale-axis-counted-from-left", "last axis"),
        (FromData, "no-gradient", "trained"),
        (Detached, "no-gradient", "trained"),
    ]
}
