"""One graded notebook from its first cell to its last: what runs, and what is said of it."""

from __future__ import annotations

import contextlib
import json
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attn_course.checks import get
from attn_course.grading.judging import assess, forbidden
from attn_course.grading.judging.assess import Assessment
from attn_course.grading.judging.job import Job
from attn_course.grading.judging.releases import answers, source_of_reference, stand_in, wants
from attn_course.grading.judging.so_far import Ran, SoFar
from attn_course.grading.rebuilt import RebuiltCell
from attn_course.grading.remote.peer import Peer
from attn_course.grading.sandbox.edition import INSIDE
from attn_course.grading.sandbox.kernel import Kernel, KernelGone
from attn_course.grading.sandbox.sandbox import Limits, Sandbox
from attn_course.grading.student_code import imports
from attn_course.grading.verdict import Verdict

_SERVE = f"__import__({INSIDE + '.inside'!r}, fromlist=['*']).serve({{name!r}}, watch={{watch}})"
_RELEASE = f"__import__({INSIDE + '.inside'!r}, fromlist=['*']).release{{arguments!r}}"
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
        self._finding: Assessment | None = None

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
            self._finding = self._judge(msg_id)
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
        self._cell, self._finding = self.rebuilt.cells[place], None
        self._began = time.monotonic()
        source, name = self._cell.source, self._cell.exercise or ""
        if time.monotonic() > self.deadline:
            return "pass"
        if self._cell.kind == "answer":
            if name in self.rebuilt.problems:
                return "pass"
            self._release_for(source, name)
        elif self._cell.kind == "helper":
            self._release_for(source)
        elif self._cell.kind == "check":
            settled = self._settled(name)
            if settled is not None:
                self._finding = settled
                return "pass"
            watch = bool(get(name).rules_out)
            return _SERVE.format(name=name, watch=watch)
        return source

    def finish(self, error: BaseException | None) -> str | None:
        """The cell has run, or `error` stopped it; returns why a check has failed."""
        kind, name = self._cell.kind, self._cell.exercise or ""
        ran = self._what_ran(error)
        if kind == "check":
            finding = self._finding or Assessment(ran.status, 0.0, None, ran.message)
            self._write_down(name, finding)
            if finding.status != "ok" and self._kernel is not None and self._kernel.is_crowded():
                self.close()  # what was left behind is not to disturb the next exercise
            return None if finding.status == "ok" else f"{name}: {finding.message}"
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
        return self._cell.kind == "check" and self._finding is None

    @property
    def _cell_was_skipped(self) -> bool:
        return self._cell.kind == "check" or self._cell.exercise in self.rebuilt.problems

    def _what_ran(self, error: BaseException | None) -> Ran:
        kernel = self._kernel
        ran = Ran(self._cell.source, seconds=time.monotonic() - self._began)
        if kernel is not None:
            ran.output = kernel.output
        gone = error if isinstance(error, KernelGone) else kernel.gone if kernel else None
        if gone is not None:
            ran.status, ran.message = gone.status, f"The cell was ended: {gone}."
            self.close()
        elif kernel is not None and kernel.error is not None:
            name, text = (str(kernel.error.get(k, ""))[:500] for k in ("ename", "evalue"))
            # IPython calls a cell by a number that its author never sees
            text = re.sub(r"\(\d+\.py, line (\d+)\)", r"(line \1)", text)
            ran.status, ran.message = "error", f"The cell raised {name}: {text}"
        elif error is not None:
            ran.status, ran.message = "error", f"The cell could not be run: {error}"[:500]
        if time.monotonic() > self.deadline and ran.status == "ok":
            ran.status, ran.message = "timeout", "The time for the whole notebook was used up."
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
        problem = self.rebuilt.problems.get(name)
        if problem is not None:
            return Assessment(problem.status, 0.0, None, problem.message)
        ran = self._done.ran.get(name)
        if ran is None:
            return Assessment("missing", 0.0, None, "There is no answer to this exercise.")
        if ran.status in ("timeout", "killed"):
            return Assessment(ran.status, 0.0, None, ran.message)
        use = self._done.forbidden_use(name, ran.source)
        if use is not None:
            message = forbidden.message(get(name), [use.name], use.line)
            return Assessment("forbidden", 0.0, None, message, line=use.line)
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
            finding = assess.assess(name, self._cell.points, peer, seed, self.settings.timeout)
            if finding.status in ("timeout", "killed"):
                kernel.end(finding.status, finding.message)
            else:
                kernel.give_input("done")
        except KernelGone as gone:
            return Assessment(gone.status, 0.0, None, f"The answer was ended: {gone}.")
        except (ValueError, RecursionError) as error:
            kernel.end("error", "it broke off the check")
            return Assessment("error", 0.0, None, f"The check was broken off: {error}"[:500])
        return finding

    def _not_there(self, name: str, found: str) -> Assessment:
        self._running.give_input("done")
        ran = self._done.ran[name]
        if ran.status == "error":
            return Assessment("error", 0.0, None, ran.message)
        if found == "undefined":
            return Assessment("unmatched", 0.0, None, f"The cell does not define `{name}`.")
        message = f"`{name}` should be a function or a class, it is an object of type {found[:60]}."
        return Assessment("unmatched", 0.0, None, message)

    def _write_down(self, name: str, finding: Assessment) -> None:
        ran = self._done.ran.get(name, Ran(""))
        notes = self._done.notes.get(name, [])
        human = [*finding.human, *self._hiding(name, ran.source)]
        seconds = ran.seconds + time.monotonic() - self._began
        detail: dict[str, Any] = {
            "code": ran.source,
            "stages": [list(stage) for stage in finding.stages],
            "output": _readable(ran.output),
            "seconds": round(seconds, 3),
            "notes": [*notes, *map(_readable, finding.remarks)],
            "human": human,
        }
        if finding.line:
            detail["line"] = finding.line
        made = Verdict(
            self.rebuilt.student,
            self.rebuilt.chapter,
            name,
            min(finding.points, self._cell.points),
            self._cell.points,
            finding.status,
            finding.mistake,
            _readable(finding.message),
            detail,
        )
        self._done.verdicts[name] = made
        with self.job.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(made)) + "\n")

    def _hiding(self, name: str, source: str) -> list[str]:
        """What a human is told of names that look built to hide something."""
        own = forbidden.suspicious(source)
        told = [f"The code uses {', '.join(own)}, which an answer hardly needs."] if own else []
        if get(name).rules_out:
            cells = self._done.beside_answers()
            beside = sorted({found for cell in cells for found in forbidden.suspicious(cell)})
            if beside:
                told.append(f"A cell besides uses {', '.join(beside)}, which hardly any needs.")
        return told

    # -- references that later exercises build on ---------------------------------------------

    def _release_for(self, source: str, name: str = "") -> None:
        """Put earlier exercises' references where a cell, or what it calls, looks for them."""
        code = (source, *self._done.helpers_of(source))
        for earlier, made in list(self._done.verdicts.items()):
            if any(wants(text, earlier) for text in code) and self._may_be_given(earlier):
                if made.status != "ok" and name:
                    self._done.notes.setdefault(name, []).append(
                        f"`{earlier}` is the course's here, since yours is not right yet; this "
                        "exercise is judged on its own."
                    )
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


def _readable(text: str) -> str:
    """Text that any file can hold: no halves of characters, no control characters."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
