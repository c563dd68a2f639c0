"""Probes for gradients: a right value whose gradient is lost cannot be trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.exercise import Answer, Output, Stage, tensors_in
from attn_course.sentences import Spoken, say

LOST_GRADIENT = (
    "The values are right, but the gradient is not: what it should reach would not be trained."
)

CHANGED_IN_PLACE = "has been modified by an inplace operation"
"""What autograd says of a value that was written over though it is needed, and of nothing else."""


def input_gradients(answer: Answer, *args: Any) -> Any:
    """The gradients of an answer's results with respect to each floating argument.

    What is differentiated is the sum of squares of all that the answer returns. An argument
    that no gradient reaches gets zeros. One gradient alone is returned bare, several as a tuple.
    """
    fresh = [a.detach().clone().requires_grad_() if _is_floating(a) else a for a in args]
    inputs = [a for a in fresh if _is_floating(a)]
    gradients = gradients_at(inputs, tensors_in(answer(*fresh)))
    first, *more = gradients
    return gradients if more else first


def gradients_at(inputs: Sequence[Tensor], results: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """The gradients of the sum of squares of `results`: zeros for an input that none reaches."""
    gradients = tuple(torch.zeros_like(a) for a in inputs)
    results = [t for t in results if t.requires_grad]
    if results:
        found = torch.autograd.grad(_sum_of_squares(results), inputs, allow_unused=True)
        for zeros, gradient in zip(gradients, found, strict=True):
            if gradient is not None:
                zeros += gradient  # an embedding may give a sparse one
    return gradients


def gradient_stage(
    draw: Callable[[Generator], Iterable[tuple[Any, ...]]],
    inputs: tuple[Spoken, ...],
    axes: dict[str, str],
) -> Stage:
    """A stage "gradient": the gradient must reach every floating argument, and be right.

    Args:
        draw: gives the probes, as for any stage.
        inputs: the names of the answer's arguments.
        axes: for each floating argument, in order, its axes, such as `{"query": "b i d"}`.
    """
    return Stage(
        "gradient",
        draw,
        LOST_GRADIENT,
        call=input_gradients,
        outputs=tuple(gradient_of(name, names) for name, names in axes.items()),
        inputs=inputs,
    )


def gradient_of(name: str, axes: str = "") -> Output:
    """What a stage calls the gradient that reaches an argument or a weight."""
    return Output(say("gradient of {name}", name=name), axes)


def _sum_of_squares(tensors: Iterable[Tensor]) -> Tensor:
    return torch.stack([tensor.square().sum() for tensor in tensors]).sum()


def _is_floating(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()
