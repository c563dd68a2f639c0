"""Call an answer so that nothing it does can hurt: time, exceptions, output, inputs.

What an answer did is recorded as an `Outcome`: plain data, so that the judging can be
done elsewhere than the running.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import io
import linecache
import random
import signal
import threading
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attn_course.sentences import Sentence, say

TIME_LIMIT = 10.0
"""Seconds of wall-clock time that one call of an answer may take."""

_PACKAGE = str(Path(__file__).parents[1])

KEPT_OUTPUT = 1000
"""Characters of an answer's printed output that are kept."""

KEPT_NUMBERS = 10**8
"""A tensor with more numbers than this is not copied: an expanded one may have any number."""


class TimeLimitReached(BaseException):
    """Raised inside an answer that has run too long; not an Exception, so rarely swallowed."""


@dataclass(frozen=True)
class Failure:
    """An exception that an answer raised: its type's name, text, and the answer's own line.

    `text` is the error's own, in English as a rule; a check's own error has a sentence in it.
    `unwritten`: the answer itself raised NotImplementedError, as a stub does. PyTorch raises
    it too, for a dtype that an operation does not know.
    `seconds`: the time limit that ended the call, and whether it was one `of_all` calls together.
    """

    kind: str
    text: str | Sentence
    line: str = ""
    unwritten: bool = False
    seconds: float = 0.0
    of_all: bool = False

    @property
    def timed_out(self) -> bool:
        """Whether the time limit ended the call."""
        return self.kind == TimeLimitReached.__name__


@dataclass(frozen=True)
class Opaque:
    """Stands for a value that is no plain data: only the name of its type is kept."""

    kind: str


@dataclass(frozen=True)
class Outcome:
    """What one call did: a value or a failure, what it printed, which inputs it altered."""

    value: Any = None
    failure: Failure | None = None
    printed: str = ""
    altered: tuple[int, ...] = ()


def run(call: Callable[[], Any], inputs: tuple[Any, ...], seconds: float = TIME_LIMIT) -> Outcome:
    """Run `call` within `seconds` and record what it did.

    Args:
        call: the answer, already bound to `inputs`.
        inputs: the objects that `call` receives, to see whether it alters them.
        seconds: wall-clock limit.

    Raises:
        KeyboardInterrupt: if the learner interrupts; everything else is recorded.
    """
    before = copy_of(inputs)
    printed = _Capped()
    value, failure = None, None
    with _quiet(printed):
        try:
            value = _within(lambda: detached(call()), seconds)
        except KeyboardInterrupt:
            raise
        except TimeLimitReached as error:
            failure = replace(_describe(error), seconds=seconds)
        except BaseException as error:
            failure = _describe(error)
    altered = tuple(k for k, pair in enumerate(zip(before, inputs, strict=True)) if _altered(*pair))
    return Outcome(value, failure, printed.getvalue(), altered)


def copy_of(value: Any) -> Any:
    """A copy that shares no memory: tensors cloned (as leaves), containers rebuilt."""
    if isinstance(value, Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, tuple | list):
        return type(value)(copy_of(item) for item in value)
    if isinstance(value, dict):
        return {key: copy_of(item) for key, item in value.items()}
    return value if callable(value) else copy.deepcopy(value)


def detached(value: Any) -> Any:
    """`value` as plain data: strided tensors without a graph, numbers, texts, tuples, dicts.

    Whatever else an answer returns, which might do anything when it is looked at, is `Opaque`.
    """
    if value is None or type(value) in (bool, float, str):
        return value
    if type(value) is int:
        return value if value.bit_length() < 1000 else Opaque("int")
    if isinstance(value, Tensor):
        return Opaque("nested tensor") if value.is_nested else _plain_tensor(value)
    if isinstance(value, tuple | list):
        return tuple(detached(item) for item in value)
    if isinstance(value, dict):
        return {key: detached(item) for key, item in value.items()}
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return detached(value.item())  # a number of numpy
    return float(value) if _is_real(value) else Opaque(type(value).__name__)


def _is_real(value: Any) -> bool:
    return hasattr(value, "__float__") and not hasattr(value, "__len__")


def _plain_tensor(value: Tensor) -> Tensor:
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        if value.is_quantized:
            value = value.dequantize()
        if value.layout != torch.strided:
            value = value.to_dense()
        plain = value.detach().as_subclass(Tensor)
        if plain.numel() > KEPT_NUMBERS:
            words = "the result has {n} numbers, shape {shape}"
            raise ValueError(say(words, n=plain.numel(), shape=tuple(plain.shape)))
        return plain.clone()


@contextlib.contextmanager
def _quiet(printed: io.StringIO):
    """Keep an answer's prints, warnings, random numbers and settings away from the learner's."""
    with (
        _settings_kept(),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        warnings.catch_warnings(),
        torch.random.fork_rng(devices=[]),
        torch.enable_grad(),
    ):
        warnings.simplefilter("ignore")
        torch.default_generator.manual_seed(0)
        yield


@contextlib.contextmanager
def _settings_kept():
    """Put back what an answer may have set for the whole process."""
    former = [(read(), read, write) for read, write in _SETTINGS]
    try:
        yield
    finally:
        for value, read, write in former:
            if read() != value:
                write(value)


def _set_default_device(device: torch.device) -> None:
    # None takes the whole mechanism away, which an explicit "cpu" would leave in place
    torch.set_default_device(None if device.type == "cpu" else device)


_SETTINGS: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_default_device, _set_default_device),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    (random.getstate, random.setstate),
)


class _Capped(io.StringIO):
    """A text stream that forgets what is printed past KEPT_OUTPUT characters.

    It stays open: what an answer closes is read afterwards.
    """

    def close(self) -> None:
        """Do nothing."""

    def write(self, text: str, /) -> int:
        super().write(text[: max(0, KEPT_OUTPUT - self.tell())])
        return len(text)


def _altered(before: Any, after: Any) -> bool:
    """Whether an input was altered; one that can no longer be compared certainly was."""
    try:
        return _differs(before, after)
    except Exception:
        return True


def _differs(before: Any, after: Any) -> bool:
    """Whether an input was altered; objects that are compared by identity never count."""
    if isinstance(before, Tensor) and isinstance(after, Tensor):
        same_kind = before.shape == after.shape and before.dtype == after.dtype
        return not (same_kind and torch.equal(before.nan_to_num(), after.detach().nan_to_num()))
    if isinstance(before, tuple | list):
        return len(before) != len(after) or any(map(_differs, before, after))
    if isinstance(before, dict):
        return before.keys() != after.keys() or any(_differs(before[k], after[k]) for k in before)
    return False


def _within(call: Callable[[], Any], seconds: float) -> Any:
    """`call()`, ended after `seconds` by an exception raised inside it."""
    main = threading.current_thread() is threading.main_thread()
    if main and hasattr(signal, "setitimer"):
        return _within_by_signal(call, seconds)
    return _within_by_thread(call, seconds)


def _within_by_signal(call: Callable[[], Any], seconds: float) -> Any:
    alarms = 0

    def on_alarm(_signum: int, frame: Any) -> None:
        nonlocal alarms
        # The alarm may arrive while this function arms or disarms it: then it must do nothing.
        if frame is None or frame.f_code is _within_by_signal.__code__:
            return
        alarms += 1
        if alarms > 1:
            # a loop swallows it: strike at odd moments until one falls outside its `try`
            signal.setitimer(signal.ITIMER_REAL, 5e-6 * (1 + alarms % 17), 0.5)
        if frame.f_code is not on_alarm.__code__:
            raise TimeLimitReached

    former = signal.signal(signal.SIGALRM, on_alarm)
    try:
        # It repeats, for answers that swallow the first one in a bare `except:`.
        signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
        return call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def _within_by_thread(call: Callable[[], Any], seconds: float) -> Any:
    """Where there is no SIGALRM (Windows, worker threads): an exception set from a timer."""
    caller = ctypes.c_ulong(threading.get_ident())
    guard, done = threading.Lock(), False

    def on_timer() -> None:
        with guard:
            if not done:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    caller, ctypes.py_object(TimeLimitReached)
                )

    timer = threading.Timer(seconds, on_timer)
    timer.daemon = True
    timer.start()
    try:
        return call()
    finally:
        with guard:
            done = True
        timer.cancel()


def _describe(error: BaseException) -> Failure:
    """The exception with the last line of the learner's own code that it passed through."""
    line, own = "", False
    for entry in traceback.extract_tb(error.__traceback__):
        own = entry.filename != __file__ and not _is_library(entry.filename)
        if own:
            line = entry.line or linecache.getline(entry.filename, entry.lineno or 0).strip()
    raised = own and (not line or line.startswith("raise"))
    unwritten = raised and isinstance(error, NotImplementedError)
    return Failure(type(error).__name__, _text(error), line, unwritten)


def _text(error: BaseException) -> str | Sentence:
    """What an error says; a sentence of the checks stays one."""
    try:
        said = error.args[0] if error.args else ""
        return said if isinstance(said, Sentence) else str(error)
    except Exception:
        return ""


def _is_library(filename: str) -> bool:
    return filename.startswith(_PACKAGE) or "site-packages" in filename or "lib/python" in filename
