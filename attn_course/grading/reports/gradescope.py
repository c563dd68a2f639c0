"""Gradescope's results.json for one student."""

from __future__ import annotations

import json
from typing import Any

from attn_course.grading.reports.feedback import told
from attn_course.grading.reports.grades import Grades


def results_json(grades: Grades, student: str) -> str:
    """All exercises of a student as Gradescope's tests, visible, with their messages as text."""
    rows = [v for v in grades.verdicts if v.student == student and v.exercise]
    tests: list[dict[str, Any]] = [
        {
            "name": f"Exercise {grades.numbers[v.chapter, v.exercise]}: {v.exercise}",
            "number": grades.numbers[v.chapter, v.exercise],
            "score": v.points,
            # points of an optional exercise come on top of what can be reached
            "max_score": 0 if (v.chapter, v.exercise) in grades.optional else v.max_points,
            "status": "passed" if v.status == "ok" else "failed",
            "output": f"{v.status}. {told(v)}".strip(),
            "output_format": "text",
            "visibility": "visible",
        }
        for v in rows
    ]
    results = {
        "score": sum(v.points for v in rows),
        "output": "" if rows else "No chapter of the course was found in what was handed in.",
        "output_format": "text",
        "visibility": "visible",
        "tests": tests,
    }
    return json.dumps(results, indent=1, ensure_ascii=False)
