"""One module of the package as its syntax tree: what it defines, imports, and does on import."""

import ast
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import attn_course

PACKAGE = Path(attn_course.__file__).parent
ALL = "*"
ON_IMPORT = ""

Place = tuple[str, str]
"""A module, and the name of a definition in it, or ALL of it, or what it does ON_IMPORT."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_FILE_NAME = re.compile(r"[\w-]+\.\w+")
_FETCHED = "_HOMES"  # a package's table of the names that it fetches on first use


@dataclass(frozen=True)
class Module:
    """A module of the package, or the code of a notebook, whose name is empty.

    Attributes:
        name: dotted.
        package: what relative imports start from.
        tree: its syntax tree.
    """

    name: str
    package: str
    tree: ast.Module

    def statements(self, name: str) -> list[ast.stmt]:
        """The statements that a place in this module stands for."""
        if name == ALL:
            return self._statements
        if name == ON_IMPORT:
            return [statement for statement in self._statements if not _only_binds(statement)]
        return self._definitions.get(name, [])

    def leads_to(self, name: str) -> Iterator[Place]:
        """What a place in this module needs."""
        for statement in self.statements(name):
            yield from self.mentioned(statement)
        if name == ON_IMPORT:
            yield self.package, ON_IMPORT
            for statement in self._code:
                if isinstance(statement, _IMPORTS):
                    yield from self._run_by(statement)
            return
        yield self.name, ON_IMPORT
        if name == ALL and self.name == self.package:
            yield from (place for places in self._imports.values() for place in places)
        elif name in self._imports:
            yield from self._imports[name]
        elif name != ALL and name not in self._definitions:
            submodule = f"{self.name}.{name}"
            yield (submodule if is_module(submodule) else self.name), ALL

    def mentioned(self, statement: ast.stmt) -> Iterator[Place]:
        """What the names in a statement may stand for, and what its imports run."""
        nodes = list(ast.walk(statement))
        attributes = {
            id(node.value): node.attr for node in nodes if isinstance(node, ast.Attribute)
        }
        for node in nodes:
            if isinstance(node, ast.Name):
                if node.id in self._definitions:
                    yield self.name, node.id
                for module, name in self._imports.get(node.id, ()):
                    yield module, attributes.get(id(node), ALL) if name == ALL else name
            elif isinstance(node, ast.Tuple):
                yield from _told_by_text(node)
            elif isinstance(node, _IMPORTS):
                yield from self._run_by(node)

    def files(self, statement: ast.stmt) -> Iterator[Path]:
        """The files beside the module that a statement names."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and _FILE_NAME.fullmatch(str(node.value)):
                path = file_of(self.name).with_name(str(node.value))
                if path.is_file():
                    yield path

    @cached_property
    def _code(self) -> list[ast.stmt]:
        """The statements of the module, without those that only types need."""
        return [statement for statement in self.tree.body if not _is_for_types(statement)]

    @cached_property
    def _statements(self) -> list[ast.stmt]:
        """Those that are no import and no docstring."""
        return [s for s in self._code if not isinstance(s, _IMPORTS) and not is_text(s)]

    @cached_property
    def _definitions(self) -> dict[str, list[ast.stmt]]:
        """The statements at the top level that bind each name, imports left out."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in self._statements:
            for name in _bound(statement):
                found.setdefault(name, []).append(statement)
        return found

    @cached_property
    def _imports(self) -> dict[str, set[Place]]:
        """What each imported name may stand for, wherever in the module it is imported."""
        found: dict[str, set[Place]] = {}
        for node in (node for statement in self._code for node in ast.walk(statement)):
            for name, place in self._imported(node):
                found.setdefault(name, set()).add(place)
        for statement in self._definitions.get(_FETCHED, []):
            if isinstance(statement, ast.Assign):
                for name, home in ast.literal_eval(statement.value).items():
                    found.setdefault(name, set()).add((home, name))
        return found

    def _imported(self, node: ast.AST) -> Iterator[tuple[str, Place]]:
        """The names that an import binds, and what each stands for."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], (alias.name, ALL)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, self._place(node, alias.name)

    def _run_by(self, node: ast.Import | ast.ImportFrom) -> Iterator[Place]:
        """The modules that an import runs, and all of one that is imported by a star."""
        for _, (module, name) in self._imported(node):
            yield module, ON_IMPORT
            if isinstance(node, ast.ImportFrom) and node.names[0].name == ALL:
                yield module, name

    def _place(self, node: ast.ImportFrom, name: str) -> Place:
        relative = "." * node.level + (node.module or "")
        origin = importlib.util.resolve_name(relative, self.package)
        submodule = f"{origin}.{name}"
        return (submodule, ALL) if is_module(submodule) else (origin, name)


def module_of(name: str) -> Module | None:
    """The package's module of that name, None where it has none."""
    if not is_module(name):
        return None
    path = file_of(name)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return _read(name, package, path, path.read_text(encoding="utf-8"))


@cache
def _read(name: str, package: str, _path: Path, text: str) -> Module:
    return Module(name, package, ast.parse(text))


def is_module(name: str) -> bool:
    """Whether the package has a module of that name."""
    return name.partition(".")[0] == "attn_course" and file_of(name).is_file()


def file_of(name: str) -> Path:
    """The file of a module of the package."""
    base = PACKAGE.joinpath(*name.split(".")[1:])
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


def is_text(node: ast.AST) -> bool:
    """Whether a statement is nothing but a text: a docstring, or one below an attribute."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _told_by_text(node: ast.Tuple) -> Iterator[Place]:
    """The function that a table names by two texts, its module and its own name."""
    texts = [item.value for item in node.elts if isinstance(item, ast.Constant)]
    if len(texts) == len(node.elts) == 2 and is_module(str(texts[0])):
        yield str(texts[0]), str(texts[1])


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top level binds."""
    if isinstance(statement, _DEFINITIONS):
        return {statement.name}
    nodes = list(ast.walk(statement))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {node.name for node in nodes if isinstance(node, _DEFINITIONS)}


def _only_binds(statement: ast.stmt) -> bool:
    """Whether a statement gives names to things and does no more."""
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Name | ast.Tuple) for target in statement.targets)
    if isinstance(statement, ast.AnnAssign):
        return isinstance(statement.target, ast.Name)
    return isinstance(statement, _DEFINITIONS)


def _is_for_types(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.If):
        return False
    return ast.unparse(statement.test).endswith("TYPE_CHECKING")
