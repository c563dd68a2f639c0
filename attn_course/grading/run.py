"""One run of the grader: plan, do what is not done yet, keep each result, report."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock, Timeout

from attn_course.grading import workers
from attn_course.grading.intake.collect import collect
from attn_course.grading.intake.plan import Plan, make_plan
from attn_course.grading.intake.scaffold import Scaffold, scaffolds
from attn_course.grading.judging.complete import complete
from attn_course.grading.rebuilt import Rebuilt
from attn_course.grading.reports.grades import Grades, make_grades
from attn_course.grading.reports.write import write_reports
from attn_course.grading.settings import RunSettings
from attn_course.grading.state import State, StorageError, fingerprint
from attn_course.grading.verdict import Verdict
from attn_course.grading.workers import Executor, Finished


@dataclass(frozen=True)
class Request:
    """What the instructor asked for.

    Attributes:
        submissions: a folder, a zip archive or one notebook.
        out: the folder of the results.
        chapters: two digits each; empty for all that were handed in.
        jobs: how many submissions run at once on this machine.
        settings: how each is run; its seed is replaced by that of the folder.
        seed: the wanted seed, None for the recorded or a fresh one.
        scheduler: the address of a Dask scheduler, None for this machine.
        regrade: whether to grade again what is graded already.
    """

    submissions: Path
    out: Path
    chapters: tuple[str, ...] = ()
    jobs: int = 1
    settings: RunSettings = field(default_factory=RunSettings)
    seed: int | None = None
    scheduler: str | None = None
    regrade: bool = False


class Listener:
    """What a run tells while it goes on. This one is silent."""

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """`total` steps of `what` are to come, `done` of them are known already."""

    def step(self) -> None:
        """One more is done."""

    def end(self) -> None:
        """All are done, or the run stops."""


@dataclass(frozen=True)
class Result:
    """What a run came to.

    Attributes:
        grades: everything.
        graded: submissions that ran now.
        known: submissions whose results were kept from earlier.
        failed: submissions that the grader itself failed on; running again tries them again.
    """

    grades: Grades
    graded: int
    known: int
    failed: int


def grade(
    job: Request,
    executor: Executor,
    progress: Listener | None = None,
    course: dict[str, Scaffold] | None = None,
) -> Result:
    """Grade what is not graded yet and write all reports to `job.out`.

    `course` is the scaffolds of all chapters, those of the course's own folder by default.

    Raises:
        ValueError: for a job that cannot be done: no submissions, an unknown chapter, or another
            run at work in the same folder.
        StorageError: if the results cannot be written; what is finished is kept.
        ClusterError: if the cluster cannot be used.
        KeyboardInterrupt: on Ctrl-C; what is finished is kept.
    """
    progress = progress or Listener()
    course = course or scaffolds()
    unknown = sorted(set(job.chapters) - set(course))
    if unknown:
        raise ValueError(
            f"chapter {', '.join(unknown)} has no exercises here; there are {', '.join(course)}"
        )
    _make_folder(job.out)
    try:
        with FileLock(job.out / ".lock", timeout=0), State(job.out) as state:
            return _Run(job, executor, progress, course, state).run()
    except Timeout:
        raise ValueError(
            f"another run is grading into {job.out}; wait until it has ended"
        ) from None


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{out}: {error}") from error


@dataclass
class _Run:
    job: Request
    executor: Executor
    progress: Listener
    course: dict[str, Scaffold]
    state: State

    def run(self) -> Result:
        seed = self.state.seed(self.job.seed, fresh=secrets.randbits(31))
        settings = replace(self.job.settings, seed=seed)
        if self.job.regrade:
            self.state.forget()
        plan = self._plan()
        verdicts, todo = self._known(plan, settings)
        runnable = [task for task in todo if _has_to_run(task)]
        for task in todo:
            if not _has_to_run(task):
                self._keep(task, settings, complete(task, None, None), 0.0, verdicts)
        known = sum(map(_has_to_run, plan.tasks)) - len(runnable)
        failed = self._execute(runnable, known, settings, verdicts)
        grades = make_grades(plan, verdicts, self.course, settings)
        try:
            write_reports(grades, self.job.out)
        except OSError as error:
            raise StorageError(f"{self.job.out}: {error}") from error
        return Result(grades, len(runnable) - failed, known, failed)

    def _plan(self) -> Plan:
        collected = collect(self.job.submissions, leave_out=self.job.out)
        self.progress.begin("reading", len(collected.found))
        plan = make_plan(collected, self.course, self.job.chapters, self.progress.step)
        self.progress.end()
        return plan

    def _known(
        self, plan: Plan, settings: RunSettings
    ) -> tuple[dict[tuple[str, str], list[Verdict]], list[Rebuilt]]:
        """What is recorded already, and what there is to do."""
        verdicts, todo = {}, []
        for task in plan.tasks:
            key = fingerprint(task, settings)
            found = self.state.find(task.student, task.chapter, key)
            if found is None:
                todo.append(task)
            else:
                verdicts[task.student, task.chapter] = found
        return verdicts, todo

    def _execute(
        self,
        tasks: Sequence[Rebuilt],
        known: int,
        settings: RunSettings,
        verdicts: dict[tuple[str, str], list[Verdict]],
    ) -> int:
        """Run what is to run; how many the grader itself failed on."""
        failed = 0
        self.progress.begin("grading", known + len(tasks), done=known)
        results = self._workers(tasks, settings)
        try:
            for done in results:
                rows = complete(done.rebuilt, done.verdicts, done.failure)
                if done.verdicts is None:  # not kept, so that the next run tries it again
                    failed += 1
                    verdicts[done.rebuilt.student, done.rebuilt.chapter] = rows
                else:
                    self._keep(done.rebuilt, settings, rows, done.seconds, verdicts)
                self.progress.step()
        finally:
            results.close()
            self.progress.end()
        return failed

    def _workers(
        self, tasks: Sequence[Rebuilt], settings: RunSettings
    ) -> Generator[Finished, None, None]:
        if self.job.scheduler and tasks:
            return workers.on_cluster(tasks, settings, self.executor, self.job.scheduler)
        return workers.locally(tasks, settings, self.executor, self.job.jobs)

    def _keep(
        self,
        task: Rebuilt,
        settings: RunSettings,
        rows: list[Verdict],
        seconds: float,
        verdicts: dict[tuple[str, str], list[Verdict]],
    ) -> None:
        key = fingerprint(task, settings)
        self.state.keep(task.student, task.chapter, key, rows, seconds)
        verdicts[task.student, task.chapter] = rows


def _has_to_run(task: Rebuilt) -> bool:
    return any(cell.exercise not in task.problems for cell in task.checks)
