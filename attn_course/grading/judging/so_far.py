"""What has become of a notebook's cells so far, and what they call of one another."""

from __future__ import annotations

from dataclasses import dataclass, field

from attn_course.checks import get
from attn_course.grading.judging import forbidden
from attn_course.grading.judging.releases import answers
from attn_course.grading.student_code import (
    defined_names,
    defines,
    needed_names,
    without_imports,
)
from attn_course.grading.verdict import Verdict
from attn_course.sentences import Spoken


@dataclass
class Ran:
    """What became of an exercise's answer cell."""

    source: str
    status: str = "ok"
    cause: Spoken = ""
    output: str = ""
    seconds: float = 0.0


@dataclass
class SoFar:
    """How far a notebook has got.

    Attributes:
        verdicts: by exercise, in the order in which they were made.
        ran: the answer cells that have run, by exercise.
        replay: all code that a kernel which is started again has to run, in order.
        helpers: the student's cells that have run, answers among them.
        notes: by exercise, what its author is told besides the verdict.
        given: what the course's own cells import; nobody is blamed for having their lines too.
    """

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    ran: dict[str, Ran] = field(default_factory=dict)
    replay: list[str] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)
    notes: dict[str, list[Spoken]] = field(default_factory=dict)
    given: frozenset[tuple[str, str, str]] = frozenset()

    def forbidden_use(self, name: str, source: str) -> forbidden.Use | None:
        """The first use in an answer, or in what it calls, of what the exercise rules out."""
        exercise = get(name)
        released = [n for n in self.verdicts if not answers(n, name)]
        own = without_imports(source, self.given)
        answer = own if defines(own, name) else source
        helpers = [without_imports(helper, self.given) for helper in self.helpers_of(source)]
        return forbidden.find(exercise, answer, released, helpers)

    def beside_answers(self) -> list[str]:
        """The student's cells that have run and are no answer."""
        answered = {ran.source for ran in self.ran.values()}
        return [cell for cell in self.helpers if cell not in answered]

    def helpers_of(self, source: str) -> list[str]:
        """The student's cells that an answer calls, directly or not, but for other answers."""
        helpers = self.beside_answers()
        found: list[str] = []
        waiting = [source]
        while waiting:
            needed = needed_names(waiting.pop())
            more = [h for h in helpers if h not in found and defined_names(h) & needed]
            found += more
            waiting += more
        return found
