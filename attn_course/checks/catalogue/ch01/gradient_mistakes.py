"""The known mistakes of exercise 1.3, gradient_by_distance."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attn_course.checks.exercise import Answer, Mistake

Run = Callable[[Tensor], Tensor]


def measure(
    run: Run,
    inputs: Tensor,
    *,
    number: Any = lambda outputs: outputs[:, -1].sum(),
    size: Any = lambda gradient: gradient.norm(dim=-1),
    average: Any = lambda sizes: sizes.mean(dim=0),
    order: Any = lambda result: result.flip(0),
) -> Any:
    """The measurement with its joints open: each mistake replaces one of them."""
    x = inputs.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(number(run(x)), x)
    return order(average(size(gradient)))


def of(number: Any) -> Answer:
    """A version that differentiates another number."""
    return partial(measure, number=number)


def sized(size: Any, **joints: Any) -> Answer:
    """A version that makes one number of each gradient vector in another way."""
    return partial(measure, size=size, **joints)


def averaged(average: Any) -> Answer:
    """A version that brings the sequences together in another way."""
    return partial(measure, average=average)


def ordered(order: Any) -> Answer:
    """A version that puts the right numbers into another order or scale."""
    return partial(measure, order=order)


def accumulating(run: Run, inputs: Tensor) -> Tensor:
    """Collects the gradient on the caller's own inputs, on top of what is there."""
    inputs.requires_grad_()
    run(inputs)[:, -1].sum().backward()
    gradient = inputs.grad
    assert gradient is not None  # backward has just put it there
    return gradient.norm(dim=-1).mean(dim=0).flip(0)


def whole_jacobian(run: Run, inputs: Tensor) -> Tensor:
    """The length of the whole Jacobian in place of that of the sum's gradient."""
    x = inputs.detach().clone().requires_grad_()
    last = run(x)[:, -1]
    rows = [
        torch.autograd.grad(last[:, f].sum(), x, retain_graph=True)[0] for f in range(last.shape[1])
    ]
    return torch.stack(rows).square().sum(dim=(0, -1)).sqrt().mean(dim=0).flip(0)


def inputs_times_gradient(run: Run, inputs: Tensor) -> Tensor:
    """How much of the output each input accounts for, which is another question."""
    x = inputs.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(run(x)[:, -1].sum(), x)
    return (gradient * inputs).norm(dim=-1).mean(dim=0).flip(0)


def without_itself(run: Run, inputs: Tensor) -> Tensor:
    """Begins at distance 1, with a zero behind the last."""
    right = measure(run, inputs)
    return torch.cat([right[1:], right.new_zeros(1)])


MISTAKES = (
    Mistake(
        "first-position-first",
        "The entries stand in the order of the positions. Entry k belongs to distance k: the "
        "last input comes first, the first input last. (Was an axis of another meaning flipped?)",
        ordered(lambda result: result),
    ),
    Mistake(
        "first-output",
        "It is the first output that is differentiated, not the last.",
        of(lambda outputs: outputs[:, 0].sum()),
    ),
    Mistake(
        "last-sequence",
        "`[-1]` takes the last sequence of the batch with all its outputs. The last output of "
        "every sequence is asked for: time is axis 1.",
        of(lambda outputs: outputs[-1].sum()),
    ),
    Mistake(
        "feature-for-position",
        "`[..., -1]` takes the last feature of all outputs. The last output with all its features "
        "is asked for: time is axis 1.",
        of(lambda outputs: outputs[..., -1].sum()),
    ),
    Mistake(
        "all-outputs",
        "All outputs are differentiated together. An input then also counts for the outputs at "
        "its own place and before the end; only the last one is asked for.",
        of(lambda outputs: outputs.sum()),
    ),
    Mistake(
        "mean-of-all-outputs",
        "The mean of all outputs is differentiated; only the last output is asked for, and its "
        "sum.",
        of(lambda outputs: outputs.mean()),
    ),
    Mistake(
        "one-output-feature",
        "Only one feature of the last output is differentiated. They are all added up first.",
        of(lambda outputs: outputs[:, -1, 0].sum()),
    ),
    Mistake(
        "last-output-feature",
        "Only the last feature of the output is differentiated. They are all added up first.",
        of(lambda outputs: outputs[:, -1, -1].sum()),
    ),
    Mistake(
        "mean-of-the-features",
        "The mean of the last output's features is differentiated: all results are too small "
        "by the factor 1/d_out. Their sum is asked for.",
        of(lambda outputs: outputs[:, -1].mean(dim=-1).sum()),
    ),
    Mistake(
        "batch-averaged-twice",
        "The batch is averaged twice: the number that is differentiated is a mean over it "
        "already, so each gradient is divided by b, and then the mean is taken again.",
        of(lambda outputs: outputs[:, -1].sum(dim=-1).mean()),
    ),
    Mistake(
        "mean-of-the-last-output",
        "`.mean()` of the last output divides by batch and features before it is "
        "differentiated. Add the features up, and average over the batch only once, at the end.",
        of(lambda outputs: outputs[:, -1].mean()),
    ),
    Mistake(
        "squared-output",
        "The squares of the last output are added up before it is differentiated. The plain sum "
        "of its features is asked for.",
        of(lambda outputs: outputs[:, -1].square().sum()),
    ),
    Mistake(
        "length-of-the-output",
        "The length of the last output is differentiated. The plain sum of its features is "
        "asked for; a length is taken of the gradient.",
        of(lambda outputs: outputs[:, -1].norm(dim=-1).sum()),
    ),
    Mistake(
        "size-of-the-output",
        "The absolute values of the last output are differentiated: some gradients change "
        "their sign. The plain sum is asked for.",
        of(lambda outputs: outputs[:, -1].abs().sum()),
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
        sized(lambda gradient: gradient.sum(dim=-1)),
    ),
    Mistake(
        "mean-with-signs",
        "The numbers of each gradient vector are averaged with their signs. Its Euclidean "
        "length is asked for.",
        sized(lambda gradient: gradient.mean(dim=-1)),
    ),
    Mistake(
        "signs-off-at-the-end",
        "The gradients are added up with their signs, and only the result loses its sign: until "
        "then they may cancel. The length comes first.",
        sized(lambda gradient: gradient.sum(dim=-1), average=lambda sizes: sizes.mean(dim=0).abs()),
    ),
    Mistake(
        "absolute-sum",
        "The absolute values of each gradient vector are added up. The Euclidean length is the "
        "root of the sum of squares.",
        sized(lambda gradient: gradient.abs().sum(dim=-1)),
    ),
    Mistake(
        "absolute-mean",
        "The absolute values of each gradient vector are averaged. The Euclidean length is the "
        "root of the sum of squares.",
        sized(lambda gradient: gradient.abs().mean(dim=-1)),
    ),
    Mistake(
        "squared-length",
        "This is the square of the length: the root is missing.",
        sized(lambda gradient: gradient.square().sum(dim=-1)),
    ),
    Mistake(
        "root-mean-square",
        "The squares are averaged over the features, not added up: too small by √d_in.",
        sized(lambda gradient: gradient.square().mean(dim=-1).sqrt()),
    ),
    Mistake(
        "largest-number",
        "Only the largest number of each gradient vector counts. Its length is asked for.",
        sized(lambda gradient: gradient.abs().amax(dim=-1)),
    ),
    Mistake(
        "one-input-feature",
        "Only the first feature of the inputs counts. The length runs over all of them.",
        sized(lambda gradient: gradient[..., 0].abs()),
    ),
    Mistake(
        "length-along-the-batch",
        "The length is taken along the batch. It runs over the features, the last axis; the "
        "batch is averaged.",
        sized(lambda gradient: gradient.norm(dim=0), average=lambda sizes: sizes.mean(dim=-1)),
    ),
    Mistake(
        "length-along-time",
        "The length is taken along the positions, which leaves one number for each feature. It "
        "runs over the features, the last axis.",
        sized(lambda gradient: gradient.norm(dim=1)),
    ),
    Mistake(
        "length-of-everything",
        "Batch and features go into one length. Each sequence has a length of its own; then "
        "comes the mean over the batch.",
        sized(lambda gradient: gradient.norm(dim=(0, 2)), average=lambda sizes: sizes),
    ),
    Mistake(
        "one-number",
        "`.norm()` without an axis makes one number of everything. The length runs over the "
        "features only, the last axis.",
        sized(lambda g: g.norm(), average=lambda sizes: sizes, order=lambda result: result),
    ),
    Mistake(
        "mean-before-length",
        "The gradients are averaged over the batch before their length is taken: those of "
        "different sequences cancel each other.",
        sized(lambda gradient: gradient.mean(dim=0).norm(dim=-1), average=lambda sizes: sizes),
    ),
    Mistake(
        "sum-before-length",
        "The gradients are added up over the batch before their length is taken. The length "
        "comes first, then the mean.",
        sized(lambda gradient: gradient.sum(dim=0).norm(dim=-1), average=lambda sizes: sizes),
    ),
    Mistake(
        "root-after-the-mean",
        "The mean over the batch is taken of the squares, and the root afterwards. The length of "
        "each gradient, its root included, comes first.",
        sized(
            lambda gradient: gradient.square().sum(dim=-1),
            average=lambda sizes: sizes.mean(dim=0).sqrt(),
        ),
    ),
    Mistake(
        "batch-summed",
        "The lengths are added up over the batch. The mean is asked for.",
        averaged(lambda sizes: sizes.sum(dim=0)),
    ),
    Mistake(
        "largest-sequence",
        "The largest of the batch is taken. The mean is asked for.",
        averaged(lambda sizes: sizes.amax(dim=0)),
    ),
    Mistake(
        "one-sequence",
        "Only the first sequence of the batch counts. The mean over all is asked for.",
        averaged(lambda sizes: sizes[0]),
    ),
    Mistake(
        "batch-kept",
        "There is a row for each sequence, (b, n). The mean over the batch is missing.",
        partial(measure, average=lambda sizes: sizes, order=lambda result: result.flip(1)),
    ),
    Mistake(
        "axis-kept",
        "The numbers are right, but an axis of size 1 is left over from the batch. The result has "
        "the shape (n,).",
        partial(
            measure,
            average=lambda sizes: sizes.mean(dim=0, keepdim=True),
            order=lambda result: result.flip(1),
        ),
    ),
    Mistake(
        "averaged-over-time",
        "The mean runs along the positions, so one number is left for each sequence. It runs "
        "over the batch.",
        averaged(lambda sizes: sizes.mean(dim=1)),
    ),
    Mistake(
        "divided-by-the-nearest",
        "Everything is divided by the entry at distance 0. The lengths themselves are asked for.",
        ordered(lambda result: result.flip(0) / result[-1]),
    ),
    Mistake(
        "divided-by-the-largest",
        "Everything is divided by the largest entry. The lengths themselves are asked for.",
        ordered(lambda result: result.flip(0) / result.max()),
    ),
    Mistake(
        "shares",
        "Everything is divided by the sum, so that the entries sum to one. The lengths "
        "themselves are asked for.",
        ordered(lambda result: result.flip(0) / result.sum()),
    ),
    Mistake(
        "logarithm",
        "The logarithm is returned; a picture takes it by its axis. The lengths themselves are "
        "asked for.",
        ordered(lambda result: result.flip(0).log()),
    ),
    Mistake(
        "off-by-one",
        "Everything stands one place too early: entry 0 is the last input itself, distance 0.",
        without_itself,
    ),
    Mistake(
        "last-input-missing",
        "Entry 0 is missing: the last input itself, at distance 0, counts too.",
        ordered(lambda result: result.flip(0)[1:]),
    ),
    Mistake(
        "times-the-input",
        "The gradient is multiplied with the input. How strongly the output answers to a nudge "
        "is the gradient alone.",
        inputs_times_gradient,
    ),
    Mistake(
        "accumulated",
        "The gradient is collected in the `.grad` of the caller's own inputs, on top of what "
        "the call before left there: `backward()` adds. Work on a copy of the inputs.",
        accumulating,
    ),
)
