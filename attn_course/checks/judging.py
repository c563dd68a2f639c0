"""From what an answer did to a verdict that names the mistake.

`observe` runs the answer and records outcomes; `judge` compares outcomes with the
reference's. The two meet only in plain data, so they may live in different processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from attn_course.checks.compare import SHOWN_NUMBERS, describe
from attn_course.checks.exercise import (
    Case,
    Diagnosis,
    Exercise,
    Output,
    Seen,
    call_stage,
    tensors_in,
)
from attn_course.checks.findings import (
    Finding,
    as_code,
    comparable,
    examined,
    input_names,
    name_of,
    observe,
    same_outcome,
)
from attn_course.checks.naming import known_mistake
from attn_course.checks.report import Example, Report
from attn_course.checks.runner import Outcome, copy_of, detached
from attn_course.sentences import Sentence, Spoken, constant, joined, say

__all__ = ["judge", "observe"]


def judge(exercise: Exercise, cases: Sequence[Case], outcomes: Sequence[Outcome]) -> Report:
    """The report on an answer, from its outcomes on the cases and on the first one again."""
    findings = [
        examined(exercise, case, outcome) for case, outcome in zip(cases, outcomes, strict=False)
    ]
    stages = _stages_passed(exercise, findings)
    wrong = [f for f in findings if f.problem and not f.case.stage.remark]
    if wrong:
        return replace(_explained(exercise, findings, wrong), stages=stages)
    if not same_outcome(outcomes[0], outcomes[-1], cases[0].dtype):
        return Report(exercise.name, False, None, UNREPEATABLE, stages=stages)
    names = joined((name for name, _ in stages), ", ")
    done = say("Right on all {n} probes ({names}).", n=len(findings), names=names)
    remarks = tuple(_remarks(exercise, findings))
    return Report(exercise.name, True, None, done, remarks, stages)


UNREPEATABLE = (
    "The same inputs gave another result the second time: "
    "the function keeps or changes something outside itself between two calls."
)


def _explained(exercise: Exercise, findings: Sequence[Finding], wrong: Sequence[Finding]) -> Report:
    """The cause: a known mistake, a stage's own diagnosis, or where and how it differs."""
    first = wrong[0]
    failure = first.outcome.failure
    if failure and failure.unwritten:
        return Report(exercise.name, False, None, _unwritten(failure.text))
    if failure and failure.timed_out:
        return _report(exercise, first)
    stage = first.case.stage
    of_stage = [f for f in wrong if f.case.stage is stage]
    named = known_mistake(exercise, findings, wrong)
    if named:
        # a mistake that explains this stage only does not explain the numbers of another
        shown = _most_telling(wrong if named.everywhere else of_stage)
        cause = joined((mistake.message for mistake in named.mistakes), "\n")
        return _report(exercise, shown, cause, tuple(mistake.id for mistake in named.mistakes))
    shown = min(of_stage, key=lambda finding: finding.case.size)
    diagnosis = _diagnosis(of_stage)
    if diagnosis:
        ids = (diagnosis.mistake,) if diagnosis.mistake else ()
        return _report(exercise, shown, diagnosis.message, ids)
    # an error, a wrong type, an altered input speaks for itself; the stage's words are about
    # wrong numbers
    wrong_numbers = comparable(shown) and not shown.outcome.altered
    return _report(exercise, shown, stage.message if wrong_numbers else "")


def _report(
    exercise: Exercise, shown: Finding, cause: Spoken = "", mistakes: tuple[str, ...] = ()
) -> Report:
    """The report on a wrong answer, with the probe that shows it."""
    first = mistakes[0] if mistakes else None
    example = _example(exercise, shown)
    return Report(exercise.name, False, first, cause, example=example, mistakes=mistakes)


def _unwritten(text: str | Sentence) -> Spoken:
    if text:
        words = "Nothing to judge yet: the body still raises NotImplementedError ({text})."
        return say(words, text=text)
    return say("Nothing to judge yet: the body still raises NotImplementedError.")


def _most_telling(findings: Sequence[Finding]) -> Finding:
    """The case to show: one with numbers to do on paper if there is one, else the smallest.

    What the answer itself returns is told before what was made of it, such as its gradients.
    """

    def rank(finding: Finding) -> tuple[bool, bool, int]:
        size = finding.case.size
        derived = finding.case.stage.outputs is not None
        return derived, not (comparable(finding) and size <= SHOWN_NUMBERS), size

    return min(findings, key=rank)


def _diagnosis(of_stage: Sequence[Finding]) -> Diagnosis | None:
    diagnose = of_stage[0].case.stage.diagnose
    numbers = [f for f in of_stage if comparable(f) and not f.outcome.altered]
    seen = [Seen(f.case.args, f.outcome.value, f.expected) for f in numbers]
    try:
        return diagnose(seen) if diagnose and seen else None
    except Exception:
        return None  # numbers that nobody foresaw: the stage's own words are left


def _example(exercise: Exercise, finding: Finding) -> Example:
    """The inputs, small ones in numbers, what is wrong there, and small results."""
    assert finding.problem is not None
    names = input_names(exercise, finding.case)
    small = finding.case.size <= SHOWN_NUMBERS
    inputs = tuple(
        (as_code(name), _shown_input(value, small))
        for name, value in zip(names, finding.case.args, strict=False)
        if value is not None
    )
    results = tensors_in(finding.expected)
    readable = small and all(result.numel() <= SHOWN_NUMBERS for result in results)
    # beside an input that was altered the results may well be equal
    if not (readable and comparable(finding)) or finding.outcome.altered:
        return Example(inputs, finding.problem)
    wanted = finding.case.stage.outputs or exercise.outputs
    yours, expected = finding.outcome.value, finding.expected
    return Example(inputs, finding.problem, _listed(wanted, yours), _listed(wanted, expected))


def _listed(wanted: tuple[Output, ...], value: Any) -> tuple[tuple[Spoken, Spoken], ...]:
    """The outputs by name, in numbers."""
    values = value if len(wanted) > 1 else (value,)
    return tuple((name_of(o), describe(v)) for o, v in zip(wanted, values, strict=True))


def _shown_input(value: Any, small: bool) -> Spoken:
    """An argument: in numbers, or its shape; one that holds several is shown as them."""
    if isinstance(value, tuple | list):
        items = joined((_shown_input(item, small) for item in value), ", ")
        return say("({items})", items=items)
    if isinstance(value, torch.Tensor) and not small:
        shape = tuple(value.shape)
        words = "mask {shape}" if value.dtype == torch.bool else "tensor {shape}"
        return say(words, shape=shape)
    return describe(value)


def _stages_passed(exercise: Exercise, findings: Sequence[Finding]) -> tuple[tuple[str, bool], ...]:
    """Each stage that counts, and whether all its cases were reached and are right."""
    passed = {}
    for stage in exercise.stages:
        if not stage.remark:
            of_stage = [f for f in findings if f.case.stage is stage]
            passed[stage.name] = bool(of_stage) and not any(f.problem for f in of_stage)
    return tuple(passed.items())


def _remarks(exercise: Exercise, findings: Sequence[Finding]) -> Iterator[Spoken]:
    told = set()
    for finding in findings:
        stage = finding.case.stage
        if finding.problem and stage.remark and stage.name not in told:
            told.add(stage.name)
            words = "{remark} ({problem})"
            yield say(words, remark=constant(stage.message), problem=finding.problem.told)
    wider = next(filter(None, (_wider(exercise, finding) for finding in findings)), None)
    if wider:
        yield wider


def _wider(exercise: Exercise, finding: Finding) -> Spoken | None:
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
    if not any(tensor.is_floating_point() for tensor in tensors_in(finding.case.args)):
        words = "The result is {found}, wider than the {dtype} of PyTorch's own results; cast it."
    else:
        words = "The inputs are {dtype} and the result is {found}; cast it back."
    return say(words, found=found, dtype=dtype)


def _widest(value: Any) -> torch.dtype | None:
    floats = [t.dtype for t in tensors_in(value) if t.is_floating_point()]
    return min(floats, key=lambda dtype: torch.finfo(dtype).eps) if floats else None


def _finer(one: torch.dtype, other: torch.dtype) -> bool:
    return torch.finfo(one).eps < torch.finfo(other).eps
