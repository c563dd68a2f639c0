"""Answers to exercise 5.3 that the check has to judge right: correct variants and wrong ones."""

import math

import torch
import torch.nn.functional as F
from einops import einsum, rearrange
from torch import nn

from attn_course.attention import scaled_dot_product_attention
from attn_course.masks import lift_mask
from attn_course.multihead import merge_heads, split_heads


class Parts(nn.Module):
    """The four projections, made in another order than the course's."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"{d_model} is not a multiple of {num_heads}")
        self.h, self.d = num_heads, d_model // num_heads
        self.W_o = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_q = nn.Linear(d_model, d_model)


class ByHand(Parts):
    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q = self.W_q(query).view(b, -1, self.h, self.d).transpose(1, 2)
        k = self.W_k(key).view(b, -1, self.h, self.d).transpose(1, 2)
        v = self.W_v(value).view(b, -1, self.h, self.d).transpose(1, 2)
        scores = (q / math.sqrt(self.d)) @ k.transpose(-2, -1)
        if mask is not None:
            mask = lift_mask(mask)
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights * mask
        output = (weights @ v).transpose(1, 2).contiguous().view(b, -1, self.h * self.d)
        return self.W_o(output), weights


class HeadByHead(Parts):
    def forward(self, query, key, value, mask=None):
        q, k, v = self.W_q(query), self.W_k(key), self.W_v(value)
        mask = None if mask is None else lift_mask(mask).expand(len(q), self.h, -1, -1)
        outputs, maps = [], []
        for m in range(self.h):
            part = slice(m * self.d, (m + 1) * self.d)
            of_head = None if mask is None else mask[:, m]
            found = scaled_dot_product_attention(q[..., part], k[..., part], v[..., part], of_head)
            outputs.append(found[0])
            maps.append(found[1])
        return self.W_o(torch.cat(outputs, dim=-1)), torch.stack(maps, dim=1)


class SumOverSlicesOfWo(Parts):
    def forward(self, query, key, value, mask=None):
        q, k, v = (
            split_heads(W(x), self.h)
            for W, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
        )
        heads, weights = scaled_dot_product_attention(
            q, k, v, None if mask is None else lift_mask(mask)
        )
        slices = rearrange(self.W_o.weight, "out (h d) -> h d out", h=self.h)
        return einsum(heads, slices, "b h i d, h d out -> b i out") + self.W_o.bias, weights


class OneTallMatrix(Parts):
    def forward(self, query, key, value, mask=None):
        b = query.shape[0]
        weight = torch.cat([self.W_q.weight, self.W_k.weight, self.W_v.weight])
        bias = torch.cat([self.W_q.bias, self.W_k.bias, self.W_v.bias])
        q = F.linear(query, weight, bias).chunk(3, dim=-1)[0]
        k = F.linear(key, weight, bias).chunk(3, dim=-1)[1]
        v = F.linear(value, weight, bias).chunk(3, dim=-1)[2]
        # (b h) as one axis, as PyTorch's own does
        q, k, v = (rearrange(x, "b n (h d) -> (b h) n d", h=self.h) for x in (q, k, v))
        if mask is not None:
            n_query, n_key = q.shape[1], k.shape[1]
            mask = lift_mask(mask).expand(b, self.h, n_query, n_key).flatten(0, 1)
        output, weights = scaled_dot_product_attention(q, k, v, mask)
        output = rearrange(output, "(b h) n d -> b n (h d)", h=self.h)
        return [self.W_o(output), weights.unflatten(0, (b, self.h))]


class WithOptions(Parts):
    def __init__(self, d_model, num_heads, dropout_p=0.0):
        super().__init__(d_model, num_heads)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, query, key, value, mask=None, need_weights=True):
        q, k, v = (
            split_heads(W(x), self.h)
            for W, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
        )
        mask = None if mask is None else lift_mask(mask)
        _, weights = scaled_dot_product_attention(q, k, v, mask)
        return self.W_o(merge_heads(self.dropout(weights) @ v)), weights.detach()


class Textbook(Parts):
    """The version that stands in many tutorials."""

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        b = query.size(0)
        q, k, v = (
            W(x).view(b, -1, self.h, self.d).transpose(1, 2)
            for W, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        weights = scores.softmax(dim=-1)
        output = (weights @ v).transpose(1, 2).contiguous().view(b, -1, self.h * self.d)
        return self.W_o(output), weights


class SelfAttentionOnly(Parts):
    def forward(self, x, mask=None):
        return x, x


class NoModule:
    def __init__(self, d_model, num_heads):
        self.W_q = self.W_k = self.W_v = self.W_o = nn.Linear(d_model, d_model)


class OtherNames(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.query, self.key = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.value, self.out = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)


class TwoInARow(Parts):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.per_head = nn.ModuleList(nn.Linear(self.d, self.d) for _ in range(num_heads))


class AssertsItsWidth(ByHand):
    def __init__(self, d_model, num_heads):
        assert d_model % num_heads == 0
        super().__init__(d_model, num_heads)


class MaskOfHeads(Parts):
    def forward(self, query, key, value, mask=None):
        q, k, v = (
            split_heads(W(x), self.h)
            for W, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
        )
        scores = q @ k.mT / math.sqrt(self.d)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        weights = scores.softmax(-1).nan_to_num(0.0)
        return self.W_o(merge_heads(weights @ v)), weights


class EightFeatures(Parts):
    def forward(self, query, key, value, mask=None):
        q, k, v = (
            split_heads(W(x), self.h)
            for W, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
        )
        weights = (q @ k.mT / 8).softmax(-1)
        return self.W_o(merge_heads(weights @ v)), weights


class CosineScores(Parts):
    """No one number in the place of √d_k does that."""

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            split_heads(W(x), self.h)
            for W, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
        )
        weights = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT).softmax(-1)
        return self.W_o(merge_heads(weights @ v)), weights


class ScoresForWeights(Parts):
    def forward(self, query, key, value, mask=None):
        q, k, v = (
            split_heads(W(x), self.h)
            for W, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
        )
        mask = None if mask is None else lift_mask(mask)
        output, _ = scaled_dot_product_attention(q, k, v, mask)
        return self.W_o(merge_heads(output)), q @ k.mT / math.sqrt(self.d)


class ReluAtTheEnd(ByHand):
    def forward(self, query, key, value, mask=None):
        output, weights = super().forward(query, key, value, mask)
        return torch.relu(output), weights


class CleansWeights(Parts):
    """Minus infinity and nan_to_num on the weights: the gradient stays clean as well."""

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            split_heads(W(x), self.h)
            for W, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
        )
        scores = q @ k.mT / math.sqrt(self.d)
        if mask is not None:
            scores = scores.masked_fill(~lift_mask(mask), -math.inf)
        weights = torch.nan_to_num(scores.softmax(-1))
        return self.W_o(merge_heads(weights @ v)), weights


RIGHT = {
    "MultiHeadAttention": [
        CleansWeights,
        ByHand,
        HeadByHead,
        SumOverSlicesOfWo,
        OneTallMatrix,
        WithOptions,
    ]
}
WRONG = {
    "MultiHeadAttention": [
        (Textbook, "mask-unsqueezed", "(i, j) becomes (i, 1, j)"),
        (SelfAttentionOnly, None, "TypeError"),
        (NoModule, None, "no nn.Module"),
        (OtherNames, "other-names", "W_q", "key, out, query, value"),
        (TwoInARow, "extra-parts", "per_head.0.weight"),
        (AssertsItsWidth, "asserted", "ValueError"),
        (MaskOfHeads, "mask-of-heads", "(b, i, j)"),
        (EightFeatures, "fixed-scale", "divided by 8"),
        (CosineScores, None, "A single head should be"),
        (ScoresForWeights, "other-weights", "after the softmax"),
        (ReluAtTheEnd, "not-linear-at-the-end", "Yours:"),
    ]
}
