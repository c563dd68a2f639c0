"""The records that intake, execution and reports share. Plain data, importable without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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

CellKind = Literal["setup", "helper", "answer", "check"]


@dataclass(frozen=True)
class Cell:
    """One cell of a rebuilt notebook.

    Attributes:
        kind: "setup" comes from the course, "helper" and "answer" from the student, "check"
            stands for the place where the exercise is judged (its source is the course's).
        source: the code; a student's has lost its nbval markers and its calls of `check`.
        exercise: the exercise's bare name, for an answer and a check.
        number: such as "3.2", for an answer and a check.
        points: what the exercise is worth, for an answer and a check.
        solution: of a check: the course's answer, that takes the place of a wrong one where
            later exercises build on it.
    """

    kind: CellKind
    source: str
    exercise: str | None = None
    number: str | None = None
    points: float = 0.0
    solution: str = ""


@dataclass(frozen=True)
class Problem:
    """What is known of an exercise before anything runs: its status and a sentence on it."""

    status: str
    message: str


@dataclass(frozen=True)
class Rebuilt:
    """What is run: one student's answers to one chapter, in the instructor's scaffold.

    Attributes:
        student: as the reports name them.
        chapter: two digits.
        cells: in the order in which they run. Every exercise of the chapter has its check,
            also where there is no answer to it.
        notes: what was tolerated on the way (a duplicated cell, an odd encoding), for a human.
        problems: exercises that are settled already, by name. They are not judged, but what
            builds on them is.
    """

    student: str
    chapter: str
    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()
    problems: Mapping[str, Problem] = field(default_factory=dict)

    @property
    def checks(self) -> tuple[Cell, ...]:
        """The chapter's exercises, in order, as their check cells."""
        return tuple(cell for cell in self.cells if cell.kind == "check")

    @property
    def code(self) -> str:
        """Everything that the student has written."""
        return "\n".join(cell.source for cell in self.cells if cell.kind in ("helper", "answer"))


@dataclass(frozen=True)
class Settings:
    """How submissions are run. All of it takes part in the fingerprint of a result.

    Attributes:
        sandbox: "bubblewrap", "docker", "podman" or "none".
        timeout: wall-clock seconds for one cell.
        total_timeout: wall-clock seconds for one notebook.
        memory_mb: memory of one kernel.
        seed: the hidden inputs of every check are drawn from it, and from the student's code.
    """

    sandbox: str = "bubblewrap"
    timeout: float = 120.0
    total_timeout: float = 900.0
    memory_mb: int = 4096
    seed: int = 0


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
