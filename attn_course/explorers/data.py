"""Tensors on their way to the browser: plain JSON, checked before they leave."""

import base64
from decimal import ROUND_HALF_UP, Decimal
from math import cos, floor, isfinite, log, log10, pi, sqrt
from typing import Any, SupportsFloat

import numpy as np
import torch
import traitlets
from torch import Tensor

from attn_course.sentences import say

_MASK = 0xFFFFFFFF


def as_array(data: Any, name: str, ndim: int) -> np.ndarray:
    """Return a tensor, array or nested list as float64 (NaN and infinities kept).

    Raises:
        TraitError: if it has another number of axes, is ragged or holds no numbers.
    """
    if "complex" in str(getattr(data, "dtype", "")):  # numpy would drop the imaginary part
        unreal = say("{name} must hold real numbers, got {got}", name=name, got=data.dtype)
        raise traitlets.TraitError(unreal)
    if isinstance(data, Tensor):
        data = data.detach().to("cpu", torch.float64)
    try:
        array = np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError) as error:
        ragged = say("{name} must hold numbers in equal rows: {error}", name=name, error=str(error))
        raise traitlets.TraitError(ragged) from None
    _check_axes(array, name, ndim)
    return array


def as_flags(data: Any, name: str, ndim: int) -> np.ndarray:
    """Return a boolean tensor, array or nested list as an array of booleans.

    Raises:
        TraitError: if it is not boolean, is ragged or has another number of axes.
    """
    if isinstance(data, Tensor):
        data = data.detach().cpu().numpy() if data.dtype == torch.bool else data.tolist()
    try:
        array = np.asarray(data)
    except ValueError as error:
        ragged = say(
            "{name} must hold booleans in equal rows: {error}", name=name, error=str(error)
        )
        raise traitlets.TraitError(ragged) from None
    if array.dtype != np.bool_:
        got = f"{data!r:.80}"
        others = say("{name} must be boolean, True where it may, got {got}", name=name, got=got)
        raise traitlets.TraitError(others)
    _check_axes(array, name, ndim)
    return array


def _check_axes(array: np.ndarray, name: str, ndim: int) -> None:
    if array.ndim != ndim or 0 in array.shape:
        wrong = say(
            "{name} must have {ndim} axes, none of them empty, got shape {shape}",
            name=name,
            ndim=ndim,
            shape=array.shape,
        )
        raise traitlets.TraitError(wrong)


class Whole(traitlets.Int):
    """A trait of whole numbers, which True and False are to Python alone."""

    def validate(self, obj: Any, value: Any) -> Any:
        """Return the number, or raise TraitError."""
        if isinstance(value, bool):
            self.error(obj, value)
        return super().validate(obj, value)


class Numbers(traitlets.List):
    """A trait of numbers in nested lists, which takes a tensor or an array too."""

    def __init__(self, ndim: int = 2, **options: Any) -> None:
        """Take what has `ndim` axes."""
        super().__init__(**options)
        self.ndim = ndim

    def validate(self, obj: Any, value: Any) -> Any:
        """Return plain nested lists, or raise TraitError."""
        return to_plain(as_array(value, self.name or "value", self.ndim))


class Flags(Numbers):
    """A trait of booleans in nested lists, which takes a tensor or an array too."""

    def validate(self, obj: Any, value: Any) -> Any:
        """Return plain nested lists, or raise TraitError."""
        return as_flags(value, self.name or "value", self.ndim).tolist()


def to_plain(array: Any) -> Any:
    """Return nested lists in which NaN and infinities are words, for JSON knows neither."""
    if isinstance(array, np.ndarray | Tensor):
        array = array.tolist()
    if isinstance(array, list | tuple):
        return [to_plain(item) for item in array]
    if isinstance(array, float) and not isfinite(array):
        return "NaN" if array != array else "Infinity" if array > 0 else "-Infinity"
    return array


def show(number: SupportsFloat, digits: int = 3) -> str:
    """Return a number for people, of about `digits` digits: `show` of core.mjs in Python."""
    x = float(number)
    if not isfinite(x):
        return "NaN" if x != x else "∞" if x > 0 else "−∞"
    if x == 0:
        return "0"
    if abs(x) >= 1e6 or abs(x) < 1e-4:
        mantissa, power = f"{x:.{digits - 1}e}".split("e")
        text = f"{mantissa}e{int(power):+d}"
    else:
        places = min(max(0, digits - 1 - floor(log10(abs(x)))), 6)
        # halves away from zero, as the browser rounds them
        text = f"{Decimal(x).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):f}"
        text = text.rstrip("0").rstrip(".") if places else text
    return text.replace("-", "−", 1)


def cut(text: str) -> str:
    """Return a text so short that a sentence holds it."""
    return text if len(text) <= 24 else f"{text[:23]}…"


def pack(array: np.ndarray) -> dict[str, Any]:
    """Return {shape, data}: the numbers as base64 text of little-endian float32."""
    raw = np.ascontiguousarray(array, dtype="<f4").tobytes()
    return {"shape": list(array.shape), "data": base64.b64encode(raw).decode("ascii")}


def unpack(packed: dict[str, Any]) -> np.ndarray:
    """Return the float32 array behind `pack`."""
    raw = base64.b64decode(packed["data"])
    return np.frombuffer(raw, dtype="<f4").reshape(packed["shape"])


def normals(seed: int, count: int) -> np.ndarray:
    """Return the standard normal numbers that the browser draws for the same seed.

    mulberry32 feeds Box and Muller's transform; `normals` in core.mjs is the same in
    JavaScript, and a test holds the two together.
    """
    state = seed & _MASK

    def uniform() -> float:
        nonlocal state
        state = (state + 0x6D2B79F5) & _MASK
        mixed = ((state ^ (state >> 15)) * (state | 1)) & _MASK
        mixed ^= (mixed + (((mixed ^ (mixed >> 7)) * (mixed | 61)) & _MASK)) & _MASK
        return ((mixed ^ (mixed >> 14)) + 0.5) / 4294967296

    return np.array([sqrt(-2 * log(uniform())) * cos(2 * pi * uniform()) for _ in range(count)])
