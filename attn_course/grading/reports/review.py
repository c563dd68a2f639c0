"""What an instructor should look at: concerns for a human, common mistakes, similar answers."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass

from attn_course.grading.intake.plan import File
from attn_course.grading.reports.grades import Grades
from attn_course.grading.student_code import shape
from attn_course.grading.verdict import STATUSES, Verdict
from attn_course.sentences import Spoken, constant, say

_ALWAYS = {
    "killed": "its kernel was killed; look whether that was meant",
    "timeout": "it ran into a time limit",
    "unmatched": "the file or the cell does not fit the exercise",
    "corrupt": "a file cannot be read",
    "forbidden": "it calls what the exercise does not allow",
}
FEW = "only {n} of {all} handed this chapter in; if it was not asked for, grade with --chapter"

_SMALL_SHARE = 0.1


@dataclass(frozen=True)
class Concern:
    """One thing for a human to look at; `exercise` is "" where it concerns the whole file."""

    student: str
    chapter: str
    exercise: str
    reasons: tuple[Spoken, ...]


@dataclass(frozen=True)
class Group:
    """Answers that are the same up to names, comments and layout."""

    exercise: str
    students: tuple[str, ...]
    statuses: tuple[str, ...]
    code: str


@dataclass(frozen=True)
class ExerciseFigures:
    """How a class did in one exercise."""

    chapter: str
    exercise: str
    number: str
    counts: dict[str, int]
    mean: float
    max_points: float
    mistakes: list[tuple[str, int, Spoken]]
    groups: list[Group]


@dataclass(frozen=True)
class ChapterFigures:
    """How a class did in one chapter: ten classes of percent, the last one including all."""

    chapter: str
    bins: list[int]
    mean: float
    median: float
    max_points: float
    handed_in: int


def concerns(grades: Grades) -> list[Concern]:
    """Everything that needs a human, by student."""
    found = [
        concern
        for key, rows in grades.by_submission.items()
        for concern in _concerns(grades, key, rows)
    ]
    found += _rare_chapters(grades)
    found += _unread_beside_graded(grades)
    return sorted(found, key=lambda concern: (concern.student, concern.chapter, concern.exercise))


def chapter_figures(grades: Grades, chapter: str) -> ChapterFigures:
    """The distribution of points in a chapter, of those who handed it in."""
    worth = grades.max_points(chapter)
    points = [
        grades.points(s, chapter) for s in grades.students if _has_answers(grades, s, chapter)
    ]
    bins = [0] * 10
    for value in points:
        bins[min(9, int(10 * value / worth)) if worth else 0] += 1
    mean = statistics.fmean(points) if points else 0.0
    median = statistics.median(points) if points else 0.0
    return ChapterFigures(chapter, bins, mean, median, worth, len(points))


def exercise_figures(grades: Grades) -> list[ExerciseFigures]:
    """How the class did in every exercise, in the course's order."""
    rows: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for verdict in grades.verdicts:
        rows[verdict.chapter, verdict.exercise].append(verdict)
    return [
        _figures(grades, chapter, exercise, rows[chapter, exercise])
        for chapter, exercise in grades.numbers
    ]


def groups(rows: list[Verdict]) -> list[Group]:
    """The answers of two or more students that are the same, the largest group first."""
    by_shape: dict[str, list[Verdict]] = defaultdict(list)
    for row in rows:
        if code := row.detail.get("code"):
            by_shape[shape(str(code))].append(row)
    found = [
        Group(
            same[0].exercise,
            tuple(row.student for row in same),
            tuple(sorted({row.status for row in same})),
            str(same[0].detail["code"]),
        )
        for same in by_shape.values()
        if len(same) > 1
    ]
    return sorted(found, key=lambda group: (-len(group.students), group.students))


def _rare_chapters(grades: Grades) -> list[Concern]:
    students = len(grades.students)
    counted = {chapter: _handed_in(grades, chapter) for chapter in grades.chapters}
    return [
        Concern("", chapter, "", (
            say(FEW, n=n, all=students),
        ))
        for chapter, n in counted.items()
        if 0 < n <= _SMALL_SHARE * students
    ]  # fmt: skip


def _unread_beside_graded(grades: Grades) -> list[Concern]:
    """Files that were of no use, of students who have another one that was."""
    graded = {file.student for file in grades.files if file.fate == "graded"}
    return [
        Concern(file.student, "", "", (_unread(file),))
        for file in grades.files
        if file.fate in ("corrupt", "unmatched") and file.student in graded
    ]


def _unread(file: File) -> Spoken:
    fate, reason = constant(file.fate), constant(file.reason)
    return say("{path}: {fate}, {reason}", path=file.path, fate=fate, reason=reason)


def _concerns(grades: Grades, key: tuple[str, str], rows: list[Verdict]) -> list[Concern]:
    student, chapter = key
    found = []
    if rows[0].status in ("corrupt", "unmatched") and _all_alike(rows):
        return [Concern(student, chapter, "", (_stated(rows[0].status, rows[0].cause),))]
    for row in rows:
        reasons = list(row.human)
        if row.status in _ALWAYS:
            reasons.append(_stated(row.status, _ALWAYS[row.status]))
        if row.status == "wrong" and row.mistake is None:
            reasons.append("wrong, and no known mistake explains it")
        if reasons:
            found.append(Concern(student, chapter, row.exercise, tuple(reasons)))
    return found


def _all_alike(rows: list[Verdict]) -> bool:
    return all((row.status, row.cause) == (rows[0].status, rows[0].cause) for row in rows)


def _stated(status: str, why: Spoken) -> Spoken:
    return say("{status}: {why}", status=constant(status), why=constant(why))


def _figures(grades: Grades, chapter: str, exercise: str, rows: list[Verdict]) -> ExerciseFigures:
    counted = Counter(row.status for row in rows)
    mistakes = Counter(row.mistake for row in rows if row.mistake)
    said = {row.mistake: row.cause for row in reversed(rows) if row.mistake}
    return ExerciseFigures(
        chapter=chapter,
        exercise=exercise,
        number=grades.numbers[chapter, exercise],
        counts={status: counted[status] for status in STATUSES if counted[status]},
        mean=statistics.fmean(row.points for row in rows) if rows else 0.0,
        max_points=rows[0].max_points if rows else 0.0,
        mistakes=[(name, n, said[name]) for name, n in mistakes.most_common(5)],
        groups=groups(rows),
    )


def _has_answers(grades: Grades, student: str, chapter: str) -> bool:
    rows = grades.by_submission.get((student, chapter), ())
    return any("code" in row.detail for row in rows)


def _handed_in(grades: Grades, chapter: str) -> int:
    return sum(_has_answers(grades, student, chapter) for student in grades.students)
