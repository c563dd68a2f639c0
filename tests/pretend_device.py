"""A device that is not there, for machines without a GPU.

Its tensors are on "meta" for everybody who asks, and have values all the same: each wraps a
tensor of the CPU, on which it computes. As on a GPU, an operation that mixes devices raises, and
so does NumPy; only an index may stay behind, and a scalar.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

DEVICE = torch.device("meta")
MAY_MIX = {"aten::_to_copy", "aten::copy_", "aten::_pack_padded_sequence"}
MAY_BE_INDEXED = {"aten::index", "aten::index_put", "aten::index_put_"}


class Elsewhere(Tensor):
    """A tensor that says that it is on `DEVICE`; `inner` has its values."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Elsewhere":
        """Make a tensor of the inner one's form."""
        made = Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=DEVICE,
            requires_grad=inner.requires_grad,
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _computed(func, args, kwargs or {})

    def __tensor_flatten__(self):  # with it `Module.to` swaps parameters and keeps ties
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return Elsewhere(inner["inner"])

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        # a list would become an index on "meta", without values
        keys = tuple(torch.tensor(k) if isinstance(k, list) else k for k in keys)
        return super().__getitem__(keys if isinstance(key, tuple) else keys[0])

    def __format__(self, spec):
        return format(self.inner, spec)

    def tolist(self):
        return self.inner.tolist()


class _Everywhere(TorchDispatchMode):
    """Sees what no tensor of `DEVICE` takes part in, so that tensors can be made on it."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _computed(func, args, kwargs or {})


@contextmanager
def pretended() -> Iterator[torch.device]:
    """Have a device to which tensors and modules can be moved inside the block."""
    with _Everywhere(), sdpa_kernel(SDPBackend.MATH):
        yield DEVICE


def _computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, Elsewhere)]
    _refuse_to_mix(func, args, tensors, there)
    to = kwargs.get("device")
    on_device = bool(there) if to is None else torch.device(to) == DEVICE
    if to is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    inner = tree_map_only(Elsewhere, lambda tensor: tensor.inner, (args, kwargs))
    found = func(*inner[0], **inner[1])
    if torch.Tag.inplace_view in func.tags:  # the wrapper takes the new form, too
        with no_dispatch():
            func(*args, **kwargs)
        return args[0]
    if not on_device:
        return args[0] if func._schema.name == "aten::copy_" else found
    if func._schema.name == "aten::_pack_padded_sequence":
        return Elsewhere(found[0]), found[1]  # the sizes of its steps stay on the CPU
    known = {id(tensor.inner): tensor for tensor in there}  # in place: the same tensor comes back
    return tree_map(lambda x: _moved(x, known) if isinstance(x, Tensor) else x, found)


def _moved(found: Tensor, known: dict[int, Elsewhere]) -> Elsewhere:
    return known[id(found)] if id(found) in known else Elsewhere(found)


def _refuse_to_mix(func: Any, args: Any, tensors: list[Tensor], there: list[Elsewhere]) -> None:
    name = func._schema.name
    left = [tensor for tensor in tensors if tensor.ndim and not isinstance(tensor, Elsewhere)]
    indexed = name in MAY_BE_INDEXED and isinstance(args[0], Elsewhere)
    if there and left and name not in MAY_MIX and not indexed:
        raise RuntimeError(f"{name}: tensors on {DEVICE} and on {left[0].device}")
