"""The verdict on one answer, and how it is shown."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field

from attn_course.checks.compare import Problem
from attn_course.notebook.display import display_bundle, inline_html
from attn_course.notebook.shell import execution_count
from attn_course.sentences import Joined, Spoken, constant, joined, say, spoken


class WrongAnswer(AssertionError):
    """Raised by `check(..., strict=True)`; carries the report."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.as_text())
        self.report = report


Named = tuple[Spoken, Spoken]
"""A value as it is shown: its name, and the numbers or what else it is."""


@dataclass(frozen=True)
class Example:
    """The probe that shows what is wrong.

    Attributes:
        inputs: the arguments.
        problem: what is wrong there.
        yours, expected: the results, where they are small enough to be read.
    """

    inputs: tuple[Named, ...]
    problem: Problem
    yours: tuple[Named, ...] = ()
    expected: tuple[Named, ...] = ()

    def lines(self) -> list[Spoken]:
        """The probe in words, a line for each of its parts."""
        told = constant(self.problem.told)
        ending = "" if self.problem.asks else "."
        if self.inputs:
            words = "With {inputs}: {problem}{ending}"
            first = say(words, inputs=_listed(self.inputs), problem=told, ending=ending)
        else:
            first = say("{problem}{ending}", problem=told, ending=ending)
        lines: list[Spoken] = [first]
        if self.yours:
            lines.append(say("Yours: {values}", values=_listed(self.yours)))
            lines.append(say("Expected: {values}", values=_listed(self.expected)))
        return lines


def _listed(values: Sequence[Named]) -> Joined:
    pairs = [say("{name} = {value}", name=name, value=constant(value)) for name, value in values]
    return joined(pairs, ", ")


@dataclass(frozen=True)
class Report:
    """What `check` found out about an answer.

    Attributes:
        exercise: the bare name of the exercise.
        passed: whether every stage accepted the answer.
        mistake: the id of the catalogue entry whose outputs match the answer's, else None.
        cause: one cause, in words a learner can act on; on a pass, one sentence.
        observations: what costs nothing (half precision, a wider dtype).
        stages: every stage's name and whether the answer passed it, for partial credit.
        example: the probe that shows what is wrong.
        mistakes: the ids of all mistakes that were recognised, `mistake` first.
        ready_made: what a right answer takes ready made, though that is what it should write.
    """

    exercise: str
    passed: bool
    mistake: str | None
    cause: Spoken
    observations: tuple[Spoken, ...] = ()
    stages: tuple[tuple[str, bool], ...] = field(default=(), repr=False)
    example: Example | None = None
    mistakes: tuple[str, ...] = ()
    ready_made: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """One line: the verdict in words, never by colour alone."""
        return spoken(say(self._verdict[0], exercise=self.exercise))

    @property
    def _verdict(self) -> tuple[str, str]:
        """The title's words, and the colour that goes with them."""
        if not self.exercise:
            return "✗ Nothing to judge yet", "--jp-error-color1, #b3261e"
        if self.ready_made:
            return "○ {exercise}: right, but not counted", "--jp-warn-color1, #b26a00"
        if self.passed:
            return "✓ {exercise}: passed", "--jp-success-color1, #2e7d32"
        return "✗ {exercise}: not right yet", "--jp-error-color1, #b3261e"

    @property
    def message(self) -> str:
        """The cause and the example, in the reader's language."""
        parts = [self.cause, *(self.example.lines() if self.example else ())]
        return "\n".join(spoken(part) for part in parts if part != "")

    @property
    def remarks(self) -> tuple[str, ...]:
        """The observations, in the reader's language."""
        return tuple(map(spoken, self.observations))

    def as_text(self) -> str:
        """The verdict for a terminal."""
        lines = [self.title, *self.message.splitlines(), *self._remarked()]
        return "\n  ".join(lines)

    def as_html(self) -> str:
        """The verdict for a notebook, everything escaped; `code` between backticks."""
        _, tone = self._verdict
        paragraphs = [self.message, *self._remarked()]
        body = "".join(f"<p style='margin:.3em 0'>{inline_html(text)}</p>" for text in paragraphs)
        return (
            f"<div role='status' style='border-left:4px solid var({tone});"
            "padding:.2em .9em;margin:.3em 0;max-width:46em'>"
            f"<strong>{html.escape(self.title)}</strong>{body}</div>"
        )

    def _remarked(self) -> list[str]:
        words = "Remark: {remark}"
        return [spoken(say(words, remark=constant(what))) for what in self.observations]

    def _ipython_display_(self) -> None:
        # check() has shown the verdict already: as a cell's last value it would stand there twice.
        if execution_count() != _shown_in.get(id(self)):
            show(self)


_shown_in: dict[int, int | None] = {}


def show(report: Report) -> None:
    """Display `report` once: HTML and text in one bundle in a notebook, else print the text."""
    _shown_in.clear()
    _shown_in[id(report)] = execution_count()
    display_bundle(report.as_text(), report.as_html())
