"""Answers to exercise 8.4 that the check has to judge right: correct variants and wrong ones."""

import torch
import torch.nn.functional as F


def by_ignore_index(logits, targets, padding):
    marked = targets.masked_fill(~padding, -100)
    return F.cross_entropy(logits.flatten(0, 1), marked.flatten())


def by_transpose(logits, targets, padding):
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    return (losses * padding).sum() / padding.sum()


def by_gather(logits, targets, padding):
    log_probs = logits - logits.logsumexp(-1, keepdim=True)
    chosen = log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return -chosen.masked_select(padding).sum() / padding.float().sum()


def by_one_hot(logits, targets, padding):
    one_hot = F.one_hot(targets, logits.shape[-1]).to(logits)
    losses = -(one_hot * logits.log_softmax(-1)).sum(-1)
    return losses[padding].mean()


def by_loop(logits, targets, padding):
    losses = []
    for row, target, visible in zip(logits, targets, padding, strict=True):
        for k in range(len(target)):
            if visible[k]:
                losses.append(F.cross_entropy(row[k], target[k]))
    return torch.stack(losses).mean()


def log_softmax_before(logits, targets, padding):
    return F.cross_entropy(logits.log_softmax(-1)[padding], targets[padding])


def smoothed(logits, targets, padding):
    return F.cross_entropy(logits[padding], targets[padding], label_smoothing=0.1)


def passed_as_it_is(logits, targets, padding):
    return F.cross_entropy(logits, targets)


def epsilon(logits, targets, padding):
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    return (losses * padding).sum() / (padding.sum() + 1)


def prefix_only(logits, targets, padding):
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    n = padding.sum(1, keepdim=True)
    front = torch.arange(padding.shape[1]) < n
    return losses[front].mean()


def in_place(logits, targets, padding):
    targets[~padding] = -100
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def as_a_list(logits, targets, padding):
    return [by_transpose(logits, targets, padding)]


def per_row(logits, targets, padding):
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    return (losses * padding).sum(1) / padding.sum(1)


RIGHT = {
    "masked_cross_entropy": [
        by_ignore_index,
        by_transpose,
        by_gather,
        by_one_hot,
        by_loop,
        log_softmax_before,
    ]
}
WRONG = {
    "masked_cross_entropy": [
        (smoothed, "smoothed", "target alone"),
        (passed_as_it_is, "positions-as-classes", "axis 1"),
        (epsilon, None, "`loss` is wrong"),
        (prefix_only, None, "only the mask says"),
        (in_place, None, "altered in place", "targets"),
        (as_a_list, None, "must be a tensor"),
        (per_row, "one-for-each-row", "each sequence"),
    ]
}
