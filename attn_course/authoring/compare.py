"""Comparing what is stored with what the sources build, without executing anything."""

import difflib
from collections.abc import Iterator
from typing import Any

from nbformat import NotebookNode

from attn_course import checks
from attn_course.authoring import telling
from attn_course.authoring.assemble import Assembled, Catalogue, assemble, by_number
from attn_course.authoring.files import read_notebook
from attn_course.authoring.layout import FOLDERS, Course
from attn_course.authoring.mine import PATTERN, place_beside
from attn_course.authoring.notebooks import Book
from attn_course.authoring.plan import Options, Planned, plan
from attn_course.authoring.questions import as_json, merge_questions
from attn_course.authoring.stamp import without_stamp
from attn_course.sentences import Sentence, say, spoken

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
        found.append(say("attn_course/data/questions.json differs from the chapters' questions"))
    if not names:
        found += _strays(course)
    return [spoken(told) for told in found]


def outdated(
    course: Course, names: tuple[str, ...] = (), catalogue: Catalogue = checks
) -> list[str]:
    """What a build of the named chapters, or all, would execute again, and move aside.

    A line for each notebook, with what has changed. Raises BuildError as a build does.
    """
    assembled = [assemble(course, source, catalogue) for source in course.find(names)]
    questions = merge_questions(course, by_number(assembled), keep=bool(names))
    planned = [p for one in assembled for p in plan(course, one, questions, Options(), catalogue)]
    return [spoken(telling.line(one.book, told)) for one in planned for told in _to_do(one)]


def _to_do(planned: Planned) -> Iterator[Sentence]:
    if planned.why:
        yield telling.would_execute(planned.why)
    beside = place_beside(planned.path, planned.book.notebook)
    if beside:
        yield telling.would_keep(beside)


def _chapter_differences(course: Course, one: Assembled) -> Iterator[Sentence]:
    for book in one.books.values():
        stored = read_notebook(course.notebook(book.folder, one.chapter.stem))
        told = say("it is missing or no notebook") if stored is None else _difference(book, stored)
        if told:
            yield say("{notebook}: {told}", notebook=book.label, told=told)


def _difference(book: Book, stored: NotebookNode) -> Sentence | None:
    """The first difference between a built notebook and the stored one."""
    built = book.notebook
    for number, (new, old) in enumerate(zip(built.cells, stored.cells, strict=False)):
        where = _where(book, number, new)
        for key in ("cell_type", "source", "id", "metadata"):
            if new.get(key) != old.get(key):
                lines = _lines(old.get(key), new.get(key))
                return say(
                    "{cell} differs in its {key}:\n{lines}", cell=where, key=key, lines=lines
                )
        told = _run_state(new, old, executed=book.folder != "exercises")
        if told:
            return say("cell {number} ({id}) {told}", number=number, id=new.id, told=told)
    if len(built.cells) != len(stored.cells):
        words = "it has {stored} cells instead of {built}"
        return say(words, stored=len(stored.cells), built=len(built.cells))
    before, after = (without_stamp(notebook.metadata) for notebook in (stored, built))
    if before != after:
        return say("its metadata differs:\n{lines}", lines=_lines(before, after))
    return None


def _run_state(new: NotebookNode, old: NotebookNode, executed: bool) -> Sentence | None:
    if new.cell_type != "code":
        return None
    if executed and old.execution_count is None:
        return say("was never executed")
    if not executed and (old.outputs or old.execution_count):
        return say("has been executed, but exercises are handed out without outputs")
    return None


def _where(book: Book, number: int, cell: NotebookNode) -> Sentence:
    origin = book.origins.get(cell.id)
    if origin is None:
        return say("cell {number} ({id})", number=number, id=cell.id)
    words = "cell {number} ({id}), built from {origin},"
    return say(words, number=number, id=cell.id, origin=origin)


def _lines(old: Any, new: Any) -> str:
    before, after = (
        value.splitlines() if isinstance(value, str) else [repr(value)] for value in (old, new)
    )
    told = list(difflib.unified_diff(before, after, "stored", "built", lineterm="", n=1))
    return "\n".join(f"    {line}" for line in told[:_FEW])


def _strays(course: Course) -> list[Sentence]:
    stems = {source.stem for source in course.sources()}
    notebooks = [path for folder in FOLDERS for path in (course.root / folder).glob("*.ipynb")]
    return [
        say("{folder}/{file}: no chapter builds it", folder=path.parent.name, file=path.name)
        for path in sorted(notebooks)
        if path.stem not in stems and not path.match(PATTERN)
    ]
