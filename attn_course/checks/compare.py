"""Compare an answer's value with the reference's and say where they differ, axis by axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attn_course.checks.runner import Opaque
from attn_course.sentences import Code, Drawn, Sentence, Spoken, joined, say

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
    "column": "column",
    "distance": "distance",
    "row": "row",
    "row_of_a": "row of a",
    "row_of_b": "row of b",
}


@dataclass(frozen=True)
class Problem:
    """What is wrong with an outcome. `asks`: its last words are a question."""

    told: Spoken
    asks: bool = False


@dataclass(frozen=True)
class Expected:
    """What one value of an answer is held against: its name, its axes, the reference's value.

    slack: what is let pass beyond the tolerance, where the dtype cannot resolve the value.
    """

    name: Spoken
    axes: tuple[str, ...]
    value: Any
    slack: float = 0.0


def problem(actual: Any, expected: Expected, dtype: torch.dtype) -> Problem | None:
    """The first thing that is wrong with `actual`; None if it is right.

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


def _plain_problem(actual: Any, expected: Expected) -> Problem | None:
    name, target = expected.name, expected.value
    if is_number(target):
        if _holds_one(actual):
            actual = actual.item()
        if not is_number(actual):
            told = say("{name} must be a number, got {got}", name=name, got=describe(actual))
            return perhaps_unreturned(told, actual)
        if close(_scalar(actual), _scalar(target), torch.float32):
            return None
        return Problem(_other_value(name, number(actual), number(target)))
    if _holds_one(actual) and isinstance(target, bool):
        actual = bool(actual)
    if type(actual) is type(target) and actual == target:
        return None
    return perhaps_unreturned(_other_value(name, describe(actual), repr(target)), actual)


def _other_value(name: Spoken, got: Spoken, want: str) -> Sentence:
    return say("{name} is {got}, expected {want}", name=name, got=Drawn(got), want=Drawn(want))


def perhaps_unreturned(told: Sentence, actual: Any) -> Problem:
    """A wrong value; for None the question that it nearly always comes from."""
    if actual is not None:
        return Problem(told)
    return Problem(say("{told}: is there a `return`?", told=told), asks=True)


def _holds_one(value: Any) -> bool:
    return isinstance(value, Tensor) and value.numel() == 1 and value.device.type != "meta"


def _kind_problem(actual: Any, expected: Expected, dtype: torch.dtype) -> Problem | None:
    name, target = expected.name, expected.value
    if not isinstance(actual, Tensor):
        told = say("{name} must be a tensor, got {got}", name=name, got=describe(actual))
        hint = _kind_hint(actual)
        return (
            Problem(say("{told}: {hint}", told=told, hint=hint))
            if hint
            else perhaps_unreturned(told, actual)
        )
    if actual.device != target.device:
        words = "{name} is on device {got}, but the inputs are on {want}"
        return Problem(say(words, name=name, got=actual.device, want=target.device))
    wrong = wrong_dtype(actual, target, dtype)
    if wrong is None:
        return None
    words = "{name} has dtype {got}, {wrong}"
    return Problem(say(words, name=name, got=actual.dtype, wrong=wrong))


def wrong_dtype(actual: Tensor, target: Tensor, dtype: torch.dtype) -> Sentence | None:
    """What is wrong with the dtype of `actual`, where the inputs have `dtype`."""
    if target.is_floating_point() and not actual.is_floating_point():
        return say("expected {dtype}", dtype=dtype)
    if target.dtype == torch.bool and actual.dtype != torch.bool:
        return say("expected torch.bool (True: may attend)")
    if not target.is_floating_point() and (actual.is_floating_point() or actual.is_complex()):
        return say("expected {dtype}", dtype=target.dtype)
    if _is_coarser(actual, dtype):
        return say("which is coarser than the inputs' {dtype}", dtype=dtype)
    return None


def _is_coarser(value: Tensor, dtype: torch.dtype) -> bool:
    return value.is_floating_point() and torch.finfo(value.dtype).eps > torch.finfo(dtype).eps


def _kind_hint(actual: Any) -> Sentence | None:
    """What to do about a value that should be a tensor."""
    if is_number(actual):
        return say("a number has lost its gradient, keep the tensor")
    if isinstance(actual, tuple) and actual and isinstance(actual[0], Tensor):
        return say("torch.stack makes one tensor of several")
    if isinstance(actual, tuple) and actual:
        return say("torch.tensor makes one of numbers")
    if _type_name(actual) == "ndarray":
        return say("an array of numpy has lost its gradient, keep the tensor")
    return None


def _shape_problem(actual: Tensor, expected: Expected) -> Problem | None:
    want, got = tuple(expected.value.shape), tuple(actual.shape)
    if got == want:
        return None
    axes = expected.axes[max(0, len(expected.axes) - len(want)) :]
    names = f" = ({', '.join(axes)})" if len(axes) == len(want) > 0 else ""
    words = "{name} has shape {got}, expected {want}"
    told = say(words, name=expected.name, got=got, want=f"{want}{names}")
    hint = _shape_hint(got, want)
    return Problem(say("{told}: {hint}", told=told, hint=hint) if hint else told)


def _shape_hint(got: tuple[int, ...], want: tuple[int, ...]) -> Sentence | None:
    if sorted(got) == sorted(want):
        return say("the right sizes in another order, so two axes are exchanged")
    if [size for size in got if size != 1] == [size for size in want if size != 1]:
        return say("the same up to axes of size 1")
    if got in [want[:k] + want[k + 1 :] for k in range(len(want))]:
        return say("one axis has been summed or indexed away")
    if len(got) < len(want) and math.prod(got) == math.prod(want):
        return say("as many numbers as expected, but axes have been joined into one")
    return None


def _value_problem(actual: Tensor, expected: Expected, dtype: torch.dtype) -> Problem | None:
    target: Tensor = expected.value
    right = close(actual, target, dtype, expected.slack)
    if bool(right.all()):
        return None
    lost = (~actual.isfinite() & target.isfinite()).sum().item()
    if lost:
        words = (
            "{name} is NaN at {lost} of {all} places"
            if actual.isnan().any()
            else "{name} is infinite at {lost} of {all} places"
        )
        return Problem(say(words, name=expected.name, lost=lost, all=actual.numel()))
    pattern = _relation(actual, target, dtype) or _by_axis(right, expected.axes)
    if pattern is None:
        return Problem(say("{name} is wrong", name=expected.name))
    told = say("{name} is wrong: {pattern}", name=expected.name, pattern=pattern.told)
    return Problem(told, pattern.asks)


def _relation(actual: Tensor, target: Tensor, dtype: torch.dtype) -> Problem | None:
    """A simple relation that holds everywhere, such as a factor or a transposition."""
    if not target.is_floating_point():
        if target.dtype == torch.bool and torch.equal(actual, ~target):
            return Problem(say("True and False are exchanged"))
        return None
    a, t = actual.to(torch.float64), target.to(torch.float64)
    square = t.ndim >= 2 and t.shape[-1] == t.shape[-2] > 1
    if square and bool(close(a.mT, t, dtype).all()):
        words = "it is the transpose of what is expected (last two axes exchanged)"
        return Problem(say(words))
    if a.numel() < 2:
        return None
    if _is_near(a, t):
        return Problem(NEARLY, asks=True)
    factor = (a * t).sum() / (t * t).sum() if bool((t != 0).any()) else torch.tensor(0.0)
    if bool(factor != 0) and bool(close(a, factor * t, dtype).all()):
        words = "it is {factor} times what is expected, everywhere"
        return Problem(say(words, factor=number(factor)))
    offset = (a - t).mean()
    if bool(close(a, t + offset, dtype).all()):
        words = "it is what is expected plus {offset}, everywhere"
        return Problem(say(words, offset=number(offset)))
    for axis in range(t.ndim):
        if t.shape[axis] > 1 and bool(close(a.flip(axis), t, dtype).all()):
            return Problem(say("its order along axis {axis} is reversed", axis=axis))
    return None


NEARLY = say(
    "right to three digits and no further: is something rounded on the way (half precision?), "
    "approximated, or a small constant added?"
)


def _is_near(actual: Tensor, target: Tensor) -> bool:
    """Whether each number is right but for its last digits, though not for a float32."""
    finite = target[target.isfinite()].abs()
    usual = finite.median().item() if finite.numel() else 0.0  # one huge number is no measure
    return bool(torch.isclose(actual, target, rtol=NEAR, atol=NEAR * usual).all())


def _by_axis(right: Tensor, axes: Sequence[str]) -> Problem | None:
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
            return Problem(_split_in_words(_axis_word(axis, name), good, bad))
    share = right.to(torch.float64).mean().item()
    if not share:
        return None
    words = "{share:.0%} of its numbers are right, spread over all axes"
    return Problem(say(words, share=share))


def _axis_word(axis: int, name: str) -> Spoken:
    """How an index along an axis is called: a name of several letters speaks for itself."""
    if name in AXIS_WORDS:
        return say(AXIS_WORDS[name])
    if len(name) > 1:
        return Code(name.replace("_", " "))
    return say("index along axis {axis}", axis=axis)


def _split_in_words(word: Spoken, good: list[int], bad: list[int]) -> Sentence:
    last = max(*good, *bad)
    if good == [last]:
        return say("only the last {word} ({index}) is right", word=word, index=last)
    if good == [0]:
        return say("only the first {word} ({index}) is right", word=word, index=0)
    if bad == [last]:
        return say("only the last {word} ({index}) is wrong", word=word, index=last)
    if bad == [0]:
        return say("only the first {word} ({index}) is wrong", word=word, index=0)
    words = "right at {word} {good}, wrong at {bad}"
    return say(words, word=word, good=_listed(good), bad=_listed(bad))


def _listed(indices: list[int]) -> str:
    if len(indices) > 2 and indices == list(range(indices[0], indices[-1] + 1)):
        return f"{indices[0]}…{indices[-1]}"
    return ", ".join(map(str, indices))


def number(value: Any) -> str:
    """A number in at most four significant digits."""
    return f"{float(value) + 0.0:.4g}"  # + 0: a negative zero is shown as 0


def describe(value: Any) -> Spoken:
    """What a value is, short: small tensors by their numbers, others by shape and dtype."""
    if isinstance(value, Tensor):
        shape = tuple(value.shape)
        if value.device.type == "meta":
            return say("a tensor of shape {shape} on device meta", shape=shape)
        if value.numel() > SHOWN_NUMBERS:
            return say("a tensor of shape {shape}, {dtype}", shape=shape, dtype=value.dtype)
        return Code(written(value))
    if isinstance(value, tuple | list):
        if not 0 < len(value) <= 3:
            return say("a list or tuple of {n}", n=len(value))
        items = joined(map(describe, value), ", ")
        return say("a list or tuple of {n} ({items})", n=len(value), items=items)
    if isinstance(value, float):
        return Code(repr(float(number(value))))
    if value is None or isinstance(value, bool | int | str):
        text = repr(value)
        return Code(text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…")
    return say("an object of type {kind}", kind=_type_name(value))


def _type_name(value: Any) -> str:
    return value.kind if isinstance(value, Opaque) else type(value).__name__


def written(value: Tensor) -> str:
    """A small tensor as nested brackets of short numbers."""
    if value.ndim == 0:
        item = value.item()
        return number(item) if value.is_floating_point() else str(item)
    return f"[{', '.join(written(row) for row in value)}]"
