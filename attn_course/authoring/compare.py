"""Comparing what is stored with what the sources build, without executing anything."""

import difflib
from collections.abc import Iterator
from typing import Any

from nbformat import NotebookNode

from attn_course import checks
from attn_course.authoring.build import Assembled, Catalogue, assemble, by_number
from attn_course.authoring.files import read_notebook
from attn_course.authoring.layout import FOLDERS, Course
from attn_course.authoring.notebooks import Book
from attn_course.authoring.questions import as_json, merge_questions

_FEW = 12  # lines of a difference are enough to find it


def differences(
    course: Course, names: tuple[str, ...] = (), catalogue: Catalogue = checks
) -> list[str]:
    """Where stored files differ from what the named chapters, or all, would build.

    One line or more for each file: its name, the first cell that differs, and how. Raises
    BuildError for a source that cannot be built.
    """
    assembled = [assemble(course, source, catalogue) for source in course.find(names)]
    found = [told for one in assembled for told in _chapter_differences(course, one)]
    questions = as_json(merge_questions(course, by_number(assembled), keep=bool(names)))
    file = course.questions_file
    if not file.is_file() or file.read_text(encoding="utf-8") != questions:
        found.append("attn_course/data/questions.json differs from the chapters' questions")
    return found if names else [*found, *_strays(course)]


def _chapter_differences(course: Course, one: Assembled) -> Iterator[str]:
    for book in one.books.values():
        stored = read_notebook(course.notebook(book.folder, one.chapter.stem))
        told = "it is missing or no notebook" if stored is None else _difference(book, stored)
        if told:
            yield f"{book.label}: {told}"


def _difference(book: Book, stored: NotebookNode) -> str | None:
    """The first difference between a built notebook and the stored one."""
    built = book.notebook
    for number, (new, old) in enumerate(zip(built.cells, stored.cells, strict=False)):
        for key in ("cell_type", "source", "id", "metadata"):
            if new.get(key) != old.get(key):
                where = f"cell {number} ({new.id})" + _origin(book, new)
                return f"{where} differs in its {key}:\n{_lines(old.get(key), new.get(key))}"
        told = _run_state(new, old, executed=book.folder != "exercises")
        if told:
            return f"cell {number} ({new.id}) {told}"
    if len(built.cells) != len(stored.cells):
        return f"it has {len(stored.cells)} cells instead of {len(built.cells)}"
    before = dict(stored.metadata)
    before["attn_course"] = {
        key: value for key, value in before.get("attn_course", {}).items() if key != "source_hash"
    }
    if before != built.metadata:
        return f"its metadata differs:\n{_lines(before, built.metadata)}"
    return None


def _run_state(new: NotebookNode, old: NotebookNode, executed: bool) -> str | None:
    if new.cell_type != "code":
        return None
    if executed and old.execution_count is None:
        return "was never executed"
    if not executed and (old.outputs or old.execution_count):
        return "has been executed, but exercises are handed out without outputs"
    return None


def _origin(book: Book, cell: NotebookNode) -> str:
    origin = book.origins.get(cell.id)
    return f", built from {origin}," if origin else ""


def _lines(old: Any, new: Any) -> str:
    before, after = (
        value.splitlines() if isinstance(value, str) else [repr(value)] for value in (old, new)
    )
    told = list(difflib.unified_diff(before, after, "stored", "built", lineterm="", n=1))
    return "\n".join(f"    {line}" for line in told[:_FEW])


def _strays(course: Course) -> list[str]:
    stems = {source.stem for source in course.sources()}
    notebooks = [path for folder in FOLDERS for path in (course.root / folder).glob("*.ipynb")]
    return [
        f"{path.parent.name}/{path.name}: no chapter builds it"
        for path in sorted(notebooks)
        if path.stem not in stems
    ]
