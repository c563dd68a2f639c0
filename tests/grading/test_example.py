"""The class that the README grades: what is handed in, and what comes of it."""

import csv
import runpy
import shutil
from pathlib import Path

import pytest

from attn_course.grading import command
from attn_course.grading.judging.execute import execute
from attn_course.grading.run import Request, grade
from attn_course.grading.sandbox import available
from attn_course.grading.settings import RunSettings
from attn_course.grading.verdict import STATUSES
from grading.notebooks import ROOT

EXAMPLES = ROOT / "examples"
SEED = 1  # as README.md and docs/instructors.md have it
FEW = ("elif", "hugo", "karo")


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def graded(submissions: Path, out: Path) -> list[dict[str, str]]:
    try:
        available.probe("bubblewrap")
    except available.SandboxError as error:
        pytest.skip(str(error))
    grade(Request(submissions, out, jobs=2, settings=RunSettings(), seed=SEED), execute)
    return rows(out / "grades.csv")


def test_the_committed_class_is_what_the_script_writes(tmp_path):
    runpy.run_path(str(EXAMPLES / "make_submissions.py"))["main"](tmp_path)
    written = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    folder = EXAMPLES / "submissions"
    committed = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert committed == written, "run python examples/make_submissions.py and grade the class anew"


def test_the_expected_grades_show_every_status():
    expected = rows(EXAMPLES / "expected" / "grades.csv")
    assert {row["status"] for row in expected} == set(STATUSES)


def test_who_attacks_the_grader_gains_nothing():
    points = {
        (row["student"], row["exercise"]): float(row["points"])
        for row in rows(EXAMPLES / "expected" / "grades.csv")
    }
    assert points["karo", "scaled_dot_product_attention"] == 0
    attacked = ("attention_entropy", "scaled_dot_product_attention", "softmax_gradient")
    assert [points["liam", exercise] for exercise in attacked] == [0, 0, 0]
    assert points["liam", "repaired_attention"] == points["anna", "repaired_attention"] == 6


def test_some_of_the_class_in_real_sandboxes(tmp_path):
    for student in FEW:
        shutil.copytree(EXAMPLES / "submissions" / student, tmp_path / "class" / student)
    expected = [r for r in rows(EXAMPLES / "expected" / "grades.csv") if r["student"] in FEW]
    assert graded(tmp_path / "class", tmp_path / "out") == expected


@pytest.mark.slow
def test_the_whole_class_in_real_sandboxes(tmp_path):
    assert graded(EXAMPLES / "submissions", tmp_path / "out") == rows(
        EXAMPLES / "expected" / "grades.csv"
    )


def test_the_documents_name_the_command_as_it_is():
    line = f"attn-course grade examples/submissions --out /tmp/results --seed {SEED}"
    for document in ("README.md", "docs/instructors.md"):
        assert line in (ROOT / document).read_text(encoding="utf-8")


def test_every_option_of_the_command_is_in_the_document():
    text = (ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
    for option in command.command.params:
        if option.opts[0].startswith("--"):
            assert f"`{option.opts[0]}" in text or f"{option.opts[0]} " in text, option.opts
