"""The verdict on one answer, and how it is shown."""

from __future__ import annotations

import html
from dataclasses import dataclass, field

from attn_course.notebook.display import display_bundle, inline_html
from attn_course.notebook.shell import execution_count


class WrongAnswer(AssertionError):
    """Raised by `check(..., strict=True)`; carries the report."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.as_text())
        self.report = report


@dataclass(frozen=True)
class Report:
    """What `check` found out about an answer.

    Attributes:
        exercise: the bare name of the exercise.
        passed: whether every stage accepted the answer.
        mistake: the id of the catalogue entry whose outputs match the answer's, else None.
        message: one cause, in words a learner can act on; on a pass, one sentence.
        remarks: observations that cost nothing (half precision, a wider dtype).
        stages: every stage's name and whether the answer passed it, for partial credit.
    """

    exercise: str
    passed: bool
    mistake: str | None
    message: str
    remarks: tuple[str, ...] = ()
    stages: tuple[tuple[str, bool], ...] = field(default=(), repr=False)

    @property
    def title(self) -> str:
        """One line: the verdict in words, never by colour alone."""
        return f"{'✓' if self.passed else '✗'} {self.exercise}: " + (
            "passed" if self.passed else "not right yet"
        )

    def as_text(self) -> str:
        """The verdict for a terminal."""
        lines = [self.title, *self.message.splitlines()]
        lines += [f"Remark: {remark}" for remark in self.remarks]
        return "\n  ".join(lines)

    def as_html(self) -> str:
        """The verdict for a notebook, everything escaped; `code` between backticks."""
        tone = "--jp-success-color1, #2e7d32" if self.passed else "--jp-error-color1, #b3261e"
        paragraphs = [self.message, *(f"Remark: {remark}" for remark in self.remarks)]
        body = "".join(f"<p style='margin:.3em 0'>{inline_html(text)}</p>" for text in paragraphs)
        return (
            f"<div role='status' style='border-left:4px solid var({tone});"
            "padding:.2em .9em;margin:.3em 0;max-width:46em'>"
            f"<strong>{html.escape(self.title)}</strong>{body}</div>"
        )

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
