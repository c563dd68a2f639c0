"""What is right gets full marks, in real sandboxes, whatever an editor made of the notebook."""

import csv
from pathlib import Path

import pytest

from attn_course.grading.judging.execute import execute
from attn_course.grading.run import Request, grade
from attn_course.grading.settings import RunSettings
from tests.grading.notebooks import FORMS, course, encoded, solved
from tests.grading.test_hostile import pytestmark  # noqa: F401 (the same condition)

CLASS = {"as_it_is": lambda nb: nb, "renamed": lambda nb: nb, **FORMS}


def hand_in(folder: Path) -> None:
    """One student a form, who has solved every chapter."""
    for student, form in CLASS.items():
        (folder / student).mkdir(parents=True)
        for chapter in course():
            name = f"Kopie von Aufgabe {chapter} (1)" if student == "renamed" else chapter
            path = folder / student / f"{name}.ipynb"
            path.write_bytes(encoded(form(solved(chapter))))


@pytest.mark.slow
def test_a_class_of_solved_notebooks_gets_full_marks(tmp_path):
    hand_in(tmp_path / "class")
    grade(
        Request(tmp_path / "class", tmp_path / "out", jobs=2, settings=RunSettings(), seed=4),
        execute,
    )
    with open(tmp_path / "out" / "grades.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    exercises = sum(len(scaffold.exercises) for scaffold in course().values())
    assert len(rows) == len(CLASS) * exercises
    short = [r for r in rows if r["status"] != "ok" or r["points"] != r["max_points"]]
    assert not short
