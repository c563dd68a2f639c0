"""Building chapters: what has changed is executed, what has not keeps its bytes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nbformat import NotebookNode
from tqdm import tqdm

from attn_course import checks
from attn_course.authoring.answers import Answer, chapter_answers
from attn_course.authoring.execute import execute
from attn_course.authoring.files import as_text, read_notebook, write_if_changed
from attn_course.authoring.layout import FOLDERS, Course
from attn_course.authoring.notebooks import Book, Builder
from attn_course.authoring.proof import Judge, prove
from attn_course.authoring.questions import (
    Questions,
    as_json,
    compile_questions,
    merge_questions,
    questions_lock,
)
from attn_course.authoring.reach import source_hash
from attn_course.authoring.source import Chapter, read_chapter
from attn_course.checks.exercise import Exercise


class Catalogue(Protocol):
    """What the builder needs of `attn_course.checks`."""

    def exercises(self) -> list[str]:
        """The names of all exercises, in course order."""
        ...

    def get(self, name: str) -> Exercise:
        """The exercise of that name."""
        ...

    @property
    def check(self) -> Judge:
        """The judge of an answer."""
        ...


@dataclass(frozen=True)
class Assembled:
    """A chapter put together, not executed: its three notebooks by folder, its questions."""

    chapter: Chapter
    answers: dict[str, Answer]
    books: dict[str, Book]
    questions: Questions


@dataclass(frozen=True)
class Options:
    """How to build: run everything anew, run nothing, seconds for each cell."""

    force: bool = False
    draft: bool = False
    timeout: int = 300


def assemble(course: Course, source: Path, catalogue: Catalogue = checks) -> Assembled:
    """Put one chapter's notebooks together.

    Raises BuildError for a source that breaks the format.
    """
    chapter = read_chapter(source)
    entries = [catalogue.get(name) for name in catalogue.exercises()]
    answers = chapter_answers(chapter, [e for e in entries if e.chapter == chapter.number])
    builder = Builder(chapter, answers, course.address())
    books = {folder: builder.build(folder) for folder in FOLDERS}
    return Assembled(chapter, answers, books, compile_questions(chapter))


def build(
    course: Course,
    names: tuple[str, ...] = (),
    options: Options | None = None,
    catalogue: Catalogue = checks,
    tell: Callable[[str], object] = lambda _: None,
) -> None:
    """Build the named chapters, or all; `tell` is given a line on each notebook.

    Raises BuildError, and leaves the chapter's notebooks as they were, if one fails.
    """
    options = options or Options()
    assembled = [assemble(course, source, catalogue) for source in course.find(names)]
    with questions_lock(course):
        questions = merge_questions(course, by_number(assembled), keep=bool(names))
        write_if_changed(course.questions_file, as_json(questions))
    for one in assembled:
        _build_chapter(course, one, questions, options, catalogue.check, tell)


def by_number(assembled: list[Assembled]) -> dict[str, Questions]:
    """The questions of each chapter by its number."""
    return {one.chapter.number: one.questions for one in assembled}


def _build_chapter(
    course: Course,
    one: Assembled,
    questions: Questions,
    options: Options,
    judge: Judge,
    tell: Callable[[str], object],
) -> None:
    stale = [
        book
        for folder, book in one.books.items()
        if folder != "exercises" and not _keeps_outputs(course, one, book, questions, options)
    ]
    told = {book.label: "written, not executed" for book in stale}
    if not options.draft:
        if any(book.folder == "solutions" for book in stale):
            prove(one.books["solutions"], one.answers, judge)
        for book in stale:
            told[book.label] = f"executed in {_execute(course, book, options):.0f} s"
    for book in one.books.values():
        changed = write_if_changed(_path(course, one, book), as_text(book.notebook))
        tell(f"{book.label}: {told.get(book.label, 'written' if changed else 'unchanged')}")


def _execute(course: Course, book: Book, options: Options) -> float:
    started = time.monotonic()
    total = sum(cell.cell_type == "code" for cell in book.notebook.cells)
    with tqdm(total=total, desc=book.label, unit="cell", leave=False) as bar:
        execute(book, course.root / book.folder, options.timeout, bar.update)
    return time.monotonic() - started


def _keeps_outputs(
    course: Course, one: Assembled, book: Book, questions: Questions, options: Options
) -> bool:
    """Whether the stored outputs are still right; if so, the built notebook takes them over."""
    number = one.chapter.number
    if book.folder == "solutions":
        context = "\0".join(answer.stub for answer in one.answers.values())
    else:  # earlier questions may be asked again
        context = as_json({k: q for k, q in questions.items() if q["chapter"] <= number})
    key = source_hash(book.notebook, context)
    stored = read_notebook(_path(course, one, book))
    if not options.force and stored is not None and _take_outputs(stored, book.notebook, key):
        book.notebook.metadata.attn_course.source_hash = key
        return True
    if not options.draft:
        book.notebook.metadata.attn_course.source_hash = key
    return False


def _take_outputs(stored: NotebookNode, built: NotebookNode, key: str) -> bool:
    if stored.metadata.get("attn_course", {}).get("source_hash") != key:
        return False
    before, after = (
        [cell for cell in notebook.cells if cell.cell_type == "code"]
        for notebook in (stored, built)
    )
    executed = all(cell.execution_count for cell in before)
    if not executed or [cell.source for cell in before] != [cell.source for cell in after]:
        return False
    for old, new in zip(before, after, strict=True):
        new.outputs, new.execution_count = old.outputs, old.execution_count
    return True


def _path(course: Course, one: Assembled, book: Book) -> Path:
    return course.notebook(book.folder, one.chapter.stem)
