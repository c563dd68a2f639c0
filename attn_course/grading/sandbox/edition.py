"""The student edition of the course: what a graded notebook may import, and nothing it asks for.

Generated for one chapter: the modules that its answers and set-up rely on, without what this
chapter or a later one asks for, without what rests on that, and without the helpers of both.
In their place stand functions that say so. Checks, grading, solutions are not there at all.
"""

from __future__ import annotations

import ast
import atexit
import compileall
import importlib.util
import py_compile
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import attn_course
from attn_course.checks import exercises, get
from attn_course.checks.exercise import Exercise
from attn_course.checks.ruled_out import courses_own
from attn_course.grading.student_code import defined_names, parse
from attn_course.sentences import say, spoken

_PACKAGE = Path(attn_course.__file__).parent
_NEVER = frozenset(
    {"authoring", "checks", "cli", "experiments", "explorers", "grading", "learner", "lesson"}
    | {"setup", "terminal"}
)
_INSIDE = ("errors", "exports", "forms", "inside", "peer", "shared", "tensors", "wire")
INSIDE = "attn_course_inside"
"""The package beside the edition that serves the check cells."""

ASKED_FOR = "{name} is not there while this chapter is graded: it asks for it"

_TOOLS = '''"""The course's student edition, as it is there while a notebook is graded."""

__version__ = {version!r}


def _nothing(*_args, **_kwargs):
    """Checks, hints and questions say nothing while a notebook is graded."""


check = hint = show_progress = quiz = predict = reveal = recall = calibration = _nothing


def __getattr__(name):
    if name in ("DeviceToggle", "pick_device"):
        from attn_course import device

        return getattr(device, name)
    raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
'''

_lock = threading.Lock()
_built: dict[tuple[str, tuple[str, ...]], Path] = {}


def edition(chapter: str, code: Iterable[str] = ()) -> Path:
    """The folder with a chapter's student edition, made once in a process.

    Args:
        chapter: two digits.
        code: cells of the course's own, whose imports are needed too.
    """
    wanted = tuple(sorted({name for text in code for name in _imported(parse(text), "")}))
    with _lock:
        if (chapter, wanted) not in _built:
            folder = Path(tempfile.mkdtemp(prefix="edition-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            write_edition(chapter, folder, wanted)
            _built[chapter, wanted] = folder
        return _built[chapter, wanted]


def write_edition(chapter: str, folder: Path, modules: Iterable[str] = ()) -> None:
    """Write a chapter's student edition into `folder`, with `modules` besides what it needs."""
    own = [e for e in map(get, exercises()) if e.chapter == chapter]
    needed = {e.reference.__module__ for e in own} | {"attn_course.device", *modules}
    sources = _Sources.reached_from(needed)
    without = sources.strip(asked_from(chapter))
    package = folder / "attn_course"
    for name, module in sources.modules.items():
        path = package / module.path.relative_to(_PACKAGE)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(module.text(without[name], name), encoding="utf-8")
        _copy_data(module.path, path)
    tools = _TOOLS.format(version=attn_course.__version__)
    (package / "__init__.py").write_text(tools, encoding="utf-8")
    here = Path(__file__).parent
    remote = here.parent / "remote"
    inside = folder / INSIDE
    inside.mkdir()
    (inside / "__init__.py").write_text('"""Serves the check cells of a graded notebook."""\n')
    for name in _INSIDE:
        shutil.copy(remote / f"{name}.py", inside / f"{name}.py")
    shutil.copy(_PACKAGE / "checks" / "watching.py", inside / "watching.py")
    shutil.copy(here / "launch.py", folder / "launch.py")
    _open_to_all(folder)
    compileall.compile_dir(
        folder, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )


def asked_from(chapter: str) -> set[tuple[str, str]]:
    """Module and name of all that this chapter and later ones ask for."""
    later = [e for e in map(get, exercises()) if e.chapter >= chapter]
    return {(made.__module__, made.__name__) for e in later for made in courses_own(e)}


def home(exercise: Exercise) -> tuple[str, str]:
    """Module and name of an exercise's reference."""
    return exercise.reference.__module__, exercise.reference.__name__


def source_of(module: str, name: str) -> str:
    """The text of one function of the course, with the imports and helpers that it needs."""
    loaded = _Module.load(module)
    needed, waiting = set[str](), [name]
    while waiting:
        current = waiting.pop()
        if current in loaded.definitions and current not in needed:
            needed.add(current)
            waiting += loaded.uses(current)
    kept = [s for s in loaded.tree.body if _is_import(s) or _bound(s) & needed]
    return "\n\n".join(ast.unparse(statement) for statement in kept)


# -- reading modules --------------------------------------------------------------------------


@dataclass
class _Module:
    """A module of the course as its syntax tree."""

    path: Path
    tree: ast.Module
    name: str
    definitions: dict[str, ast.stmt] = field(default_factory=dict)

    @classmethod
    def load(cls, name: str) -> _Module:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        path = Path(spec.origin)
        module = cls(path, ast.parse(path.read_text(encoding="utf-8")), name)
        for statement in module.tree.body:
            if not _is_import(statement):
                module.definitions |= dict.fromkeys(_bound(statement), statement)
        return module

    @property
    def package(self) -> str:
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    def uses(self, name: str) -> set[str]:
        """The names that a definition mentions, in texts too: annotations may be texts."""
        walked = ast.walk(self.definitions[name])
        return {n.id for n in walked if isinstance(n, ast.Name)} - {name}

    def imports(self) -> dict[str, tuple[str, str]]:
        """The names that come from other modules of the course: where from, and called what."""
        return {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("attn_course")
            for alias in node.names
        }

    def text(self, without: set[str], module: str) -> str:
        """The module's code without some of its definitions; each of these says what it was."""
        kept: list[str] = []
        for statement in self.tree.body:
            names = _bound(statement)
            if _is_import(statement) or not names & without:
                kept.append(ast.unparse(statement))
            else:
                kept += [
                    _stub(statement, name, module)
                    for name in sorted(names & without)
                    if not name.startswith("_")
                ]
        return "\n\n".join(kept) + "\n"


@dataclass
class _Sources:
    """Modules of the course, by name."""

    modules: dict[str, _Module]

    @classmethod
    def reached_from(cls, names: Iterable[str]) -> _Sources:
        found: dict[str, _Module] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in found or not _may_be_there(name):
                continue
            found[name] = _Module.load(name)
            waiting += _imported(found[name].tree, found[name].package)
            waiting.append(name.rpartition(".")[0])
        return cls(found)

    def strip(self, asked: set[tuple[str, str]]) -> dict[str, set[str]]:
        """For each module the names that go: what is asked for, what rests on it, their helpers."""
        gone = {place for place in asked if place[0] in self.modules}
        while True:
            more = {
                (name, definition)
                for name, module in self.modules.items()
                for definition in module.definitions
                if (name, definition) not in gone and self._rests_on(module, definition, gone)
            }
            if not more:
                break
            gone |= more
        return {
            name: {n for m, n in gone if m == name} | self._idle_helpers(module, name, gone)
            for name, module in self.modules.items()
        }

    def _rests_on(self, module: _Module, definition: str, gone: set[tuple[str, str]]) -> bool:
        imports = module.imports()
        places = (imports.get(used, (module.name, used)) for used in module.uses(definition))
        return any(place in gone for place in places)

    def _idle_helpers(self, module: _Module, name: str, gone: set[tuple[str, str]]) -> set[str]:
        """Private definitions that nothing which is left mentions."""
        waiting = [d for d in module.definitions if not d.startswith("_") and (name, d) not in gone]
        imported = {
            n for other in self.modules.values() for m, n in other.imports().values() if m == name
        }
        waiting += [n for n in imported if n in module.definitions and (name, n) not in gone]
        used = set[str]()
        while waiting:
            current = waiting.pop()
            if current not in used:
                used.add(current)
                waiting += [u for u in module.uses(current) if u in module.definitions]
        private = {d for d in module.definitions if d.startswith("_") and not d.startswith("__")}
        return private - used


def _may_be_there(name: str) -> bool:
    parts = name.split(".")
    if parts[0] != "attn_course" or len(parts) < 2 or parts[1] in _NEVER:
        return False
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return False
    return spec is not None and spec.origin is not None


def _imported(tree: ast.AST | None, package: str) -> Iterator[str]:
    """Names that may be modules of the course, imported anywhere in the code."""
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _is_import(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return all(_is_import(inner) for inner in statement.body)
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top level binds."""
    return set(defined_names(ast.unparse(statement)))


def _stub(statement: ast.stmt, name: str, module: str) -> str:
    """What stands in the place of a definition that goes."""
    words = spoken(say(ASKED_FOR, name=f"{module}.{name}"))
    if isinstance(statement, ast.ClassDef):
        return (
            f"class {name}:\n    def __init__(self, *_args, **_kwargs):\n"
            f"        raise NotImplementedError({words!r})"
        )
    return f"def {name}(*_args, **_kwargs):\n    raise NotImplementedError({words!r})"


def _copy_data(source: Path, target: Path) -> None:
    """The data beside a package's modules."""
    if source.name == "__init__.py":
        for path in source.parent.iterdir():
            if path.is_file() and path.suffix in (".json", ".csv", ".txt"):
                shutil.copy(path, target.parent / path.name)


def _open_to_all(folder: Path) -> None:
    """A sandbox reads as another user."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
