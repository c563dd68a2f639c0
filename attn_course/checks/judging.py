"""From what an answer did to a verdict that names the mistake.

`observe` runs the answer and records outcomes; `judge` compares outcomes with the
reference's. The two meet only in plain data, so they may live in different processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import torch

from attn_course.checks import compare
from attn_course.checks.compare import SHOWN_NUMBERS, Expected, describe
from attn_course.checks.exercise import (
    Answer,
    Case,
    Diagnosis,
    Exercise,
    Mistake,
    Output,
    Seen,
    as_float64,
    call_stage,
    positional_names,
    tensors_in,
)
from attn_course.checks.report import Report
from attn_course.checks.runner import TIME_LIMIT, Failure, Outcome, copy_of, detached, run

TOTAL_LIMIT = 30.0
"""Seconds of wall-clock time for all calls of one answer together."""


def observe(answer: Answer, cases: Sequence[Case]) -> list[Outcome]:
    """Call `answer` on each case, and on the first one again; stop at the time limit."""
    return list(_outcomes(answer, [*cases, *cases[:1]]))


def _outcomes(answer: Answer, cases: Sequence[Case]) -> Iterator[Outcome]:
    """Call `answer` on each case as it is asked for; stop at the time limit."""
    end = monotonic() + TOTAL_LIMIT
    for case in cases:
        args = copy_of(case.args)
        seconds = max(0.1, min(TIME_LIMIT, end - monotonic()))
        outcome = run(lambda a=args, s=case.stage: call_stage(s, answer, a), args, seconds)
        yield outcome
        failure = outcome.failure
        if failure and (failure.timed_out or failure.unwritten):
            break


@dataclass(frozen=True)
class Finding:
    """One case with what the answer did there and what is wrong with it (None: nothing)."""

    case: Case
    outcome: Outcome
    expected: Any
    problem: str | None


def judge(exercise: Exercise, cases: Sequence[Case], outcomes: Sequence[Outcome]) -> Report:
    """The report on an answer, from its outcomes on the cases and on the first one again."""
    findings = [
        _examine(exercise, case, outcome) for case, outcome in zip(cases, outcomes, strict=False)
    ]
    stages = _stages_passed(exercise, findings)
    wrong = [f for f in findings if f.problem and not f.case.stage.remark]
    if wrong:
        mistake, message = _explain(exercise, findings, wrong)
        return Report(exercise.name, False, mistake, message, stages=stages)
    if not _same_outcome(outcomes[0], outcomes[-1], cases[0].dtype):
        message = (
            "The same inputs gave another result the second time: "
            "the function keeps or changes something outside itself between two calls."
        )
        return Report(exercise.name, False, None, message, stages=stages)
    done = f"Right on all {len(findings)} probes ({', '.join(name for name, _ in stages)})."
    return Report(exercise.name, True, None, done, tuple(_remarks(exercise, findings)), stages)


def _examine(exercise: Exercise, case: Case, outcome: Outcome) -> Finding:
    exact = as_float64(copy_of(case.args))
    expected = detached(call_stage(case.stage, exercise.reference, exact))
    if outcome.failure:
        return Finding(case, outcome, expected, _failure_problem(outcome.failure))
    if outcome.altered:
        names = _input_names(exercise, case)
        altered = ", ".join(f"`{names[k]}`" for k in outcome.altered)
        return Finding(case, outcome, expected, f"the input {altered} is altered in place")
    wanted = case.stage.outputs or exercise.outputs
    return Finding(case, outcome, expected, _value_problem(outcome.value, wanted, expected, case))


def _value_problem(
    actual: Any, wanted: tuple[Output, ...], expected: Any, case: Case
) -> str | None:
    if len(wanted) == 1:
        actual, expected = (actual,), (expected,)
    elif not isinstance(actual, tuple) or len(actual) != len(wanted):
        names = ", ".join(output.name for output in wanted)
        return f"it must return ({names}), got {describe(actual)}" + (
            ": is there a `return`?" if actual is None else ""
        )
    for output, value, target in zip(wanted, actual, expected, strict=True):
        aim = Expected(f"`{output.name}`", tuple(output.axes.split()), target)
        problem = compare.problem(value, aim, case.dtype)
        if problem:
            return problem
    return None


def _failure_problem(failure: Failure) -> str:
    if failure.timed_out:
        return f"it did not end within its time limit ({failure.text}): is there an endless loop?"
    where = f" at `{failure.line}`" if failure.line else ""
    return f"it raised {failure.kind}: {failure.text or '(no text)'}{where}"


def _explain(
    exercise: Exercise, findings: Sequence[Finding], wrong: Sequence[Finding]
) -> tuple[str | None, str]:
    """The cause: a known mistake, a stage's own diagnosis, or where and how it differs."""
    first = wrong[0]
    failure = first.outcome.failure
    if failure and failure.unwritten:
        todo = f" ({failure.text})" if failure.text else ""
        return None, f"Nothing to judge yet: the body still raises NotImplementedError{todo}."
    if failure and failure.timed_out:
        return None, _in_words(exercise, first)
    stage = first.case.stage
    of_stage = [f for f in wrong if f.case.stage is stage]
    mistake, everywhere = _known_mistake(exercise, findings, wrong)
    if mistake:
        # a mistake that explains this stage only does not explain the numbers of another
        shown = _most_telling(wrong if everywhere else of_stage)
        return mistake.id, f"{mistake.message}\n{_in_words(exercise, shown)}"
    shown = min(of_stage, key=lambda finding: finding.case.size)
    diagnosis = _diagnosis(of_stage)
    if diagnosis:
        return diagnosis.mistake, f"{diagnosis.message}\n{_in_words(exercise, shown)}"
    told = _in_words(exercise, shown)
    # an error, a wrong type, an altered input speaks for itself; the stage's words are about
    # wrong numbers
    wrong_numbers = _comparable(shown) and not shown.outcome.altered
    return None, f"{stage.message}\n{told}" if wrong_numbers else told


def _most_telling(findings: Sequence[Finding]) -> Finding:
    """The case to show: one with numbers to do on paper if there is one, else the smallest.

    What the answer itself returns is told before what was made of it, such as its gradients.
    """

    def rank(finding: Finding) -> tuple[bool, bool, int]:
        size = finding.case.size
        derived = finding.case.stage.outputs is not None
        return derived, not (_comparable(finding) and size <= SHOWN_NUMBERS), size

    return min(findings, key=rank)


def _diagnosis(of_stage: Sequence[Finding]) -> Diagnosis | None:
    diagnose = of_stage[0].case.stage.diagnose
    numbers = [f for f in of_stage if _comparable(f) and not f.outcome.altered]
    seen = [Seen(f.case.args, f.outcome.value, f.expected) for f in numbers]
    try:
        return diagnose(seen) if diagnose and seen else None
    except Exception:
        return None  # numbers that nobody foresaw: the stage's own words are left


def _comparable(finding: Finding) -> bool:
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


def _known_mistake(
    exercise: Exercise, findings: Sequence[Finding], wrong: Sequence[Finding]
) -> tuple[Mistake | None, bool]:
    """The mistake that does what the answer does on the first bad stage, and whether it does so
    on all other probes too, which is preferred.
    """
    findings = [f for f in findings if not f.case.stage.remark]
    stage = wrong[0].case.stage
    with_value = any(f.outcome.failure is None for f in wrong if f.case.stage is stage)
    # RuntimeError on every probe is no fingerprint: then the error's text must agree too
    always = all(finding.outcome.failure for finding in findings)
    on_stage = [finding for finding in findings if finding.case.stage is stage]
    elsewhere = [finding for finding in findings if finding.case.stage is not stage]
    best, most = None, -1
    for mistake, version in ((m, v) for m in exercise.mistakes for v in m.versions):
        # most mistakes differ on this stage already, and need not be run on the other probes
        if all(_agreements(version, on_stage, text=always)):
            agrees = list(_agreements(version, elsewhere, text=always))
            if all(agrees):
                return mistake, True
            if with_value and sum(agrees) > most:
                best, most = mistake, sum(agrees)
    return best, False


def _agreements(answer: Answer, findings: Sequence[Finding], *, text: bool) -> Iterator[bool]:
    """Case by case, whether a known mistake does what the learner's answer did."""
    # one after the other: most mistakes differ on the first case already
    outcomes = _outcomes(answer, [finding.case for finding in findings])
    for finding in findings:
        outcome = next(outcomes, None)
        yield (
            outcome is not None
            and _same_outcome(outcome, finding.outcome, finding.case.dtype)
            and (not text or _same_text(outcome, finding.outcome))
        )


def _same_outcome(one: Outcome, other: Outcome, dtype: torch.dtype) -> bool:
    if one.failure or other.failure:
        return bool(one.failure and other.failure and one.failure.kind == other.failure.kind)
    return one.altered == other.altered and compare.same(one.value, other.value, dtype)


def _same_text(one: Outcome, other: Outcome) -> bool:
    return bool(one.failure and other.failure and one.failure.text == other.failure.text)


def _in_words(exercise: Exercise, finding: Finding) -> str:
    """The inputs, small ones in numbers, and what is wrong there."""
    names = _input_names(exercise, finding.case)
    small = finding.case.size <= SHOWN_NUMBERS
    inputs = ", ".join(
        f"{name} = {_shown_input(value, small)}"
        for name, value in zip(names, finding.case.args, strict=False)
        if value is not None
    )
    text = f"With {inputs}: {finding.problem}" if inputs else f"{finding.problem}"
    text += "" if text.endswith("?") else "."
    results = tensors_in(finding.expected)
    if small and _comparable(finding) and all(r.numel() <= SHOWN_NUMBERS for r in results):
        wanted = finding.case.stage.outputs or exercise.outputs
        text += f"\nYours: {_listed(wanted, finding.outcome.value)}"
        text += f"\nExpected: {_listed(wanted, finding.expected)}"
    return text


def _listed(wanted: tuple[Output, ...], value: Any) -> str:
    """The outputs by name, in numbers."""
    values = value if len(wanted) > 1 else (value,)
    return ", ".join(f"{o.name} = {describe(v)}" for o, v in zip(wanted, values, strict=True))


def _shown_input(value: Any, small: bool) -> str:
    """An argument: in numbers, or its shape; one that holds several is shown as them."""
    if isinstance(value, tuple | list):
        return f"({', '.join(_shown_input(item, small) for item in value)})"
    if isinstance(value, torch.Tensor) and not small:
        return f"{'mask ' if value.dtype == torch.bool else ''}{tuple(value.shape)}"
    return describe(value)


def _input_names(exercise: Exercise, case: Case) -> tuple[str, ...]:
    if case.stage.inputs:
        return case.stage.inputs
    if case.stage.call:
        return positional_names(case.stage.call)[1:]
    return exercise.parameters


def _stages_passed(exercise: Exercise, findings: Sequence[Finding]) -> tuple[tuple[str, bool], ...]:
    """Each stage that counts, and whether all its cases were reached and are right."""
    passed = {}
    for stage in exercise.stages:
        if not stage.remark:
            of_stage = [f for f in findings if f.case.stage is stage]
            passed[stage.name] = bool(of_stage) and not any(f.problem for f in of_stage)
    return tuple(passed.items())


def _remarks(exercise: Exercise, findings: Sequence[Finding]) -> Iterator[str]:
    told = set()
    for finding in findings:
        stage = finding.case.stage
        if finding.problem and stage.remark and stage.name not in told:
            told.add(stage.name)
            yield f"{stage.message} ({finding.problem})"
    wider = next(filter(None, (_wider(exercise, finding) for finding in findings)), None)
    if wider:
        yield wider


def _wider(exercise: Exercise, finding: Finding) -> str | None:
    """What to say of a result in a wider dtype than the inputs have: it costs memory, no more.

    Where the reference's is as wide, the width comes from how the stage looks at it.
    """
    dtype, stage = finding.case.dtype, finding.case.stage
    found = _widest(finding.outcome.value)
    if found is None or not _finer(found, dtype):
        return None
    reference = _widest(detached(call_stage(stage, exercise.reference, copy_of(finding.case.args))))
    if reference is None or _finer(reference, dtype):
        return None
    return f"The inputs are {dtype} and the result is {found}; cast it back."


def _widest(value: Any) -> torch.dtype | None:
    floats = [t.dtype for t in tensors_in(value) if t.is_floating_point()]
    return min(floats, key=lambda dtype: torch.finfo(dtype).eps) if floats else None


def _finer(one: torch.dtype, other: torch.dtype) -> bool:
    return torch.finfo(one).eps < torch.finfo(other).eps
