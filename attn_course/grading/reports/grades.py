"""The full grades of a run, grades.json, from which every other report is made."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from attn_course import __version__
from attn_course.grading.intake.plan import Plan
from attn_course.grading.intake.scaffold import Scaffold
from attn_course.grading.settings import RunSettings
from attn_course.grading.text import clean_data
from attn_course.grading.verdict import Verdict


@dataclass(frozen=True)
class Grades:
    """A run as plain JSON data, with what reports ask of it."""

    data: dict[str, Any]

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """All rows: by student, chapter and the course's order of exercises."""
        return [Verdict(**fields) for fields in self.data["verdicts"]]

    @cached_property
    def optional(self) -> frozenset[tuple[str, str]]:
        """Chapter and name of the exercises whose points come on top."""
        exercises = self.data["exercises"]
        return frozenset((e["chapter"], e["exercise"]) for e in exercises if e["optional"])

    @cached_property
    def numbers(self) -> dict[tuple[str, str], str]:
        """The numbers of the exercises, such as "3.2", by chapter and name."""
        return {(e["chapter"], e["exercise"]): e["number"] for e in self.data["exercises"]}

    @property
    def students(self) -> list[str]:
        """All students, sorted."""
        return sorted(self.data["students"])

    @property
    def chapters(self) -> list[str]:
        """The graded chapters."""
        return self.data["chapters"]

    @cached_property
    def by_submission(self) -> dict[tuple[str, str], list[Verdict]]:
        """The rows of each student and chapter."""
        rows = defaultdict(list)
        for verdict in self.verdicts:
            rows[verdict.student, verdict.chapter].append(verdict)
        return dict(rows)

    def points(self, student: str, chapter: str) -> float:
        """What a student has in a chapter."""
        return sum(v.points for v in self.by_submission.get((student, chapter), ()))

    def max_points(self, chapter: str) -> float:
        """What a chapter is worth, without optional exercises."""
        return sum(
            e["max_points"]
            for e in self.data["exercises"]
            if e["chapter"] == chapter and not e["optional"]
        )

    def notes(self, student: str, chapter: str) -> list[str]:
        """What was tolerated in a submission."""
        return self.data["notes"].get(student, {}).get(chapter, [])


def make_grades(
    plan: Plan,
    verdicts: Mapping[tuple[str, str], Sequence[Verdict]],
    scaffolds: Mapping[str, Scaffold],
    settings: RunSettings,
) -> Grades:
    """The grades of a run; `verdicts` by student and chapter, for every task of the plan."""
    rows = [v for task in plan.tasks for v in verdicts[task.student, task.chapter]]
    rows += [
        Verdict(student, "", "", 0.0, 0.0, problem.status, None, problem.message)
        for student, problem in plan.adrift.items()
    ]
    notes: dict[str, dict[str, list[str]]] = {}
    for task in plan.tasks:
        if task.notes:
            notes.setdefault(task.student, {})[task.chapter] = list(task.notes)
    data = {
        "course_version": __version__,
        "seed": settings.seed,
        "settings": dataclasses.asdict(settings),
        "chapters": list(plan.chapters),
        "exercises": [
            {
                "chapter": chapter,
                "exercise": task.name,
                "number": task.number,
                "max_points": task.points,
                "optional": task.optional,
            }
            for chapter in plan.chapters
            for task in scaffolds[chapter].tasks
        ],
        "students": {
            student: {"platform": sender.platform, "platform_id": sender.platform_id}
            for student, sender in sorted(plan.senders.items())
        },
        "files": [dataclasses.asdict(file) for file in plan.files],
        "account": plan.account(),
        "notes": notes,
        "verdicts": [dataclasses.asdict(verdict) for verdict in rows],
    }
    return Grades(clean_data(data))
