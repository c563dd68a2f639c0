"""Three hundred submissions with real kernels, here and on a cluster that loses a worker."""

import csv
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attn_course.grading.judging.execute import execute
from attn_course.grading.run import Request, grade
from attn_course.grading.settings import RunSettings
from grading.notebooks import (
    FORMS,
    ROOT,
    course,
    encoded,
    set_answer,
    solved,
)
from grading.test_cluster import KillHalfway, cluster
from grading.test_hostile import works

CHAPTERS = ("01", "02", "03")
STUDENTS = int(os.environ.get("ATTN_COURSE_SCALE", "100"))
"""Each hands in all three chapters; a smaller class is for trying."""

SETTINGS = RunSettings(timeout=120, memory_mb=2048)
WRONG = {
    "01": ("rnn_step", "def rnn_step(x, h, W_x, W_h, b):\n    return x @ W_x + h @ W_h + b\n"),
    "02": ("softmax", "def softmax(scores, dim=-1):\n    return scores / scores.sum(dim)\n"),
    "03": ("softmax_jacobian", "def softmax_jacobian(weights):\n    raise SystemExit\n"),
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not works("bubblewrap"), reason="bubblewrap does not work here"),
]


def write_class(folder: Path, students: int, chapters: tuple[str, ...] = CHAPTERS) -> Path:
    """A class that hands in everything, a third of it with one wrong answer, in many forms."""
    forms = list(FORMS.values())
    for k in range(students):
        place = folder / f"student{k:03d}"
        place.mkdir(parents=True)
        for number, chapter in enumerate(chapters):
            nb = solved(chapter)
            if (k + number) % 3 == 0:
                name, code = WRONG[chapter]
                number_line = f"# Exercise {course()[chapter].by_name[name].number}: {name}\n"
                nb = set_answer(nb, name, number_line + code)
            nb = forms[(k + number) % len(forms)](nb) if k % 2 else nb
            (place / f"{chapter}.ipynb").write_bytes(encoded(nb))
    return folder


@pytest.fixture(scope="module")
def submissions(tmp_path_factory) -> Path:
    return write_class(tmp_path_factory.mktemp("large") / "class", STUDENTS)


@pytest.fixture(scope="module")
def here(submissions, tmp_path_factory) -> Path:
    """The results of this machine's own two workers."""
    out = tmp_path_factory.mktemp("here")
    result = grade(Request(submissions, out, jobs=2, seed=3, settings=SETTINGS), execute)
    assert (result.graded, result.failed) == (STUDENTS * len(CHAPTERS), 0)
    return out


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "grades.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_three_hundred_submissions_all_get_what_they_are_worth(here):
    exercises = sum(len(course()[chapter].exercises) for chapter in CHAPTERS)
    made = rows(here)
    assert len(made) == STUDENTS * exercises
    for row in made:
        k, number = int(row["student"].removeprefix("student")), CHAPTERS.index(row["chapter"])
        is_wrong = (k + number) % 3 == 0 and row["exercise"] == WRONG[row["chapter"]][0]
        assert (row["status"] == "ok") != is_wrong, row
        assert (float(row["points"]) == float(row["max_points"])) != is_wrong


@pytest.mark.filterwarnings("default")
def test_a_cluster_that_loses_a_worker_grades_them_the_same(here, submissions, tmp_path):
    with cluster(tmp_path / "log", trusted=True) as (address, pair):
        half = KillHalfway(pair[0], STUDENTS * len(CHAPTERS) // 2)
        job = Request(submissions, tmp_path / "there", seed=3, settings=SETTINGS, scheduler=address)
        result = grade(job, execute, half)
        assert pair[0].poll() is not None
    assert (result.graded, result.failed) == (STUDENTS * len(CHAPTERS), 0)
    there = (tmp_path / "there" / "grades.csv").read_bytes()
    assert there == (here / "grades.csv").read_bytes()


def command(submissions: Path, out: Path) -> subprocess.Popen[bytes]:
    options = ["--out", str(out), "--jobs", "2", "--seed", "5"]
    return subprocess.Popen(
        [sys.executable, "-m", "attn_course", "grade", str(submissions), *options],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_five_kills_with_real_kernels(tmp_path):
    """Killed while it grades, continued: the same rows, and no kernel is left behind."""
    submissions = write_class(tmp_path / "class", 3, ("01", "02"))
    undisturbed, began = tmp_path / "undisturbed", time.monotonic()
    assert command(submissions, undisturbed).wait(1200) == 0
    seconds = time.monotonic() - began
    rng, kills = random.Random(0), 0
    for k in range(5):
        out = tmp_path / f"out{k}"
        process = command(submissions, out)
        time.sleep(rng.uniform(0.1, 0.9) * seconds)
        kills += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert command(submissions, out).wait(1200) == 0
        for name in ("grades.csv", "summary.csv", "canvas.csv"):
            assert (out / name).read_bytes() == (undisturbed / name).read_bytes()
    assert kills >= 3
