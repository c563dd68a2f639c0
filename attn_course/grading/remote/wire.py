"""Plain data as text: what passes between the trusted process and a student's kernel.

JSON for what JSON knows, raw little-endian arrays with dtype and shape for tensors, never
pickle. Whatever is read has been counted and measured before anything is built from it, so
that the worst a message can be is refused.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

MAX_CHARACTERS = 48 * 2**20
"""Characters of one message."""

MAX_NUMBERS = 4_000_000
"""Numbers in one tensor."""

MAX_ITEMS = 50_000
"""Values in one message, those in containers counted."""

MAX_DEPTH = 24
"""Containers in containers."""

MAX_AXES = 32

DTYPES = {
    name: getattr(torch, name)
    for name in (
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
        *("bool", "uint8", "int8", "int16", "int32", "int64"),
    )
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}

PLAIN, LEAF, NODE = 0, 1, 2
"""How a tensor stands to its graph: outside, a leaf that wants a gradient, inside it."""

Encode = Callable[[Any], dict[str, Any]]
Decode = Callable[[dict[str, Any]], Any]


class WireError(ValueError):
    """A value that cannot be sent, or a message that is not one."""


def dumps(message: dict[str, Any]) -> str:
    """The message as text.

    Raises:
        WireError: if it is longer than MAX_CHARACTERS.
    """
    text = json.dumps(message, separators=(",", ":"))
    if len(text) > MAX_CHARACTERS:
        raise WireError(f"a message of {len(text)} characters, more than {MAX_CHARACTERS}")
    return text


def loads(text: str) -> dict[str, Any]:
    """The message that `dumps` wrote.

    Raises:
        WireError: if it is no such message.
    """
    if len(text) > MAX_CHARACTERS:
        raise WireError(f"a message of {len(text)} characters, more than {MAX_CHARACTERS}")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise WireError(f"not a message: {type(error).__name__}") from None
    if not isinstance(message, dict):
        raise WireError("not a message: no object")
    return message


def encode(value: Any, other: Encode) -> Any:
    """`value` as JSON; `other` writes what is no plain data.

    Raises:
        WireError: if there is too much of it. What is nested too deeply is cut off.
    """
    return _Encoder(other).write(value, 0)


def decode(data: Any, other: Decode) -> Any:
    """The value that `encode` wrote; `other` reads what is no plain data.

    Raises:
        WireError: if the data was not written by `encode`, or is too much.
    """
    return _Decoder(other).read(data, 0)


class _Encoder:
    def __init__(self, other: Encode) -> None:
        self.other = other
        self.items = 0

    def write(self, value: Any, depth: int) -> Any:
        self.items += 1
        if self.items > MAX_ITEMS:
            raise WireError(f"more than {MAX_ITEMS} values")
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"f": str(value)}
        if type(value) is int:
            return value if value.bit_length() < 1000 else {"o": "int"}
        if isinstance(value, Tensor):
            return write_tensor(value)
        if isinstance(value, torch.dtype):
            return {"dtype": _NAMES.get(value, "")}
        if depth >= MAX_DEPTH and isinstance(value, tuple | list | dict):
            return {"o": type(value).__name__}
        if isinstance(value, tuple):
            return {"t": [self.write(item, depth + 1) for item in value]}
        if isinstance(value, list):
            return {"l": [self.write(item, depth + 1) for item in value]}
        if isinstance(value, dict):
            pairs = value.items()
            return {"d": [[self.write(k, depth + 1), self.write(v, depth + 1)] for k, v in pairs]}
        number = _number_of_numpy(value)
        return self.other(value) if number is None else self.write(number, depth)


class _Decoder:
    def __init__(self, other: Decode) -> None:
        self.other = other
        self.items = 0

    def read(self, data: Any, depth: int) -> Any:
        self.items += 1
        if self.items > MAX_ITEMS or depth > MAX_DEPTH:
            raise WireError(f"more than {MAX_ITEMS} values, or nested deeper than {MAX_DEPTH}")
        if data is None or type(data) in (bool, int, float, str):
            return data
        if not isinstance(data, dict):
            raise WireError(f"a {type(data).__name__} where a value should be")
        if len(data) == 1:
            (kind, content), *_ = data.items()
            if kind == "T":
                return read_tensor(content)
            if kind == "f":
                return _special_number(content)
            if kind == "dtype":
                return _dtype(content)
            if kind in "tld" and isinstance(content, list):
                return self._container(kind, content, depth)
        return self.other(data)

    def _container(self, kind: str, content: list[Any], depth: int) -> Any:
        if kind == "d":
            return dict(self._pairs(content, depth))
        items = (self.read(item, depth + 1) for item in content)
        return tuple(items) if kind == "t" else list(items)

    def _pairs(self, content: list[Any], depth: int) -> Iterator[tuple[Any, Any]]:
        for pair in content:
            if not isinstance(pair, list) or len(pair) != 2:
                raise WireError("no pair of key and value")
            key = self.read(pair[0], depth + 1)
            if key is not None and not isinstance(key, bool | int | float | str):
                raise WireError("a key that is no plain value")
            yield key, self.read(pair[1], depth + 1)


def write_tensor(value: Tensor, standing: int | None = None) -> dict[str, Any]:
    """A tensor as dtype, shape, bytes in base64, how it stands to its graph, strides if need be."""
    if standing is None:
        standing = PLAIN if not value.requires_grad else LEAF if value.is_leaf else NODE
    with beside_func(), torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        if value.is_nested:
            return {"o": "nested tensor"}
        plain = _unwrapped(value).detach()
        if plain.layout == torch.strided and type(plain) is not Tensor:
            plain = plain.as_subclass(Tensor)
        if plain.numel() > MAX_NUMBERS:
            raise WireError(f"a tensor of {plain.numel()} numbers, shape {tuple(plain.shape)}")
        if plain.device.type == "meta":
            name = _NAMES.get(plain.dtype, "float32")
            return {"T": [name, list(plain.shape), None, standing, None]}
        if plain.is_quantized:
            plain = plain.dequantize()
        if plain.layout != torch.strided:
            plain = plain.to_dense()
        if plain.dtype not in _NAMES:
            return {"o": f"tensor of {plain.dtype}"}
        plain = plain.cpu().resolve_conj().resolve_neg()
        # numpy knows no bfloat16: the same bytes as whole numbers
        same = plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain
        raw = same.numpy().tobytes()
    data = base64.b64encode(raw).decode("ascii")
    return {"T": [_NAMES[plain.dtype], list(plain.shape), data, standing, _strides(plain)]}


def _strides(value: Tensor) -> list[int] | None:
    """How it lies in memory, where that is not row by row: `view` works on some of them only."""
    usual = value.is_contiguous() or _extent(value.shape, value.stride()) > MAX_NUMBERS
    return None if usual else list(value.stride())


def _extent(shape: Sequence[int], strides: Sequence[int]) -> int:
    """The numbers from the first to the last in memory."""
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def beside_func() -> contextlib.AbstractContextManager[Any]:
    """Outside the transforms of torch.func (grad, vmap), if the caller is inside one."""
    functorch = torch._C._functorch  # type: ignore[attr-defined]
    if functorch.peek_interpreter_stack() is None:
        return contextlib.nullcontext()
    return temporarily_clear_interpreter_stack()


def _unwrapped(value: Tensor) -> Tensor:
    """The tensor inside those that torch.func wraps around it."""
    functorch = torch._C._functorch  # type: ignore[attr-defined]
    while functorch.is_functorch_wrapped_tensor(value):
        if functorch.is_batchedtensor(value):
            raise WireError("what is called here cannot be called under torch.vmap")
        value = functorch.get_unwrapped(value)
    return value


def read_tensor(content: Any) -> Tensor:
    """The tensor that `write_tensor` wrote, every field of it checked first.

    Raises:
        WireError: if the fields do not describe a tensor within the limits.
    """
    if not isinstance(content, list) or len(content) != 5:
        raise WireError("no tensor: five fields are needed")
    name, shape, data, standing, strides = content
    dtype = _dtype(name)
    if not isinstance(shape, list) or len(shape) > MAX_AXES:
        raise WireError("no tensor: its shape is no short list")
    if not all(type(size) is int and 0 <= size <= 2**40 for size in shape):
        raise WireError("no tensor: a size is no natural number")
    if standing not in (PLAIN, LEAF, NODE):
        raise WireError("no tensor: it stands nowhere in a graph")
    if data is None:
        return torch.empty(shape, dtype=dtype, device="meta")
    value = _laid_out(_from_bytes(dtype, shape, data), strides)
    wants = standing != PLAIN and (dtype.is_floating_point or dtype.is_complex)
    if wants:
        value.requires_grad_()
        value.inside_graph = standing == NODE  # type: ignore[attr-defined]
    return value


def _from_bytes(dtype: torch.dtype, shape: list[int], data: Any) -> Tensor:
    count = math.prod(shape)
    if count > MAX_NUMBERS:
        raise WireError(f"a tensor of {count} numbers, more than {MAX_NUMBERS}")
    try:
        raw = base64.b64decode(data, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise WireError("no tensor: its numbers are not in base64") from None
    if len(raw) != count * dtype.itemsize:
        raise WireError(f"no tensor: {len(raw)} bytes for {count} numbers of {dtype}")
    if not count:
        return torch.empty(shape, dtype=dtype)
    if dtype == torch.bool:
        # any other byte than 0 and 1 would be a truth value that is neither
        return (torch.frombuffer(bytearray(raw), dtype=torch.uint8) != 0).reshape(shape)
    return torch.frombuffer(bytearray(raw), dtype=dtype).reshape(shape).clone()


def _laid_out(value: Tensor, strides: Any) -> Tensor:
    """The same numbers at these distances in memory; as they are, if some would overlap."""
    if strides is None or not value.numel():
        return value
    if not isinstance(strides, list) or len(strides) != value.ndim:
        raise WireError("no tensor: it has not a stride for each axis")
    if not all(type(stride) is int and 0 <= stride <= MAX_NUMBERS for stride in strides):
        raise WireError("no tensor: a stride is no natural number within the limits")
    if _extent(value.shape, strides) > MAX_NUMBERS:
        raise WireError(f"a tensor that takes the room of more than {MAX_NUMBERS} numbers")
    # along an axis of stride 0 there is one number, seen again and again
    once = value[tuple(slice(None if stride else 1) for stride in strides)]
    try:
        laid = torch.empty_strided(once.shape, strides, dtype=value.dtype).copy_(once)
    except RuntimeError:
        return value
    return laid.expand(value.shape)


def _dtype(name: Any) -> torch.dtype:
    if not isinstance(name, str) or name not in DTYPES:
        raise WireError("no dtype that is known here")
    return DTYPES[name]


def _special_number(text: Any) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise WireError("no special number")
    return float(text)


def _number_of_numpy(value: Any) -> bool | int | float | complex | None:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic | numpy.ndarray) or value.ndim > 0:
        return None
    number = value.item()
    return number if type(number) in (bool, int, float) else None
