"""What a notebook's outputs depend on: its code, and the package's files that it reaches."""

import ast
import hashlib
import importlib.util
from pathlib import Path

from nbformat import NotebookNode

import attn_course
from attn_course import explorers
from attn_course.authoring.names import plain_python

_PACKAGE = Path(attn_course.__file__).parent
# packages whose names are fetched on first use, and where from
_LAZY = {package.__name__: package._HOMES for package in (attn_course, explorers)}


def source_hash(notebook: NotebookNode, context: str) -> str:
    """A key that changes when the notebook should be executed again.

    It covers the notebook's code, the text of every module of the package that this
    imports, by whatever way, with the files beside it, and whatever else the caller puts
    into `context`.
    """
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    digest = hashlib.sha256("\0".join([*code, context]).encode())
    chapter = notebook.metadata.attn_course.chapter
    for path in [*reached_files(code), *_exercise_files(chapter)]:
        digest.update(path.relative_to(_PACKAGE).as_posix().encode())
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:16]


def reached_files(code: list[str]) -> list[Path]:
    """The package's files that the code reaches through imports, in order."""
    open_ends = [name for text in code for name in _imported(plain_python(text), "")]
    modules: dict[str, Path] = {}
    while open_ends:
        name = open_ends.pop()
        path = _module_file(name)
        if path is not None and name not in modules:
            modules[name] = path
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            open_ends += _imported(path.read_text(encoding="utf-8"), package)
            if package != name:
                open_ends.append(package)
    found = set(modules.values())
    for folder in {path.parent for path in found} - {_PACKAGE}:
        found |= {path for path in folder.iterdir() if path.suffix in _BESIDE}
    return sorted(found)


def _exercise_files(chapter: str) -> list[Path]:
    """The catalogue of a chapter's exercises, which the checks find by listing a folder."""
    return sorted((_PACKAGE / "checks" / "catalogue").glob(f"ch{chapter}*.py"))


_BESIDE = {".mjs", ".js", ".css", ".json", ".html"}


def _imported(code: str, package: str) -> set[str]:
    """Names of the package's modules that the code imports anywhere, but for types alone."""
    names: set[str] = set()
    tree = ast.parse(code)
    tree.body = [node for node in tree.body if not _is_for_types(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            relative = "." * node.level + (node.module or "")
            origin = importlib.util.resolve_name(relative, package)
            lazy = _LAZY.get(origin, {})
            # the imported name may itself be a module, or one that the package fetches lazily
            names |= {origin, *(lazy.get(a.name, f"{origin}.{a.name}") for a in node.names)}
    return {name for name in names if name.partition(".")[0] == "attn_course"}


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _module_file(name: str) -> Path | None:
    base = _PACKAGE.joinpath(*name.split(".")[1:])
    candidates = (base / "__init__.py", base.with_suffix(".py"))
    return next((path for path in candidates if path.is_file()), None)
