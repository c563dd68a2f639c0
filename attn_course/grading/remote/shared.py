"""Modules that exist in both processes: their tensors, gradients and modes kept alike.

Each message carries what has changed since the last one, in either direction: a student's own
update of the weights, the gradients that a loss left, an optimizer's step, `eval()`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from . import wire


@dataclass
class _Seen:
    """A tensor as the other side knows it."""

    data: Tensor
    grad: Tensor | None
    wants_grad: bool


class SharedModules:
    """The modules that both sides know, by key; keys that begin with `side` are of this side.

    A module of this side keeps its tensors' shapes, whatever the other side says.
    """

    def __init__(self, side: str) -> None:
        self._side = side
        self._modules: dict[str, nn.Module] = {}
        self._seen: dict[str, dict[str, _Seen]] = {}
        self._modes: dict[str, list[bool]] = {}

    def add(self, key: str, module: nn.Module) -> None:
        """A module that was just described to the other side, or by it."""
        self._modules[key] = module
        self._remember(key)

    def clear(self) -> None:
        """Forget all modules."""
        self._modules.clear()
        self._seen.clear()
        self._modes.clear()

    def place_of(self, tensor: Tensor) -> list[str] | None:
        """Where a tensor is: the module's key and the tensor's name in it."""
        for key, module in self._modules.items():
            for name, own in named_tensors(module).items():
                if own is tensor:
                    return [key, name]
        return None

    def at(self, key: str, name: str) -> Tensor:
        """The tensor at a place that `place_of` gave."""
        return named_tensors(self._modules[key])[name]

    def changes(self) -> dict[str, Any]:
        """What has changed on this side since the last message; it counts as told."""
        found = {}
        for key, module in self._modules.items():
            seen = self._seen[key]
            told = [
                [name, *_told(now)]
                for name, now in named_tensors(module).items()
                if name not in seen or _changed(now, seen[name])
            ]
            modes = [layer.training for layer in module.modules()]
            if told or modes != self._modes[key]:
                found[key] = {"tensors": told, "modes": modes}
                self._remember(key)
        return found

    def apply(self, changes: Any) -> None:
        """Take over what has changed on the other side.

        Raises:
            WireError: if it does not fit the modules here.
        """
        try:
            for key, change in changes.items():
                if key in self._modules:  # else let go of meanwhile
                    self._apply_to(key, change)
        except (AttributeError, LookupError, TypeError, RuntimeError) as error:
            raise wire.WireError(f"changes that do not fit: {error}") from None

    def _apply_to(self, key: str, change: dict[str, Any]) -> None:
        module = self._modules[key]
        tensors = named_tensors(module)
        for name, data, grad, wants in change["tensors"]:
            if name in tensors:
                gradient = None if grad is None else wire.read_tensor(grad["T"])
                self._take(key, tensors[name], wire.read_tensor(data["T"]), gradient)
                if tensors[name].is_leaf:
                    tensors[name].requires_grad_(wants is True)
        for layer, mode in zip(module.modules(), change["modes"], strict=False):
            layer.training = mode is True
        self._remember(key)

    def _take(self, key: str, tensor: Tensor, value: Tensor, grad: Tensor | None) -> None:
        alike = value.shape == tensor.shape and value.dtype == tensor.dtype
        if not alike and key.startswith(self._side) and self._side == "t":
            raise wire.WireError(f"{tuple(value.shape)} for a tensor of {tuple(tensor.shape)}")
        if grad is not None and grad.shape != value.shape:
            raise wire.WireError("a gradient that does not fit its tensor")
        if not alike:
            tensor.data = value
        elif not torch.equal(value, tensor):
            # in place: graphs that hold the former value notice, and aliases follow
            with torch.no_grad():
                tensor.copy_(value)
        tensor.grad = None if grad is None else grad.to(tensor.dtype)

    def _remember(self, key: str) -> None:
        module = self._modules[key]
        self._seen[key] = {
            name: _Seen(t.detach().clone(), _copy(t.grad), t.requires_grad)
            for name, t in named_tensors(module).items()
        }
        self._modes[key] = [layer.training for layer in module.modules()]


def named_tensors(module: nn.Module) -> dict[str, Tensor]:
    """A module's parameters and buffers, each by the first of its names."""
    return dict([*module.named_parameters(), *module.named_buffers()])


def _told(tensor: Tensor) -> tuple[Any, Any, bool]:
    grad = None if tensor.grad is None else wire.write_tensor(tensor.grad, wire.PLAIN)
    return wire.write_tensor(tensor, wire.PLAIN), grad, tensor.requires_grad


def _changed(now: Tensor, seen: _Seen) -> bool:
    if now.requires_grad != seen.wants_grad or (now.grad is None) != (seen.grad is None):
        return True
    if now.grad is not None and seen.grad is not None and not _equal(now.grad, seen.grad):
        return True
    return not _equal(now, seen.data)


def _copy(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach().clone()


def _equal(one: Tensor, other: Tensor) -> bool:
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and torch.equal(one.detach().nan_to_num(), other.nan_to_num())
