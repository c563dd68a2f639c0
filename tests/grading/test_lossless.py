"""Killed, out of disk, interrupted: nothing finished is lost, nothing is done twice."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from attn_course.grading.state import FILE
from grading.notebooks import ATTENTION, encoded, set_answer, solved

STUDENTS = 24
CHAPTERS = ("02", "03")
SECONDS = 0.03
DRIVER = Path(__file__).with_name("grade_with_stub.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{DRIVER.parents[2]}{os.pathsep}{DRIVER.parents[1]}"}
REPORTS = ("grades.csv", "summary.csv", "canvas.csv", "report.html", "grades.json")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")


@pytest.fixture(scope="module")
def submissions(tmp_path_factory) -> Path:
    """A class with right and wrong answers, a broken file and an empty folder."""
    root = tmp_path_factory.mktemp("class")
    wrong = set_answer(
        solved("03"), ATTENTION, f"# Exercise 3.2: {ATTENTION}\ndef {ATTENTION}(*a):\n    'wrong'"
    )
    for k in range(STUDENTS):
        folder = root / f"student{k:02d}"
        folder.mkdir()
        for chapter in CHAPTERS:
            nb = wrong if chapter == "03" and k % 3 == 0 else solved(chapter)
            (folder / f"{chapter}.ipynb").write_bytes(encoded(nb))
    (root / "zoe").mkdir()
    (root / "zed").mkdir()
    (root / "zed" / "broken.ipynb").write_bytes(b'{"cells": [')
    return root


@pytest.fixture(scope="module")
def undisturbed(submissions, tmp_path_factory) -> tuple[dict[str, bytes], float]:
    """The reports of a run that nobody disturbs, and how long it takes."""
    out = tmp_path_factory.mktemp("undisturbed")
    started = time.monotonic()
    assert start(submissions, out).wait(120) == 0
    seconds = time.monotonic() - started
    assert len(executed(out)) == STUDENTS * len(CHAPTERS)
    return reports(out), seconds


def start(
    submissions: Path, out: Path, *more: str, seconds: float = SECONDS
) -> subprocess.Popen[bytes]:
    log = out.with_name(f"{out.name}.log")
    arguments = [str(submissions), str(out), str(log), str(seconds), *more]
    with open(out.with_name(f"{out.name}.told"), "w", encoding="utf-8") as told:
        return subprocess.Popen(
            [sys.executable, str(DRIVER), *arguments], env=ENVIRONMENT, stdout=told, stderr=told
        )


def told(out: Path) -> str:
    return out.with_name(f"{out.name}.told").read_text(encoding="utf-8")


def executed(out: Path) -> list[str]:
    log = out.with_name(f"{out.name}.log")
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def reports(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in REPORTS} | {
        str(path.relative_to(out)): path.read_bytes() for path in out.glob("feedback/*/*.html")
    }


def killed_and_continued(submissions: Path, out: Path, moments: list[float]) -> int:
    """Run, kill at each moment (in seconds), run to the end; how many kills came in time."""
    kills = 0
    for moment in moments:
        process = start(submissions, out)
        time.sleep(moment)
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert start(submissions, out).wait(120) == 0, told(out)
    return kills


def assert_nothing_lost(out: Path, expected: dict[str, bytes], kills: int) -> None:
    assert reports(out) == expected
    counted = Counter(executed(out))
    assert len(counted) == STUDENTS * len(CHAPTERS)
    # done again: what ran when the kill came, and what waited to be recorded: two workers, each
    # with one that runs or is done, and two on their way
    assert sum(counted.values()) - len(counted) <= 4 * kills
    assert [path.name for path in out.rglob(".*")] == [".lock"]


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment_and_continued(submissions, undisturbed, tmp_path, seed):
    expected, seconds = undisturbed
    rng = random.Random(seed)
    out = tmp_path / "out"
    kills = killed_and_continued(submissions, out, [rng.uniform(0.2, seconds) for _ in range(2)])
    assert_nothing_lost(out, expected, kills)


@pytest.mark.slow
def test_fifty_kills(submissions, undisturbed, tmp_path):
    expected, seconds = undisturbed
    rng = random.Random(0)
    total, tries = 0, 0
    while total < 50:
        out = tmp_path / f"out{tries}"
        moment = rng.uniform(0, seconds)
        kills = killed_and_continued(submissions, out, [moment])
        assert_nothing_lost(out, expected, kills)
        if not kills:  # it came too late: a run takes less than it did
            seconds = moment
        total, tries = total + kills, tries + 1


def test_what_is_recorded_is_never_run_again(submissions, undisturbed, tmp_path):
    out = tmp_path / "out"
    assert start(submissions, out).wait(120) == 0
    assert start(submissions, out).wait(120) == 0
    assert max(Counter(executed(out)).values()) == 1
    assert reports(out) == undisturbed[0]


def test_ctrl_c_keeps_what_is_finished(submissions, undisturbed, tmp_path):
    out = tmp_path / "out"
    process = start(submissions, out, seconds=1)  # far from its end, however late it is told
    while not executed(out):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) != 0  # at once, not when all is done
    assert len(executed(out)) < STUDENTS * len(CHAPTERS)
    assert start(submissions, out).wait(120) == 0
    assert_nothing_lost(out, undisturbed[0], kills=1)


@pytest.mark.parametrize("largest", [4_000, 30_000, 200_000])
def test_no_room_for_a_file_loses_nothing(submissions, undisturbed, tmp_path, largest):
    """No file may grow beyond a size: not even the first table fits, or some, or most results."""
    out = tmp_path / "out"
    process = start(submissions, out, str(largest), seconds=0)
    assert process.wait(120) == 3, told(out)
    assert str(out) in told(out)
    assert start(submissions, out, seconds=0).wait(120) == 0
    assert_nothing_lost(out, undisturbed[0], kills=1)


def test_a_full_disk_loses_nothing(submissions, undisturbed, tmp_path):
    """On a small disk of its own, filled up by a ballast that goes before the second run."""
    if not _bubblewrap_works():
        pytest.skip("bubblewrap does not work here")
    copied = tmp_path / "copied"
    script = f"""
        head -c 3900000 /dev/zero > /mnt/ballast
        "$@" && exit 9
        test -s /mnt/out/{FILE} || exit 8
        rm /mnt/ballast
        "$@" || exit 7
        cp -r /mnt/out {copied}
    """
    log = tmp_path / "copied.log"
    done = subprocess.run(
        [
            *("bwrap", "--dev-bind", "/", "/", "--size", "4000000", "--tmpfs", "/mnt"),
            *("sh", "-c", script, "sh", sys.executable, str(DRIVER), str(submissions)),
            *("/mnt/out", str(log)),
        ],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
    )
    assert done.returncode == 0
    assert_nothing_lost(copied, undisturbed[0], kills=1)


def _bubblewrap_works() -> bool:
    if shutil.which("bwrap") is None:
        return False
    return subprocess.run(["bwrap", "--dev-bind", "/", "/", "true"]).returncode == 0
