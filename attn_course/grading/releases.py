"""Which references later exercises may build on, and when."""

from __future__ import annotations

import ast
from functools import cache

from attn_course.checks import examine, get
from attn_course.grading.edition import home, source_of
from attn_course.grading.student_code import parse


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
    return examine(get(earlier).reference, get(later)).passed


@cache
def source_of_reference(name: str) -> tuple[str, str, str]:
    """Module, name and source of an exercise's reference."""
    module, function = home(get(name))
    return module, function, source_of(module, function)
