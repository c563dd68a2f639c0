"""Exercise 1.3, gradient_by_distance: its known mistakes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attn_course.checks.exercise import Mistake


def right(run: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
    """The measurement as a learner may write it; each mistake is an edit of it."""
    x = inputs.detach().clone().requires_grad_()
    last = run(x)[:, -1]
    (gradient,) = torch.autograd.grad(last.sum(), x)
    lengths = gradient.norm(dim=-1)
    mean = lengths.mean(dim=0)
    return mean.flip(0)


def whole_jacobian(run: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
    """The length of the whole Jacobian in place of that of the sum's gradient."""
    x = inputs.detach().clone().requires_grad_()
    last = run(x)[:, -1]
    rows = [
        torch.autograd.grad(last[:, f].sum(), x, retain_graph=True)[0] for f in range(last.shape[1])
    ]
    return torch.stack(rows).square().sum(dim=(0, -1)).sqrt().mean(dim=0).flip(0)


LENGTH, MEAN = "gradient.norm(dim=-1)", "lengths.mean(dim=0)"

MISTAKES = (
    Mistake(
        "first-position-first",
        "The entries stand in the order of the positions. Entry k belongs to distance k: the "
        "last input comes first, the first input last. (Was an axis of another meaning flipped?)",
        {"mean.flip(0)": "mean"},
    ),
    Mistake(
        "first-output",
        "It is the first output that is differentiated, not the last.",
        {"[:, -1]": "[:, 0]"},
    ),
    Mistake(
        "last-sequence",
        "`[-1]` takes the last sequence of the batch with all its outputs. The last output of "
        "every sequence is asked for: time is axis 1.",
        {"[:, -1]": "[-1]"},
    ),
    Mistake(
        "feature-for-position",
        "`[..., -1]` takes the last feature of all outputs. The last output with all its features "
        "is asked for: time is axis 1.",
        {"[:, -1]": "[..., -1]"},
    ),
    Mistake(
        "all-outputs",
        "All outputs are differentiated together. An input then also counts for the outputs at "
        "its own place and before the end; only the last one is asked for.",
        {"[:, -1]": ""},
    ),
    Mistake(
        "mean-of-all-outputs",
        "The mean of all outputs is differentiated; only the last output is asked for, and its "
        "sum.",
        {"[:, -1]": "", "last.sum()": "last.mean()"},
    ),
    Mistake(
        "one-output-feature",
        "Only one feature of the last output is differentiated. They are all added up first.",
        {"[:, -1]": "[:, -1, 0]"},
    ),
    Mistake(
        "last-output-feature",
        "Only the last feature of the output is differentiated. They are all added up first.",
        {"[:, -1]": "[:, -1, -1]"},
    ),
    Mistake(
        "mean-of-the-features",
        "The mean of the last output's features is differentiated: all results are too small "
        "by the factor 1/d_out. Their sum is asked for.",
        {"last.sum()": "last.mean(dim=-1).sum()"},
    ),
    Mistake(
        "batch-averaged-twice",
        "The batch is averaged twice: the number that is differentiated is a mean over it "
        "already, so each gradient is divided by b, and then the mean is taken again.",
        {"last.sum()": "last.sum(dim=-1).mean()"},
    ),
    Mistake(
        "mean-of-the-last-output",
        "`.mean()` of the last output divides by batch and features before it is "
        "differentiated. Add the features up, and average over the batch only once, at the end.",
        {"last.sum()": "last.mean()"},
    ),
    Mistake(
        "squared-output",
        "The squares of the last output are added up before it is differentiated. The plain sum "
        "of its features is asked for.",
        {"last.sum()": "last.square().sum()"},
    ),
    Mistake(
        "length-of-the-output",
        "The length of the last output is differentiated. The plain sum of its features is "
        "asked for; a length is taken of the gradient.",
        {"last.sum()": "last.norm(dim=-1).sum()"},
    ),
    Mistake(
        "size-of-the-output",
        "The absolute values of the last output are differentiated: some gradients change "
        "their sign. The plain sum is asked for.",
        {"last.sum()": "last.abs().sum()"},
    ),
    Mistake(
        "whole-jacobian",
        "Each output feature is differentiated by itself, and all gradients are put into one "
        "length. The features are added up first, so that there is one gradient.",
        whole_jacobian,
    ),
    Mistake(
        "signs-kept",
        "The numbers of each gradient vector are added up with their signs and may cancel. Its "
        "Euclidean length is asked for.",
        {"gradient.norm": "gradient.sum"},
    ),
    Mistake(
        "mean-with-signs",
        "The numbers of each gradient vector are averaged with their signs. Its Euclidean "
        "length is asked for.",
        {"gradient.norm": "gradient.mean"},
    ),
    Mistake(
        "signs-off-at-the-end",
        "The gradients are added up with their signs, and only the result loses its sign: until "
        "then they may cancel. The length comes first.",
        {"gradient.norm": "gradient.sum", MEAN: "lengths.mean(dim=0).abs()"},
    ),
    Mistake(
        "absolute-sum",
        "The absolute values of each gradient vector are added up. The Euclidean length is the "
        "root of the sum of squares.",
        {"gradient.norm": "gradient.abs().sum"},
    ),
    Mistake(
        "absolute-mean",
        "The absolute values of each gradient vector are averaged. The Euclidean length is the "
        "root of the sum of squares.",
        {"gradient.norm": "gradient.abs().mean"},
    ),
    Mistake(
        "squared-length",
        "This is the square of the length: the root is missing.",
        {"gradient.norm": "gradient.square().sum"},
    ),
    Mistake(
        "root-mean-square",
        "The squares are averaged over the features, not added up: too small by √d_in.",
        {LENGTH: "gradient.square().mean(dim=-1).sqrt()"},
    ),
    Mistake(
        "largest-number",
        "Only the largest number of each gradient vector counts. Its length is asked for.",
        {"gradient.norm": "gradient.abs().amax"},
    ),
    Mistake(
        "one-input-feature",
        "Only the first feature of the inputs counts. The length runs over all of them.",
        {LENGTH: "gradient[..., 0].abs()"},
    ),
    Mistake(
        "length-along-the-batch",
        "The length is taken along the batch. It runs over the features, the last axis; the "
        "batch is averaged.",
        {LENGTH: "gradient.norm(dim=0)", MEAN: "lengths.mean(dim=-1)"},
    ),
    Mistake(
        "length-along-time",
        "The length is taken along the positions, which leaves one number for each feature. It "
        "runs over the features, the last axis.",
        {LENGTH: "gradient.norm(dim=1)"},
    ),
    Mistake(
        "length-of-everything",
        "Batch and features go into one length. Each sequence has a length of its own; then "
        "comes the mean over the batch.",
        {LENGTH: "gradient.norm(dim=(0, 2))", MEAN: "lengths"},
    ),
    Mistake(
        "one-number",
        "`.norm()` without an axis makes one number of everything. The length runs over the "
        "features only, the last axis.",
        {LENGTH: "gradient.norm()", MEAN: "lengths", "mean.flip(0)": "mean"},
    ),
    Mistake(
        "mean-before-length",
        "The gradients are averaged over the batch before their length is taken: those of "
        "different sequences cancel each other.",
        {LENGTH: "gradient.mean(dim=0).norm(dim=-1)", MEAN: "lengths"},
    ),
    Mistake(
        "sum-before-length",
        "The gradients are added up over the batch before their length is taken. The length "
        "comes first, then the mean.",
        {LENGTH: "gradient.sum(dim=0).norm(dim=-1)", MEAN: "lengths"},
    ),
    Mistake(
        "root-after-the-mean",
        "The mean over the batch is taken of the squares, and the root afterwards. The length of "
        "each gradient, its root included, comes first.",
        {"gradient.norm": "gradient.square().sum", MEAN: "lengths.mean(dim=0).sqrt()"},
    ),
    Mistake(
        "batch-summed",
        "The lengths are added up over the batch. The mean is asked for.",
        {MEAN: "lengths.sum(dim=0)"},
    ),
    Mistake(
        "largest-sequence",
        "The largest of the batch is taken. The mean is asked for.",
        {MEAN: "lengths.amax(dim=0)"},
    ),
    Mistake(
        "one-sequence",
        "Only the first sequence of the batch counts. The mean over all is asked for.",
        {MEAN: "lengths[0]"},
    ),
    Mistake(
        "batch-kept",
        "There is a row for each sequence, (b, n). The mean over the batch is missing.",
        {MEAN: "lengths", "flip(0)": "flip(1)"},
    ),
    Mistake(
        "axis-kept",
        "The numbers are right, but an axis of size 1 is left over from the batch. The result has "
        "the shape (n,).",
        {MEAN: "lengths.mean(dim=0, keepdim=True)", "flip(0)": "flip(1)"},
    ),
    Mistake(
        "averaged-over-time",
        "The mean runs along the positions, so one number is left for each sequence. It runs "
        "over the batch.",
        {MEAN: "lengths.mean(dim=1)"},
    ),
    Mistake(
        "divided-by-the-nearest",
        "Everything is divided by the entry at distance 0. The lengths themselves are asked for.",
        {"flip(0)": "flip(0) / mean[-1]"},
    ),
    Mistake(
        "divided-by-the-largest",
        "Everything is divided by the largest entry. The lengths themselves are asked for.",
        {"flip(0)": "flip(0) / mean.max()"},
    ),
    Mistake(
        "shares",
        "Everything is divided by the sum, so that the entries sum to one. The lengths "
        "themselves are asked for.",
        {"flip(0)": "flip(0) / mean.sum()"},
    ),
    Mistake(
        "logarithm",
        "The logarithm is returned; a picture takes it by its axis. The lengths themselves are "
        "asked for.",
        {"flip(0)": "flip(0).log()"},
    ),
    Mistake(
        "off-by-one",
        "Everything stands one place too early: entry 0 is the last input itself, distance 0.",
        {"mean.flip(0)": "torch.cat([mean.flip(0)[1:], mean.new_zeros(1)])"},
    ),
    Mistake(
        "last-input-missing",
        "Entry 0 is missing: the last input itself, at distance 0, counts too.",
        {"flip(0)": "flip(0)[1:]"},
    ),
    Mistake(
        "times-the-input",
        "The gradient is multiplied with the input. How strongly the output answers to a nudge "
        "is the gradient alone.",
        {"gradient.norm": "(gradient * inputs).norm"},
    ),
    Mistake(
        "accumulated",
        "The gradient is collected in the `.grad` of the caller's own inputs, on top of what "
        "the call before left there: `backward()` adds. Work on a copy of the inputs.",
        {
            ".detach().clone()": "",
            "(gradient,) = torch.autograd.grad(last.sum(), x)": "last.sum().backward()\n"
            "    gradient = x.grad",
        },
    ),
)
