"""What is said of one student's one exercise. Plain data, importable without torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
but does not define what the exercise asks for. forbidden: it calls what `May use:` does not allow.
"""


@dataclass(frozen=True)
class Verdict:
    """One row of grades.csv.

    `detail` is plain JSON for the feedback page and for a human. Keys that reports look at:
    `code` (the student's), `stages` (list of [name, passed]), `output` (an excerpt of what was
    printed), `seconds`, `line` (of a forbidden call), `hint` (a sentence for the student),
    `notes` (list of sentences for the student), `human` (list of sentences for the instructor).
    """

    student: str
    chapter: str
    exercise: str
    points: float
    max_points: float
    status: str
    mistake: str | None = None
    message: str = ""
    detail: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a status or points that no row can have."""
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r} is none of {', '.join(STATUSES)}")
        if not 0 <= self.points <= self.max_points:
            raise ValueError(f"points={self.points} is not between 0 and {self.max_points}")
