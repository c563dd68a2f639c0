"""What is run: one student's answers to one chapter, in the instructor's notebook. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from attn_course.sentences import Spoken, as_data, from_data

CellKind = Literal["setup", "helper", "answer", "check"]


@dataclass(frozen=True)
class RebuiltCell:
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
class Settled:
    """What is settled of an exercise before anything runs: its status and a sentence on it."""

    status: str
    cause: Spoken

    def as_data(self) -> dict[str, Any]:
        """It as plain JSON data."""
        return {"status": self.status, "cause": as_data(self.cause)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Settled:
        """What `as_data` has made data of."""
        return cls(data["status"], from_data(data["cause"]))


@dataclass(frozen=True)
class Rebuilt:
    """What is run: one student's answers to one chapter, in the instructor's scaffold.

    Attributes:
        student: as the reports name them.
        chapter: two digits.
        cells: in the order in which they run. Every exercise of the chapter has its check,
            also where there is no answer to it.
        notes: what was tolerated on the way (a duplicated cell, an odd encoding), for a human.
        settled: what is known of exercises already, by name. They are not judged, but what
            builds on them is.
    """

    student: str
    chapter: str
    cells: tuple[RebuiltCell, ...]
    notes: tuple[Spoken, ...] = ()
    settled: Mapping[str, Settled] = field(default_factory=dict)

    @property
    def checks(self) -> tuple[RebuiltCell, ...]:
        """The chapter's exercises, in order, as their check cells."""
        return tuple(cell for cell in self.cells if cell.kind == "check")

    @property
    def has_to_run(self) -> bool:
        """Whether anything is left to be judged."""
        return any(cell.exercise not in self.settled for cell in self.checks)

    @property
    def code(self) -> str:
        """Everything that the student has written."""
        return "\n".join(cell.source for cell in self.cells if cell.kind in ("helper", "answer"))

    def as_data(self) -> dict[str, Any]:
        """It as plain JSON data."""
        return {
            "student": self.student,
            "chapter": self.chapter,
            "cells": [asdict(cell) for cell in self.cells],
            "notes": [as_data(note) for note in self.notes],
            "settled": {name: settled.as_data() for name, settled in self.settled.items()},
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Rebuilt:
        """What `as_data` has made data of."""
        return cls(
            data["student"],
            data["chapter"],
            tuple(RebuiltCell(**cell) for cell in data["cells"]),
            tuple(map(from_data, data["notes"])),
            {name: Settled.from_data(settled) for name, settled in data["settled"].items()},
        )
