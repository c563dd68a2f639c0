"""The questions of the lessons: what is asked, and which answer is right.

The texts come from the chapters; the build compiles them into `data/questions.json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

CONFIDENCES = (50, 60, 70, 80, 90, 100)
"""What a learner can state, in percent: 50 is a coin's toss between right and wrong."""


@dataclass(frozen=True)
class Option:
    """One option of a choice: its text, whether it is right, and why or why not."""

    text: str
    right: bool = False
    why: str = ""


@dataclass(frozen=True)
class Question:
    """A question of a chapter.

    Attributes:
        id: unique over the course.
        chapter: two digits.
        kind: "choice", "prediction-choice" or "prediction-number".
        prompt: the question, in Markdown.
        options: for the two kinds of choice.
        low, high, tolerance, unit: for a number: its range, and how near counts as right.
    """

    id: str
    chapter: str
    kind: str
    prompt: str
    options: tuple[Option, ...] = ()
    low: float = 0.0
    high: float = 1.0
    tolerance: float = 0.1
    unit: str = ""

    @property
    def right(self) -> int:
        """The index of the right option of a choice."""
        return next(k for k, option in enumerate(self.options) if option.right)


def get(question: str) -> Question:
    """The question with this id.

    Raises:
        ValueError: if there is none.
    """
    if question not in all_questions():
        raise ValueError(f"no question is called {question!r}; it is built from the chapters")
    return all_questions()[question]


def example(kind: str) -> Question:
    """The course's first question whose kind starts with `kind`: "choice" or "prediction".

    Raises:
        ValueError: if there is none yet.
    """
    for question in all_questions().values():
        if question.kind.startswith(kind):
            return question
    raise ValueError(f"the course has no question of kind {kind!r} yet")


@cache
def all_questions() -> dict[str, Question]:
    """All questions by id, in course order."""
    source = files("attn_course") / "data" / "questions.json"
    raw = json.loads(source.read_text(encoding="utf-8")) if source.is_file() else {}
    return {name: parse(name, entry) for name, entry in raw.items()}


def parse(name: str, entry: dict[str, Any]) -> Question:
    """A question from its compiled form."""
    options = tuple(Option(**option) for option in entry.get("options", ()))
    numbers = {key: entry[key] for key in ("low", "high", "tolerance", "unit") if key in entry}
    return Question(name, entry["chapter"], entry["kind"], entry["prompt"], options, **numbers)
