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
import signal
import threading
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

TIME_LIMIT = 10.0
"""Seconds of wall-clock time that one call of an answer may take."""

_PACKAGE = str(Path(__file__).parents[1])

KEPT_OUTPUT = 1000
"""Characters of an answer's printed output that are kept."""


class TimeLimitReached(BaseException):
    """Raised inside an answer that has run too long; not an Exception, so rarely swallowed."""


@dataclass(frozen=True)
class Failure:
    """An exception that an answer raised: its type's name, text, and the answer's own line.

    `unwritten`: the answer itself raised NotImplementedError, as a stub does. PyTorch raises
    it too, for a dtype that an operation does not know.
    """

    kind: str
    text: str
    line: str = ""
    unwritten: bool = False

    @property
    def timed_out(self) -> bool:
        """Whether the time limit ended the call."""
        return self.kind == TimeLimitReached.__name__


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
            value = detached(_within(call, seconds))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            failure = _describe(error)
    altered = tuple(k for k, pair in enumerate(zip(before, inputs, strict=True)) if _differs(*pair))
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
    """`value` with plain tensors in place of graph-bound, sparse and subclassed ones."""
    if isinstance(value, Tensor):
        with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
            plain = value.detach().as_subclass(Tensor)
            return plain.clone() if plain.layout == torch.strided else plain.to_dense()
    if isinstance(value, tuple | list):
        return tuple(detached(item) for item in value)
    if isinstance(value, dict):
        return {key: detached(item) for key, item in value.items()}
    return value


@contextlib.contextmanager
def _quiet(printed: io.StringIO):
    """Keep an answer's prints, warnings and use of random numbers away from the learner's."""
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        warnings.catch_warnings(),
        torch.random.fork_rng(devices=[]),
        torch.enable_grad(),
    ):
        warnings.simplefilter("ignore")
        torch.default_generator.manual_seed(0)
        yield


class _Capped(io.StringIO):
    """A text stream that forgets what is printed past KEPT_OUTPUT characters."""

    def write(self, text: str, /) -> int:
        super().write(text[: max(0, KEPT_OUTPUT - self.tell())])
        return len(text)


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
    def on_alarm(_signum: int, frame: Any) -> None:
        # The alarm may arrive while this module arms or disarms it: then it must do nothing.
        if frame is not None and frame.f_code.co_filename != __file__:
            raise TimeLimitReached(f"more than {seconds:g} s")

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
    try:
        text = str(error)
    except Exception:
        text = ""
    line, own = "", False
    for entry in traceback.extract_tb(error.__traceback__):
        own = entry.filename != __file__ and not _is_library(entry.filename)
        if own:
            line = entry.line or linecache.getline(entry.filename, entry.lineno or 0).strip()
    raised = own and (not line or line.startswith("raise"))
    unwritten = raised and isinstance(error, NotImplementedError)
    return Failure(type(error).__name__, text, line, unwritten)


def _is_library(filename: str) -> bool:
    return filename.startswith(_PACKAGE) or "site-packages" in filename or "lib/python" in filename
