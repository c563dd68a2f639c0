"""Putting a chapter together: its three notebooks and its questions, nothing executed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from attn_course import checks
from attn_course.authoring.answers import Answer, chapter_answers
from attn_course.authoring.layout import FOLDERS, Course
from attn_course.authoring.notebooks import Book, Builder
from attn_course.authoring.proof import Judge
from attn_course.authoring.questions import Questions, compile_questions
from attn_course.authoring.source import ChapterSource, read_chapter
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
    """A chapter put together: its three notebooks by folder, its questions."""

    chapter: ChapterSource
    answers: dict[str, Answer]
    books: dict[str, Book]
    questions: Questions


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


def by_number(assembled: list[Assembled]) -> dict[str, Questions]:
    """The questions of each chapter by its number."""
    return {one.chapter.number: one.questions for one in assembled}
