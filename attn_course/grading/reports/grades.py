"""The full grades of a run, grades.json, from which every other report is made."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from attn_course import __version__
from attn_course.grading.intake.plan import File, Plan
from attn_course.grading.intake.scaffold import Scaffold
from attn_course.grading.settings import RunSettings
from attn_course.grading.text import clean_data
from attn_course.grading.verdict import Verdict
from attn_course.sentences import Spoken, as_data, from_data


@dataclass(frozen=True)
class Grades:
    """A run as plain JSON data, with what reports ask of it."""

    data: dict[str, Any]

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """All rows: by student, chapter and the course's order of exercises."""
        return [Verdict.from_data(fields) for fields in self.data["verdicts"]]

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

    @property
    def account(self) -> Spoken:
        """What became of all files, in one line without a full stop."""
        return from_data(self.data["account"])

    @cached_property
    def files(self) -> list[File]:
        """Every file that went in, and what became of it."""
        return [File.from_data(fields) for fields in self.data["files"]]

    @cached_property
    def tolerated(self) -> dict[tuple[str, str], list[Spoken]]:
        """What was odd in a submission that was graded all the same, by student and chapter."""
        return {
            (student, chapter): list(map(from_data, notes))
            for student, chapters in self.data["notes"].items()
            for chapter, notes in chapters.items()
        }


def make_grades(
    plan: Plan,
    verdicts: Mapping[tuple[str, str], Sequence[Verdict]],
    scaffolds: Mapping[str, Scaffold],
    settings: RunSettings,
) -> Grades:
    """The grades of a run; `verdicts` by student and chapter, for every submission of the plan."""
    rows = [v for rebuilt in plan.submissions for v in verdicts[rebuilt.student, rebuilt.chapter]]
    rows += [
        Verdict(student, "", "", 0.0, 0.0, settled.status, cause=settled.cause)
        for student, settled in plan.adrift.items()
    ]
    notes: dict[str, dict[str, list[Any]]] = {}
    for rebuilt in plan.submissions:
        if rebuilt.notes:
            found = [as_data(note) for note in rebuilt.notes]
            notes.setdefault(rebuilt.student, {})[rebuilt.chapter] = found
    data = {
        "course_version": __version__,
        "seed": settings.seed,
        "settings": dataclasses.asdict(settings),
        "chapters": list(plan.chapters),
        "exercises": [
            {
                "chapter": chapter,
                "exercise": exercise.name,
                "number": exercise.number,
                "max_points": exercise.points,
                "optional": exercise.optional,
            }
            for chapter in plan.chapters
            for exercise in scaffolds[chapter].exercises
        ],
        "students": {
            student: {"platform": sender.platform, "platform_id": sender.platform_id}
            for student, sender in sorted(plan.senders.items())
        },
        "files": [file.as_data() for file in plan.files],
        "account": as_data(plan.account()),
        "notes": notes,
        "verdicts": [verdict.as_data() for verdict in rows],
    }
    return Grades(clean_data(data))
