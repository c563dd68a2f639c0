"""Run one rebuilt notebook in a sandbox and judge it outside.

Nothing that a student's code does raises here: a verdict says what it was.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from attn_course.grading.judging.complete import unjudged
from attn_course.grading.judging.job import NO_SANDBOX, Job
from attn_course.grading.rebuilt import Rebuilt, RebuiltCell, Settled
from attn_course.grading.sandbox import available
from attn_course.grading.sandbox.edition import edition
from attn_course.grading.settings import RunSettings
from attn_course.grading.verdict import Verdict
from attn_course.sentences import Code

GRACE_SECONDS = 120.0
"""How long a notebook's process may take beyond the notebook's own time, to start and to judge."""


CUT_SHORT = Settled("killed", "The notebook could not be run to its end.")


class GraderError(RuntimeError):
    """The grader itself failed on a notebook; the text is the last of what it wrote."""


_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["attn_course.grading.judging.child"])


def probe(settings: RunSettings) -> None:
    """See that submissions can be run with these settings.

    Raises:
        SandboxError: if the sandbox does not work here; the text has the remedy.
        ValueError: if there is no such sandbox.
    """
    available.probe(settings.sandbox)


def execute(rebuilt: Rebuilt, settings: RunSettings) -> list[Verdict]:
    """The verdicts on one student's one chapter, one for each exercise, in order.

    Raises:
        SandboxError: if the sandbox does not work here.
        GraderError: if the grader's own process raised an error. Neither is for what a student
            did: one who has used up the time or the memory is told so in the verdicts.
    """
    if not rebuilt.has_to_run:
        return unjudged(rebuilt, CUT_SHORT)
    code = [cell.source for cell in rebuilt.cells if cell.kind == "setup"]
    with tempfile.TemporaryDirectory(prefix="grading-") as folder:
        place = Path(folder)
        job = Job(rebuilt, settings, edition(rebuilt.chapter, code), place / "results")
        _write(place, job)
        code = _run(place, settings)
        log = (place / "log").read_text(errors="replace")[-2000:] if code else ""
        if code == NO_SANDBOX:
            raise available.SandboxError(log)
        if code and code > 0:  # below 0: a signal has ended it
            raise GraderError(log)
        made = {verdict.exercise: verdict for verdict in _read(job.results)}
        if not made:
            available.probe(settings.sandbox)
    rest = unjudged(rebuilt, CUT_SHORT, [Code(log)] if log else [])
    return [made.get(verdict.exercise, verdict) for verdict in rest]


def notebook(cells: tuple[RebuiltCell, ...]) -> nbformat.NotebookNode:
    """The graded notebook: what is run, cell by cell; its outputs are nobody's."""
    return new_notebook(
        cells=[
            new_code_cell(cell.source, metadata={"attn_course": {"place": k, "kind": cell.kind}})
            for k, cell in enumerate(cells)
        ]
    )


def _write(place: Path, job: Job) -> None:
    nbformat.write(notebook(job.rebuilt.cells), place / "graded.ipynb")
    job.write(place / "job.json")
    job.results.touch()
    (place / "log").touch()
    (place / "pytest.ini").write_text("[pytest]\n")


def _run(place: Path, settings: RunSettings) -> int | None:
    """Run pytest in a process of its own; its exit code, 0 if it got to its end."""
    from attn_course.grading.judging import child

    arguments = (str(place), settings.timeout)
    # a daemon ends with the grader: Ctrl-C does not wait for what is running
    process = _context.Process(target=child.grade, args=arguments, daemon=True)
    process.start()
    process.join(settings.total_timeout + GRACE_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
    return process.exitcode


def _read(results: Path) -> list[Verdict]:
    lines = results.read_text(encoding="utf-8").splitlines()
    return [Verdict.from_data(json.loads(line)) for line in lines if line.endswith("}")]
