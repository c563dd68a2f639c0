"""One run of the grader: `_Grading.from_folder_to_grades` is the way of every submission.

collect      whose file is it?                              intake/collect.py
recognise    which chapter does it answer?                  intake/notebook.py, answers.py
rebuild      its answers in the course's own notebook       intake/plan.py, rebuild.py
run, judge   under nbval in a sandbox, judged outside it    workers.py, judging/execute.py
complete     one row for each exercise, whatever happened   judging/complete.py
keep         a kill or a full disk loses nothing finished   state.py
report       grades.json, and all that is made from it      reports/write.py
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from attn_course.grading import workers
from attn_course.grading.intake.collect import collect
from attn_course.grading.intake.plan import Plan, Recognised, make_plan, recognise_all
from attn_course.grading.intake.scaffold import Scaffold, scaffolds
from attn_course.grading.judging.complete import complete
from attn_course.grading.rebuilt import Rebuilt
from attn_course.grading.reports.grades import Grades, make_grades
from attn_course.grading.reports.write import write_reports
from attn_course.grading.settings import RunSettings
from attn_course.grading.state import State, StorageError, fingerprint
from attn_course.grading.verdict import Verdict
from attn_course.grading.workers import Executor, Finished
from attn_course.sentences import say

UNKNOWN = "chapter {chapters} has no exercises here; there are {known}"
AT_WORK = "another run is grading into {out}; wait until it has ended"


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


Step = Literal["reading", "grading"]
"""What takes its time."""


class Listener:
    """What a run tells while it goes on. This one is silent."""

    def begin(self, what: Step, total: int, done: int = 0) -> None:
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
    request: Request,
    executor: Executor,
    listener: Listener | None = None,
    course: dict[str, Scaffold] | None = None,
) -> Result:
    """Grade what is not graded yet and write all reports to `request.out`.

    `course` is the scaffolds of all chapters, those of the course's own folder by default.

    Raises:
        ValueError: for a request that cannot be met: no submissions, an unknown chapter, or
            another run at work in the same folder.
        StorageError: if the results cannot be written; what is finished is kept.
        ClusterError: if the cluster cannot be used.
        KeyboardInterrupt: on Ctrl-C; what is finished is kept.
    """
    course = course or scaffolds()
    unknown = sorted(set(request.chapters) - set(course))
    if unknown:
        raise ValueError(say(UNKNOWN, chapters=", ".join(unknown), known=", ".join(course)))
    _make_folder(request.out)
    try:
        with FileLock(request.out / ".lock", timeout=0), State(request.out) as state:
            settings = replace(request.settings, seed=_seed(request, state))
            grading = _Grading(request, executor, listener or Listener(), course, state, settings)
            return grading.from_folder_to_grades()
    except Timeout:
        raise ValueError(say(AT_WORK, out=request.out)) from None


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(out, error) from error


def _seed(request: Request, state: State) -> int:
    """The seed of this run; what is kept is forgotten if everything is to be graded again."""
    if request.regrade:
        state.forget()
    return state.seed(request.seed, fresh=secrets.randbits(31))


@dataclass
class _Grading:
    request: Request
    executor: Executor
    listener: Listener
    course: dict[str, Scaffold]
    state: State
    settings: RunSettings
    verdicts: dict[tuple[str, str], list[Verdict]] = field(default_factory=dict)
    failed: int = 0

    def from_folder_to_grades(self) -> Result:
        """The way of every submission from the folder to grades.csv, a step a line."""
        collected = collect(self.request.submissions, leave_out=self.request.out)
        recognised = self._told(recognise_all(collected.found, self.course), len(collected.found))
        plan = make_plan(collected, recognised, self.course, self.request.chapters)
        todo = self._not_kept_yet(plan)
        with closing(self._run_and_judge(todo, plan)) as finished:
            for done in finished:
                rows = complete(done)
                self._keep(done, rows)
        grades = make_grades(plan, self.verdicts, self.course, self.settings)
        self._report(grades)
        return self._result(grades, todo, plan)

    def _told(self, steps: Iterable[Recognised], total: int) -> Iterator[Recognised]:
        """The same, with the listener told of each."""
        self.listener.begin("reading", total)
        for step in steps:
            yield step
            self.listener.step()
        self.listener.end()

    def _not_kept_yet(self, plan: Plan) -> list[Rebuilt]:
        """What there is to do; the verdicts on all else are taken from earlier runs."""
        todo = []
        for rebuilt in plan.submissions:
            key = fingerprint(rebuilt, self.settings)
            kept = self.state.find(rebuilt.student, rebuilt.chapter, key)
            if kept is None:
                todo.append(rebuilt)
            else:
                self.verdicts[rebuilt.student, rebuilt.chapter] = kept
        return todo

    def _run_and_judge(
        self, todo: Sequence[Rebuilt], plan: Plan
    ) -> Generator[Finished, None, None]:
        """Each submission as it is done; what has nothing to run is done at once."""
        yield from (Finished(rebuilt, []) for rebuilt in todo if not rebuilt.has_to_run)
        running = _to_run(todo)
        total = len(_to_run(plan.submissions))
        self.listener.begin("grading", total, done=total - len(running))
        results = self._workers(running)
        try:
            for done in results:
                yield done
                self.listener.step()
        finally:
            results.close()
            self.listener.end()

    def _workers(self, todo: Sequence[Rebuilt]) -> Generator[Finished, None, None]:
        request = self.request
        if request.scheduler and todo:
            return workers.on_cluster(todo, self.settings, self.executor, request.scheduler)
        return workers.locally(todo, self.settings, self.executor, request.jobs)

    def _keep(self, done: Finished, rows: list[Verdict]) -> None:
        """Keep the rows; those that the grader failed on are not, so that they are tried again."""
        student, chapter = done.rebuilt.student, done.rebuilt.chapter
        if done.verdicts is None:
            self.failed += 1
        else:
            key = fingerprint(done.rebuilt, self.settings)
            self.state.keep(student, chapter, key, rows, done.seconds)
        self.verdicts[student, chapter] = rows

    def _report(self, grades: Grades) -> None:
        try:
            write_reports(grades, self.request.out)
        except OSError as error:
            raise StorageError(self.request.out, error) from error

    def _result(self, grades: Grades, todo: Sequence[Rebuilt], plan: Plan) -> Result:
        ran = len(_to_run(todo))
        known = len(_to_run(plan.submissions)) - ran
        return Result(grades, ran - self.failed, known, self.failed)


def _to_run(submissions: Sequence[Rebuilt]) -> list[Rebuilt]:
    return [rebuilt for rebuilt in submissions if rebuilt.has_to_run]
