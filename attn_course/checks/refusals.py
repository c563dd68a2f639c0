"""Whether an answer refuses what it was asked to refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attn_course.checks.exercise import Answer, Diagnosis, Mistake, Seen


def refusal(answer: Answer, *args: Any) -> str:
    """The name of the error that a call raises, or "no error"; a stub's passes through.

    For a stage's `call`: being asked for, the ValueError is a value to compare.
    """
    try:
        found = answer(*args)
    except NotImplementedError:
        raise
    except Exception as error:
        return "ValueError" if isinstance(error, ValueError) else type(error).__name__
    if _is_error(found):
        return "no error: it is returned, `raise` is missing"
    return "no error"


def _is_error(value: Any) -> bool:
    """Whether a value is an exception, or a class of them."""
    return isinstance(value, BaseException) or (
        isinstance(value, type) and issubclass(value, BaseException)
    )


def not_refused(
    mistakes: Sequence[Mistake], mistake_id: str
) -> Callable[[Sequence[Seen]], Diagnosis]:
    """A `diagnose` that names this mistake, in whatever way the refusal was missed."""
    told = next(mistake for mistake in mistakes if mistake.id == mistake_id)
    return lambda seen: Diagnosis(told.message, told.id)
