"""Checks that name the mistake: `check(answer)` and the catalogue behind them."""

from __future__ import annotations

import difflib
import os
from dataclasses import replace
from typing import Any

from attn_course.checks import catalogue
from attn_course.checks.exercise import Exercise
from attn_course.checks.judging import judge, observe
from attn_course.checks.report import Report, WrongAnswer, show
from attn_course.checks.ruled_out import taken_ready_made
from attn_course.checks.runner import Outcome
from attn_course.events import tell
from attn_course.sentences import Sentence, constant, say, spoken

__all__ = ["Exercise", "Report", "WrongAnswer", "check", "exercises", "get"]


def check(answer: Any, exercise: Any = None, *, strict: bool = False) -> Report:
    """Judge `answer`, show the verdict once, record a pass, and return the report.

    Args:
        answer: the function or class that the learner wrote.
        exercise: its exercise, by name or number; by default the answer's own name. The two may
            come in either order.
        strict: raise on a wrong answer instead of only reporting it. While `nbgrader autograde`
            runs a notebook this is so anyway: it takes a cell without an error for a right one.

    Returns:
        The verdict. A wrong answer never raises, whatever it does.

    Raises:
        ValueError: if no exercise has that name; the nearest names are listed.
        WrongAnswer: if `strict` and the answer is wrong.
    """
    if callable(exercise) and not callable(answer):
        answer, exercise = exercise, answer
    if exercise is None and not hasattr(answer, "__name__"):
        words = AN_OBJECT if callable(answer) else A_FUNCTION
        report = Report("", False, None, _not_a_function(answer, words))
    else:
        name = answer.__name__ if exercise is None else exercise
        report = _written_by_hand(answer, get(name))
    if report.exercise:
        tell("exercise-attempted", exercise=report.exercise, passed=report.passed)
    show(report)
    if not report.passed and (strict or os.environ.get("NBGRADER_EXECUTION") == "autograde"):
        raise WrongAnswer(report)
    return report


def examine(answer: Any, exercise: Exercise, seed: int = 0) -> Report:
    """The report on an answer, neither shown nor recorded; `seed` draws the probes."""
    made_from_a_class = isinstance(exercise.reference, type) and not isinstance(answer, type)
    if not callable(answer) or (made_from_a_class and not hasattr(answer, "__name__")):
        words = AN_OBJECT if callable(answer) else THE_FUNCTION
        cause = _not_a_function(answer, words, name=exercise.name)
        return Report(exercise.name, False, None, cause)
    cases = exercise.cases(seed)
    outcomes = observe(answer, cases)
    _tell_prints(outcomes[0])
    return judge(exercise, cases, outcomes)


def _written_by_hand(answer: Any, exercise: Exercise) -> Report:
    """The report on an answer, which has not passed if it takes ready made what is asked for."""
    report = examine(answer, exercise)
    taken = taken_ready_made(answer, exercise, exercise.cases(0)) if report.passed else []
    if not taken:
        return report
    used, allowed = ", ".join(f"`{name}`" for name in taken), constant(exercise.may_use)
    cause = say(READY_MADE, used=used, allowed=allowed)
    return replace(report, passed=False, cause=cause, observations=(), ready_made=tuple(taken))


def exercises() -> list[str]:
    """The names of all exercises, in course order."""
    return [entry.name for entry in catalogue.listed()]


def get(name: Any) -> Exercise:
    """The exercise with this name or number, 3.2 or "3.2".

    Raises:
        ValueError: if there is none; the message lists the nearest, or all.
    """
    name = str(name)
    entry = next((e for e in catalogue.listed() if name in (e.name, e.number)), None)
    if entry is None:
        near = difflib.get_close_matches(name, exercises(), n=3) or exercises()
        words = (
            "no exercise is called {name!r}; did you mean {near}? "
            "check(answer, 'name') tells which one an answer is for"
        )
        raise ValueError(say(words, name=name, near=", ".join(near)))
    return catalogue.exercise(entry)


def _tell_prints(first: Outcome) -> None:
    """What the answer printed on the first probe: a learner debugs with print."""
    if first.printed.strip():
        print(f"{spoken('(printed on the first probe)')}\n{first.printed.rstrip()}")


def _not_a_function(answer: Any, words: str, **fields: str) -> Sentence:
    return say(words, kind=type(answer).__name__, **fields)


READY_MADE = (
    "It does what is asked for, made with {used}, which this exercise rules out. So it is not "
    "counted as passed. May use: {allowed}."
)
AN_OBJECT = (
    "check takes the class itself: check({kind}), not an object that was made from it, "
    "check({kind}(…))."
)
A_FUNCTION = (
    "check takes the function itself, without calling it: check(name), "
    "not check(name(…)). It got an object of type {kind}."
)
THE_FUNCTION = (
    "check takes the function `{name}`, without calling it: check(name), "
    "not check(name(…)). It got an object of type {kind}."
)
