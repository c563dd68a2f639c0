"""Answers to exercise 2.3 that the check has to judge right: correct variants and wrong ones."""

import numpy as np
import torch
from einops import einsum, rearrange


def by_matmul(query, key):
    return torch.matmul(query, key.transpose(-2, -1))


def by_mT(query, key):
    return query @ key.mT


def by_torch_einsum(query, key):
    return torch.einsum("...id,...jd->...ij", query, key)


def transposed_twice(query, key):
    return (key @ query.mT).mT


def by_broadcasting(query, key):
    return (rearrange(query, "... i d -> ... i 1 d") * key.unsqueeze(-3)).sum(-1)


def by_loops(query, key):
    if query.ndim > 2:
        return torch.stack([by_loops(q, k) for q, k in zip(query, key, strict=True)])
    return torch.stack([torch.stack([q.dot(k) for k in key]) for q in query])


def by_bmm(query, key):
    q = query.reshape(-1, *query.shape[-2:])
    k = key.reshape(-1, *key.shape[-2:])
    return torch.bmm(q, k.permute(0, 2, 1)).reshape(*query.shape[:-1], key.shape[-2])


def by_linear(query, key):
    if key.ndim == 2:
        return torch.nn.functional.linear(query, key)
    return einsum(query, key, "... i d, ... j d -> ... i j")


def by_cosine_and_lengths(query, key):
    lengths = query.norm(dim=-1)[..., :, None] * key.norm(dim=-1)[..., None, :]
    return torch.cosine_similarity(query[..., :, None, :], key[..., None, :, :], dim=-1) * lengths


def three_axes_only(query, key):
    return torch.einsum("bid,bjd->bij", query, key)


def all_batches_mixed(query, key):
    return torch.einsum("...id,cjd->...ij", query, key) if key.ndim == 3 else query @ key.mT


def first_sequence_of_keys(query, key):
    return query @ (key[0].mT if key.ndim == 3 else key.mT)


def scaled_for_one_width(query, key):
    return query @ key.mT / 8


def first_feature_only(query, key):
    return query[..., :1] @ key[..., :1].mT


def squared(query, key):
    return (query @ key.mT).square()


def negated(query, key):
    return -query @ key.mT


def rounded(query, key):
    return (query @ key.mT).round(decimals=1)


def in_place(query, key):
    query *= 2
    return query @ key.mT / 2


def a_list(query, key):
    return (query @ key.mT).tolist()


def one_number(query, key):
    return (query @ key.mT).sum()


def causal(query, key):
    return (query @ key.mT).tril()


def keys_reversed(query, key):
    return query @ key.flip(-2).mT


class Scores:
    def __call__(self, query, key):
        return torch.einsum("...jd,...id->...ij", key, query)


def einsum_in_alphabetical_order(query, key):
    return torch.einsum("...id,...jd", query, key)


def sum_of_outer_products(query, key):
    pairs = (query[..., d, None] * key[..., None, :, d] for d in range(query.shape[-1]))
    return sum(pairs)


def batch_first_by_permute(query, key):
    return query @ key.permute(0, 2, 1)


def heads_expected(query, key):
    return torch.einsum("bhid,bhjd->bhij", query, key)


def flattened(query, key):
    return torch.mm(query.reshape(-1, query.shape[-1]), key.reshape(-1, key.shape[-1]).T)


def by_numpy_dot(query, key):
    keys = np.swapaxes(key.detach().numpy(), -1, -2)
    return torch.from_numpy(np.dot(query.detach().numpy(), keys))


def key_cut_off(query, key):
    return query @ key.detach().mT


def in_half_precision(query, key):
    return (query.half() @ key.half().mT).float()


RIGHT = {
    "attention_scores": [
        by_matmul,
        by_mT,
        by_torch_einsum,
        transposed_twice,
        by_broadcasting,
        by_loops,
        by_bmm,
        by_linear,
        by_cosine_and_lengths,
        Scores(),
        einsum_in_alphabetical_order,
        sum_of_outer_products,
    ]
}
WRONG = {
    "attention_scores": [
        (three_axes_only, "three-axes-only", "RuntimeError"),
        (all_batches_mixed, None),
        (first_sequence_of_keys, None, "own queries"),
        (scaled_for_one_width, None, "0.125 times"),
        (first_feature_only, None, "dot product"),
        (squared, None, "dot product"),
        (negated, None, "-1 times"),
        (rounded, None),
        (in_place, None, "altered in place"),
        (a_list, None, "must be a tensor"),
        (one_number, None, "shape"),
        (causal, None),
        (keys_reversed, None, "reversed"),
        (batch_first_by_permute, "three-axes-only"),
        (heads_expected, "four-axes-only"),
        (flattened, None, "has shape (10, 20), expected (5, 2, 4)"),
        (by_numpy_dot, "every-batch-entry-with-every-other"),
        (key_cut_off, None, "gradient of key"),
        (in_half_precision, None, "half precision"),
    ]
}
