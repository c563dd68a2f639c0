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


class Loss:
    def __call__(self, logits, targets):
        shifted = logits - logits.amax(dim=1, keepdim=True).detach()
        right = torch.take_along_dim(shifted, targets[:, None], dim=1)[:, 0]
        return torch.mean(shifted.exp().sum(dim=1).log() - right)


def by_logaddexp(logits, targets):
    total = logits[:, 0]
    for c in range(1, logits.shape[1]):
        total = torch.logaddexp(total, logits[:, c])
    return (total - logits[torch.arange(len(targets)), targets]).sum().div(targets.numel())


def by_the_distance_to_the_target(logits, targets):
    return (logits - logits.gather(1, targets[:, None])).logsumexp(dim=1).mean()


def by_the_diagonal(logits, targets):
    return -logits.log_softmax(-1).index_select(1, targets).diagonal().mean()


def maximum_never_given_back(logits, targets):
    shifted = logits - logits.max(dim=1, keepdim=True).values
    rows = torch.arange(len(targets))
    return (torch.log(torch.exp(shifted).sum(dim=1)) - logits[rows, targets]).mean()


def total_never_added_to(logits, targets):
    total = torch.tensor(0.0)
    for row, target in zip(logits, targets, strict=True):
        loss = row.logsumexp(0) - row[target]
        total + loss
    return total / len(targets)


def one_hot_left_to_guess(logits, targets):
    return -(F.one_hot(targets) * torch.log_softmax(logits, dim=1)).sum(dim=1).mean()


def clipped_as_in_keras(logits, targets):
    probs = logits.softmax(1).clamp(1e-7, 1 - 1e-7)
    return -(F.one_hot(targets, logits.shape[1]) * probs.log()).sum(1).mean()


def clipped_logits(logits, targets):
    return F.cross_entropy(logits.clamp(-30, 30), targets)


def log_cut_off_as_in_torch(logits, targets):
    right = F.one_hot(targets, logits.shape[1]).bool()
    return -logits.softmax(1)[right].log().clamp(min=-100).mean()


def with_binary_losses(logits, targets):
    right = F.one_hot(targets, logits.shape[1]).float()
    return F.binary_cross_entropy_with_logits(logits, right)


def nan_replaced(logits, targets):
    return torch.nan_to_num(-logits.softmax(1)[range(len(targets)), targets].log()).mean()


def class_by_class(logits, targets):
    losses = -logits.log_softmax(1)[range(len(targets)), targets]
    return torch.stack([losses[targets == c].mean() for c in targets.unique()]).mean()


def return_in_the_loop(logits, targets):
    total = 0.0
    for row, target in zip(logits, targets, strict=True):
        total += row.logsumexp(0) - row[target]
        return total / len(targets)


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
        Loss(),
        by_logaddexp,
        by_the_distance_to_the_target,
        by_the_diagonal,
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
        (maximum_never_given_back, "shift-not-undone", "target's own"),
        (total_never_added_to, "always-zero", "total"),
        (one_hot_left_to_guess, "one-hot-of-those-present", "How many classes"),
        (clipped_as_in_keras, "constant-in-log", "16.1"),
        (clipped_logits, "logits-clamped", "cut to it"),
        (log_cut_off_as_in_torch, "loss-cut-off", "100"),
        (with_binary_losses, "yes-or-no-for-each-class", "sigmoid"),
        (nan_replaced, None, "Logits in the thousands"),
        (class_by_class, None, "their mean"),
        (return_in_the_loop, None, "their mean"),
    ]
}
