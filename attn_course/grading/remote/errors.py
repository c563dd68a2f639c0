"""Errors as data: raised in one process, told, and raised again in the other."""

from __future__ import annotations

import builtins
import linecache
from typing import Any

TEXT_LIMIT = 2000
"""Characters of an error's text that are sent."""


class Gone(Exception):
    """The other side asks for something that it does not have, or may not have."""


def describe_error(error: BaseException) -> dict[str, Any]:
    """An error as data: its name, its known bases, its text, and the learner's line."""
    try:
        text = str(error)[:TEXT_LIMIT]
    except Exception:
        text = ""
    return {"op": "raise", **_described(type(error)), "text": text}


def write_error(value: Any) -> dict[str, Any] | None:
    """An error that is no more than a value, or a class of errors, as data; None for all else."""
    if isinstance(value, BaseException):
        return {"error": describe_error(value)}
    if isinstance(value, type) and issubclass(value, BaseException):
        return {"error": {**_described(value), "class": True}}
    return None


def read_error(data: dict[str, Any]) -> Any:
    """What `write_error` wrote."""
    made = _made(data)
    return type(made) if data.get("class") is True else made


def _described(kind: type[BaseException]) -> dict[str, Any]:
    bases = [base.__name__ for base in kind.__mro__ if base.__module__ == "builtins"]
    return {"kind": kind.__name__[:100], "bases": bases}


_PLAIN_ERRORS = tuple(
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type)
    and issubclass(kind, Exception)
    and not issubclass(kind, UnicodeError | BaseExceptionGroup | Warning)
)


def raise_remote(answer: dict[str, Any]) -> None:
    """Raise here what was raised over there: an error of the same name, base and text."""
    error = _made(answer)
    line = answer.get("line")
    if isinstance(line, str) and line:
        _raise_at(error, line[:200], own=answer.get("own") is True)
    raise error


def _made(answer: dict[str, Any]) -> Exception:
    kind, text, bases = (answer.get(name) for name in ("kind", "text", "bases"))
    known = [b for b in bases if b in _PLAIN_ERRORS] if isinstance(bases, list) else []
    base = getattr(builtins, known[0]) if known else Exception
    message = text[:TEXT_LIMIT] if isinstance(text, str) else ""
    title = kind[:100] if isinstance(kind, str) and kind.isidentifier() else "Exception"
    made: Any = type(title, (base,), {"__str__": lambda _: message})
    return made(message)


def _raise_at(error: BaseException, line: str, *, own: bool) -> None:
    """Raise with the learner's line in the traceback, as it would stand there had it run here."""
    name = f"<answer: {line}>"
    linecache.cache[name] = (len(line), None, [line], name)
    code = "raise error" if own else "throw(error)"
    exec(compile(code, name, "exec"), {"error": error, "throw": _throw})


def _throw(error: BaseException) -> None:
    raise error
