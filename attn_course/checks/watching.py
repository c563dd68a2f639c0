"""Which of torch's functions are called while an answer runs, whatever name they are called by."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


@contextlib.contextmanager
def watching() -> Iterator[set[str]]:
    """Gather the names of torch's functions and operations that are called meanwhile."""
    found: set[str] = set()
    with _Functions(found), _operations(found):
        yield found


class _Functions(TorchFunctionMode):
    """Notes which functions are called."""

    def __init__(self, found: set[str]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.found.add(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def _operations(found: set[str]) -> Iterator[None]:
    """Note which operations are called below the functions, by way of `torch.ops`.

    A dispatch mode would see all of them, but importing it takes a second.
    """
    kinds: tuple[Any, ...] = (torch._ops.OpOverloadPacket, torch._ops.OpOverload)
    former = [kind.__call__ for kind in kinds]

    def noting(call: Any) -> Any:
        def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
            found.add(str(self).rpartition("aten.")[2].partition(".")[0])
            return call(self, *args, **kwargs)

        return noted

    for kind, call in zip(kinds, former, strict=True):
        kind.__call__ = noting(call)
    try:
        yield
    finally:
        for kind, call in zip(kinds, former, strict=True):
            kind.__call__ = call
