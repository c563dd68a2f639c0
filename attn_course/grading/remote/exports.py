"""Values and objects on their way: data is written out, objects are named by a key.

An object stays where it is. The other side gets a stand-in for it (see `forms`), and a stand-in
that is sent back is the object itself again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from . import forms, wire
from .errors import read_error, write_error
from .shared import SharedModules, named_tensors

_CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.Sequential)


class Unsent:
    """Stands for a value that is not sent; the class that it gets has the value's name."""


class Exchange:
    """What the two sides know of each other's objects, by key.

    Args:
        peer: what stand-ins are to call.
        side: the first letter of the keys of this side's own objects.
        modules: whether modules, containers and optimizers of the other side are let in; else
            each is but an object of that name.
    """

    def __init__(self, peer: forms.OtherSide, side: str, *, modules: bool = True) -> None:
        self._peer = peer
        self._lets_in = modules
        self._side = side
        self._count = 0
        self._keys: dict[int, str] = {}
        self.objects: dict[str, Any] = {}
        self.modules = SharedModules(side)

    def clear(self) -> None:
        """Forget all objects."""
        self.objects.clear()
        self._keys.clear()
        self.modules.clear()

    def new_key(self) -> str:
        """A key that this side has not used yet."""
        self._count += 1
        return f"{self._side}{self._count}"

    def encode(self, value: Any) -> Any:
        """The value as JSON."""
        return wire.encode(value, self._export)

    def decode(self, data: Any) -> Any:
        """The value that `encode` wrote on the other side.

        Raises:
            WireError: if it is none, or names what is not there.
        """
        return wire.decode(data, self._import)

    def _export(self, value: Any) -> dict[str, Any]:
        own = _own_key(value)
        if own is not None:
            return own
        if id(value) in self._keys:
            return {"R": self._keys[id(value)]}
        error = write_error(value)
        if error is not None:
            return error
        if type(value) in _CONTAINERS:  # it is built over there, of stand-ins
            parts = dict(value.named_children())
            return {"parts": self.encode(parts), "kind": type(value).__name__}
        key = self.new_key()
        self.objects[key], self._keys[id(value)] = value, key
        if isinstance(value, nn.Module):
            return {"R": key, "module": self._describe(key, value)}
        if isinstance(value, torch.Generator):
            state = self.encode(value.get_state())
            return {"R": key, "kind": "Generator", "generator": state}
        if isinstance(value, Optimizer):
            return {"R": key, "optimizer": self._describe_optimizer(value)}
        return {"R": key, "kind": type(value).__name__, "calls": callable(value)}

    def _describe(self, key: str, module: nn.Module) -> dict[str, Any]:
        self.modules.add(key, module)
        tensors = [(t, t.grad) for t in named_tensors(module).values()]
        return {**forms.describe_module(module), "tensors": self.encode(tensors)}

    def _describe_optimizer(self, optimizer: Optimizer) -> list[Any]:
        loose = [p for g in optimizer.param_groups for p in g["params"]]
        loose = [p for p in loose if self.modules.place_of(p) is None]
        holder = nn.ParameterList(loose) if loose else None
        held = self._export(holder) if holder is not None else None
        groups = [
            {
                "params": [self.modules.place_of(p) for p in group["params"]],
                "options": self.encode({k: v for k, v in group.items() if k != "params"}),
            }
            for group in optimizer.param_groups
        ]
        return [held, groups]

    def _import(self, data: dict[str, Any]) -> Any:
        if isinstance(data.get("o"), str):
            return _opaque(data["o"])
        if isinstance(data.get("error"), dict):
            return read_error(data["error"])
        if not self._lets_in and data.keys() & {"parts", "module", "optimizer"}:
            described = data.get("module")
            kind = described.get("class") if isinstance(described, dict) else data.get("kind")
            return _opaque(kind)
        if "parts" in data:
            return self._container(data)
        key = data.get("R")
        if not isinstance(key, str):
            raise wire.WireError("a value of no known kind")
        if key in self.objects:
            return self._part(self.objects[key], data.get("path"))
        if key.startswith(self._side):
            raise wire.WireError("an object that is not there")
        try:
            value = self._stand_in(key, data)
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise wire.WireError(f"an object that does not hang together: {error}") from None
        self.objects[key], self._keys[id(value)] = value, key
        return value

    def _container(self, data: dict[str, Any]) -> nn.Module:
        kinds = {kind.__name__: kind for kind in _CONTAINERS}
        parts, kind = self.decode(data["parts"]), kinds.get(str(data.get("kind")))
        modules = isinstance(parts, dict) and all(isinstance(p, nn.Module) for p in parts.values())
        if kind is None or not modules:
            raise wire.WireError("a container of no modules")
        made = kind()
        for name, part in parts.items():
            made.add_module(str(name), part)
        return made

    def _part(self, known: Any, path: Any) -> Any:
        if not path:
            return known
        parts = dict(known.named_modules()) if isinstance(known, nn.Module) else {}
        if path not in parts:
            raise wire.WireError("a part that is not there")
        return parts[path]

    def _stand_in(self, key: str, data: dict[str, Any]) -> Any:
        if "generator" in data and self._side == "k":
            # a state is believed of the trusted side only: torch does not look at what is in it
            generator = torch.Generator()
            generator.set_state(self.decode(data["generator"]))
            return generator
        if "module" in data:
            described = data["module"]
            module = forms.build_module(
                self._peer, key, described, self.decode(described["tensors"])
            )
            self.modules.add(key, module)
            return module
        if "optimizer" in data:
            held, groups = data["optimizer"]
            if held is not None:
                self._import(held)
            found = [
                {
                    **self.decode(group["options"]),
                    "params": [self.modules.at(*place) for place in group["params"]],
                }
                for group in groups
            ]
            return forms.RemoteOptimizer(self._peer, key, found)
        form = forms.RemoteFunction if data.get("calls") is True else forms.RemoteObject
        return type(str(data.get("kind"))[:60] or "object", (form,), {})(self._peer, key)


def _opaque(kind: Any) -> Unsent:
    return type(str(kind or "object")[:60], (Unsent,), {})()


def _own_key(value: Any) -> dict[str, Any] | None:
    """The key of something of the other side's that is sent back to it."""
    if isinstance(value, forms.RemoteModule):
        return {"R": value.__dict__["_key"], "path": value.__dict__["_path"]}
    if isinstance(value, forms.RemoteObject | forms.RemoteOptimizer):
        return {"R": value.__dict__["_key"]}
    return None
