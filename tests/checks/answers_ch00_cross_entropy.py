"""Answers to exercise 0.2 that the check has to judge right: correct variants and wrong ones."""

import torch
import torch.nn.functional as F
from einops import einsum


def by_log_softmax(logits, targets):
    return -torch.log_softmax(logits, dim=1)[torch.arange(len(targets)), targets].mean()


def by_one_hot(logits, targets):
    right = F.one_hot(targets, logits.shape[1]).to(logits.dtype)
    return -einsum(right, logits.log_softmax(-1), "n c, n c -> n").mean()


def by_subtracting_the_maximum(logits, targets):
    shifted = logits - logits.max(dim=1, keepdim=True).values
    log_sum = torch.log(torch.exp(shifted).sum(dim=1))
    return (log_sum - shifted[range(len(targets)), targets]).sum() / len(targets)


def by_a_loop(logits, targets):
    total = 0.0
    for row, target in zip(logits, targets, strict=True):
        total = total + torch.logsumexp(row, 0) - row[target]
    return total / len(targets)


def by_the_ready_made_one(logits, targets):
    return F.cross_entropy(logits, targets)


def by_broadcast_comparison(logits, targets):
    right = targets[:, None] == torch.arange(logits.shape[1])
    return -logits.log_softmax(1)[right].mean()


def in_double_precision(logits, targets):
    exact = logits.double()
    loss = exact.logsumexp(-1) - exact.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return loss.mean().to(logits.dtype)


def softmax_of_log_softmax(logits, targets):
    return F.cross_entropy(logits.log_softmax(-1), targets)


def by_list_of_rows(logits, targets):
    losses = [-F.log_softmax(row, dim=0)[t] for row, t in zip(logits, targets, strict=True)]
    return torch.stack(losses).mean()


def forgotten_return(logits, targets):
    by_log_softmax(logits, targets)


def clamped(logits, targets):
    probs = logits.softmax(-1).clamp(min=1e-10)
    return -probs[torch.arange(len(targets)), targets].log().mean()


def built_anew(logits, targets):
    losses = [by_log_softmax(row[None], t[None]).item() for row, t in zip(logits, targets)]  # noqa: B905
    return torch.tensor(sum(losses) / len(losses))


def fixed_batch(logits, targets):
    return -logits.log_softmax(-1)[torch.arange(len(targets)), targets].sum() / 32


def with_an_axis(logits, targets):
    return by_log_softmax(logits, targets)[None]


def axis_of_rows_by_habit(logits, targets):
    probs = torch.exp(logits) / torch.exp(logits).sum(dim=0)
    return -torch.log(probs[torch.arange(len(targets)), targets]).mean()


def probabilities_into_the_ready_made_one(logits, targets):
    return F.cross_entropy(torch.softmax(logits, dim=-1), targets)


def keepdim_forgotten(logits, targets):
    probs = logits.exp() / logits.exp().sum(dim=-1)
    return -probs[torch.arange(len(targets)), targets].log().mean()


def in_half_precision(logits, targets):
    return F.cross_entropy(logits.half(), targets)


def smoothed(logits, targets):
    return F.cross_entropy(logits, targets, label_smoothing=0.1)


RIGHT = {
    "cross_entropy": [
        by_log_softmax,
        by_one_hot,
        by_subtracting_the_maximum,
        by_a_loop,
        by_the_ready_made_one,
        by_broadcast_comparison,
        in_double_precision,
        softmax_of_log_softmax,
        by_list_of_rows,
    ]
}
WRONG = {
    "cross_entropy": [
        (forgotten_return, None, "return"),
        (clamped, "constant-in-log", "1e-10", "23"),
        (built_anew, "detached"),
        (fixed_batch, "divided-by-fixed-number", "32"),
        (with_an_axis, "axis-kept", "no axes"),
        (axis_of_rows_by_habit, "softmax-over-rows"),
        (probabilities_into_the_ready_made_one, "softmax-twice"),
        (keepdim_forgotten, "sums-misaligned", "keepdim"),
        (in_half_precision, None, "coarser than the inputs"),
        (smoothed, None, "probability that the softmax gives the target"),
    ]
}
