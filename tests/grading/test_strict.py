"""Every known answer of the catalogue, right or wrong, judged in a real sandbox.

The answers are functions and classes of the tests, not texts. So their kernel is given the whole
course and its tests in place of a student edition, and one notebook an exercise, which answers it
again and again.
"""

import shutil
from dataclasses import dataclass

import pytest

from attn_course.checks import exercises, get
from attn_course.grading.judging import execute
from attn_course.grading.judging.job import Job
from attn_course.grading.rebuilt import Rebuilt, RebuiltCell
from attn_course.grading.sandbox import edition
from attn_course.grading.settings import RunSettings
from tests.checks.test_catalogue import MISTAKES, collected
from tests.grading.notebooks import ROOT
from tests.grading.test_hostile import pytestmark  # noqa: F401 (the same condition)

SETTINGS = RunSettings(timeout=120, total_timeout=3600, seed=6)
SETUP = f"""
import contextlib
from {edition.INSIDE} import inside
from attn_course.checks import get
from tests.checks.test_catalogue import MISTAKES, collected

# what is ready-made stands in the catalogue's answers too, and is not the question here
inside.watching = lambda: contextlib.nullcontext(set())
# the answers' lines are theirs, though their files lie beside the course's
inside._NOT_OWN = ("/course/attn_course", "<")

def answer(name, table, place):
    \"\"\"Let the notebook's answer to an exercise be one of the tests'.\"\"\"
    if table == "MISTAKES":
        found = [get(name).version(made) for e, _, made in MISTAKES if e.name == name]
    else:
        found = [answer for exercise, answer in collected(table) if exercise.name == name]
    chosen = found[place]
    get_ipython().user_ns[name] = chosen[0] if table == "WRONG" else chosen
"""


@dataclass(frozen=True)
class Known:
    """One answer that the tests know, and what should be said of it."""

    table: str
    place: int
    mistake: str | None = None
    words: tuple[str, ...] = ()

    def judged_rightly(self, verdict):
        """Whether a verdict is the one that is due."""
        if self.table == "RIGHT":
            return (verdict.status, verdict.points) == ("ok", verdict.max_points)
        told = verdict.mistake == self.mistake and all(w in verdict.message for w in self.words)
        return verdict.status in ("wrong", "error") and verdict.points < verdict.max_points and told


def known(name):
    """All answers to one exercise, in the order in which the kernel finds them."""
    mistakes = [mistake for exercise, mistake, _ in MISTAKES if exercise.name == name]
    right = [a for exercise, a in collected("RIGHT") if exercise.name == name]
    wrong = [case for exercise, case in collected("WRONG") if exercise.name == name]
    return [
        *(Known("RIGHT", k) for k in range(len(right))),
        *(Known("MISTAKES", k, mistake) for k, mistake in enumerate(mistakes)),
        *(Known("WRONG", k, mistake, words) for k, (_, mistake, *words) in enumerate(wrong)),
    ]


def asked(name, answers):
    """A notebook that answers one exercise in all these ways."""
    task = get(name)
    cells = [RebuiltCell("setup", SETUP)]
    for one in answers:
        source = f"answer({name!r}, {one.table!r}, {one.place})"
        cells.append(RebuiltCell("answer", source, name, task.number, task.points))
        cells.append(RebuiltCell("check", "", name, task.number, task.points))
    return Rebuilt("catalogue", task.chapter, tuple(cells))


@pytest.fixture(scope="module")
def whole_course(tmp_path_factory):
    """What a kernel gets as its course: all of it, and the tests of the checks."""
    folder = tmp_path_factory.mktemp("whole") / "course"
    edition.write_edition("00", folder)
    for compiled in list((folder / "attn_course").rglob("__pycache__")):
        shutil.rmtree(compiled)  # it would be run in place of what is copied here
    without = shutil.ignore_patterns("__pycache__", "grading", "data")
    for part in ("attn_course", "tests/checks"):
        shutil.copytree(ROOT / part, folder / part, ignore=without, dirs_exist_ok=True)
    edition._open_to_all(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", exercises())
def test_every_known_answer_is_judged_rightly_in_a_sandbox(name, whole_course, tmp_path):
    answers = known(name)
    job = Job(asked(name, answers), SETTINGS, whole_course, tmp_path / "results")
    execute._write(tmp_path, job)
    assert not execute._run(tmp_path, SETTINGS), (tmp_path / "log").read_text()
    verdicts = execute._read(job.results)
    assert len(verdicts) == len(answers)
    misjudged = [
        (one, verdict.status, verdict.points, verdict.mistake, verdict.message)
        for one, verdict in zip(answers, verdicts, strict=True)
        if not one.judged_rightly(verdict)
    ]
    assert not misjudged
