"""The constants in the package's code that go through the door, found by reading the code."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[1]

_FORMS = {"say": 1, "spoken": 1, "counted": 2, "Diagnosis": 1, "BuildError": 1}
"""What makes or says a sentence, and how many of its first arguments are constants."""

_TABLE = "WORDS"
"""The name of a table of words: all of it goes through the door."""


class Constant(NamedTuple):
    """One constant for translators.

    Attributes:
        words: English, with {named} fields.
        several: the English for a number other than one, where the sentence counts.
        file, line: where it stands; of what is no code its owner, and 0.
    """

    words: str
    several: str
    file: str
    line: int


def constants_in_code(package: Path = PACKAGE) -> list[Constant]:
    """Find what is passed to `say`, `spoken` and `counted`, tables called WORDS, commands' help.

    A constant may be passed by name, `say(WELCOME)`, out of a table, `say(TOLD["x"])`, as one of
    two, `say(A if many else B)`, or by a function of the file that returns it; the name may come
    from another module of the package.
    """
    found: dict[Constant, None] = {}  # each once, in order
    for path in sorted(package.rglob("*.py")):
        for table in _assigned(path).get(_TABLE, ()):
            found |= dict.fromkeys(_texts(table, path))
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Call) and node.args and _name(node.func) in _FORMS:
                found |= dict.fromkeys(_said(node, path))
            else:
                found |= dict.fromkeys(_help(node, path))
    return list(found)


def _said(call: ast.Call, path: Path) -> Iterator[Constant]:
    """The constants of one sentence: of all forms of the first, with those of the second."""
    one, *several = call.args[: _FORMS[_name(call.func)]]
    if not several:
        return _texts(one, path)
    pairs = zip(_texts(one, path), _texts(several[0], path), strict=True)
    return (first._replace(several=second.words) for first, second in pairs)


def _help(node: ast.AST, path: Path) -> Iterator[Constant]:
    """What a command's docstring and an option's `help` say in a terminal."""
    if isinstance(node, ast.FunctionDef):
        made = [_name(one.func) for one in node.decorator_list if isinstance(one, ast.Call)]
        if {"command", "group"} & set(made):
            yield Constant(ast.get_docstring(node) or "", "", str(path), node.lineno)
    elif isinstance(node, ast.Call) and _name(node.func) == "option":
        for keyword in node.keywords:
            if keyword.arg == "help":
                yield from _texts(keyword.value, path)


def _texts(node: ast.expr, path: Path, known: frozenset[str] = frozenset()) -> Iterator[Constant]:
    """The texts that an expression may stand for; `known`: the names on the way to it."""
    parts: list[ast.expr] = []
    match node:
        case ast.Constant(value=str(text)):
            yield Constant(text, "", str(path), node.lineno)
        case ast.Dict(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            pass
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(op=ast.BitOr(), left=one, right=other):
            parts = [one, other]
        case ast.Subscript(value=table):
            parts = [table]
        case ast.Name(id=name) if name not in known:
            known = known | {name}
            parts = _assigned(path).get(name, [])
            if name in _imported(path):
                yield from _texts(node, _imported(path)[name])
        case ast.Call(func=ast.Name(id=name)) if name in _functions(path) and name not in known:
            known = known | {name}
            returns = ast.walk(_functions(path)[name])
            parts = [one.value for one in returns if isinstance(one, ast.Return) and one.value]
    for part in parts:
        yield from _texts(part, path, known)


def _name(function: ast.expr) -> str:
    return getattr(function, "id", getattr(function, "attr", ""))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _functions(path: Path) -> dict[str, ast.FunctionDef]:
    found = (node for node in ast.walk(_tree(path)) if isinstance(node, ast.FunctionDef))
    return {node.name: node for node in found}


@cache
def _assigned(path: Path) -> dict[str, list[ast.expr]]:
    """What is assigned to each name of a file, anywhere in it, and passed under it in calls."""
    found: dict[str, list[ast.expr]] = {}
    functions = _functions(path)
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.Call) and _name(node.func) in functions:
            names = [argument.arg for argument in functions[_name(node.func)].args.args]
            for name, value in zip(names, node.args, strict=False):
                found.setdefault(name, []).append(value)
    return found


@cache
def _imported(path: Path) -> dict[str, Path]:
    """The files from which a file has names of the package."""
    found: dict[str, Path] = {}
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("attn_course."):
            file = PACKAGE.parent.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            if file.is_file():
                found |= {name.asname or name.name: file for name in node.names}
    return found
