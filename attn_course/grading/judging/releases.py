"""Which references later exercises may build on, and when."""

from __future__ import annotations

import ast
from functools import cache

from attn_course.checks import examine, get
from attn_course.checks.judging import observe
from attn_course.grading.rebuilt import Rebuilt, RebuiltCell
from attn_course.grading.sandbox.edition import home, source_of
from attn_course.grading.student_code import needed_names, parse

_CHECKS = "attn_course.checks."


def wants(source: str, name: str) -> bool:
    """Whether code mentions an exercise's answer by its name, its own or the course's."""
    tree = parse(source)
    names = {name, get(name).reference.__name__}
    for node in ast.walk(tree) if tree is not None else ():
        mentioned: set[str] = set()
        if isinstance(node, ast.Name):
            mentioned = {node.id}
        elif isinstance(node, ast.Attribute):
            mentioned = {node.attr}
        elif isinstance(node, ast.ImportFrom):
            mentioned = {alias.name for alias in node.names}
        if mentioned & names:
            return True
    return False


@cache
def answers(earlier: str, later: str) -> bool:
    """Whether one exercise's reference is an answer to another: then it is not given away."""
    if earlier == later:
        return True
    reference, exercise = get(earlier).reference, get(later)
    first, *_ = observe(reference, exercise.cases()[:1])
    return first.failure is None and examine(reference, exercise).passed


@cache
def source_of_reference(name: str) -> tuple[str, str, str]:
    """Module, name and source of an exercise's reference; "" for all where the course has none."""
    module, function = home(get(name))
    if module.startswith(_CHECKS):  # made up of what the course has, for the check alone
        return "", "", ""
    return module, function, source_of(module, function)


def stand_in(rebuilt: Rebuilt, name: str) -> str:
    """Code that defines an exercise's answer as the chapter has it, with all that it needs.

    The package's own class may have other parts than the exercise asks for, and later answers
    rely on those that it asks for.
    """
    solutions = {cell.exercise: cell.solution for cell in rebuilt.checks}
    if not solutions.get(name):
        module, function, _ = source_of_reference(name)
        return f"from {module} import {function} as {name}" if module else ""
    wanted, waiting = set[str | None](), {name}
    while waiting:
        current = waiting.pop()
        wanted.add(current)
        waiting |= needed_names(solutions[current]) & solutions.keys() - wanted
    return "\n\n".join(
        cell.source if cell.kind == "setup" else cell.solution
        for cell in _until(rebuilt, name)
        if cell.kind == "setup" or (cell.kind == "check" and cell.exercise in wanted)
    )


def _until(rebuilt: Rebuilt, name: str) -> list[RebuiltCell]:
    """The cells up to the check of an exercise."""
    places = [k for k, c in enumerate(rebuilt.cells) if (c.kind, c.exercise) == ("check", name)]
    return list(rebuilt.cells[: places[0] + 1])
