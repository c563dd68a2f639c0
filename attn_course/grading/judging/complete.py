"""One row for every exercise, whatever a run has said of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from attn_course.grading.rebuilt import Rebuilt
from attn_course.grading.verdict import Verdict


def complete(task: Rebuilt, given: Sequence[Verdict] | None, failure: str | None) -> list[Verdict]:
    """One verdict for each exercise of `task`, in order.

    What was settled before running stands, whatever the run says; an exercise that the run has
    said nothing about gets a row that asks for a human.
    """
    by_name = {verdict.exercise: verdict for verdict in given or ()}
    answers = {cell.exercise: cell.source for cell in task.cells if cell.kind == "answer"}
    verdicts = []
    for cell in task.checks:
        name, problem = cell.exercise or "", task.problems.get(cell.exercise or "")
        verdict = by_name.get(name)
        detail: dict[str, Any] = dict(verdict.detail) if verdict else {}
        if name in answers:
            detail.setdefault("code", answers[name])
        row = Verdict(task.student, task.chapter, name, 0.0, cell.points, "error", detail=detail)
        if problem is not None:
            row = dataclasses.replace(row, status=problem.status, message=problem.message)
        elif verdict is not None:
            row = dataclasses.replace(
                row,
                points=max(0.0, min(float(verdict.points), cell.points)),
                status=verdict.status,
                mistake=verdict.mistake,
                message=verdict.message,
            )
        else:
            message = "This could not be graded. It is the grader's fault, not the answer's."
            detail["human"] = [f"the grader failed: {failure or 'it said nothing'}"]
            row = dataclasses.replace(row, message=message)
        verdicts.append(row)
    return verdicts
