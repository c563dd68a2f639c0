"""What is said of one student's one exercise. Plain data, importable without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from attn_course.sentences import Spoken, as_data, from_data, spoken

STATUSES = (
    "ok",
    "wrong",
    "error",
    "timeout",
    "killed",
    "missing",
    "corrupt",
    "unmatched",
    "forbidden",
)
"""What can be said of one student's one exercise.

ok, wrong: judged. error: the answer raised. timeout, killed: it ran into a limit. missing: not
handed in, or as it was handed out. corrupt: the file cannot be read. unmatched: the cell is there
but does not define what the exercise asks for. forbidden: it uses what the exercise rules out.
"""


@dataclass(frozen=True)
class Verdict:
    """One row of grades.csv, in parts: they become text where they are shown.

    Attributes:
        cause: one cause, in words that its author can act on.
        problem: what is wrong on one probe; for its author too, where `Drawn` values are hidden.
        example: that probe in full, inputs and results too: for the instructor alone, since
            the next submission could return them without computing anything.
        notes: sentences for the student.
        human: why the instructor should have a look, as sentences without a full stop.
        detail: plain JSON: `code` (the student's), `stages` (list of [name, passed]), `output`
            (an excerpt of what was printed), `seconds`, `line` (of a forbidden call).
    """

    student: str
    chapter: str
    exercise: str
    points: float
    max_points: float
    status: str
    mistake: str | None = None
    cause: Spoken = ""
    problem: Spoken = ""
    example: tuple[Spoken, ...] = ()
    notes: tuple[Spoken, ...] = ()
    human: tuple[Spoken, ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a status or points that no row can have."""
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r} is none of {', '.join(STATUSES)}")
        if not 0 <= self.points <= self.max_points:
            raise ValueError(f"points={self.points} is not between 0 and {self.max_points}")

    @property
    def message(self) -> str:
        """The cause and the example, in the reader's language."""
        return "\n".join(spoken(part) for part in (self.cause, *self.example) if part != "")

    @property
    def feedback(self) -> str:
        """What its author may read: the cause and the problem, never the hidden inputs."""
        parts = [part for part in (self.cause, self.problem) if part != ""]
        return "\n".join(spoken(part, discreet=True) for part in parts)

    def as_data(self) -> dict[str, Any]:
        """The verdict as plain JSON data."""
        return {each.name: _plain(each.name, getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Verdict:
        """The verdict that `as_data` has made data of."""
        return cls(**{name: _spoken(name, value) for name, value in data.items()})


_ONE, _SEVERAL = ("cause", "problem"), ("example", "notes", "human")


def _plain(name: str, value: Any) -> Any:
    if name in _SEVERAL:
        return [as_data(sentence) for sentence in value]
    return as_data(value) if name in _ONE else value


def _spoken(name: str, value: Any) -> Any:
    if name in _SEVERAL:
        return tuple(map(from_data, value))
    return from_data(value) if name in _ONE else value
