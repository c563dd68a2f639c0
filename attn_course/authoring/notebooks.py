"""Putting a chapter's cells together into lesson, exercises and solutions."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import nbformat
from nbformat import NotebookNode

import attn_course
from attn_course.authoring import wording
from attn_course.authoring.answers import Answer
from attn_course.authoring.cells import (
    code_cell,
    exercise_cells,
    install_cell,
    markdown_cell,
    question_cell,
)
from attn_course.authoring.errors import BuildError
from attn_course.authoring.links import Links, exercise_id, fill_marks
from attn_course.authoring.names import bound_names, plain_python, undefined_names
from attn_course.authoring.source import Cell, ChapterSource
from attn_course.sentences import spoken

_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# without the version, which would change with every machine that builds
_LANGUAGE = {
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "pygments_lexer": "ipython3",
}
# progress counts the exercises of all chapters: another chapter's would change this notebook
_NOT_COMPARED = ("nbval-ignore-output",)


@dataclass(frozen=True)
class Book:
    """A built notebook, and for each cell by its id the place in the chapter it came from."""

    label: str
    folder: str
    notebook: NotebookNode
    origins: dict[str, str] = field(default_factory=dict)

    @property
    def chapter(self) -> str:
        """The two digits of the notebook's chapter."""
        return self.notebook.metadata.attn_course.chapter

    def place(self, cell: NotebookNode) -> str:
        """Notebook, cell and origin, for messages."""
        origin = self.origins.get(cell.id)
        return f"{self.label}, cell {cell.id}" + (f" ({origin})" if origin else "")


class Builder:
    """Builds the notebooks of one chapter from its cells and its answers."""

    def __init__(
        self, chapter: ChapterSource, answers: dict[str, Answer], address: str | None
    ) -> None:
        """Take `address` as the project's public one, None while it has none."""
        self.chapter = chapter
        self.answers = answers
        self.links = Links(chapter.stem, address)

    def build(self, folder: str) -> Book:
        """The notebook for "notebooks", "exercises" or "solutions", not executed.

        Raises BuildError if a cell uses a name that the notebook does not define.
        """
        book = Book(f"{folder}/{self.chapter.stem}.ipynb", folder, nbformat.v4.new_notebook())
        cells = book.notebook.cells
        cells += self._opening(folder)
        for source in self.chapter.cells:
            for cell in self._built(source, folder):
                cell.id = _fresh(cell.id, cells)
                book.origins[cell.id] = source.where
                cells.append(cell)
        cells.append(code_cell("progress", "show_progress()", _NOT_COMPARED))
        first_code = next(n for n, cell in enumerate(cells) if cell.cell_type == "code")
        cells.insert(first_code + 1, self._tools(book))
        book.notebook.nbformat_minor = 5
        book.notebook.metadata.update(
            kernelspec=_KERNEL,
            language_info=_LANGUAGE,
            attn_course={"chapter": self.chapter.number, "folder": folder},
        )
        nbformat.validate(book.notebook)
        return book

    def _opening(self, folder: str) -> Iterator[NotebookNode]:
        """Badge, title with times and links, and the set-up for Colab."""
        badge = self.links.badge(folder)
        if badge:
            yield markdown_cell("badge", badge)
        title = wording.folder_title(folder, self.chapter.number, self.chapter.title)
        names = wording.FOLDER_NAMES.items()
        others = [self.links.to(other, spoken(name)) for other, name in names if other != folder]
        intro = wording.FOLDER_INTRO.get(folder)
        intro = spoken(intro) if intro else self._minutes()
        paragraphs = [f"# {title}", intro, " · ".join(others)]
        yield markdown_cell("title", "\n\n".join(paragraphs))
        yield install_cell(self.links.address)

    def _built(self, cell: Cell, folder: str) -> Iterable[NotebookNode]:
        """What one cell of the source becomes in one of the notebooks."""
        lesson = folder == "notebooks"
        if cell.role == "plain":
            wanted = ("both", "lesson") if lesson else ("both", "exercises")
            return [self._plain(cell)] if cell.part in wanted else []
        if cell.role in ("question", "prediction"):
            return [question_cell(cell)] if lesson else []
        if lesson:
            return []
        answer = self.answers[cell.name]
        return [self._task(answer)] if cell.role == "task" else exercise_cells(answer, folder)

    def _plain(self, cell: Cell) -> NotebookNode:
        text = self._filled(cell)
        cell_id = f"{cell.kind}-{hashlib.sha256(cell.text.encode()).hexdigest()[:10]}"
        if cell.kind == "markdown":
            return markdown_cell(cell_id, text, cell.tags)
        return code_cell(cell_id, text, cell.tags, hidden="" if cell.hidden else None)

    def _task(self, answer: Answer) -> NotebookNode:
        entry = answer.entry
        heading = f"## {wording.exercise_title(entry)}"
        paragraphs = [heading, wording.exercise_terms(entry), self._filled(answer.task)]
        cell = markdown_cell(exercise_id(entry.name), "\n\n".join(paragraphs), answer.task.tags)
        cell.metadata["id"] = cell.id  # where Colab looks for it
        return cell

    def _filled(self, cell: Cell) -> str:
        if cell.kind == "code":
            return cell.text
        return fill_marks(cell.text, self._fill, cell.where)

    def _fill(self, mark: str) -> str:
        if mark == "minutes":
            return self._minutes()
        if mark not in self.answers:
            raise BuildError(
                "{chapter}: it has no exercise {mark!r} to link to",
                chapter=self.chapter.stem,
                mark=mark,
            )
        return self.links.to_exercise(self.answers[mark].entry)

    def _minutes(self) -> str:
        return wording.reading_time(self.chapter.reading_minutes, self.chapter.exercise_minutes)

    def _tools(self, book: Book) -> NotebookNode:
        """The import of those of the course's tools that no cell imports itself."""
        known: set[str] = set()
        if book.folder == "exercises":  # later lines may use what a blanked one binds
            known = {n for answer in self.answers.values() for n in bound_names(answer.solution)}
        missing = _undefined(book, known)
        for name, cell in missing.items():
            if name not in attn_course.__all__:
                raise BuildError(
                    "{place}: undefined name {name!r} in\n{code}",
                    place=book.place(cell),
                    name=name,
                    code=cell.source,
                )
        wanted = set(missing)
        if any(cell.id.startswith("hint-") for cell in book.notebook.cells):
            wanted.add("hint")  # its call is a comment
        tools = [name for name in attn_course.__all__ if name in wanted]
        return code_cell("tools", f"from attn_course import {', '.join(tools)}")


def _fresh(cell_id: str, cells: list[NotebookNode]) -> str:
    """The id, numbered from the second cell of equal content on."""
    taken = {cell.id for cell in cells}
    candidates = (cell_id if n == 1 else f"{cell_id}-{n}" for n in range(1, len(cells) + 2))
    return next(candidate for candidate in candidates if candidate not in taken)


def _undefined(book: Book, known: set[str]) -> dict[str, NotebookNode]:
    """Names that the notebook's code does not define, with the cell that uses each first."""
    lines: list[str] = []
    owners: list[NotebookNode] = []  # the cell of each line
    for cell in book.notebook.cells:
        if cell.cell_type == "code":
            added = plain_python(cell.source).splitlines()
            lines += added
            owners += [cell] * len(added)
    try:
        found = undefined_names("\n".join(lines), known)
    except SyntaxError as error:
        cell = owners[min(error.lineno or 1, len(owners)) - 1]
        raise BuildError(
            "{place}: {problem} in\n{code}",
            place=book.place(cell),
            problem=error.msg,
            code=cell.source,
        ) from error
    return {name: owners[line - 1] for name, line in found.items()}
