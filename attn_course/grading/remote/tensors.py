"""Tensors in arguments and results: found, replaced, differentiated, compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from . import wire


def tensors_of(value: Any) -> list[Tensor]:
    """All tensors in nested containers, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


def replaced(value: Any, tensors: Iterator[Tensor]) -> Any:
    """The same value with its tensors taken from `tensors`, in order."""
    return mapped(value, lambda _: next(tensors))


def mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same containers with other tensors in them."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return value


def gradients(
    pairs: Sequence[tuple[Tensor, Tensor]], wanted: Sequence[Tensor], *, everything: bool
) -> Sequence[Tensor | None]:
    """The gradients of `wanted`, from pairs of a result and its gradient.

    everything: fill in the gradients of all other leaves too, as `.backward()` does.
    """
    if not pairs:
        return [None] * len(wanted)
    outputs, grads = zip(*pairs, strict=True)
    if not everything:
        return (
            torch.autograd.grad(outputs, wanted, grads, allow_unused=True, retain_graph=True)
            if wanted
            else []
        )
    # what lies over there and belongs to nobody here gets its gradient too, as it would have
    former = [t.grad for t in wanted]
    for t in wanted:
        t.grad = None
    torch.autograd.backward(outputs, grads, retain_graph=True)
    found = [t.grad for t in wanted]
    for t, grad in zip(wanted, former, strict=True):
        t.grad = grad
    return found


def fitting(gradient: Any, tensor: Tensor) -> Tensor | None:
    """A gradient that has come over the line, if it can be that of the tensor.

    Raises:
        WireError: if it cannot.
    """
    if gradient is None:
        return None
    if not isinstance(gradient, Tensor) or gradient.shape != tensor.shape:
        raise wire.WireError("a gradient that does not fit its tensor")
    return gradient.detach().to(tensor.dtype)


def differs(now: Tensor, before: Tensor) -> bool:
    """Whether a tensor was altered; NaN counts as equal to NaN."""
    if now.shape != before.shape or now.dtype != before.dtype:
        return True
    return not torch.equal(now.detach().nan_to_num(), before.nan_to_num())


class Handed:
    """The tensors that a call hands over: as they came, as they are used, what became of them."""

    def __init__(self) -> None:
        self.used: list[Tensor] = []
        self.before: list[Tensor] = []
        self.leaves: list[Tensor] = []
        self.graded: dict[int, Tensor] = {}

    def prepare(self, value: Any) -> Any:
        """The same arguments, each tensor a leaf or inside a graph as it was over there."""
        if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
            used = value.clone() if getattr(value, "inside_graph", False) else value
            self.before.append(value.detach().clone())
            self.used.append(used)
            if value.requires_grad:
                self.leaves.append(value)
            return used
        if isinstance(value, tuple | list):
            return type(value)(self.prepare(item) for item in value)
        if isinstance(value, dict):
            return {key: self.prepare(item) for key, item in value.items()}
        return value

    def grade(self, grads: Any) -> None:
        """Give those their gradients that had one."""
        for place, grad in grads or ():
            tensor = self.used[place]
            tensor.grad = fitting(grad, tensor)
            self.graded[place] = grad.clone()

    def changes(self) -> dict[str, Any]:
        """Which of them were altered in place, or were given a gradient."""
        found: dict[str, Any] = {}
        for place, (now, before) in enumerate(zip(self.used, self.before, strict=True)):
            if differs(now, before):
                found.setdefault("altered", []).append([place, wire.write_tensor(now, wire.PLAIN)])
            former = self.graded.get(place)
            if (
                now.is_leaf
                and now.grad is not None
                and (former is None or differs(now.grad, former))
            ):
                grad = wire.write_tensor(now.grad, wire.PLAIN)
                found.setdefault("graded", []).append([place, grad])
        return found
