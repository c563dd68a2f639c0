"""Building chapters: what has changed is executed, what has not keeps its outputs."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tqdm import tqdm

from attn_course import checks
from attn_course.authoring import telling
from attn_course.authoring.assemble import Assembled, Catalogue, assemble, by_number
from attn_course.authoring.execute import execute
from attn_course.authoring.files import as_text, write_if_changed
from attn_course.authoring.layout import Course
from attn_course.authoring.mine import place_beside
from attn_course.authoring.notebooks import Book
from attn_course.authoring.plan import Options, Planned, plan
from attn_course.authoring.questions import (
    Questions,
    as_json,
    merge_questions,
    questions_lock,
)
from attn_course.authoring.stamp import stamped
from attn_course.sentences import Sentence, spoken


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
    builder = _Builder(course, options or Options(), questions, catalogue, tell)
    for one in assembled:
        builder.chapter(one)


@dataclass(frozen=True)
class _Builder:
    """One run of the builder over some chapters."""

    course: Course
    options: Options
    questions: Questions
    catalogue: Catalogue
    tell: Callable[[str], object]

    def chapter(self, one: Assembled) -> None:
        """Execute what is stale, then write all three notebooks."""
        planned = plan(self.course, one, self.questions, self.options, self.catalogue)
        done = [self._executed(each) for each in planned]  # all of them, or none is written
        for each, told in zip(planned, done, strict=True):
            self._write(each, told)

    def _executed(self, planned: Planned) -> Sentence | None:
        """Run a stale notebook, unless this is a draft; what is to be told of it."""
        if planned.why is None:
            return None
        if self.options.draft:
            return telling.not_executed(planned.why)
        return telling.executed(self._execute(planned.book), planned.why)

    def _execute(self, book: Book) -> float:
        """Run a notebook behind a progress bar; the seconds that it took."""
        started = time.monotonic()
        total = sum(cell.cell_type == "code" for cell in book.notebook.cells)
        with tqdm(total=total, desc=book.label, unit="cell", leave=False) as bar:
            execute(book, self.course.root / book.folder, self.options.timeout, bar.update)
        return time.monotonic() - started

    def _write(self, planned: Planned, told: Sentence | None) -> None:
        book, path = planned.book, planned.path
        has_outputs = planned.why is None or not self.options.draft
        notebook = stamped(book.notebook, planned.sources if has_outputs else {})
        beside = place_beside(path, notebook)
        if beside:
            path.rename(beside)
        changed = write_if_changed(path, as_text(notebook))
        done = told or (telling.WRITTEN if changed else telling.UNCHANGED)
        self.tell(spoken(telling.line(book, done)))
        if beside:
            self.tell(spoken(telling.line(book, telling.kept(path, beside))))
