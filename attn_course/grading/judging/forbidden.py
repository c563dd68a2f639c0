"""Ready-made versions of what an exercise asks for, where it rules them out (`Exercise.rules_out`).

Looked for twice: in the code, where the line can be named, and in what was called while the
answer ran, whatever name it was called by. The second is the student's process speaking, so a
clean record proves nothing, and code that looks built to hide is left to a human.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from attn_course.checks import exercises, get
from attn_course.checks.exercise import Exercise
from attn_course.grading.student_code import parse
from attn_course.sentences import Sentence, constant, say

_HIDING = {"eval", "exec", "compile", "__import__", "importlib", "ctypes", "globals", "vars", "gc"}
_HIDING |= {"inspect", "_getframe", "settrace", "setprofile", "ast_transformers", "meta_path"}
_HIDING |= {"__dict__", "__getattribute__", "_ops", "system", "getoutput"}

_UNSEEN = {"threading", "_thread", "concurrent", "multiprocessing", "subprocess", "ctypes"}
_UNSEEN |= {"to_thread", "run_in_executor", "fork", "forkpty", "popen", "posix_spawn"}
_UNSEEN |= {"posix_spawnp", "jit", "_C", "overrides", "attn_course_inside"}
"""Modules and functions that call things where nobody notes what is called."""


USES = "It uses {used}, and the exercise says: may use {allowed}."
USES_AT = "It uses {used} at `{line}`, and the exercise says: may use {allowed}."


@dataclass(frozen=True)
class Use:
    """A forbidden name in the code."""

    name: str
    number: int
    line: str


def find(
    exercise: Exercise, source: str, released: Iterable[str] = (), helpers: Iterable[str] = ()
) -> Use | None:
    """The first forbidden use in an answer's code.

    Only what the answer relies on counts: beside it, its author may compare it with what is ready
    made. Threads and the like count anywhere, since one that was started serves an answer too.

    Args:
        source: the answer's cell.
        released: exercises whose references later ones may build on by now.
        helpers: the student's own cells that it calls.
    """
    read = [(code, tree) for code in (source, *helpers) if (tree := parse(code)) is not None]
    statements = [statement for _, tree in read for statement in tree.body]
    used = set(_relied_on(statements, exercise.name))
    banned, own = exercise.rules_out, _asked(exercise) - set(released)
    for code, tree in read:
        lines = code.splitlines()
        for node in _in_order(tree):
            name = _unseen(node) if banned else None
            if name is None and node in used:
                name = _torch_name(node, banned) or _import_of(node, own)
            if name:
                number = getattr(node, "lineno", 1)
                return Use(name, number, lines[number - 1].strip()[:200] if lines else "")
    return None


def suspicious(source: str) -> list[str]:
    """Names in the code that an answer hardly needs, except to look where it should not."""
    tree = parse(source)
    found = set()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Name | ast.Attribute):
            # a variable may be called as it likes
            names = {node.id} - _UNSEEN if isinstance(node, ast.Name) else {node.attr}
            found |= names & (_HIDING | _UNSEEN)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= _imported(node) & (_HIDING | _UNSEEN)
        elif isinstance(node, ast.Call) and _is_computed(node):
            found.add("getattr")
    return sorted(found)


def told(exercise: Exercise, names: Iterable[str], line: str = "") -> Sentence:
    """What to tell the author."""
    used, allowed = ", ".join(f"`{name}`" for name in names), constant(exercise.may_use)
    if line:
        return say(USES_AT, used=used, line=line, allowed=allowed)
    return say(USES, used=used, allowed=allowed)


def _asked(exercise: Exercise) -> set[str]:
    """What this chapter asks for: nobody may take it from the course."""
    return {e.reference.__name__ for e in map(get, exercises()) if e.chapter == exercise.chapter}


def _relied_on(statements: list[ast.stmt], name: str) -> Iterator[ast.AST]:
    """All nodes of the statements that what is bound to a name relies on; all if none binds it."""
    binding: dict[str, list[ast.stmt]] = {}
    for statement in statements:
        for bound in _bound(statement):
            binding.setdefault(bound, []).append(statement)
    kept, waiting = set[ast.stmt](), [*binding.get(name, statements)]
    while waiting:
        statement = waiting.pop()
        if statement not in kept:
            kept.add(statement)
            nodes = list(ast.walk(statement))
            yield from nodes
            names = {node.id for node in nodes if isinstance(node, ast.Name)}
            waiting += [s for used in names for s in binding.get(used, ()) if s not in kept]


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement binds at the top level, or changes something of."""
    found = set[str]()
    waiting: list[ast.AST] = [n for n in ast.walk(statement) if isinstance(n, ast.Global)]
    waiting.append(statement)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Global):
            found.update(node.names)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        else:
            if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
                found |= {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
            waiting += ast.iter_child_nodes(node)
    return found


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    return iter(sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0)))


def _torch_name(node: ast.AST, banned: frozenset[str]) -> str | None:
    """A forbidden name that is taken from something else: torch.x, F.x, scores.x, import x."""
    if isinstance(node, ast.Attribute) and node.attr in banned and isinstance(node.ctx, ast.Load):
        return None if _is_own(node.value) else node.attr
    if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("attn_course"):
        return next((alias.name for alias in node.names if alias.name in banned), None)
    if isinstance(node, ast.Call) and _called(node).strip("_").startswith(
        ("getattr", "attrgetter")
    ):
        texts = (arg.value for arg in node.args if isinstance(arg, ast.Constant))
        return next((str(text) for text in texts if text in banned), None)
    return None


def _unseen(node: ast.AST) -> str | None:
    """A way to threads, processes or compiled code, imported or taken from something else."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return min(_imported(node) & _UNSEEN, default=None)
    return node.attr if isinstance(node, ast.Attribute) and node.attr in _UNSEEN else None


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    """All names in an import, each part of a module's name by itself."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names.append(node.module or "")
    return {part for name in names for part in name.split(".")}


def _called(call: ast.Call) -> str:
    """The last part of the name that is called."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_computed(call: ast.Call) -> bool:
    """Whether an attribute is asked for by a name that is put together."""
    named = isinstance(call.func, ast.Name) and call.func.id == "getattr"
    return named and len(call.args) > 1 and not isinstance(call.args[1], ast.Constant)


def _is_own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def _import_of(node: ast.AST, own: set[str]) -> str | None:
    """What is asked for, imported from the course."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("attn_course"):
        return next((alias.name for alias in node.names if alias.name in own), None)
    if isinstance(node, ast.Attribute) and node.attr in own:
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        return node.attr if isinstance(root, ast.Name) and root.id == "attn_course" else None
    return None
