"""Reading a student's code without running it: what it defines, what it needs, its marks.

Everything here takes hostile text: what cannot be parsed, is nested too deeply or is too long
is simply not understood, and never raises.
"""

from __future__ import annotations

import ast
import io
import re
import symtable
import tokenize
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from IPython.core.inputtransformer2 import TransformerManager

LONGEST = 200_000
"""Characters of a cell that is read as code; a longer one runs, but is not understood."""

# IPython reads the cell anew for every magic in it
_LONGEST_WITH_MAGICS = 20_000
_MOST_MAGICS = 30
_MAGIC = re.compile(r"(?m)^[ \t]*[%!?,;/]|=[ \t]*[%!]|\?[ \t]*$")
_NOT_CODE = (SyntaxError, ValueError, RecursionError, MemoryError, RuntimeError)
_MARK = re.compile(
    r"\s*#+[ \t]*(?:@title\b)?[ \t]*Exercise[ \t]+(?P<number>\d{1,2}\.\d{1,2})\b"
    r"[ \t]*[:.–—-]*[ \t]*(?P<name>[^\W\d]\w*)?",
    re.IGNORECASE,
)
_NBVAL = re.compile(r"(?m)^[ \t]*#[ \t]*(?:NBVAL|PYTEST_VALIDATE)_\w+.*$")
_TOOLS = frozenset({"check", "hint", "show_progress", "quiz", "predict"})


@dataclass(frozen=True)
class Mark:
    """An exercise line in a cell: `# Exercise 3.2: scaled_dot_product_attention`."""

    line: int
    number: str
    name: str | None


@lru_cache(maxsize=4096)
def marks(source: str) -> tuple[Mark, ...]:
    """The exercise lines of a cell, in order; text inside strings is none.

    Where some stand at the margin, those that are indented are comments like others.
    """
    lines = source.split("\n")
    candidates = [(k, match) for k, line in enumerate(lines) if (match := _MARK.match(line))]
    if candidates:
        comments = _comment_lines(source)
        if comments is not None:
            candidates = [(k, match) for k, match in candidates if k in comments]
    margin = [(k, match) for k, match in candidates if match[0].startswith("#")]
    candidates = margin or candidates
    return tuple(Mark(k, _number(match["number"]), match["name"]) for k, match in candidates)


def parse(source: str) -> ast.Module | None:
    """The cell's syntax tree, None where Python (or IPython) cannot read it."""
    tree = _parse(source)
    return _parse(_without_magics(source)) if tree is None else tree


def defined_names(source: str) -> frozenset[str]:
    """The names that a cell binds at its top level."""
    table = _symbols(source)
    if table is None:
        return frozenset()
    return frozenset(_bound(table))


def needed_names(source: str) -> frozenset[str]:
    """The names that a cell, or a function in it, looks up among the notebook's own."""
    top = _symbols(source)
    if top is None:
        return frozenset()
    needed, tables = set[str](), [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        needed |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (symbol.is_global() or table is top)
        }
    return frozenset(needed - _bound(top))


def defines(source: str, name: str) -> bool:
    """Whether a cell binds `name` at its top level."""
    return name in defined_names(source)


@lru_cache(maxsize=4096)
def without_tools(source: str) -> str:
    """A student's cell without nbval's markers and without calls of the course's own tools.

    Lines keep their numbers, so that an error's line is still the one that the student sees.
    """
    return _without(_NBVAL.sub("#", source), _only_calls_tools)


def imports(source: str) -> frozenset[tuple[str, str, str]]:
    """What a cell imports at its top level: module, name in it, name here."""
    tree = parse(source)
    found = (_imports(node) for node in (tree.body if tree is not None else ()))
    return frozenset().union(*found)


@lru_cache(maxsize=4096)
def without_imports(source: str, given: frozenset[tuple[str, str, str]]) -> str:
    """A cell without the statements that import nothing but what is given, lines in their place."""
    return _without(source, lambda node: frozenset() < _imports(node) <= given)


def is_empty(source: str) -> bool:
    """Whether a cell holds comments and blank lines only."""
    return all(not line.strip() or line.lstrip().startswith("#") for line in source.split("\n"))


@lru_cache(maxsize=4096)
def normal_form(source: str) -> str:
    """The code without comments, docstrings and layout: equal for cells that say the same."""
    tree = parse(source)
    if tree is None:
        return "\n".join(line.strip() for line in source.splitlines() if line.strip())
    try:
        return ast.dump(_drop_docstrings(tree))
    except RecursionError:
        return source


@lru_cache(maxsize=4096)
def shape(source: str) -> str:
    """`normal_form` with the names that the code itself makes numbered in order of appearance."""
    tree = parse(source)
    if tree is None:
        return normal_form(source)
    try:
        tree = _drop_docstrings(tree)
        own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} | {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        return ast.dump(_Renumber(own).visit(tree))
    except RecursionError:
        return source


class _Renumber(ast.NodeTransformer):
    """Replaces own names by numbers and drops annotations."""

    def __init__(self, own: set[str]) -> None:
        self.own = own
        self.numbers: dict[str, str] = {}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._renamed(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg, node.annotation = self._renamed(node.arg), None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def _renamed(self, name: str) -> str:
        if name not in self.own:
            return name
        return self.numbers.setdefault(name, f"name{len(self.numbers)}")


@lru_cache(maxsize=4096)
def _without_magics(source: str) -> str:
    """What Python gets of a cell that IPython reads first; as it is where that is too much."""
    if len(source) > _LONGEST_WITH_MAGICS or len(_MAGIC.findall(source)) > _MOST_MAGICS:
        return source
    try:
        return TransformerManager().transform_cell(source)
    except _NOT_CODE:
        return source


def _parse(source: str) -> ast.Module | None:
    if len(source) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except _NOT_CODE:
        return None


@lru_cache(maxsize=4096)
def _symbols(source: str) -> symtable.SymbolTable | None:
    if len(source) > LONGEST:
        return None
    if _parse(source) is None:
        source = _without_magics(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return symtable.symtable(source, "<cell>", "exec")
    except _NOT_CODE:
        return None


def _bound(table: symtable.SymbolTable) -> set[str]:
    return {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}


def _comment_lines(source: str) -> set[int] | None:
    """The lines that hold a comment alone, None where the text is no code."""
    found = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip():
                found.add(token.start[0] - 1)
    except (tokenize.TokenError, *_NOT_CODE):
        return None
    return found


def _number(text: str) -> str:
    major, minor = text.split(".")
    return f"{int(major)}.{int(minor)}"


def _without(source: str, goes: Callable[[ast.stmt], bool]) -> str:
    tree = _parse(source)
    if tree is None:
        return source
    lines = source.split("\n")
    for node in tree.body:
        if goes(node) and _alone(node, lines):
            first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
            lines[first : last + 1] = ["#"] * (last - first + 1)
    return "\n".join(lines)


def _imports(node: ast.stmt) -> frozenset[tuple[str, str, str]]:
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        return frozenset((module, a.name, a.asname or a.name) for a in node.names)
    if isinstance(node, ast.Import):
        return frozenset((a.name, "", a.asname or a.name) for a in node.names)
    return frozenset()


def _only_calls_tools(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "attn_course" and {a.name for a in node.names} <= _TOOLS
    return isinstance(node, ast.Expr) and _is_tool_call(node.value)


def _is_tool_call(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.value.id in ("attn_course", "checks") and function.attr in _TOOLS
    return isinstance(function, ast.Name) and function.id in _TOOLS


def _alone(node: ast.stmt, lines: list[str]) -> bool:
    """Whether the statement shares its lines with no other."""
    before = lines[node.lineno - 1].encode()[: node.col_offset]
    after = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset :]
    rest = after.decode(errors="replace").strip().lstrip(";").strip()
    return not before.strip() and (not rest or rest.startswith("#"))


def _drop_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        kept = [s for s in body if not (isinstance(s, ast.Expr) and _is_text(s.value))]
        node.body = kept  # type: ignore[attr-defined]
    return tree


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
