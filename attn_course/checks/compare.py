"""Compare an answer's value with the reference's and say where they differ, axis by axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attn_course.checks.runner import Opaque

# (relative to the value, relative to the largest expected value); the reference is float64.
TOLERANCE = {
    torch.float64: (1e-7, 1e-8),
    torch.float32: (1e-4, 1e-5),
    torch.float16: (1e-2, 5e-3),
    torch.bfloat16: (5e-2, 3e-2),
}

SHOWN_NUMBERS = 16
"""Inputs and results with at most this many numbers are shown in full."""

LONGEST_TEXT = 240
"""Characters of a text that are shown: the names and shapes of a layer's parameters fit in."""

LEAST = 0.01
"""Expected values that are smaller throughout count as this large: where terms of about one cancel
to nearly nothing, a right answer's last digits are all that is left of them.
"""

NEAR = 2e-3
"""Relative to the value, and to the usual one: what half precision is off by at most."""

AXIS_WORDS = {
    "b": "batch entry",
    "h": "head",
    "i": "query position",
    "j": "key position",
    "n": "position",
    "d": "feature",
    "c": "class",
    "v": "vocabulary entry",
}


@dataclass(frozen=True)
class Expected:
    """What one value of an answer is held against: its name, its axes, the reference's value.

    slack: what is let pass beyond the tolerance, where the dtype cannot resolve the value.
    """

    name: str
    axes: tuple[str, ...]
    value: Any
    slack: float = 0.0


def problem(actual: Any, expected: Expected, dtype: torch.dtype) -> str | None:
    """The first thing that is wrong with `actual`, in words; None if it is right.

    Args:
        actual: what the answer gave.
        expected: the reference's value, in float64, with its name and axes.
        dtype: the floating dtype of the inputs, which decides the tolerance.
    """
    if not isinstance(expected.value, Tensor):
        return _plain_problem(actual, expected)
    return (
        _kind_problem(actual, expected, dtype)
        or _shape_problem(actual, expected)
        or _value_problem(actual, expected, dtype)
    )


def same(one: Any, other: Any, dtype: torch.dtype) -> bool:
    """Whether two answers gave the same value, NaN and infinities included."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        alike = one.shape == other.shape and one.device == other.device
        alike = alike and (one.dtype == torch.bool) == (other.dtype == torch.bool)
        alike = alike and _is_coarser(one, dtype) == _is_coarser(other, dtype)
        alike = alike and not (one.is_complex() or other.is_complex())
        return alike and one.device.type != "meta" and bool(close(one, other, dtype).all())
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(
            same(a, b, dtype) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return False
    if is_number(one) and is_number(other):
        return bool(close(_scalar(one), _scalar(other), dtype))
    return type(one) is type(other) and one == other


def close(actual: Tensor, expected: Tensor, dtype: torch.dtype, slack: float = 0.0) -> Tensor:
    """Elementwise: equal up to what `dtype` can resolve; NaN equals NaN."""
    if not expected.is_floating_point() and not actual.is_floating_point():
        return actual.to(torch.int64) == expected.to(torch.int64)
    relative, of_largest = TOLERANCE.get(dtype, TOLERANCE[torch.float32])
    target = expected.to(torch.float64)
    finite = target[target.isfinite()]
    largest = finite.abs().max().item() if finite.numel() else 0.0
    return torch.isclose(
        actual.to(torch.float64),
        target,
        rtol=relative,
        atol=of_largest * (max(largest, LEAST) if largest else 1.0) + slack,
        equal_nan=True,
    )


def is_number(value: Any) -> bool:
    """Whether `value` is a number of Python or numpy, no truth value and no array."""
    if isinstance(value, bool | str | Tensor) or getattr(value, "ndim", 0) > 0:
        return False
    return hasattr(value, "__float__")


def _scalar(value: Any) -> Tensor:
    return torch.tensor(float(value), dtype=torch.float64)


def _plain_problem(actual: Any, expected: Expected) -> str | None:
    if is_number(expected.value):
        if _holds_one(actual):
            actual = actual.item()
        if not is_number(actual):
            missing = ": is there a `return`?" if actual is None else ""
            return f"{expected.name} must be a number, got {describe(actual)}{missing}"
        if close(_scalar(actual), _scalar(expected.value), torch.float32):
            return None
        return f"{expected.name} is {number(actual)}, expected {number(expected.value)}"
    if _holds_one(actual) and isinstance(expected.value, bool):
        actual = bool(actual)
    if type(actual) is type(expected.value) and actual == expected.value:
        return None
    missing = ": is there a `return`?" if actual is None else ""
    return f"{expected.name} is {describe(actual)}, expected {expected.value!r}{missing}"


def _holds_one(value: Any) -> bool:
    return isinstance(value, Tensor) and value.numel() == 1 and value.device.type != "meta"


def _kind_problem(actual: Any, expected: Expected, dtype: torch.dtype) -> str | None:
    target: Tensor = expected.value
    if not isinstance(actual, Tensor):
        return f"{expected.name} must be a tensor, got {describe(actual)}{_kind_hint(actual)}"
    if actual.device != target.device:
        return (
            f"{expected.name} is on device {actual.device}, but the inputs are on {target.device}"
        )
    dtype_problem = wrong_dtype(actual, target, dtype)
    return f"{expected.name} has dtype {actual.dtype}, {dtype_problem}" if dtype_problem else None


def wrong_dtype(actual: Tensor, target: Tensor, dtype: torch.dtype) -> str | None:
    """What is wrong with the dtype of `actual`, where the inputs have `dtype`, in words."""
    if target.is_floating_point() and not actual.is_floating_point():
        return f"expected {dtype}"
    if target.dtype == torch.bool and actual.dtype != torch.bool:
        return "expected torch.bool (True: may attend)"
    if not target.is_floating_point() and (actual.is_floating_point() or actual.is_complex()):
        return f"expected {target.dtype}"
    if _is_coarser(actual, dtype):
        return f"which is coarser than the inputs' {dtype}"
    return None


def _is_coarser(value: Tensor, dtype: torch.dtype) -> bool:
    return value.is_floating_point() and torch.finfo(value.dtype).eps > torch.finfo(dtype).eps


def _kind_hint(actual: Any) -> str:
    if actual is None:
        return ": is there a `return`?"
    if is_number(actual):
        return ": a number has lost its gradient, keep the tensor"
    if isinstance(actual, tuple) and actual:
        return ": torch.stack makes one tensor of several"
    if _type_name(actual) == "ndarray":
        return ": an array of numpy has lost its gradient, keep the tensor"
    return ""


def _shape_problem(actual: Tensor, expected: Expected) -> str | None:
    want, got = tuple(expected.value.shape), tuple(actual.shape)
    if got == want:
        return None
    axes = expected.axes[max(0, len(expected.axes) - len(want)) :]
    names = f" = ({', '.join(axes)})" if len(axes) == len(want) > 0 else ""
    return f"{expected.name} has shape {got}, expected {want}{names}{_shape_hint(got, want)}"


def _shape_hint(got: tuple[int, ...], want: tuple[int, ...]) -> str:
    if sorted(got) == sorted(want):
        return ": the right sizes in another order, so two axes are exchanged"
    if [size for size in got if size != 1] == [size for size in want if size != 1]:
        return ": the same up to axes of size 1"
    if got in [want[:k] + want[k + 1 :] for k in range(len(want))]:
        return ": one axis has been summed or indexed away"
    if len(got) < len(want) and math.prod(got) == math.prod(want):
        return ": as many numbers as expected, but axes have been joined into one"
    return ""


def _value_problem(actual: Tensor, expected: Expected, dtype: torch.dtype) -> str | None:
    target: Tensor = expected.value
    right = close(actual, target, dtype, expected.slack)
    if bool(right.all()):
        return None
    lost = (~actual.isfinite() & target.isfinite()).sum().item()
    if lost:
        kind = "NaN" if actual.isnan().any() else "infinite"
        return f"{expected.name} is {kind} at {lost} of {actual.numel()} places"
    pattern = _relation(actual, target, dtype) or _by_axis(right, expected.axes)
    return f"{expected.name} is wrong" + (f": {pattern}" if pattern else "")


def _relation(actual: Tensor, target: Tensor, dtype: torch.dtype) -> str | None:
    """A simple relation that holds everywhere, such as a factor or a transposition."""
    if not target.is_floating_point():
        if target.dtype == torch.bool and torch.equal(actual, ~target):
            return "True and False are exchanged"
        return None
    a, t = actual.to(torch.float64), target.to(torch.float64)
    square = t.ndim >= 2 and t.shape[-1] == t.shape[-2] > 1
    if square and bool(close(a.mT, t, dtype).all()):
        return "it is the transpose of what is expected (last two axes exchanged)"
    if a.numel() < 2:
        return None
    if _is_near(a, t):
        return (
            "right to three digits and no further: is something rounded on the way (half "
            "precision?), approximated, or a small constant added?"
        )
    factor = (a * t).sum() / (t * t).sum() if bool((t != 0).any()) else torch.tensor(0.0)
    if bool(factor != 0) and bool(close(a, factor * t, dtype).all()):
        return f"it is {number(factor)} times what is expected, everywhere"
    offset = (a - t).mean()
    if bool(close(a, t + offset, dtype).all()):
        return f"it is what is expected plus {number(offset)}, everywhere"
    for axis in range(t.ndim):
        if t.shape[axis] > 1 and bool(close(a.flip(axis), t, dtype).all()):
            return f"its order along axis {axis} is reversed"
    return None


def _is_near(actual: Tensor, target: Tensor) -> bool:
    """Whether each number is right but for its last digits, though not for a float32."""
    finite = target[target.isfinite()].abs()
    usual = finite.median().item() if finite.numel() else 0.0  # one huge number is no measure
    return bool(torch.isclose(actual, target, rtol=NEAR, atol=NEAR * usual).all())


def _by_axis(right: Tensor, axes: Sequence[str]) -> str | None:
    """Which positions, heads, samples are right: the axis that separates best is named."""
    if right.ndim != len(axes):
        axes = ["…"] * (right.ndim - len(axes)) + list(axes)[-right.ndim :] if right.ndim else []
    for axis, name in enumerate(axes):
        others = [k for k in range(right.ndim) if k != axis]
        whole = right.all(dim=others) if others else right
        size = whole.numel()
        good = whole.nonzero().flatten().tolist()
        if size > 1 and 0 < len(good) < size:
            bad = [k for k in range(size) if k not in good]
            return _split_in_words(_axis_word(axis, name), good, bad)
    share = right.to(torch.float64).mean().item()
    return f"{share:.0%} of its numbers are right, spread over all axes" if share else None


def _axis_word(axis: int, name: str) -> str:
    """How an index along an axis is called: a name of several letters speaks for itself."""
    spoken = name.replace("_", " ") if len(name) > 1 else f"index along axis {axis}"
    return AXIS_WORDS.get(name, spoken)


def _split_in_words(word: str, good: list[int], bad: list[int]) -> str:
    last = max(*good, *bad)
    if good == [last]:
        return f"only the last {word} ({last}) is right"
    if good == [0]:
        return f"only the first {word} (0) is right"
    if bad == [last]:
        return f"only the last {word} ({last}) is wrong"
    if bad == [0]:
        return f"only the first {word} (0) is wrong"
    return f"right at {word} {_listed(good)}, wrong at {_listed(bad)}"


def _listed(indices: list[int]) -> str:
    if len(indices) > 2 and indices == list(range(indices[0], indices[-1] + 1)):
        return f"{indices[0]}…{indices[-1]}"
    return ", ".join(map(str, indices))


def number(value: Any) -> str:
    """A number in at most four significant digits."""
    return f"{float(value) + 0.0:.4g}"  # + 0: a negative zero is shown as 0


def describe(value: Any) -> str:
    """What a value is, short: small tensors by their numbers, others by shape and dtype."""
    if value is None:
        return "None"
    if isinstance(value, Tensor):
        if value.device.type == "meta":
            return f"a tensor of shape {tuple(value.shape)} on device meta"
        if value.numel() <= SHOWN_NUMBERS:
            return written(value)
        return f"a tensor of shape {tuple(value.shape)}, {value.dtype}"
    if isinstance(value, tuple | list):
        return f"a list or tuple of {len(value)}" + (
            f" ({', '.join(describe(item) for item in value)})" if 0 < len(value) <= 3 else ""
        )
    if isinstance(value, float):
        return repr(float(number(value)))
    if isinstance(value, bool | int | str):
        text = repr(value)
        return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
    return f"an object of type {_type_name(value)}"


def _type_name(value: Any) -> str:
    return value.kind if isinstance(value, Opaque) else type(value).__name__


def written(value: Tensor) -> str:
    """A small tensor as nested brackets of short numbers."""
    if value.ndim == 0:
        item = value.item()
        return number(item) if value.is_floating_point() else str(item)
    return f"[{', '.join(written(row) for row in value)}]"
