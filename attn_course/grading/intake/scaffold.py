"""The instructor's side of a chapter: its exercises, and the set-up that answers rely on."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from attn_course.course import CHAPTERS, project_root
from attn_course.grading.student_code import defined_names, marks, needed_names, normal_form
from attn_course.sentences import say

NO_COURSE = (
    "the course's folder `exercises/` is not here, and grading rebuilds submissions from it: run "
    "this in a clone of the course, installed with `pip install -e .[lab]`"
)
NO_CHECK = "the answer cell of {name} needs its exercise line and a check cell"

_TOOLS = frozenset({"check", "hint", "show_progress", "quiz", "predict"})
# what shows something and is no part of an answer
_SHOWING = ("attn_course.experiments", "attn_course.plots", "attn_course.explorers")


@dataclass(frozen=True)
class HandedOut:
    """One exercise as it is handed out.

    Attributes:
        name: bare name of what the learner writes.
        number: such as "3.2".
        points: what it is worth.
        stub: the answer cell as it is handed out.
        check: the check cell.
        optional: its points come on top of what the chapter is worth.
        solution: the course's answer, as the chapter asks for it; "" where it is not known.
    """

    name: str
    number: str
    points: float
    stub: str
    check: str
    optional: bool = False
    solution: str = ""


@dataclass(frozen=True)
class Scaffold:
    """One chapter: its exercises in order and the set-up before each.

    Attributes:
        chapter: two digits.
        exercises: in the course's order.
        setup: code that stands before the exercise of that name; imports and constants.
        given: normal forms of all code that was handed out, so that a student's own can be told.
    """

    chapter: str
    exercises: tuple[HandedOut, ...]
    setup: dict[str, tuple[str, ...]]
    given: frozenset[str]

    @cached_property
    def by_name(self) -> dict[str, HandedOut]:
        """The exercises by their bare names."""
        return {exercise.name: exercise for exercise in self.exercises}

    @cached_property
    def by_number(self) -> dict[str, HandedOut]:
        """The exercises by their numbers."""
        return {exercise.number: exercise for exercise in self.exercises}

    @property
    def points(self) -> float:
        """What the whole chapter is worth, without what is optional."""
        return sum(exercise.points for exercise in self.exercises if not exercise.optional)


def scaffolds(root: Path | None = None) -> dict[str, Scaffold]:
    """All chapters that have exercises, by their two digits, from the course's `exercises/`.

    Their solutions are those of `solutions/`, as far as that is there.

    Raises:
        ValueError: if the course's folder is not here.
    """
    root = root or project_root()
    if root is None or not (root / "exercises").is_dir():
        raise ValueError(say(NO_COURSE))
    found = {}
    for chapter in CHAPTERS:
        handed, solved = (_read(chapter.notebook(root, f)) for f in ("exercises", "solutions"))
        if handed is not None:
            scaffold = read_scaffold(chapter.number, handed, solved)
            if scaffold.exercises:
                found[chapter.number] = scaffold
    return found


def _read(path: Path) -> dict | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def read_scaffold(chapter: str, notebook: dict, solved: dict | None = None) -> Scaffold:
    """The scaffold that a built notebook of `exercises/` holds, with the answers of `solved`.

    Raises:
        ValueError: if an answer cell has no check with points behind it.
    """
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    grades = [(cell, cell["metadata"].get("nbgrader", {})) for cell in cells]
    solutions = _solutions(solved)
    checks = {grade["grade_id"]: (cell, grade) for cell, grade in grades if grade.get("grade")}
    names = {grade["grade_id"] for _, grade in grades if grade.get("solution")}
    exercises: list[HandedOut] = []
    setup: dict[str, tuple[str, ...]] = {}
    pending: list[str] = []
    dropped = {*names, *_TOOLS}
    for cell, grade in grades:
        source = "" if cell.get("id") == "install" else "".join(cell["source"])
        if grade.get("solution"):
            exercise = _handed_out(grade["grade_id"], source, checks)
            exercises.append(replace(exercise, solution=solutions.get(exercise.name, "")))
            setup[exercise.name], pending = tuple(pending), []
        elif (
            not grade and cell.get("id") != "install" and (kept := _without_shows(source, dropped))
        ):
            pending.append(kept)
    given = frozenset(normal_form("".join(cell["source"])) for cell in cells)
    return Scaffold(chapter, tuple(exercises), setup, given)


def _solutions(notebook: dict | None) -> dict[str, str]:
    """The answers of a solved notebook, by exercise."""
    return {
        cell["metadata"]["nbgrader"]["grade_id"]: "".join(cell["source"])
        for cell in (notebook or {"cells": []})["cells"]
        if cell["metadata"].get("nbgrader", {}).get("solution")
    }


def _handed_out(name: str, stub: str, checks: dict) -> HandedOut:
    # late: it needs torch, which takes seconds to import
    from attn_course.checks import get

    found = marks(stub)
    if not found or f"check-{name}" not in checks:
        raise ValueError(say(NO_CHECK, name=repr(name)))
    cell, grade = checks[f"check-{name}"]
    points, check = float(grade["points"]), "".join(cell["source"])
    return HandedOut(name, found[0].number, points, stub, check, get(name).optional)


def _without_shows(source: str, dropped: set[str]) -> str:
    """The statements of a set-up cell that an answer may rely on.

    What shows or trains something is left out, and so is what rests on it: `dropped` holds the
    names that are not there, and grows.
    """
    kept = []
    for node in ast.parse(source).body:
        text = ast.unparse(node)
        if _only_shows(node) or needed_names(text) & dropped:
            dropped |= defined_names(text)
        else:
            kept.append(text)
    return "\n".join(kept)


def _only_shows(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        tools = module == "attn_course" and {alias.name for alias in node.names} <= _TOOLS
        return tools or module.startswith(_SHOWING)
    # an install cell, a picture, a training run with its report
    return isinstance(node, ast.Expr | ast.If | ast.Try | ast.For | ast.While | ast.With)
