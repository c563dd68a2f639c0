"""Grading a class of submissions, beside nbgrader on the same notebooks."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from attn_course.checks import examine, get
from attn_course.course import find_chapter
from attn_course.grading.intake.collect import collect
from attn_course.grading.intake.plan import make_plan, recognise_all
from attn_course.grading.intake.scaffold import scaffolds
from attn_course.grading.judging.execute import execute
from attn_course.grading.rebuilt import Rebuilt
from attn_course.grading.sandbox.available import SandboxError, probe
from attn_course.grading.sandbox.edition import edition
from attn_course.grading.sandbox.enclosure import Limits
from attn_course.grading.sandbox.kernel import Kernel
from attn_course.grading.sandbox.processes import tree
from attn_course.grading.sandbox.sandbox import Sandbox
from attn_course.grading.settings import RunSettings
from benchmarks import nbgrader

CHAPTER = "01"
STUDENTS = 40
REACH = 0.5
"""Of nbgrader's time, with all cores. nbgrader marks one submission after the other."""

_SAMPLE = 0.25


@dataclass(frozen=True)
class Cost:
    """Wall-clock seconds, and the most memory that a command and its children held, in MiB."""

    seconds: float
    memory_mb: float


def rows(rounds: int) -> list[dict]:
    """One row: seconds and peak memory over nbgrader's; in its note, where our time goes."""
    row = {
        "row": f"attn-course grade, {STUDENTS} submissions of chapter {CHAPTER}, all cores",
        "peer": "nbgrader autograde",
        "time_ratio": None,
        "memory_ratio": None,
        "reach": f"time ≤ {REACH:g}",
    }
    try:
        probe("bubblewrap")
        command = nbgrader.program()
    except (SandboxError, nbgrader.Missing, OSError, subprocess.CalledProcessError) as error:
        return [row | {"note": f"skipped: {error}"}]
    with tempfile.TemporaryDirectory(prefix="grading-bench-") as folder:
        return [row | _compared(Path(folder), command, max(1, rounds // 3))]


def _compared(folder: Path, command: Path, pairs: int) -> dict:
    notebook = find_chapter(CHAPTER).notebook(nbgrader.ROOT, "solutions")
    submitted = nbgrader.write_course(folder, notebook, STUDENTS)
    _run([command, "generate_assignment", nbgrader.ASSIGNMENT], folder)
    costs = [(_ours(folder, submitted), _theirs(folder, command)) for _ in range(pairs)]
    ours, theirs = (_median(side) for side in zip(*costs, strict=True))
    ratio = median(a.seconds / b.seconds for a, b in costs)
    spent = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in split(submitted).items())
    return {
        "time_ratio": round(ratio, 3),
        "memory_ratio": round(ours.memory_mb / theirs.memory_mb, 3),
        "reached": ratio <= REACH,
        "ours_seconds": ours.seconds,
        "peer_seconds": theirs.seconds,
        "note": (
            f"{STUDENTS / ours.seconds:.2f} submissions a second against "
            f"{STUDENTS / theirs.seconds:.2f}, on {os.cpu_count()} cores; at most "
            f"{ours.memory_mb:.0f} MB against {theirs.memory_mb:.0f} MB. "
            f"One submission alone: {spent}."
        ),
    }


def _median(costs: Iterable[Cost]) -> Cost:
    pairs = zip(*((cost.seconds, cost.memory_mb) for cost in costs), strict=True)
    return Cost(*map(median, pairs))


def _ours(folder: Path, submitted: Path) -> Cost:
    out = folder / "results"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "attn_course", "grade", submitted, "--out", out, "--seed", "1"]
    cost = _run(command, nbgrader.ROOT)
    with (out / "grades.csv").open(encoding="utf-8", newline="") as marks:
        assert [mark["status"] for mark in csv.DictReader(marks)] == ["ok"] * STUDENTS * 3
    return cost


def _theirs(folder: Path, command: Path) -> Cost:
    shutil.rmtree(folder / "autograded", ignore_errors=True)
    cost = _run([command, "autograde", nbgrader.ASSIGNMENT, "--force"], folder)
    assert len(list(folder.glob("autograded/*/*/answers.ipynb"))) == STUDENTS
    return cost


def _run(command: list, folder: Path) -> Cost:
    """Run a command to its end and watch its memory."""
    began, most = time.monotonic(), 0.0
    environment = os.environ | nbgrader.environment(folder)
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=told, stderr=subprocess.STDOUT
        )
        while process.poll() is None:
            most = max(most, tree(process.pid).memory_mb(0))
            time.sleep(_SAMPLE)
        seconds = time.monotonic() - began
        if process.returncode:
            told.seek(0)
            raise RuntimeError(f"{command[0]} failed: {told.read()[-2000:].decode()}")
    return Cost(seconds, most)


def split(submitted: Path) -> dict[str, float]:
    """Where the time of one submission goes, when what all share is there already."""
    collected, course = collect(submitted), scaffolds(nbgrader.ROOT)
    recognised = recognise_all(collected.found, course)
    (task, *_) = make_plan(collected, recognised, course).submissions
    settings = RunSettings(seed=1)
    execute(task, settings)  # the server that each is forked from, and the student edition
    whole, verdicts = _timed(lambda: execute(task, settings))
    start, kernel = _timed(lambda: _kernel(task))
    kernel.stop()
    cells = sum(verdict.detail["seconds"] for verdict in verdicts)
    exercises = [get(verdict.exercise) for verdict in verdicts]
    judged, _ = _timed(lambda: [examine(e.reference, e) for e in exercises])
    return {
        "in all": whole,
        "sandbox, interpreter, torch and kernel": start,
        "answers and checks": cells,
        "of that, answering and judging alone": judged,
        "pytest and the rest": whole - start - cells,
    }


def _kernel(task: Rebuilt) -> Kernel:
    setup = [cell.source for cell in task.cells if cell.kind == "setup"]
    place = edition(task.chapter, setup)
    return Kernel(lambda: Sandbox("bubblewrap", place, Limits()), time.monotonic() + 300)


def _timed(work):
    began = time.monotonic()
    made = work()
    return time.monotonic() - began, made
