"""Whether an answer refuses what it was asked to refuse, and says why in numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from torch import Generator

from attn_course.checks.exercise import Answer, Diagnosis, Mistake, Output, Seen, Stage
from attn_course.sentences import Spoken, say

Numbers = Callable[..., Sequence[int | Collection[int]]]
"""From a probe to the numbers that its error's message should have: each one, or one of several."""


def refusal_stages(
    name: str,
    draw: Callable[[Generator], Iterable[tuple[Any, ...]]],
    message: str,
    *,
    inputs: tuple[Spoken, ...],
    numbers: Numbers,
    arguments: Callable[..., tuple[Any, ...]] = lambda *probe: probe,
    diagnose: Callable[[Sequence[Seen]], Diagnosis | None] | None = None,
) -> tuple[Stage, Stage]:
    """Return the stage that asks for a ValueError, and the remark on a message without numbers.

    An error that says nothing still stops what it should stop, so it costs no marks.

    Args:
        name: the stage's name.
        draw: gives the probes, each of which has to be refused.
        message: what is wrong when one is not.
        inputs: the names of a probe's parts.
        numbers: what the message should have.
        arguments: what an answer is called with on a probe, where that is not the probe itself.
        diagnose: reads a cause off the probes that were not refused.
    """

    def raised(answer: Answer, *probe: Any) -> str:
        return refusal(answer, *arguments(*probe))

    def lacking(answer: Answer, *probe: Any) -> str:
        return _lacking(_raised(answer, arguments(*probe)), numbers(*probe))

    asked = Stage(
        name, draw, message, call=raised, outputs=(RAISED,), inputs=inputs, diagnose=diagnose
    )
    told = Stage(
        f"{name}: the message",
        draw,
        "The ValueError is raised. The task asks for the numbers in its message, too: whoever "
        "meets it should see what was wrong.",
        call=lacking,
        outputs=(Output(say("what the message lacks")),),
        inputs=inputs,
        remark=True,
    )
    return asked, told


RAISED = Output(say("what is raised"))


def refusal(answer: Answer, *args: Any) -> str:
    """The name of the error that a call raises, or "no error"; a stub's passes through.

    For a stage's `call`: being asked for, the ValueError is a value to compare.
    """
    found = _raised(answer, args)
    if found is None:
        return "no error"
    if isinstance(found, ValueError):
        return "ValueError"
    return found if isinstance(found, str) else type(found).__name__


def _raised(answer: Answer, args: tuple[Any, ...]) -> Exception | str | None:
    """The error that a call raises; words for one that is returned, and None for none."""
    try:
        found = answer(*args)
    except NotImplementedError:
        raise
    except Exception as error:
        return error
    return "no error: it is returned, `raise` is missing" if _is_error(found) else None


def _is_error(value: Any) -> bool:
    """Whether a value is an exception, or a class of them."""
    return isinstance(value, BaseException) or (
        isinstance(value, type) and issubclass(value, BaseException)
    )


def _lacking(error: Any, numbers: Sequence[int | Collection[int]]) -> str:
    """The numbers that an error's text does not have, in words; signs are not looked at."""
    told = {int(digits) for digits in re.findall(r"\d+", str(error))}
    choices = [{number} if isinstance(number, int) else set(number) for number in numbers]
    missing = [choice for choice in choices if not told & {abs(number) for number in choice}]
    return " and ".join(" or ".join(map(str, sorted(c))) for c in missing) or "nothing"


def not_refused(
    mistakes: Sequence[Mistake], mistake_id: str
) -> Callable[[Sequence[Seen]], Diagnosis]:
    """A `diagnose` that names this mistake, in whatever way the refusal was missed."""
    told = next(mistake for mistake in mistakes if mistake.id == mistake_id)
    return lambda seen: Diagnosis(told.message, told.id)
