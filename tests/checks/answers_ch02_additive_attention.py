"""Answers to exercise 2.6 that the check has to judge right: correct variants and wrong ones."""

import torch
from einops import einsum, rearrange


def by_unsqueeze(query, key, value, W_q, W_k, w):
    hidden = torch.tanh((query @ W_q).unsqueeze(-2) + (key @ W_k).unsqueeze(-3))
    weights = torch.softmax((hidden * w).sum(-1), dim=-1)
    return weights @ value, weights


def by_one_joined_weight(query, key, value, W_q, W_k, w):
    i, j = query.shape[-2], key.shape[-2]
    pairs = torch.cat(
        [
            query.unsqueeze(-2).expand(*query.shape[:-1], j, query.shape[-1]),
            key.unsqueeze(-3).expand(*key.shape[:-2], i, j, key.shape[-1]),
        ],
        dim=-1,
    )
    weights = torch.tanh(pairs @ torch.cat([W_q, W_k])).matmul(w).softmax(-1)
    return torch.einsum("...ij,...jd->...id", weights, value), weights


def one_query_at_a_time(query, key, value, W_q, W_k, w):
    offered = key @ W_k
    rows = [(torch.tanh(q.unsqueeze(-2) @ W_q + offered) @ w).softmax(-1) for q in query.unbind(-2)]
    weights = torch.stack(rows, dim=-2)
    return weights @ value, weights


def w_as_a_column(query, key, value, W_q, W_k, w):
    asked, offered = query @ W_q, key @ W_k
    hidden = rearrange(asked, "... i d -> ... i 1 d") + rearrange(offered, "... j d -> ... 1 j d")
    weights = (hidden.tanh() @ w[:, None]).squeeze(-1).softmax(-1)
    return einsum(weights, value, "... i j, ... j d -> ... i d"), weights


def tanh_from_exponentials(query, key, value, W_q, W_k, w):
    hidden = (query @ W_q)[..., :, None, :] + (key @ W_k)[..., None, :, :]
    scores = (2 * torch.sigmoid(2 * hidden) - 1) @ w
    weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()
    return [weights @ value, weights]


def scores_by_key_then_transposed(query, key, value, W_q, W_k, w):
    hidden = (key @ W_k)[..., :, None, :] + (query @ W_q)[..., None, :, :]
    weights = (hidden.tanh() @ w).softmax(dim=-2).mT
    return weights @ value, weights


def dot_product(query, key, value, W_q, W_k, w):
    weights = ((query @ W_q) @ (key @ W_k).mT).softmax(-1)
    return weights @ value, weights


def tanh_of_the_key_only(query, key, value, W_q, W_k, w):
    hidden = (query @ W_q)[..., :, None, :] + (key @ W_k)[..., None, :, :].tanh()
    weights = (hidden @ w).softmax(-1)
    return weights @ value, weights


def three_axes_only(query, key, value, W_q, W_k, w):
    hidden = (query @ W_q)[:, :, None] + (key @ W_k)[:, None]
    weights = (hidden.tanh() @ w).softmax(-1)
    return weights @ value, weights


def query_transposed_axes(query, key, value, W_q, W_k, w):
    hidden = (query @ W_q).unsqueeze(1) + (key @ W_k).unsqueeze(0)
    weights = (hidden.tanh() @ w).softmax(-1)
    return weights @ value, weights


def with_a_bias(query, key, value, W_q, W_k, w):
    hidden = (query @ W_q)[..., :, None, :] + (key @ W_k)[..., None, :, :] + 0.5
    weights = (hidden.tanh() @ w).softmax(-1)
    return weights @ value, weights


def projected_values(query, key, value, W_q, W_k, w):
    hidden = (query @ W_q)[..., :, None, :] + (key @ W_k)[..., None, :, :]
    weights = (hidden.tanh() @ w).softmax(-1)
    return weights @ (key @ W_k), weights


def output_only(query, key, value, W_q, W_k, w):
    return by_unsqueeze(query, key, value, W_q, W_k, w)[0]


def squared_w(query, key, value, W_q, W_k, w):
    return by_unsqueeze(query, key, value, W_q, W_k, w * w)


def scores_summed_over_queries(query, key, value, W_q, W_k, w):
    hidden = (query @ W_q)[..., :, None, :] + (key @ W_k)[..., None, :, :]
    weights = (hidden.tanh() @ w).sum(-2, keepdim=True).softmax(-1)
    weights = weights.expand(*query.shape[:-1], -1)
    return weights @ value, weights


class Attention:
    def __call__(self, query, key, value, W_q, W_k, w):
        hidden = (query @ W_q)[..., :, None, :] + (key @ W_k)[..., None, :, :]
        weights = torch.softmax(hidden.tanh() @ w, -1)
        return torch.matmul(weights, value), weights


def hidden_by_hidden(query, key, value, W_q, W_k, w):
    asked, offered = query @ W_q, key @ W_k
    scores = 0
    for h in range(len(w)):
        hidden = asked[..., h].unsqueeze(-1) + offered[..., h].unsqueeze(-2)
        scores = scores + w[h] * torch.tanh(hidden)
    weights = scores.softmax(-1)
    return weights @ value, weights


def axes_by_number(query, key, value, W_q, W_k, w):
    hidden = (query @ W_q).unsqueeze(2) + (key @ W_k).unsqueeze(1)
    weights = (hidden.tanh() @ w).softmax(-1)
    return weights @ value, weights


def w_never_squeezed(query, key, value, W_q, W_k, w):
    hidden = (query @ W_q).unsqueeze(-2) + (key @ W_k).unsqueeze(-3)
    weights = torch.softmax(torch.tanh(hidden) @ w.unsqueeze(-1), dim=-1)
    return weights @ value, weights


def softmax_axis_by_number(query, key, value, W_q, W_k, w):
    hidden = (query @ W_q).unsqueeze(-2) + (key @ W_k).unsqueeze(-3)
    scores = hidden.tanh() @ w
    weights = scores.softmax(2 if scores.ndim > 2 else 1)
    return weights @ value, weights


def scaled_by_the_key_width(query, key, value, W_q, W_k, w):
    return by_unsqueeze(query, key, value, W_q, W_k, w / key.shape[-1] ** 0.5)


RIGHT = {
    "additive_attention": [
        by_unsqueeze,
        by_one_joined_weight,
        one_query_at_a_time,
        w_as_a_column,
        tanh_from_exponentials,
        scores_by_key_then_transposed,
        Attention(),
        hidden_by_hidden,
    ]
}
WRONG = {
    "additive_attention": [
        (dot_product, None, "w is zero"),
        (tanh_of_the_key_only, "query-cancels", "same weights"),
        (three_axes_only, "three-axes-only", "Error", "from the right"),
        (axes_by_number, "three-axes-only"),
        (w_never_squeezed, "score-keeps-an-axis", "column"),
        (softmax_axis_by_number, None, "own queries"),
        (scaled_by_the_key_width, None, "w · tanh"),
        (query_transposed_axes, None),
        (with_a_bias, None, "w · tanh"),
        (projected_values, None, "plain mean"),
        (output_only, None, "(output, weights)"),
        (squared_w, None),
        (scores_summed_over_queries, None, "same weights"),
    ]
}
