"""Writing all reports of a run. Each is made from the grades, and replaces the former at once."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from attn_course.grading.reports import csvs, pages
from attn_course.grading.reports.grades import Grades
from attn_course.grading.reports.gradescope import results_json
from attn_course.grading.text import slug

_MADE_EVERY_TIME = ("feedback/*/*.html", "gradescope/*/results.json", "moodle_*.csv")
_UNFINISHED = ".unfinished-"


def write_reports(grades: Grades, out: Path) -> None:
    """Write grades.json, the tables, the pages and the platforms' files to `out`.

    Raises:
        OSError: if the disk is full or read-only; a report is either the former or the new one.
    """
    written = set()
    for name, text in _reports(grades):
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, text)
        written.add(path)
    # of students who are gone, and of a run that was killed while it wrote
    for pattern in (*_MADE_EVERY_TIME, f"**/{_UNFINISHED}*"):
        for path in set(out.glob(pattern)) - written:
            path.unlink()
            with suppress(OSError):
                path.parent.rmdir()


def replace_text(path: Path, text: str) -> None:
    """Write `path` in one step: nobody reads half a file, and a full disk leaves the former one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_UNFINISHED)
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _reports(grades: Grades) -> Iterator[tuple[str, str]]:
    yield "grades.json", json.dumps(grades.data, indent=1, ensure_ascii=False)
    yield "grades.csv", csvs.grades_csv(grades)
    yield "summary.csv", csvs.summary_csv(grades)
    yield "canvas.csv", csvs.canvas_csv(grades)
    if any(known["platform"] == "moodle" for known in grades.data["students"].values()):
        for chapter in grades.chapters:
            yield f"moodle_{chapter}.csv", csvs.moodle_csv(grades, chapter)
    for student in grades.students:
        yield f"gradescope/{slug(student)}/results.json", results_json(grades, student)
    for student, chapter in grades.by_submission:
        yield pages.feedback_path(student, chapter), pages.feedback_page(grades, student, chapter)
    yield "report.html", pages.report_page(grades)
