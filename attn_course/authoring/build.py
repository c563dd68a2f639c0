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
    assembled = [assemble(course, source, catalogue) for source in course.find(names)]
    with questions_lock(course):
        questions = merge_questions(course, by_number(assembled), keep=bool(names))
        write_if_changed(course.questions_file, as_json(questions))
    run = _Run(course, options or Options(), questions, catalogue.check, tell)
    for one in assembled:
        run.chapter(one)


def by_number(assembled: list[Assembled]) -> dict[str, Questions]:
    """The questions of each chapter by its number."""
    return {one.chapter.number: one.questions for one in assembled}


@dataclass(frozen=True)
class _Run:
    """One run of the builder over some chapters."""

    course: Course
    options: Options
    questions: Questions
    judge: Judge
    tell: Callable[[str], object]

    def chapter(self, one: Assembled) -> None:
        """Execute what is stale, then write all three notebooks."""
        paths = {folder: self.course.notebook(folder, one.chapter.stem) for folder in one.books}
        stale = [
            folder
            for folder in ("notebooks", "solutions")
            if not self._keeps_outputs(one.books[folder], paths[folder], self._context(one, folder))
        ]
        told = dict.fromkeys(stale, "written, not executed")
        if not self.options.draft:
            if "solutions" in stale:
                prove(one.books["solutions"], one.answers, self.judge)
            for folder in stale:
                told[folder] = f"executed in {self._execute(one.books[folder]):.0f} s"
        for folder, book in one.books.items():
            changed = write_if_changed(paths[folder], as_text(book.notebook))
            state = "written" if changed else "unchanged"
            self.tell(f"{book.label}: {told.get(folder, state)}")

    def _context(self, one: Assembled, folder: str) -> str:
        """What a notebook depends on beside its code and the package's."""
        if folder == "solutions":  # a stub that changed is to be proven again
            return "\0".join(answer.stub for answer in one.answers.values())
        number = one.chapter.number  # earlier questions may be asked again
        return as_json({k: q for k, q in self.questions.items() if q["chapter"] <= number})

    def _keeps_outputs(self, book: Book, path: Path, context: str) -> bool:
        """Whether the stored outputs are still right; if so, the built notebook takes them over."""
        key = source_hash(book.notebook, context)
        stored = read_notebook(path)
        kept = False
        if stored is not None and not self.options.force:
            kept = _take_outputs(stored, book.notebook, key)
        if kept or not self.options.draft:
            book.notebook.metadata.attn_course.source_hash = key
        return kept

    def _execute(self, book: Book) -> float:
        """Run a notebook behind a progress bar; the seconds that it took."""
        started = time.monotonic()
        total = sum(cell.cell_type == "code" for cell in book.notebook.cells)
        with tqdm(total=total, desc=book.label, unit="cell", leave=False) as bar:
            execute(book, self.course.root / book.folder, self.options.timeout, bar.update)
        return time.monotonic() - started


def _take_outputs(stored: NotebookNode, built: NotebookNode, key: str) -> bool:
    """Carry the outputs over if the stored notebook ran the same code under the same key."""
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
