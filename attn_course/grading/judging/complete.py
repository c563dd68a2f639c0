"""One row for every exercise, whatever a run has said of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from attn_course.grading.rebuilt import Rebuilt, Settled
from attn_course.grading.verdict import Verdict
from attn_course.grading.workers import Finished
from attn_course.sentences import Spoken, constant, say

NOT_GRADED = Settled(
    "error", "This could not be graded. It is the grader's fault, not the answer's."
)
FAILED = "the grader failed: {why}"
SILENT = "it said nothing"


def complete(done: Finished) -> list[Verdict]:
    """One verdict for each exercise of a submission, in order.

    What was settled before running stands, whatever the run says; an exercise that the run has
    said nothing about gets a row that asks for a human.
    """
    made = {verdict.exercise: verdict for verdict in done.verdicts or ()}
    failed = say(FAILED, why=constant(done.failure or SILENT))
    return [
        _held(made[row.exercise], row, done.rebuilt) if row.exercise in made else row
        for row in unjudged(done.rebuilt, NOT_GRADED, [failed])
    ]


def unjudged(rebuilt: Rebuilt, otherwise: Settled, human: Iterable[Spoken] = ()) -> list[Verdict]:
    """The rows of exercises of which only that is known that was settled, else `otherwise`."""
    answers = {cell.exercise: cell.source for cell in rebuilt.cells if cell.kind == "answer"}
    rows = []
    for cell in rebuilt.checks:
        name = cell.exercise or ""
        said = rebuilt.settled.get(name, otherwise)
        row = Verdict(
            rebuilt.student, rebuilt.chapter, name, 0.0, cell.points, said.status, cause=said.cause
        )
        if name in answers:
            row = replace(row, detail={"code": answers[name]})
        rows.append(row if name in rebuilt.settled else replace(row, human=tuple(human)))
    return rows


def _held(made: Verdict, row: Verdict, rebuilt: Rebuilt) -> Verdict:
    """What a run has said of an exercise, held to what is known of it."""
    detail = {**row.detail, **made.detail}
    if row.exercise in rebuilt.settled:
        return replace(row, notes=made.notes, human=made.human, detail=detail)
    return replace(
        made,
        student=row.student,
        chapter=row.chapter,
        points=max(0.0, min(float(made.points), row.max_points)),
        max_points=row.max_points,
        detail=detail,
    )
