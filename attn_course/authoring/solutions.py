"""A solution is the package's own source, with the imports that it uses."""

import ast
import importlib.util
import sys
from pathlib import Path
from typing import TypeGuard

from attn_course.authoring.errors import BuildError
from attn_course.authoring.names import definition, undefined_names

_WIDTH = 100


def package_solution(name: str, module: str, where: str) -> str:
    """The source of a function or class of the package, below the imports that it uses.

    Whatever else of its own module it uses is imported from there. `where` names the
    chapter's cell in messages. Raises BuildError if the module has no such definition.
    """
    code = _module_code(module, where)
    node = definition(code, name)
    if node is None:
        raise BuildError(
            "{where}: {module} defines no function or class {name!r}",
            where=where,
            module=module,
            name=name,
        )
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    source = "\n".join(code.splitlines()[first - 1 : node.end_lineno])
    tree = ast.parse(code)
    future = [_line(node, "__future__", node.names) for node in tree.body if _is_future(node)]
    needed = set(undefined_names("\n".join([*future, source])))
    groups = [future, *_imports(needed, tree, module, where)]
    imports = "\n\n".join("\n".join(lines) for lines in groups if lines)
    return f"{imports}\n\n\n{source}" if imports else source


def _module_code(module: str, where: str) -> str:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise BuildError("{where}: there is no module {module!r}", where=where, module=module)
    return Path(spec.origin).read_text(encoding="utf-8")


def _imports(needed: set[str], tree: ast.Module, module: str, where: str) -> list[list[str]]:
    """Import lines for the needed names, grouped and sorted as ruff does."""
    lines: list[tuple[int, bool, str]] = []
    for statement in _top_level(tree):
        if isinstance(statement, ast.Import | ast.ImportFrom) and not _is_future(statement):
            aliases = [alias for alias in statement.names if _bound(alias) in needed]
            if aliases:
                needed = needed - {_bound(alias) for alias in aliases}
                origin = _origin(statement, aliases[0], module)
                lines.append(_sortable(_line(statement, origin, aliases), origin))
    own = sorted(needed & _defined(tree))
    if own:
        lines.append(_sortable(_wrapped(f"from {module} import ", own), module))
    missing = sorted(needed - set(own))
    if missing:
        raise BuildError(
            "{where}: {module} uses {missing} but neither imports nor defines them",
            where=where,
            module=module,
            missing=missing,
        )
    return [[line for group, _, line in sorted(lines) if group == wanted] for wanted in range(3)]


def _is_future(node: ast.stmt) -> TypeGuard[ast.ImportFrom]:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _sortable(line: str, origin: str) -> tuple[int, bool, str]:
    """The line after its group, standard library, others, this package, and its kind."""
    top = origin.partition(".")[0]
    group = 0 if top in sys.stdlib_module_names else 2 if top == "attn_course" else 1
    return group, line.startswith("from "), line


def _top_level(tree: ast.Module) -> list[ast.stmt]:
    """The module's statements, with those inside a top-level `if` or `try`."""
    statements = list(tree.body)
    for node in tree.body:
        if isinstance(node, ast.If | ast.Try):
            statements += [child for child in ast.walk(node) if isinstance(child, ast.stmt)]
    return statements


def _defined(tree: ast.Module) -> set[str]:
    names = set()
    for node in _top_level(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return names


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _origin(statement: ast.Import | ast.ImportFrom, alias: ast.alias, module: str) -> str:
    if isinstance(statement, ast.Import):
        return alias.name
    relative = "." * statement.level + (statement.module or "")
    return importlib.util.resolve_name(relative, module.rpartition(".")[0])


def _line(statement: ast.Import | ast.ImportFrom, origin: str, aliases: list[ast.alias]) -> str:
    parts = [a.name + (f" as {a.asname}" if a.asname else "") for a in aliases]
    start = "import " if isinstance(statement, ast.Import) else f"from {origin} import "
    return _wrapped(start, parts)


def _wrapped(start: str, parts: list[str]) -> str:
    line = start + ", ".join(parts)
    if len(line) <= _WIDTH:
        return line
    return start + "(\n" + "".join(f"    {part},\n" for part in parts) + ")"
