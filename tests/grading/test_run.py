"""One run after another: what is graded again, what is not, and what becomes of every file."""

import errno
import json
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from attn_course.grading import state
from attn_course.grading.intake.collect import collect
from attn_course.grading.intake.plan import make_plan, recognise_all
from attn_course.grading.reports import write
from attn_course.grading.run import Request, Result, grade
from attn_course.grading.settings import RunSettings
from attn_course.grading.state import FILE, State, StorageError
from attn_course.grading.verdict import Verdict
from attn_course.sentences import spoken
from grading.notebooks import ATTENTION, course, encoded, set_answer, solved, stub

WRONG = f"# Exercise 3.2: {ATTENTION}\ndef {ATTENTION}(q, k, v, mask=None):\n    return 'wrong'"


@pytest.fixture(autouse=True)
def _settled_package(monkeypatch):
    monkeypatch.setattr(state, "package_digest", lambda: "settled")


@pytest.fixture
def submissions(tmp_path) -> Path:
    folder = tmp_path / "submissions"
    hand_in(folder / "ann" / "a.ipynb", solved("03"))
    hand_in(folder / "bob" / "b.ipynb", set_answer(solved("03"), ATTENTION, WRONG))
    return folder


def hand_in(path: Path, nb: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(nb))


class Runs:
    """Grades, and knows which students ran."""

    def __init__(self, submissions: Path, out: Path) -> None:
        self.job = {"submissions": submissions, "out": out, "jobs": 2}
        self.ran: list[str] = []

    def __call__(self, **job) -> Result:
        self.ran = []

        def executor(rebuilt, settings):
            self.ran.append(rebuilt.student)
            return stub(rebuilt, settings)

        result = grade(Request(**{**self.job, **job}), executor, course=course())
        self.ran.sort()
        return result


@pytest.fixture
def run(submissions, tmp_path) -> Runs:
    return Runs(submissions, tmp_path / "out")


def test_an_unchanged_submission_is_not_graded_again(run):
    first = run()
    assert run.ran == ["ann", "bob"]
    assert (first.graded, first.known) == (2, 0)
    second = run()
    assert run.ran == []
    assert (second.graded, second.known) == (0, 2)
    assert second.grades == first.grades


def test_a_changed_submission_is_graded_again_and_only_that(run, submissions):
    run()
    hand_in(submissions / "bob" / "b.ipynb", solved("03"))
    result = run()
    assert run.ran == ["bob"]
    assert result.grades.points("bob", "03") == result.grades.points("ann", "03")


def test_new_outputs_and_ids_are_no_change(run, submissions):
    run()
    nb = solved("03")
    for k, cell in enumerate(nb["cells"]):
        cell["id"] = f"other{k}"
        if cell["cell_type"] == "code":
            cell["outputs"] = []
    hand_in(submissions / "ann" / "renamed.ipynb", nb)
    os.remove(submissions / "ann" / "a.ipynb")
    run()
    assert run.ran == []


def test_a_changed_check_is_graded_again(run, monkeypatch):
    run()
    monkeypatch.setattr(state, "package_digest", lambda: "edited")
    run()
    assert run.ran == ["ann", "bob"]


def test_the_digest_of_the_package_is_that_of_what_has_a_say(monkeypatch, tmp_path):
    monkeypatch.undo()
    package = tmp_path / "attn_course"
    for name in ("checks/a.py", "grading/state.py", "grading/reports/pages.py", "plots/p.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("x = 1")
    monkeypatch.setattr(state, "__file__", str(package / "grading" / "state.py"))
    digests = [state.package_digest.__wrapped__()]
    for name in ("grading/reports/pages.py", "plots/p.py", "checks/a.py", "grading/state.py"):
        (package / name).write_text("x = 2")
        digests.append(state.package_digest.__wrapped__())
    assert digests[0] == digests[1] == digests[2]
    assert len(set(digests)) == 3


def test_the_seed_is_drawn_once_and_kept(run, tmp_path):
    seed = run().grades.data["seed"]
    assert run().grades.data["seed"] == seed
    assert run.ran == []
    other = Runs(run.job["submissions"], tmp_path / "other")
    assert other().grades.data["seed"] != seed


def test_another_seed_grades_again_and_reaches_the_executor(run):
    run(seed=5)
    result = run(seed=6)
    assert run.ran == ["ann", "bob"]
    assert "seen with seed 6" in result.grades.verdicts[0].message
    run()
    assert run.ran == []


def test_other_limits_grade_again(run):
    run()
    run(settings=RunSettings(timeout=1))
    assert run.ran == ["ann", "bob"]


def test_regrade(run):
    run(seed=5)
    run(regrade=True)
    assert run.ran == ["ann", "bob"]


def test_a_fault_of_the_grader_costs_one_submission_and_is_tried_again(run, submissions):
    def executor(rebuilt, settings):
        if rebuilt.student == "ann":
            raise SystemExit("out of order")
        return stub(rebuilt, settings)

    result = grade(Request(**run.job), executor, course=course())
    assert (result.graded, result.failed) == (1, 1)
    ann = [v for v in result.grades.verdicts if v.student == "ann"]
    assert {(v.status, v.points) for v in ann} == {("error", 0.0)}
    assert "out of order" in spoken(ann[0].human[0])
    again = run()
    assert run.ran == ["ann"]
    assert again.failed == 0


def test_what_an_executor_says_is_held_to_the_submission(run):
    """Rows of other students, unknown exercises, missing rows and settled ones."""

    def executor(rebuilt, settings):
        given = stub(rebuilt, settings)
        points = given[0].max_points
        return [
            Verdict("eve", "03", given[0].exercise, points, points, "ok"),
            Verdict(rebuilt.student, "03", "no_such_exercise", 9, 9, "ok"),
            Verdict(rebuilt.student, "03", "softmax_jacobian", 2, 2, "ok"),
        ]

    nb = solved("03")
    stubbed = course()["03"].by_name["softmax_jacobian"].stub
    hand_in(run.job["submissions"] / "ann" / "a.ipynb", set_answer(nb, "softmax_jacobian", stubbed))
    grades = grade(Request(**run.job), executor, course=course()).grades
    rows = {v.exercise: v for v in grades.by_submission["ann", "03"]}
    assert list(rows) == [task.name for task in course()["03"].exercises]
    assert rows["softmax_jacobian"].status == "missing"
    assert rows["softmax_jacobian"].points == 0
    assert rows[ATTENTION].status == "error"
    assert {v.student for v in grades.verdicts} == {"ann", "bob"}


def test_a_submission_without_answers_is_not_run(run, submissions):
    (submissions / "zoe").mkdir()
    result = run()
    assert run.ran == ["ann", "bob"]
    rows = result.grades.by_submission["zoe", "03"]
    assert {row.status for row in rows} == {"missing"}
    assert len(rows) == 5


def test_two_runs_in_one_folder_are_refused(run, tmp_path):
    started, go_on = threading.Event(), threading.Event()

    def executor(rebuilt, settings):
        started.set()
        go_on.wait(30)
        return stub(rebuilt, settings)

    thread = threading.Thread(target=grade, args=(Request(**run.job), executor, None, course()))
    thread.start()
    try:
        assert started.wait(30)
        with pytest.raises(ValueError, match="another run is grading into"):
            run()
    finally:
        go_on.set()
        thread.join()


def test_an_unknown_chapter_is_refused_with_the_list(run):
    with pytest.raises(ValueError, match="chapter 11 has no exercises here; there are 00, 01"):
        run(chapters=("11",))


def test_a_damaged_state_is_said_to_be_one(run):
    run()
    (run.job["out"] / FILE).write_bytes(b"junk" * 1000)
    with pytest.raises(StorageError, match="not a database"):
        run()


def set_version(out: Path, version: int) -> None:
    with closing(sqlite3.connect(out / FILE)) as database:
        database.execute(f"pragma user_version = {version}")


def test_a_state_of_another_version_is_refused(run):
    run()
    set_version(run.job["out"], 3)
    with pytest.raises(ValueError, match="another version"):
        run()


def test_a_folder_of_the_version_before_keeps_its_seed_and_is_graded_again(run):
    seed = run().grades.data["seed"]
    out = run.job["out"]
    set_version(out, 1)
    with closing(sqlite3.connect(out / FILE)) as database, database:
        database.execute('update results set verdicts = \'[{"message": "of old"}]\'')
    again = run()
    assert run.ran == ["ann", "bob"]
    assert again.grades.data["seed"] == seed
    assert run().known == 2


def test_results_of_a_student_are_kept_all_or_none(tmp_path):
    with State(tmp_path) as kept:
        kept.keep("ann", "03", "f", [Verdict("ann", "03", "a", 1, 2, "ok")], 0.1)
        with pytest.raises(TypeError):
            kept.keep(
                "ann", "03", "g", [Verdict("ann", "03", "a", 1, 2, "ok", detail={"x": {1}})], 0
            )
        assert kept.find("ann", "03", "f") == [Verdict("ann", "03", "a", 1, 2, "ok")]
        assert kept.find("ann", "03", "g") is None
        assert kept.find("bob", "03", "f") is None


def test_a_report_that_cannot_be_written_leaves_the_former_one(run, submissions, monkeypatch):
    run()
    former = (run.job["out"] / "grades.csv").read_bytes()
    hand_in(submissions / "bob" / "b.ipynb", solved("03"))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(write.os, "replace", full)
    with pytest.raises(StorageError, match="No space left"):
        run()
    assert (run.job["out"] / "grades.csv").read_bytes() == former
    assert not [path for path in run.job["out"].iterdir() if path.name.startswith(".unfinished")]
    monkeypatch.undo()
    monkeypatch.setattr(state, "package_digest", lambda: "settled")
    run()
    assert run.ran == []
    assert (run.job["out"] / "grades.csv").read_bytes() != former


# every file accounted for


def plan_of(folder: Path, *only: str):
    collected = collect(folder)
    recognised = recognise_all(collected.found, course())
    return make_plan(collected, recognised, course(), only)


def fates(folder: Path, *only: str) -> dict[str, str]:
    return {file.path: file.fate for file in plan_of(folder, *only).files}


def test_every_file_has_one_fate(tmp_path):
    hand_in(tmp_path / "ann" / "03.ipynb", solved("03"))
    hand_in(tmp_path / "ann" / "03 (1).ipynb", solved("03"))
    hand_in(tmp_path / "ann" / "04.ipynb", solved("04"))
    hand_in(tmp_path / "bob" / "lesson.ipynb", {"cells": []})
    (tmp_path / "bob" / "photo.jpg").write_bytes(b"jpg")
    (tmp_path / "bob" / "cut.ipynb").write_bytes(b'{"cells": [')
    (tmp_path / "ann" / "._03.ipynb").write_bytes(b"junk")
    plan = plan_of(tmp_path, "03")
    assert {file.path: file.fate for file in plan.files} == {
        "ann/03.ipynb": "superseded",
        "ann/03 (1).ipynb": "graded",
        "ann/04.ipynb": "left out",
        "ann/._03.ipynb": "ignored",
        "bob/lesson.ipynb": "unmatched",
        "bob/photo.jpg": "ignored",
        "bob/cut.ipynb": "corrupt",
    }
    assert spoken(plan.account()) == (
        "7 files went in: 1 graded, 1 superseded, 1 left out, 1 unmatched, 1 corrupt, 2 ignored"
    )


def test_the_account_has_every_file_of_a_random_class(tmp_path):
    import random

    rng = random.Random(3)
    contents = [encoded(solved("02")), encoded(solved("03")), b"", b'{"cells": [', b'{"cells": []}']
    for k in range(60):
        folder = tmp_path / f"s{rng.randrange(12)}" / rng.choice(["", "x", "x/y"])
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{k}{rng.choice(['.ipynb', '.ipynb', '.pdf', '.json'])}"
        (folder / name).write_bytes(rng.choice(contents))
    plan = plan_of(tmp_path)
    on_disk = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert sorted(file.path for file in plan.files) == sorted(on_disk)
    keys = {(task.student, task.chapter) for task in plan.submissions}
    students = {path.split("/")[0] for path in on_disk}
    assert keys == {(s, c) for s in students for c in ("02", "03")}
    graded = [file for file in plan.files if file.fate == "graded"]
    assert len({(file.student, file.chapter) for file in graded}) == len(graded)


def test_a_broken_file_makes_its_student_s_chapters_corrupt_not_missing(tmp_path):
    hand_in(tmp_path / "ann" / "03.ipynb", solved("03"))
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "x.ipynb").write_bytes(b"")
    plan = plan_of(tmp_path)
    bob = next(task for task in plan.submissions if task.student == "bob")
    assert {problem.status for problem in bob.settled.values()} == {"corrupt"}
    assert "bob/x.ipynb: empty" in spoken(bob.settled[ATTENTION].cause)


def test_a_broken_file_beside_a_good_one_is_told(tmp_path):
    hand_in(tmp_path / "ann" / "03.ipynb", solved("03"))
    (tmp_path / "ann" / "04.ipynb").write_bytes(b"")
    (task,) = plan_of(tmp_path).submissions
    assert "ann/04.ipynb: corrupt, empty" in map(spoken, task.notes)


def test_a_class_without_any_chapter_still_gets_rows(tmp_path):
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "x.ipynb").write_bytes(b"")
    hand_in(tmp_path / "bob" / "y.ipynb", {"cells": []})
    result = grade(Request(tmp_path, tmp_path.with_name("out"), seed=1), stub, course=course())
    assert [(v.student, v.exercise, v.status) for v in result.grades.verdicts] == [
        ("ann", "", "corrupt"),
        ("bob", "", "unmatched"),
    ]
    assert json.loads((tmp_path.with_name("out") / "grades.json").read_text())["chapters"] == []
