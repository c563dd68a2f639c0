"""Checks that name the mistake: `check(answer)` and the catalogue behind them."""

from __future__ import annotations

import difflib
import importlib
import os
import pkgutil
from functools import cache
from typing import Any

from attn_course.checks import catalogue
from attn_course.checks.exercise import Exercise
from attn_course.checks.judging import judge, observe
from attn_course.checks.report import Report, WrongAnswer, show
from attn_course.checks.runner import Outcome
from attn_course.events import tell

__all__ = ["Exercise", "Report", "WrongAnswer", "check", "exercises", "get"]


def check(answer: Any, exercise: str | None = None, *, strict: bool = False) -> Report:
    """Judge `answer`, show the verdict once, record a pass, and return the report.

    Args:
        answer: the function or class that the learner wrote.
        exercise: its exercise, by name or number; by default the answer's own name.
        strict: raise on a wrong answer instead of only reporting it. While `nbgrader autograde`
            runs a notebook this is so anyway: it takes a cell without an error for a right one.

    Returns:
        The verdict. A wrong answer never raises, whatever it does.

    Raises:
        ValueError: if no exercise has that name; the nearest names are listed.
        WrongAnswer: if `strict` and the answer is wrong.
    """
    if exercise is None and not callable(answer):
        report = Report("", False, None, _not_a_function(answer, "the function itself"))
    else:
        report = examine(answer, get(exercise or getattr(answer, "__name__", repr(answer))))
    if report.exercise:
        tell("exercise-attempted", exercise=report.exercise, passed=report.passed)
    show(report)
    if not report.passed and (strict or os.environ.get("NBGRADER_EXECUTION") == "autograde"):
        raise WrongAnswer(report)
    return report


def examine(answer: Any, exercise: Exercise, seed: int = 0) -> Report:
    """The report on an answer, neither shown nor recorded; `seed` draws the probes."""
    if not callable(answer):
        message = _not_a_function(answer, f"the function `{exercise.name}`")
        return Report(exercise.name, False, None, message)
    cases = exercise.cases(seed)
    outcomes = observe(answer, cases)
    _tell_prints(outcomes[0])
    return judge(exercise, cases, outcomes)


def exercises() -> list[str]:
    """The names of all exercises, in course order."""
    return list(_by_name())


def get(name: str) -> Exercise:
    """The exercise with this name or number.

    Raises:
        ValueError: if there is none; the message lists the nearest, or all.
    """
    by_name = _by_name()
    by_number = {exercise.number: exercise for exercise in by_name.values()}
    found = by_name.get(name) or by_number.get(name)
    if found is None:
        near = difflib.get_close_matches(str(name), by_name, n=3) or list(by_name)
        raise ValueError(
            f"no exercise is called {name!r}; did you mean {', '.join(near)}? "
            "check(answer, 'name') tells which one an answer is for"
        )
    return found


@cache
def _by_name() -> dict[str, Exercise]:
    found: list[Exercise] = []
    for module in pkgutil.iter_modules(catalogue.__path__):
        found += importlib.import_module(f"{catalogue.__name__}.{module.name}").EXERCISES
    found.sort(key=lambda exercise: [int(part) for part in exercise.number.split(".")])
    return {exercise.name: exercise for exercise in found}


def _tell_prints(first: Outcome) -> None:
    """What the answer printed on the first probe: a learner debugs with print."""
    if first.printed.strip():
        print(f"(printed on the first probe)\n{first.printed.rstrip()}")


def _not_a_function(answer: Any, wanted: str) -> str:
    return (
        f"check takes {wanted}, without calling it: check(name), "
        f"not check(name(…)). It got an object of type {type(answer).__name__}."
    )
