"""What an answer did, case by case, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import torch

from attn_course.checks import compare
from attn_course.checks.advice import advice
from attn_course.checks.compare import Expected, Problem, describe, perhaps_unreturned
from attn_course.checks.exercise import (
    Answer,
    Case,
    Exercise,
    Output,
    call_stage,
    positional_names,
)
from attn_course.checks.runner import TIME_LIMIT, Failure, Outcome, copy_of, run
from attn_course.sentences import Code, Spoken, constant, joined, say

TOTAL_LIMIT = 30.0
"""Seconds of wall-clock time for all calls of one answer together."""

TIMES_OWN = 4.0
"""An answer that adds in another order than the reference may be this much further off."""


def observe(answer: Answer, cases: Sequence[Case]) -> list[Outcome]:
    """Call `answer` on each case, and on the first one again; stop at the time limit."""
    return list(outcomes_of(answer, [*cases, *cases[:1]]))


def outcomes_of(answer: Answer, cases: Sequence[Case]) -> Iterator[Outcome]:
    """Call `answer` on each case as it is asked for; stop at the time limit."""
    end = monotonic() + TOTAL_LIMIT
    for case in cases:
        args = copy_of(case.args)
        seconds = max(0.1, min(TIME_LIMIT, end - monotonic()))
        outcome = run(lambda a=args, s=case.stage: call_stage(s, answer, a), args, seconds)
        failure = outcome.failure
        if failure and failure.timed_out and seconds < TIME_LIMIT:
            failure = replace(failure, seconds=TOTAL_LIMIT, of_all=True)
            outcome = replace(outcome, failure=failure)
        yield outcome
        if failure and (failure.timed_out or failure.unwritten):
            break


@dataclass(frozen=True)
class Finding:
    """One case with what the answer did there and what is wrong with it (None: nothing).

    own: the reference's value in the inputs' own dtype, where that was asked for.
    """

    case: Case
    outcome: Outcome
    expected: Any
    problem: Problem | None
    own: Any = None


def examined(exercise: Exercise, case: Case, outcome: Outcome) -> Finding:
    """What an outcome is worth, held against the reference's in float64."""
    expected = case.expected
    finding = Finding(case, outcome, expected, problem_of(exercise, case, outcome, expected))
    if finding.problem and case.dtype == torch.float32 and comparable(finding):
        problem = problem_of(exercise, case, outcome, expected, case.own)
        return replace(finding, problem=problem, own=case.own)
    return finding


def problem_of(
    exercise: Exercise, case: Case, outcome: Outcome, expected: Any, own: Any = None
) -> Problem | None:
    """What is wrong with an outcome; None if it is right.

    own: the reference's value in the inputs' own dtype, where no more may be asked of an answer
        than of the reference: large terms that cancel leave few digits of what they add up to.
    """
    if outcome.failure:
        return _failure_problem(outcome.failure)
    if outcome.altered:
        names = input_names(exercise, case)
        named = (say("`{name}`", name=as_code(names[k])) for k in outcome.altered)
        altered = joined(named, ", ")
        return Problem(say(ALTERED, altered=altered))
    wanted = case.stage.outputs or exercise.outputs
    return _value_problem(outcome.value, wanted, expected, case, own)


ALTERED = (
    "the input {altered} is altered in place: `x += …` and functions that end in `_` write into "
    "the tensor that they are given, `x = x + …` makes a new one"
)


def _value_problem(
    actual: Any, wanted: tuple[Output, ...], expected: Any, case: Case, own: Any
) -> Problem | None:
    if len(wanted) == 1:
        actual, expected, own = (actual,), (expected,), (own,)
    elif not isinstance(actual, tuple) or len(actual) != len(wanted):
        names = joined((name_of(output) for output in wanted), ", ")
        told = say("it must return ({names}), got {got}", names=names, got=describe(actual))
        return perhaps_unreturned(told, actual)
    slacks = map(_slack, own or (None,) * len(wanted), expected)
    for output, value, target, slack in zip(wanted, actual, expected, slacks, strict=True):
        name = say("`{name}`", name=name_of(output))
        if value is None and target is not None and len(wanted) > 1:
            return Problem(say("{name} is missing: None is returned in its place", name=name))
        aim = Expected(name, tuple(output.axes.split()), target, slack)
        problem = compare.problem(value, aim, case.dtype)
        if problem:
            return problem
    return None


def _slack(own: Any, exact: Any) -> float:
    """How much is let pass because the reference itself is off in this dtype."""
    if not (isinstance(own, torch.Tensor) and own.is_floating_point() and own.numel()):
        return 0.0
    off = float((own.double() - exact.double()).abs().max())
    return TIMES_OWN * off if off < torch.inf else 0.0


def name_of(output: Output) -> Spoken:
    """What a returned value is called."""
    return as_code(output.name)


def as_code(name: Spoken) -> Spoken:
    """What a value is called: its name is code, unless it is a sentence that says what it is."""
    return Code(name) if isinstance(name, str) else name


def _failure_problem(failure: Failure) -> Problem:
    if failure.timed_out:
        words = (
            "it did not end within its time limit ({limit}): is it very slow, or is there an "
            "endless loop?"
        )
        return Problem(say(words, limit=_limit(failure)), asks=True)
    text = failure.text or say("(no text)")
    # PyTorch's or the answer's own words, which nobody translates
    asks = isinstance(failure.text, str) and failure.text.endswith("?")
    words = "it raised {kind}: {text}"
    if failure.line:
        words, asks = "it raised {kind}: {text} at `{line}`", False
    told = say(words, kind=failure.kind, text=text, line=failure.line)
    advised = advice(failure.kind, failure.text) if isinstance(failure.text, str) else None
    if advised is None:
        return Problem(told, asks)
    return Problem(say("{told}. {advice}", told=told, advice=constant(advised)))


def _limit(failure: Failure) -> Spoken:
    """The time that was too short: that of one call, or of all together."""
    if failure.of_all:
        return say("more than {seconds:g} s for all probes together", seconds=failure.seconds)
    return say("more than {seconds:g} s", seconds=failure.seconds)


def comparable(finding: Finding) -> bool:
    """Whether the answer's value has the reference's form, so that a diagnosis may read it."""

    def alike(actual: Any, expected: Any) -> bool:
        if isinstance(expected, tuple):
            same_length = isinstance(actual, tuple) and len(actual) == len(expected)
            return same_length and all(map(alike, actual, expected))
        if isinstance(expected, torch.Tensor):
            if not isinstance(actual, torch.Tensor) or actual.shape != expected.shape:
                return False
            dtype = finding.case.dtype
            return actual.device == expected.device and not compare.wrong_dtype(
                actual, expected, dtype
            )
        return type(actual) is type(expected)

    return finding.outcome.failure is None and alike(finding.outcome.value, finding.expected)


def input_names(exercise: Exercise, case: Case) -> tuple[Spoken, ...]:
    """The names of a case's arguments."""
    if case.stage.inputs:
        return case.stage.inputs
    if case.stage.call:
        return positional_names(case.stage.call)[1:]
    return exercise.parameters


def same_outcome(one: Outcome, other: Outcome, dtype: torch.dtype) -> bool:
    """Whether two calls did the same: the value, the kind of error, what was altered."""
    if one.failure or other.failure:
        return bool(one.failure and other.failure and one.failure.kind == other.failure.kind)
    return one.altered == other.altered and compare.same(one.value, other.value, dtype)
