"""From what an answer did to a verdict that names the mistake.

`observe` runs the answer and records outcomes; `judge` compares outcomes with the
reference's. The two meet only in plain data, so they may live in different processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    comparable,
    examined,
    input_names,
    observe,
    same_outcome,
)
from attn_course.checks.naming import known_mistake
from attn_course.checks.report import Report
from attn_course.checks.runner import Outcome, copy_of, detached

__all__ = ["judge", "observe"]


def judge(exercise: Exercise, cases: Sequence[Case], outcomes: Sequence[Outcome]) -> Report:
    """The report on an answer, from its outcomes on the cases and on the first one again."""
    findings = [
        examined(exercise, case, outcome) for case, outcome in zip(cases, outcomes, strict=False)
    ]
    stages = _stages_passed(exercise, findings)
    wrong = [f for f in findings if f.problem and not f.case.stage.remark]
    if wrong:
        mistake, message = _explain(exercise, findings, wrong)
        return Report(exercise.name, False, mistake, message, stages=stages)
    if not same_outcome(outcomes[0], outcomes[-1], cases[0].dtype):
        message = (
            "The same inputs gave another result the second time: "
            "the function keeps or changes something outside itself between two calls."
        )
        return Report(exercise.name, False, None, message, stages=stages)
    done = f"Right on all {len(findings)} probes ({', '.join(name for name, _ in stages)})."
    return Report(exercise.name, True, None, done, tuple(_remarks(exercise, findings)), stages)


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
    mistake, everywhere = known_mistake(exercise, findings, wrong)
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
    wrong_numbers = comparable(shown) and not shown.outcome.altered
    return None, f"{stage.message}\n{told}" if wrong_numbers else told


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


def _in_words(exercise: Exercise, finding: Finding) -> str:
    """The inputs, small ones in numbers, and what is wrong there."""
    names = input_names(exercise, finding.case)
    small = finding.case.size <= SHOWN_NUMBERS
    inputs = ", ".join(
        f"{name} = {_shown_input(value, small)}"
        for name, value in zip(names, finding.case.args, strict=False)
        if value is not None
    )
    text = f"With {inputs}: {finding.problem}" if inputs else f"{finding.problem}"
    text += "" if text.endswith("?") else "."
    results = tensors_in(finding.expected)
    if small and comparable(finding) and all(r.numel() <= SHOWN_NUMBERS for r in results):
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
    if not any(tensor.is_floating_point() for tensor in tensors_in(finding.case.args)):
        return f"The result is {found}, wider than the {dtype} of PyTorch's own results; cast it."
    return f"The inputs are {dtype} and the result is {found}; cast it back."


def _widest(value: Any) -> torch.dtype | None:
    floats = [t.dtype for t in tensors_in(value) if t.is_floating_point()]
    return min(floats, key=lambda dtype: torch.finfo(dtype).eps) if floats else None


def _finer(one: torch.dtype, other: torch.dtype) -> bool:
    return torch.finfo(one).eps < torch.finfo(other).eps
