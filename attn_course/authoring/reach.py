"""What a notebook's outputs depend on in the package: the definitions that its code reaches.

Read off the syntax trees; nothing is run. A definition that is reached brings those that it
mentions, in its own module and through imports in others; a module that is imported on the way
brings what it does when it is imported. Comments and layout are in no tree, and docstrings are
left out, so none of them makes a difference.
"""

import ast
from collections.abc import Container, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from attn_course.authoring import modules
from attn_course.authoring.modules import Module, Place, file_of, is_text, module_of
from attn_course.authoring.names import plain_python

_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def mentioned(code: Iterable[str]) -> list[Place]:
    """What the names in cells of code may stand for in the package."""
    cells = Module("", "", ast.parse("\n".join(map(plain_python, code))))
    return [place for statement in cells.tree.body for place in cells.mentioned(statement)]


def reached(start: Iterable[Place], known: Container[Place] = ()) -> dict[Place, str]:
    """The places that these lead to, each with a text that changes only with its code.

    Places in `known` are left out, with all that only they lead to: the caller knows in another
    way what they give.
    """
    found: dict[Place, str] = {}
    open_ends = list(start)
    while open_ends:
        place = open_ends.pop()
        module = module_of(place[0])
        if module is None or place in found or place in known:
            continue
        found[place], files, needed = _read(module, place[1])
        for path in files:
            found[place[0], path.name] = path.read_text(encoding="utf-8")
        open_ends += needed
    return found


@cache  # most notebooks reach the same definitions
def _read(module: Module, name: str) -> tuple[str, tuple[Path, ...], tuple[Place, ...]]:
    """The text of a place, the files that it names, and the places that it needs."""
    statements = module.statements(name)
    files = (path for statement in statements for path in module.files(statement))
    return repr(form(statements)), tuple(files), tuple(module.leads_to(name))


def by_file(found: dict[Place, str]) -> dict[str, str]:
    """What was found in each file, by its path in the package."""
    files: dict[str, list[str]] = {}
    for (module, name), text in sorted(found.items()):
        path = file_of(module)
        if "." in name:  # no definition, a file beside the module
            path = path.with_name(name)
        if text != repr([]):
            files.setdefault(path.relative_to(modules.PACKAGE).as_posix(), []).append(text)
    return {path: "\n".join(texts) for path, texts in files.items()}


def form(node: Any) -> Any:
    """A piece of a syntax tree without docstrings, the same in every version of Python."""
    if isinstance(node, list):
        return [form(item) for item in node]
    if not isinstance(node, ast.AST):
        return node
    fields = dict(ast.iter_fields(node))
    if isinstance(node, _DOCUMENTED):
        fields["body"] = [statement for statement in node.body if not is_text(statement)]
    # what is empty is written down by some versions and left out by others
    filled = {key: form(value) for key, value in fields.items() if value not in (None, [])}
    return [type(node).__name__, filled]
