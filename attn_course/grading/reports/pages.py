"""The pages: feedback for a student, the report for the instructor. Everything is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from attn_course.grading.reports import review
from attn_course.grading.reports.csvs import chapter_title
from attn_course.grading.reports.grades import Grades
from attn_course.grading.text import slug
from attn_course.grading.verdict import STATUSES
from attn_course.sentences import language_spoken, spoken

_WORDS = {
    "ok": "right",
    "wrong": "not right",
    "error": "stopped with an error",
    "timeout": "took too long",
    "killed": "was stopped",
    "missing": "not answered",
    "corrupt": "the file cannot be read",
    "unmatched": "not found in the file",
    "forbidden": "uses what the exercise does not allow",
}
_SHOWN_GROUPS = 8


def feedback_path(student: str, chapter: str) -> str:
    """Where a student's page lies below the results: `feedback/<student>/<chapter>.html`."""
    return f"feedback/{slug(student)}/{chapter or 'none'}.html"


def feedback_page(grades: Grades, student: str, chapter: str) -> str:
    """A student's page for one chapter: own code and verdicts, nothing of anybody else."""
    return _render(
        "feedback.html",
        student=student,
        title=chapter_title(chapter),
        rows=grades.by_submission[student, chapter],
        numbers=grades.numbers,
        optional=grades.optional,
        words=_WORDS,
        notes=grades.tolerated.get((student, chapter), []),
        points=grades.points(student, chapter),
        max_points=grades.max_points(chapter) if chapter else 0.0,
        sandbox=grades.data["settings"]["sandbox"],
    )


def report_page(grades: Grades) -> str:
    """The instructor's page: distribution, common mistakes, what needs a human, similar answers."""
    return _render(
        "report.html",
        grades=grades,
        data=grades.data,
        statuses=STATUSES,
        concerns=_together(review.concerns(grades)),
        chapters=[review.chapter_figures(grades, chapter) for chapter in grades.chapters],
        exercises=review.exercise_figures(grades),
        shown_groups=_SHOWN_GROUPS,
        page=feedback_path,
        adrift=[v for v in grades.verdicts if not v.chapter],
    )


def _together(concerns: Sequence[review.Concern]) -> list[tuple[review.Concern, list[str]]]:
    """The concerns with the same reasons in one submission as one, and their exercises."""
    found: dict[tuple[str, ...], tuple[review.Concern, list[str]]] = {}
    for concern in concerns:
        reasons = map(spoken, concern.reasons)
        key = (concern.student, concern.chapter, *reasons)
        found.setdefault(key, (concern, []))[1].append(concern.exercise)
    return list(found.values())


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values, language=language_spoken())


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda value: f"{value:.2f}".rstrip("0").rstrip(".")
    environment.filters["spoken"] = spoken
    environment.globals["say"] = _said
    environment.filters["code"] = _with_code
    environment.filters["breakable"] = _breakable
    environment.filters["chapter"] = chapter_title
    return environment


def _said(words: str, **fields: Any) -> Markup:
    """A template's sentence: its words are markup of ours, its fields are escaped."""
    return Markup(spoken(words)).format(**fields)


def _breakable(text: str) -> Markup:
    """The text, escaped, with places at which a long name or path may be broken."""
    return Markup(re.sub(r"(?<=[_/])(?=\w)", "<wbr>", str(escape(text))))


def _with_code(text: str) -> Markup:
    """The text, escaped, with what stands between backticks as code."""
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(text))))
