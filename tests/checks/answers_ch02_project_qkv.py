"""Answers to exercise 2.4 that the check has to judge right: correct variants and wrong ones."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from einops import einsum


def by_matmul(x, W_q, W_k, W_v):
    return torch.matmul(x, W_q), torch.matmul(x, W_k), torch.matmul(x, W_v)


def by_einsum(x, W_q, W_k, W_v):
    q, k, v = (einsum(x, W, "... n i, i o -> ... n o") for W in (W_q, W_k, W_v))
    return [q, k, v]


def by_linear(x, W_q, W_k, W_v):
    return F.linear(x, W_q.T), F.linear(x, W_k.T), F.linear(x, W_v.T)


def as_one_product(x, W_q, W_k, W_v):
    joined = x @ torch.cat([W_q, W_k, W_v], dim=1)
    return joined.split([W_q.shape[1], W_k.shape[1], W_v.shape[1]], dim=-1)


def by_columns_and_back(x, W_q, W_k, W_v):
    return tuple((W.T @ x.mT).mT for W in (W_q, W_k, W_v))


def by_loaded_layers(x, W_q, W_k, W_v):
    results = []
    for W in (W_q, W_k, W_v):
        layer = torch.nn.Linear(*W.shape, bias=False)
        results.append(torch.func.functional_call(layer, {"weight": W.T}, (x,)))
    return tuple(results)


def token_by_token(x, W_q, W_k, W_v):
    flat = x.reshape(-1, x.shape[-1])
    return tuple(
        torch.stack([token @ W for token in flat]).reshape(*x.shape[:-1], W.shape[-1])
        for W in (W_q, W_k, W_v)
    )


def as_a_dict(x, W_q, W_k, W_v):
    return {"query": x @ W_q, "key": x @ W_k, "value": x @ W_v}


def query_only(x, W_q, W_k, W_v):
    return x @ W_q


def with_a_bias(x, W_q, W_k, W_v):
    return x @ W_q + 0.1, x @ W_k + 0.1, x @ W_v + 0.1


def layers_without_bias(x, W_q, W_k, W_v):
    return tuple(torch.nn.Linear(*W.shape, bias=False)(x) for W in (W_q, W_k, W_v))


def linear_with_stored_shape(x, W_q, W_k, W_v):
    return F.linear(x, W_q), F.linear(x, W_k), F.linear(x, W_v)


def key_from_the_query_weight(x, W_q, W_k, W_v):
    query = x @ W_q
    key = x @ W_q
    return query, key, x @ W_v


def value_first(x, W_q, W_k, W_v):
    return x @ W_v, x @ W_k, x @ W_q


def key_transposed_only(x, W_q, W_k, W_v):
    return x @ W_q, (x @ W_k).mT, x @ W_v


def only_value_transposed(x, W_q, W_k, W_v):
    return x @ W_q, x @ W_k, x @ (W_v if W_v.shape[0] != W_v.shape[1] else W_v.T)


def split_in_three_equal_parts(x, W_q, W_k, W_v):
    return (x @ torch.cat([W_q, W_k, W_v], dim=1)).chunk(3, dim=-1)


def normalised_input(x, W_q, W_k, W_v):
    x = F.layer_norm(x, x.shape[-1:])
    return x @ W_q, x @ W_k, x @ W_v


def input_doubled_in_place(x, W_q, W_k, W_v):
    x *= 2
    return x @ W_q / 2, x @ W_k / 2, x @ W_v / 2


def by_loaded_detached_layers(x, W_q, W_k, W_v):
    results = []
    for W in (W_q, W_k, W_v):
        layer = torch.nn.Linear(*W.shape, bias=False)
        layer.weight.data = W.T.data
        results.append(layer(x))
    return tuple(results)


def two_axes_only(x, W_q, W_k, W_v):
    return torch.mm(x, W_q), torch.mm(x, W_k), torch.mm(x, W_v)


class Projections(NamedTuple):
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor


def named(x, W_q, W_k, W_v):
    return Projections(x @ W_q, x @ W_k, x @ W_v)


def by_broadcasting(x, *weights):
    return tuple((x[..., :, None] * W).sum(-2) for W in weights)


def column_vectors(x, W_q, W_k, W_v):
    return W_q @ x, W_k @ x, W_v @ x


def star(x, W_q, W_k, W_v):
    return x * W_q, x * W_k, x * W_v


def batch_named(x, W_q, W_k, W_v):
    return tuple(torch.einsum("bnd,dk->bnk", x, W) for W in (W_q, W_k, W_v))


def flattened(x, W_q, W_k, W_v):
    return tuple(x.reshape(-1, x.shape[-1]) @ W for W in (W_q, W_k, W_v))


def appended_and_returned_in_the_loop(x, W_q, W_k, W_v):
    results = []
    for W in (W_q, W_k, W_v):
        results.append(x @ W)
        return results


def value_not_projected(x, W_q, W_k, W_v):
    return x @ W_q, x @ W_k, x


RIGHT = {
    "project_qkv": [
        by_matmul,
        by_einsum,
        by_linear,
        as_one_product,
        by_columns_and_back,
        by_loaded_layers,
        token_by_token,
        named,
        by_broadcasting,
    ]
}
WRONG = {
    "project_qkv": [
        (as_a_dict, None, "(query, key, value)"),
        (query_only, None, "(query, key, value)"),
        (with_a_bias, None, "bias"),
        (column_vectors, "matrix-first", "x W, not W x"),
        (star, "elementwise", "`*`"),
        (batch_named, "three-axes-only"),
        (flattened, "joined-tokens", "joined into one"),
        (appended_and_returned_in_the_loop, None, "a list or tuple of 1"),
        (value_not_projected, None, "`value` is wrong"),
        (layers_without_bias, None),
        (linear_with_stored_shape, "weights-transposed", "(in, out)"),
        (key_from_the_query_weight, "weight-used-twice", "W_q, W_q, W_v"),
        (value_first, "order", "W_v, W_k, W_q"),
        (key_transposed_only, None, "`key`", "exchanged"),
        (only_value_transposed, None, "`value` is wrong"),
        (split_in_three_equal_parts, None, "shape"),
        (normalised_input, None, "nothing more"),
        (input_doubled_in_place, None, "altered in place"),
        (by_loaded_detached_layers, None, "gradient of W_q"),
        (two_axes_only, "two-axes-only", "RuntimeError"),
    ]
}
