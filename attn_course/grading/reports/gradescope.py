"""Gradescope's results.json for one student."""

from __future__ import annotations

import json
from typing import Any

from attn_course.grading.reports.grades import Grades
from attn_course.grading.verdict import Verdict
from attn_course.sentences import constant, say, spoken

NAME, STATUS = "Exercise {number}: {name}", "{status}."
NO_CHAPTER = "No chapter of the course was found in what was handed in."


def results_json(grades: Grades, student: str) -> str:
    """All exercises of a student as Gradescope's tests, visible, with their messages as text."""
    rows = [v for v in grades.verdicts if v.student == student and v.exercise]
    results = {
        "score": sum(v.points for v in rows),
        "output": "" if rows else spoken(NO_CHAPTER),
        "output_format": "text",
        "visibility": "visible",
        "tests": [_test(grades, verdict) for verdict in rows],
    }
    return json.dumps(results, indent=1, ensure_ascii=False)


def _test(grades: Grades, verdict: Verdict) -> dict[str, Any]:
    key = verdict.chapter, verdict.exercise
    status = spoken(say(STATUS, status=constant(verdict.status)))
    return {
        "name": spoken(say(NAME, number=grades.numbers[key], name=verdict.exercise)),
        "number": grades.numbers[key],
        "score": verdict.points,
        # points of an optional exercise come on top of what can be reached
        "max_score": 0 if key in grades.optional else verdict.max_points,
        "status": "passed" if verdict.status == "ok" else "failed",
        "output": f"{status} {verdict.feedback}".strip(),
        "output_format": "text",
        "visibility": "visible",
    }
