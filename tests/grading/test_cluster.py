"""Past one machine: a Dask cluster gives the same results, also when it loses a worker."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from attn_course.grading import state, workers
from attn_course.grading.run import Listener, Request, grade
from attn_course.grading.workers import ClusterError
from attn_course.sentences import spoken
from grading.notebooks import course, encoded, solved, stub

distributed = pytest.importorskip("distributed")

STUDENTS = 20


def settled() -> str:
    """The digest in place of the package's, which may be edited while a test runs."""
    return "settled"


if "GRADING_LOG" in os.environ:  # in a worker, which imports this for `slow_stub`
    workers.package_digest = settled


def slow_stub(rebuilt, settings):
    """The stub, with a line in a log for each time that it runs; a module-level name travels."""
    with open(os.environ["GRADING_LOG"], "a", encoding="utf-8") as log:
        log.write(f"{os.getpid()} {rebuilt.student}\n")
    time.sleep(0.2)
    return stub(rebuilt, settings)


@pytest.fixture
def submissions(tmp_path) -> Path:
    folder = tmp_path / "submissions"
    for k in range(STUDENTS):
        (folder / f"s{k:02d}").mkdir(parents=True)
        (folder / f"s{k:02d}" / "a.ipynb").write_bytes(encoded(solved("02")))
    return folder


@contextlib.contextmanager
def process(*command: str, log: Path, trusted: bool) -> Iterator[subprocess.Popen[bytes]]:
    tests = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}"}
    if not trusted:
        environment["GRADING_LOG"] = str(log)
    started = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_" + command[0], *command[1:]],
        env=environment,
        cwd=log.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()


@contextlib.contextmanager
def cluster(
    log: Path, *, trusted: bool = False
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers, each a process of one thread, on free ports.

    trusted: the workers are as anybody starts them, and compare their package with the caller's.
    """
    file = log.with_name("scheduler.json")
    flags = ("--scheduler-file", str(file), "--no-dashboard")
    worker = (*flags, "--nthreads", "1", "--no-nanny", "--memory-limit", "0")
    with contextlib.ExitStack() as stack:
        started = partial(process, log=log, trusted=trusted)
        stack.enter_context(started("scheduler", *flags, "--port", "0"))
        pair = [stack.enter_context(started("worker", *worker)) for _ in range(2)]
        with distributed.Client(
            scheduler_file=str(file), set_as_default=False, timeout=60
        ) as client:
            client.wait_for_workers(2, timeout=60)
            address = client.scheduler.address
        yield address, pair


class KillHalfway(Listener):
    """Kills a process when half of the submissions are done."""

    def __init__(self, victim: subprocess.Popen[bytes], half: int) -> None:
        self.victim, self.half = victim, half
        self.done, self.grading = 0, False

    def begin(self, what: str, total: int, done: int = 0) -> None:
        self.grading = what == "grading"

    def step(self) -> None:
        self.done += self.grading
        if self.done == self.half:
            self.victim.kill()


@pytest.mark.filterwarnings("default")
def test_a_cluster_that_loses_a_worker_gives_the_same_results(submissions, tmp_path, monkeypatch):
    monkeypatch.setattr(state, "package_digest", settled)
    monkeypatch.setattr(workers, "package_digest", settled)
    grade(Request(submissions, tmp_path / "here", seed=3), stub, course=course())
    log = tmp_path / "log"
    with cluster(log) as (address, pair):
        job = Request(submissions, tmp_path / "there", seed=3, scheduler=address)
        result = grade(job, slow_stub, KillHalfway(pair[0], STUDENTS // 2), course())
    assert (result.graded, result.failed) == (STUDENTS, 0)
    here, there = (tmp_path / name / "grades.csv" for name in ("here", "there"))
    assert there.read_bytes() == here.read_bytes()
    ran = [line.split() for line in log.read_text().splitlines()]
    assert len({pid for pid, _ in ran}) == 2
    assert {student for _, student in ran} == {f"s{k:02d}" for k in range(STUDENTS)}


@pytest.mark.filterwarnings("default")
def test_a_worker_with_another_package_is_not_trusted(submissions, tmp_path, monkeypatch):
    with cluster(tmp_path / "log") as (address, _):
        monkeypatch.setattr(workers, "package_digest", lambda: "mine")
        monkeypatch.setattr(state, "package_digest", lambda: "mine")
        job = Request(submissions, tmp_path / "out", seed=3, scheduler=address)
        result = grade(job, stub, course=course())
    assert result.failed == STUDENTS
    human = result.grades.verdicts[0].human
    assert "the worker has another version of attn_course" in spoken(human[0])


@pytest.mark.filterwarnings("default")
def test_no_scheduler_is_said_at_once(submissions, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "_PATIENCE", 1)
    job = Request(submissions, tmp_path / "out", scheduler="tcp://127.0.0.1:1")
    with pytest.raises(ClusterError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        grade(job, stub, course=course())


def test_without_dask_the_remedy_is_said(submissions, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    job = Request(submissions, tmp_path / "out", scheduler="tcp://127.0.0.1:1")
    with pytest.raises(ClusterError, match=r"pip install -e '\.\[cluster\]'"):
        grade(job, stub, course=course())
