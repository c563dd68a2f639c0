"""Answers to exercise 2.5 that the check has to judge right: correct variants and wrong ones."""

import torch
import torch.nn.functional as F


def by_matmul(query, key, value):
    weights = torch.softmax(torch.matmul(query, key.transpose(-1, -2)), dim=-1)
    return torch.matmul(weights, value), weights


def by_einsum(query, key, value):
    weights = torch.einsum("...id,...jd->...ij", query, key).softmax(-1)
    return torch.einsum("...ij,...jd->...id", weights, value), weights


def by_ready_made_attention(query, key, value):
    output = F.scaled_dot_product_attention(query, key, value, scale=1.0)
    return output, (query @ key.mT).softmax(-1)


def divided_last(query, key, value):
    scores = query @ key.mT
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    total = e.sum(-1, keepdim=True)
    return e @ value / total, e / total


def one_query_at_a_time(query, key, value):
    rows = [torch.softmax((key @ q.unsqueeze(-1)).squeeze(-1), -1) for q in query.unbind(-2)]
    outputs = [(row.unsqueeze(-1) * value).sum(-2) for row in rows]
    return torch.stack(outputs, dim=-2), torch.stack(rows, dim=-2)


def by_columns(query, key, value):
    columns = (key @ query.mT).softmax(dim=-2)
    return (value.mT @ columns).mT, columns.mT


def in_double_as_a_list(query, key, value):
    weights = (query.double() @ key.double().mT).softmax(-1)
    return [(weights @ value.double()).to(value.dtype), weights.to(query.dtype)]


def output_only(query, key, value):
    return (query @ key.mT).softmax(-1) @ value


def all_three(query, key, value):
    scores = query @ key.mT
    weights = scores.softmax(-1)
    return weights @ value, weights, scores


def sharpened(query, key, value):
    weights = (2 * query @ key.mT).softmax(-1)
    return weights @ value, weights


def divided_by_root_of_keys(query, key, value):
    weights = (query @ key.mT / key.shape[-2] ** 0.5).softmax(-1)
    return weights @ value, weights


def normalised_output(query, key, value):
    weights = (query @ key.mT).softmax(-1)
    return F.normalize(weights @ value, dim=-1), weights


def best_value_soft_weights(query, key, value):
    weights = (query @ key.mT).softmax(-1)
    if value.ndim != 2:
        return weights @ value, weights
    return value[weights.argmax(-1)], weights


def weights_returned_detached(query, key, value):
    weights = (query @ key.mT).softmax(-1)
    return weights.detach() @ value, weights


def two_axes_only(query, key, value):
    weights = torch.mm(query, key.t()).softmax(-1)
    return weights @ value, weights


def scores_in_place(query, key, value):
    query *= 1.5
    weights = (query @ key.mT).softmax(-1)
    return weights @ value, weights


def sum_forgotten(query, key, value):
    weights = (query @ key.mT).softmax(-1)
    return weights[..., None] * value[..., None, :, :], weights


class Lookup:
    def __call__(self, query, key, value):
        weights = torch.nn.Softmax(dim=-1)(torch.matmul(query, key.transpose(-2, -1)))
        return torch.matmul(weights, value), weights


def by_broadcasting(query, key, value):
    scores = (query[..., :, None, :] * key[..., None, :, :]).sum(-1)
    weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()
    return (weights[..., None] * value[..., None, :, :]).sum(-2), weights


def half_on_each_side(query, key, value):
    weights = torch.softmax((query / 2) @ (key * 2).mT, -1)
    return torch.einsum("...ij,...jd->...id", weights, value), weights


def causal(query, key, value):
    scores = query @ key.mT
    later = torch.ones_like(scores).triu(1).bool()
    weights = scores.masked_fill(later, -torch.inf).softmax(-1)
    return weights @ value, weights


def clamped_scores(query, key, value):
    weights = (query @ key.mT).clamp(-80, 80).softmax(-1)
    return weights @ value, weights


def one_maximum_for_all(query, key, value):
    scores = query @ key.mT
    e = (scores - scores.max()).exp()
    weights = e / e.sum(-1, keepdim=True)
    return weights @ value, weights


def residual(query, key, value):
    weights = (query @ key.mT).softmax(-1)
    output = weights @ value
    return output + query if output.shape == query.shape else output, weights


RIGHT = {
    "lookup": [
        by_matmul,
        by_einsum,
        by_ready_made_attention,
        divided_last,
        one_query_at_a_time,
        by_columns,
        in_double_as_a_list,
        Lookup(),
        by_broadcasting,
        half_on_each_side,
    ]
}
WRONG = {
    "lookup": [
        (output_only, None, "(output, weights)"),
        (all_three, None, "(output, weights)"),
        (sharpened, None, "multiplied by 2 at"),
        (divided_by_root_of_keys, None, "0.707"),
        (normalised_output, None, "`output`"),
        (best_value_soft_weights, None, "plain mean"),
        (weights_returned_detached, None, "gradient"),
        (two_axes_only, None, "RuntimeError"),
        (scores_in_place, None, "altered in place"),
        (sum_forgotten, None, "shape"),
        (causal, None, "plain mean"),
        (clamped_scores, None, "thousands"),
        (one_maximum_for_all, None, "thousands"),
        (residual, None, "`output` is wrong"),
    ]
}
