"""`attn-course grade`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
from tqdm import tqdm

from attn_course import terminal
from attn_course.course import find_chapter
from attn_course.grading.run import Listener, Request, Result, Step, grade
from attn_course.grading.sandbox.available import KINDS, SandboxError, probe
from attn_course.grading.settings import RunSettings
from attn_course.grading.state import StorageError
from attn_course.grading.workers import ClusterError, Executor
from attn_course.sentences import say, spoken

_DEFAULTS = RunSettings()
_WORDS: dict[Step, tuple[str, str]] = {
    "reading": ("reading", "file"),
    "grading": ("grading", "submission"),
}
"""What a step does, and what it counts."""

NO_ROOM = (
    "the results cannot be written: {why}. Everything finished is kept; make room and run the "
    "same command again."
)
STOPPED = "Stopped. Everything finished is kept; run the same command to go on."
WITHOUT_SANDBOX = "The answers ran WITHOUT a sandbox; every report says so."
DONE = "Submissions graded: {graded}, known from before: {known}. Report: {report}"
FAILED = (
    "the grader itself failed on {n} submissions, which report.html lists under what needs a "
    "human; the same command tries them again"
)


class Bar(Listener):
    """Progress bars with the time left, on standard error."""

    def __init__(self) -> None:
        self._bar: tqdm | None = None

    def begin(self, what: Step, total: int, done: int = 0) -> None:
        """Show a bar; what is known from earlier does not count for the time left."""
        doing, unit = map(spoken, _WORDS[what])
        self._bar = tqdm(desc=doing, total=total, initial=done, unit=f" {unit}", file=sys.stderr)

    def step(self) -> None:
        """Advance the bar."""
        if self._bar is not None:
            self._bar.update()

    def end(self) -> None:
        """Leave the bar where it is."""
        if self._bar is not None:
            self._bar.close()


def _chapters(_context: click.Context, _option: click.Parameter, names: tuple[str, ...]):
    try:
        return tuple(sorted({find_chapter(name).number for name in names}))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@terminal.command("grade", context_settings={"show_default": True})
@click.argument("submissions", type=click.Path(path_type=Path, exists=True))
@terminal.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder for the results. Running again with it continues.",
)
@terminal.option(
    "--chapter",
    "chapters",
    multiple=True,
    callback=_chapters,
    metavar="CHAPTER",
    help="Grade this chapter only; may be repeated. Without it: all that came in.",
)
@terminal.option(
    "--jobs",
    type=click.IntRange(1),
    default=os.cpu_count() or 1,
    help="How many submissions run at once.",
)
@terminal.option(
    "--timeout",
    type=click.FloatRange(1),
    default=_DEFAULTS.timeout,
    help="Seconds that one cell may take.",
)
@terminal.option(
    "--total-timeout",
    type=click.FloatRange(1),
    default=_DEFAULTS.total_timeout,
    help="Seconds that one notebook may take.",
)
@terminal.option(
    "--memory",
    type=click.IntRange(512),
    default=_DEFAULTS.memory_mb,
    help="Megabytes of memory for one notebook.",
)
@terminal.option(
    "--sandbox",
    type=click.Choice(KINDS),
    default=_DEFAULTS.sandbox,
    help="What the answers run in. `none` lets them do whatever you can do.",
)
@terminal.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Send the submissions to the Dask cluster at tcp://HOST:PORT.",
)
@terminal.option(
    "--seed",
    type=click.IntRange(0),
    show_default=False,
    help="Draw the hidden inputs from this seed. Default: the folder's, or a fresh one.",
)
@terminal.option("--regrade", is_flag=True, help="Grade again what is graded already.")
def command(
    submissions: Path,
    out: Path,
    chapters: tuple[str, ...],
    jobs: int,
    timeout: float,
    total_timeout: float,
    memory: int,
    sandbox: str,
    scheduler: str | None,
    seed: int | None,
    regrade: bool,
) -> None:
    """Grade the notebooks in SUBMISSIONS, a folder, a zip archive or one notebook.

    Understood are students' folders, flat files named as Canvas, Moodle, Blackboard or
    Brightspace name them, and nbgrader's submitted/<student>/<assignment>/. Results, feedback
    and report.html are written to the folder of --out.
    """
    settings = RunSettings(
        sandbox=sandbox, timeout=timeout, total_timeout=total_timeout, memory_mb=memory
    )
    request = Request(submissions, out, chapters, jobs, settings, seed, scheduler, regrade)
    try:
        executor = _executor(settings, local=scheduler is None)
        result = grade(request, executor, Bar())
    except (ValueError, ClusterError, SandboxError) as error:
        raise click.ClickException(str(error)) from None
    except StorageError as error:
        raise click.ClickException(spoken(say(NO_ROOM, why=str(error)))) from None
    except KeyboardInterrupt:
        click.echo(f"\n{spoken(STOPPED)}", err=True)
        sys.exit(130)
    _tell(result, out, sandbox)


def _executor(settings: RunSettings, local: bool) -> Executor:
    """What runs a notebook; the sandbox is tried at once, where it is needed on this machine."""
    # late: it needs torch, which takes seconds to import
    from attn_course.grading.judging.execute import execute

    if local:
        probe(settings.sandbox)
    return execute


def _tell(result: Result, out: Path, sandbox: str) -> None:
    if sandbox == "none":
        click.echo(spoken(WITHOUT_SANDBOX), err=True)
    report = out / "report.html"
    click.echo(spoken(say(DONE, graded=result.graded, known=result.known, report=report)))
    click.echo(spoken(say("{account}.", account=result.grades.account)))
    if result.failed:
        raise click.ClickException(spoken(say(FAILED, n=result.failed)))
