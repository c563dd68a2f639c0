"""One graded notebook from its first cell to its last: what runs, and what is said of it."""

from __future__ import annotations

import contextlib
import json
import re
import time
from pathlib import Path
from typing import Any

from attn_course.checks import get
from attn_course.grading.judging import assess, forbidden
from attn_course.grading.judging.assess import ENDED, Assessment
from attn_course.grading.judging.job import Job
from attn_course.grading.judging.releases import answers, source_of_reference, stand_in, wants
from attn_course.grading.judging.so_far import Ran, SoFar
from attn_course.grading.rebuilt import RebuiltCell
from attn_course.grading.remote.peer import Peer
from attn_course.grading.sandbox.edition import INSIDE
from attn_course.grading.sandbox.enclosure import Limits
from attn_course.grading.sandbox.kernel import Kernel, KernelGone
from attn_course.grading.sandbox.sandbox import Sandbox
from attn_course.grading.student_code import imports
from attn_course.grading.text import clean_data
from attn_course.grading.verdict import Verdict
from attn_course.sentences import Spoken, constant, say, spoken

RAISED = "The cell raised {error}: {text}"
NOT_RUN = "The cell could not be run: {why}"
BROKEN_OFF = "The check was broken off: {why}"
UNDEFINED = "The cell does not define `{name}`."
NO_FUNCTION = "`{name}` should be a function or a class, it is an object of type {type}."
HARDLY_NEEDED = "The code uses {names}, which an answer hardly needs"
HARDLY_NEEDED_BESIDE = "A cell besides uses {names}, which hardly any needs"
GIVEN = (
    "`{name}` is the course's here, since yours is not right yet; this exercise is judged on its "
    "own."
)

_SERVE = f"__import__({INSIDE + '.inside'!r}, fromlist=['*']).serve({{name!r}}, watch={{watch}})"
_RELEASE = f"__import__({INSIDE + '.inside'!r}, fromlist=['*']).release{{arguments!r}}"
_EXCERPT = 470
_STARTS = 3
"""How often a kernel is started again between two cells before the notebook is given up."""


class Session:
    """The course of one graded notebook; the plugin tells it which cell nbval runs.

    Args:
        path: the job file.
    """

    def __init__(self, path: Path) -> None:
        self.job = Job.read(path)
        self.rebuilt, self.settings = self.job.rebuilt, self.job.settings
        self.deadline = time.monotonic() + self.settings.total_timeout
        self._kernel: Kernel | None = None
        self._cell = RebuiltCell("setup", "")
        self._began = 0.0
        setup = (cell.source for cell in self.rebuilt.cells if cell.kind == "setup")
        self._done = SoFar(given=frozenset().union(*map(imports, setup)))
        self._assessment: Assessment | None = None

    # -- what nbval sees as its kernel --------------------------------------------------------

    def kernel_for_nbval(self, *_args: Any, **_kwargs: Any) -> Session:
        """What nbval gets where it starts its own kernel."""
        return self

    language = "python"

    def is_alive(self) -> bool:
        """Whether cells can run; a kernel that has ended is started anew for the next cell."""
        if self._kernel is None or not self._kernel.is_alive():
            self._start()
        return True

    def execute_cell_input(self, cell_input: str, allow_stdin: bool | None = None) -> str:
        """Send a cell to be run; only checks may ask for input."""
        return self._running.execute_cell_input(cell_input, allow_stdin=self._is_serving)

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        """Wait until the cell has run; a check is judged meanwhile."""
        if self._is_serving:
            self._assessment = self._judge(msg_id)
            timeout = 10.0
        self._running.await_reply(msg_id, timeout)

    def await_idle(self, parent_id: str, timeout: float) -> None:
        """Wait for the end of the output."""
        self._running.await_idle(parent_id, timeout)

    def get_message(self, stream: str, timeout: float | None = None) -> dict[str, Any]:
        """The next message."""
        return self._running.get_message(stream, timeout)

    def interrupt(self) -> None:
        """A cell has run too long."""
        self._running.interrupt()

    def stop(self) -> None:
        """Nbval stops its kernel after a time-out, and at the end."""
        self.close()

    def close(self) -> None:
        """End the kernel."""
        if self._kernel is not None:
            self._kernel.stop()
            self._kernel = None

    # -- what the plugin tells ----------------------------------------------------------------

    def begin(self, place: int) -> str:
        """The cell at this place is next; returns what is to be run for it."""
        self._cell, self._assessment = self.rebuilt.cells[place], None
        self._began = time.monotonic()
        source, name = self._cell.source, self._cell.exercise or ""
        if time.monotonic() > self.deadline:
            return "pass"
        if self._cell.kind == "answer":
            if name in self.rebuilt.settled:
                return "pass"
            self._release_for(source, name)
        elif self._cell.kind == "helper":
            self._release_for(source)
        elif self._cell.kind == "check":
            settled = self._settled(name)
            if settled is not None:
                self._assessment = settled
                return "pass"
            watch = bool(get(name).rules_out)
            return _SERVE.format(name=name, watch=watch)
        return source

    def finish(self, error: BaseException | None) -> str | None:
        """The cell has run, or `error` stopped it; returns why a check has failed."""
        kind, name = self._cell.kind, self._cell.exercise or ""
        ran = self._what_ran(error)
        if kind == "check":
            assessment = self._assessment or Assessment(ran.status, ran.cause)
            self._write_down(name, assessment)
            if assessment.status != "ok" and self._kernel is not None and self._kernel.is_crowded():
                self.close()  # what was left behind is not to disturb the next exercise
            return None if assessment.status == "ok" else f"{name}: {spoken(assessment.cause)}"
        if kind == "answer":
            self._done.ran[name] = ran
        if kind in ("helper", "answer"):
            self._done.helpers.append(self._cell.source)
        if ran.status in ("ok", "error") and not self._cell_was_skipped:
            self._done.replay.append(self._cell.source)
        return None

    # -- cells --------------------------------------------------------------------------------

    @property
    def _running(self) -> Kernel:
        if self._kernel is None:
            raise KernelGone("killed", "there is no kernel")
        return self._kernel

    @property
    def _is_serving(self) -> bool:
        return self._cell.kind == "check" and self._assessment is None

    @property
    def _cell_was_skipped(self) -> bool:
        return self._cell.kind == "check" or self._cell.exercise in self.rebuilt.settled

    def _what_ran(self, error: BaseException | None) -> Ran:
        kernel = self._kernel
        ran = Ran(self._cell.source, seconds=time.monotonic() - self._began)
        if kernel is not None:
            ran.output = kernel.output
        gone = error if isinstance(error, KernelGone) else kernel.gone if kernel else None
        if gone is not None:
            ran.status, ran.cause = (
                gone.status,
                say("The cell was ended: {why}.", why=constant(gone.reason)),
            )
            self.close()
        elif kernel is not None and kernel.error is not None:
            name, text = (str(kernel.error.get(k, ""))[:500] for k in ("ename", "evalue"))
            # IPython calls a cell by a number that its author never sees
            text = re.sub(r"\(\d+\.py, line (\d+)\)", r"(line \1)", text)
            ran.status, ran.cause = "error", say(RAISED, error=name, text=text)
        elif error is not None:
            ran.status, ran.cause = "error", say(NOT_RUN, why=str(error)[:_EXCERPT])
        if time.monotonic() > self.deadline and ran.status == "ok":
            ran.status, ran.cause = "timeout", "The time for the whole notebook was used up."
        return ran

    def _start(self) -> None:
        """Start a kernel, and run again in it what had run before."""
        self.close()
        for _ in range(_STARTS):
            self._kernel = Kernel(self._sandbox, self.deadline)
            if self._replayed():
                return
            self.close()
        raise KernelGone("killed", "what ran before does not run again")

    def _sandbox(self) -> Sandbox:
        limits = Limits(
            memory_mb=self.settings.memory_mb, cpu=int(self.settings.total_timeout) + 60
        )
        return Sandbox(self.settings.sandbox, self.job.edition, limits)

    def _replayed(self) -> bool:
        for source in list(self._done.replay):
            try:
                self._running.run(source, self.settings.timeout)
            except Exception:
                self._done.replay.remove(source)  # it did not end this time
                return False
            except KernelGone:
                self._done.replay.remove(source)
                return False
        return True

    # -- exercises ----------------------------------------------------------------------------

    def _settled(self, name: str) -> Assessment | None:
        """What can be said of an exercise without calling the answer."""
        settled = self.rebuilt.settled.get(name)
        if settled is not None:
            return Assessment(settled.status, settled.cause)
        ran = self._done.ran.get(name)
        if ran is None:
            return Assessment("missing", "There is no answer to this exercise.")
        if ran.status in ("timeout", "killed"):
            return Assessment(ran.status, ran.cause)
        use = self._done.forbidden_use(name, ran.source)
        if use is not None:
            cause = forbidden.told(get(name), [use.name], use.line)
            return Assessment("forbidden", cause, line=use.line)
        return None

    def _judge(self, msg_id: str) -> Assessment:
        """Judge the answer whose check is running now."""
        kernel, name = self._running, self._cell.exercise or ""

        def swap(text: str) -> str:
            kernel.give_input(text)
            return kernel.await_input(msg_id)

        try:
            ready = json.loads(kernel.await_input(msg_id, self.settings.timeout))
            found = ready.get("found") if isinstance(ready, dict) else None
            if found != "callable":
                return self._not_there(name, str(found))
            peer = Peer(swap, "t", form=get(name).wire)
            seed = assess.seed_for(self.settings.seed, name, self.rebuilt.code)
            assessment = assess.assess(name, self._cell.points, peer, seed, self.settings.timeout)
            if assessment.status in ("timeout", "killed"):
                kernel.end(assessment.status, assessment.cause)
            else:
                kernel.give_input("done")
        except KernelGone as gone:
            return Assessment(gone.status, say(ENDED, why=constant(gone.reason)))
        except (ValueError, RecursionError) as error:
            kernel.end("error", "it broke off the check")
            return Assessment("error", say(BROKEN_OFF, why=str(error)[:_EXCERPT]))
        return assessment

    def _not_there(self, name: str, found: str) -> Assessment:
        self._running.give_input("done")
        ran = self._done.ran[name]
        if ran.status == "error":
            return Assessment("error", ran.cause)
        if found == "undefined":
            return Assessment("unmatched", say(UNDEFINED, name=name))
        return Assessment("unmatched", say(NO_FUNCTION, name=name, type=found[:60]))

    def _write_down(self, name: str, assessment: Assessment) -> None:
        ran = self._done.ran.get(name, Ran(""))
        seconds = ran.seconds + time.monotonic() - self._began
        detail: dict[str, Any] = {
            "code": ran.source,
            "stages": [list(stage) for stage in assessment.stages],
            "output": ran.output,
            "seconds": round(seconds, 3),
        }
        if assessment.line:
            detail["line"] = assessment.line
        made = Verdict(
            self.rebuilt.student,
            self.rebuilt.chapter,
            name,
            min(assessment.points, self._cell.points),
            self._cell.points,
            assessment.status,
            assessment.mistake,
            assessment.cause,
            assessment.problem,
            tuple(assessment.example.lines()) if assessment.example else (),
            (*self._done.notes.get(name, ()), *assessment.observations),
            tuple(self._hiding(name, ran.source)),
            detail,
        )
        self._done.verdicts[name] = made
        with self.job.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(clean_data(made.as_data())) + "\n")

    def _hiding(self, name: str, source: str) -> list[Spoken]:
        """What a human is told of names that look built to hide something."""
        own = forbidden.suspicious(source)
        told: list[Spoken] = [say(HARDLY_NEEDED, names=", ".join(own))] if own else []
        if get(name).rules_out:
            cells = self._done.beside_answers()
            beside = sorted({found for cell in cells for found in forbidden.suspicious(cell)})
            if beside:
                told.append(say(HARDLY_NEEDED_BESIDE, names=", ".join(beside)))
        return told

    # -- references that later exercises build on ---------------------------------------------

    def _release_for(self, source: str, name: str = "") -> None:
        """Put earlier exercises' references where a cell, or what it calls, looks for them."""
        code = (source, *self._done.helpers_of(source))
        for earlier, made in list(self._done.verdicts.items()):
            if any(wants(text, earlier) for text in code) and self._may_be_given(earlier):
                if made.status != "ok" and name:
                    note = say(GIVEN, name=earlier)
                    self._done.notes.setdefault(name, []).append(note)
                with contextlib.suppress(Exception, KernelGone):
                    self.is_alive()
                    self._give(earlier)

    def _may_be_given(self, earlier: str) -> bool:
        """Whether a reference answers none of the exercises that are still to be judged."""
        names = (cell.exercise or "" for cell in self.rebuilt.checks)
        return not any(answers(earlier, n) for n in names if n not in self._done.verdicts)

    def _give(self, name: str) -> None:
        answer = "" if self._done.verdicts[name].status == "ok" else stand_in(self.rebuilt, name)
        code = _RELEASE.format(arguments=(*source_of_reference(name), name, answer))
        if code not in self._done.replay:
            self._running.run(code, self.settings.timeout)
            self._done.replay.append(code)
