"""What a build would do with each notebook of a chapter, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from attn_course import checks
from attn_course.authoring import telling
from attn_course.authoring.assemble import Assembled, Catalogue
from attn_course.authoring.files import read_notebook
from attn_course.authoring.layout import Course
from attn_course.authoring.notebooks import Book
from attn_course.authoring.proof import prove
from attn_course.authoring.questions import Questions
from attn_course.authoring.sources import VERDICT, lesson_sources, solution_sources
from attn_course.authoring.stamp import Stamp, code_hash, outputs_hash, stamp_of
from attn_course.sentences import Sentence


@dataclass(frozen=True)
class Options:
    """How to build: run everything anew, run nothing, seconds for each cell."""

    force: bool = False
    draft: bool = False
    timeout: int = 300


@dataclass(frozen=True)
class Planned:
    """One notebook, before anything is executed.

    Attributes:
        book: as it is built; it holds the stored outputs where these are still right.
        path: where it goes.
        sources: short hashes of what its outputs depend on; empty where it has none.
        why: why it is to be executed again; None where it is not.
    """

    book: Book
    path: Path
    sources: Mapping[str, str]
    why: Sentence | None = None


def plan(
    course: Course,
    one: Assembled,
    questions: Questions,
    options: Options,
    catalogue: Catalogue = checks,
) -> list[Planned]:
    """What is to be done with the notebooks of one chapter; `questions` are the whole course's.

    Stubs and solutions are put to the test each time, but for a draft. Raises BuildError for a
    stub that passes its check and for a solution that does not.
    """
    solutions = one.books["solutions"]
    verdicts = {} if options.draft else prove(solutions, one.answers, catalogue.check)
    sources = {
        "notebooks": lesson_sources(one.books["notebooks"], questions),
        "exercises": {},
        "solutions": solution_sources(solutions, verdicts),
    }
    stem = one.chapter.stem
    return [
        _planned(book, course.notebook(folder, stem), sources[folder], options)
        for folder, book in one.books.items()
    ]


def _planned(book: Book, path: Path, sources: dict[str, str], options: Options) -> Planned:
    if not sources:
        return Planned(book, path, sources)
    stored = read_notebook(path)
    stamp = stamp_of(stored) if stored else None
    if options.draft and stamp:  # nothing is checked, so that the verdicts are as they were
        sources |= {k: v for k, v in stamp.sources.items() if k.startswith(VERDICT)}
    why = telling.FORCED if options.force else _reason(stored, stamp, sources)
    if stored and not why:
        _take_outputs(stored, book.notebook)
    return Planned(book, path, sources, why)


def _reason(
    stored: NotebookNode | None, stamp: Stamp | None, sources: Mapping[str, str]
) -> Sentence | None:
    """Why the stored outputs cannot be kept; None if they can."""
    if stored is None:
        return telling.NEW
    if stamp is None:
        return telling.UNKNOWN
    if not stamp.sources:
        return telling.DRAFTED
    changed = _changed(stored, stamp, sources)
    return telling.changed(changed) if changed else None


def _changed(stored: NotebookNode, stamp: Stamp, sources: Mapping[str, str]) -> list[str]:
    """The names of what is another than when the stored outputs were made."""
    names = stamp.sources.keys() | sources.keys()
    changed = {name for name in names if stamp.sources.get(name) != sources.get(name)}
    if code_hash(stored) != sources["code"]:
        changed.add("code")
    if outputs_hash(stored) != stamp.outputs:
        changed.add("outputs")
    return sorted(changed)


def _take_outputs(stored: NotebookNode, built: NotebookNode) -> None:
    """Carry the outputs over, cell by cell: both notebooks run the same code."""
    before, after = (
        [cell for cell in notebook.cells if cell.cell_type == "code"]
        for notebook in (stored, built)
    )
    for old, new in zip(before, after, strict=True):
        new.outputs, new.execution_count = old.outputs, old.execution_count
