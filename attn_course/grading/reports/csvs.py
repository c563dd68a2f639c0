"""The tables: grades.csv, summary.csv, and what Canvas and Moodle import.

Names, messages and mistakes come from students. A spreadsheet takes a cell that begins like a
formula for one, quoted or not: such a cell gets an apostrophe in front, which it shows as text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from attn_course.course import find_chapter
from attn_course.grading.reports.grades import Grades
from attn_course.sentences import constant, joined, say, spoken

COMMENT = "{exercise}: {status}, {points} of {most}"

GRADES = (
    "student",
    "chapter",
    "exercise",
    "points",
    "max_points",
    "status",
    "mistake",
    "message",
)
"""The columns of grades.csv."""

# the last four are the same signs in full width, which some spreadsheets fold
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "＝", "＋", "－", "＠")


def grades_csv(grades: Grades) -> str:
    """A row for every student and exercise."""
    rows = (
        (
            v.student,
            v.chapter,
            v.exercise,
            number(v.points),
            number(v.max_points),
            v.status,
            v.mistake or "",
            v.message,
        )
        for v in grades.verdicts
    )
    return table(GRADES, rows)


def summary_csv(grades: Grades) -> str:
    """A row for every student: points in each chapter, and in all.

    What a chapter is worth leaves its optional exercises out; their points come on top.
    """
    chapters = grades.chapters
    header = ["student", *(f"chapter_{c}" for c in chapters), "points", "max_points"]
    most = sum(grades.max_points(chapter) for chapter in chapters)
    rows = []
    for student in grades.students:
        points = [grades.points(student, chapter) for chapter in chapters]
        rows.append([student, *map(number, points), number(sum(points)), number(most)])
    return table(header, rows)


def canvas_csv(grades: Grades) -> str:
    """Canvas's gradebook: a column for each chapter, students by Canvas's own number.

    Students whose files did not come from Canvas are named as their login, if they are at all.
    """
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    header += [chapter_title(chapter) for chapter in grades.chapters]
    worth = [number(grades.max_points(chapter)) for chapter in grades.chapters]
    rows: list[Sequence[str]] = [["    Points Possible", "", "", "", "", *worth]]
    for student in grades.students:
        known = grades.data["students"][student]
        from_canvas = known["platform"] == "canvas"
        identity = [known["platform_id"], "", ""] if from_canvas else ["", "", student]
        points = [number(grades.points(student, chapter)) for chapter in grades.chapters]
        rows.append([student, *identity, "", *points])
    return table(header, rows)


def moodle_csv(grades: Grades, chapter: str) -> str:
    """Moodle's grading worksheet for one chapter's assignment: those whose files came from there.

    The three columns that Moodle cannot do without are the identifier, the grade and the time
    of the last change, which may be empty.
    """
    header = ("Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)")
    header += ("Feedback comments",)
    rows = []
    for student in grades.students:
        known = grades.data["students"][student]
        if known["platform"] == "moodle":
            name = student.removesuffix(f" {known['platform_id']}")
            comments = [
                say(
                    COMMENT,
                    exercise=v.exercise,
                    status=constant(v.status),
                    points=number(v.points),
                    most=number(v.max_points),
                )
                for v in grades.by_submission.get((student, chapter), ())
            ]
            points = number(grades.points(student, chapter))
            worth = number(grades.max_points(chapter))
            identifier = f"Participant {known['platform_id']}"
            rows.append((identifier, name, points, worth, "-", spoken(joined(comments, "; "))))
    return table(header, rows)


def chapter_title(chapter: str) -> str:
    """`03 Scaled dot-product attention`; the bare number where the course has no such chapter."""
    try:
        return f"{chapter} {spoken(find_chapter(chapter).title)}"
    except ValueError:
        return chapter or spoken("no chapter")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as CSV, in which no cell below the header can be taken for a formula."""
    text = io.StringIO()
    # everything quoted: a semicolon separates in some countries' spreadsheets
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_harmless(cell) for cell in row] for row in rows)
    return text.getvalue()


def _harmless(cell: str) -> str:
    text = cell.replace("\r", "")
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text


def number(value: float) -> str:
    """Points as they stand in a table, without zeros at the end."""
    return f"{value:.4f}".rstrip("0").rstrip(".")
