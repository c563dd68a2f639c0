"""Answers to exercise 3.1 that the check has to judge right: correct variants and wrong ones."""

import math

import torch
from torch.distributions import Categorical


def floor_far_below_every_weight(weights):
    return -(weights * weights.clamp(min=1e-30).log()).sum(dim=-1)


def tiny_shift(weights):
    return -torch.sum(weights * torch.log(weights + 1e-9), -1)


def chosen_before_the_logarithm(weights):
    logs = torch.where(weights > 0, weights, torch.ones_like(weights)).log()
    return torch.einsum("...j,...j->...", weights, -logs)


def row_by_row(weights):
    if weights.ndim > 1:
        return torch.stack([row_by_row(row) for row in weights])
    terms = [-w * torch.log(w) for w in weights if w > 0]
    return torch.stack(terms).sum() if terms else weights.sum()


def in_bits_and_back(weights):
    logs = torch.where(weights == 0, 1.0, weights).log2()
    return -(weights * logs).sum(-1) * math.log(2)


def in_float64(weights):
    wide = weights.double()
    return (-wide * wide.clamp(min=1e-100).log()).sum(-1).to(weights.dtype)


class Entropy:
    def __call__(self, weights):
        safe = weights + (weights == 0).to(weights.dtype)
        return torch.einsum("...j,...j->...", -weights, safe.log())


def distance_from_uniform_taken_off(weights):
    n = weights.shape[-1]
    safe = torch.where(weights == 0, 1 / n, weights)
    return weights.sum(-1) * math.log(n) - (weights * (safe * n).log()).sum(-1)


def logarithm_detached(weights):
    # the weights of a row sum to 1, so that what the logarithm adds to the gradient is 0
    return -(weights * weights.clamp(min=1e-20).log().detach()).sum(-1)


def xlogy(weights):
    return -torch.xlogy(weights, weights).sum(-1)


def entr(weights):
    return torch.special.entr(weights).sum(-1)


def categorical(weights):
    return Categorical(probs=weights).entropy()


def where_after_the_logarithm(weights):
    return -torch.where(weights > 0, weights * weights.log(), 0.0).sum(-1)


def no_return(weights):
    -(weights * weights.log()).sum(-1)


def python_float(weights):
    return float(-(weights * weights.clamp(min=1e-30).log()).sum())


def thresholded(weights):
    kept = torch.where(weights > 0.01, weights, 0.0)
    return -(kept * kept.clamp(min=1e-30).log()).sum(-1)


def thresholded_a_little(weights):
    kept = torch.where(weights > 1e-4, weights, 0.0)
    return -(kept * kept.clamp(min=1e-30).log()).sum(-1)


def cross_entropy_of_the_weights(weights):
    return torch.nn.functional.cross_entropy(
        weights.movedim(-1, 0)[None], weights.movedim(-1, 0)[None], reduction="none"
    )[0]


def weights_detached(weights):
    return -(weights.detach() * weights.clamp(min=1e-20).log()).sum(-1)


def normalised_in_place(weights):
    weights += 1e-12
    return -(weights * weights.log()).sum(-1)


def positive_only(weights):
    kept = weights[weights > 0]
    return -(kept * kept.log()).sum(-1)


def largest_weight(weights):
    return weights.amax(-1)


RIGHT = {
    "attention_entropy": [
        floor_far_below_every_weight,
        tiny_shift,
        chosen_before_the_logarithm,
        row_by_row,
        in_bits_and_back,
        in_float64,
        Entropy(),
        distance_from_uniform_taken_off,
        logarithm_detached,
    ]
}
WRONG = {
    "attention_entropy": [
        (xlogy, "gradient-nan", "NaN"),
        (entr, "gradient-nan", "NaN"),
        (where_after_the_logarithm, "gradient-nan", "must not meet the 0"),
        (no_return, None, "is there a `return`?"),
        (python_float, None, "a number has lost its gradient"),
        (thresholded, "small-weights-left-out", "left out"),
        (thresholded_a_little, "small-weights-left-out", "2e-05"),
        (cross_entropy_of_the_weights, "softmax-again", "weights already"),
        (weights_detached, "detached", "gradient"),
        (normalised_in_place, None, "`weights` is altered in place"),
        (positive_only, "summed-over-everything", "flattens"),
        (largest_weight, None, "one number"),
        (categorical, None, "constraint"),
    ]
}
