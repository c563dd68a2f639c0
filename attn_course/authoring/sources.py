"""What the outputs of a notebook depend on, each thing by its name."""

import ast
import os
from collections.abc import Iterable, Iterator, Mapping

from attn_course import explorers
from attn_course.authoring.environment import EXECUTION_ENV
from attn_course.authoring.modules import Place
from attn_course.authoring.names import plain_python
from attn_course.authoring.notebooks import Book
from attn_course.authoring.questions import Questions, as_json
from attn_course.authoring.reach import by_file, mentioned, reached
from attn_course.authoring.stamp import code_hash, short_hash
from attn_course.checks import catalogue
from attn_course.explorers.base import browser_module
from attn_course.explorers.words import words_of
from attn_course.learner.questions import parse
from attn_course.lesson.asking import opening
from attn_course.sentences import LOCALE, VARIABLE

# what these give is told by name below, so that one exercise or view concerns those who show it
BY_NAME: frozenset[Place] = frozenset(
    {
        ("attn_course.checks", "exercises"),
        ("attn_course.checks", "get"),
        ("attn_course.explorers.words", "WORDS"),
    }
)
CHECK: Place = ("attn_course.checks", "check")
# these show what stands in the catalogue: messages, hints
TELLING: frozenset[Place] = frozenset(
    {("attn_course.checks", "examine"), ("attn_course.lesson.hints", "hint")}
)


VERDICT = "verdict "
"""What the names of verdicts begin with."""


def solution_sources(book: Book, verdicts: Mapping[str, str]) -> dict[str, str]:
    """Short hashes of what the outputs of solutions depend on.

    Args:
        book: the notebook.
        verdicts: what is shown of each exercise when its solution is checked.
    """
    found = reached(mentioned(_code(book)), BY_NAME | {CHECK})
    return _hashes(book, found, {f"{VERDICT}{name}": text for name, text in verdicts.items()})


def lesson_sources(book: Book, questions: Questions) -> dict[str, str]:
    """Short hashes of what the outputs of a lesson depend on.

    Args:
        book: the notebook.
        questions: of the whole course: some on earlier chapters are asked again.
    """
    code = _code(book)
    found = reached(mentioned(code), BY_NAME)
    if TELLING & found.keys():
        found |= reached(_exercises(code), BY_NAME)
    asked = as_json(_asked(book.chapter, questions))
    return _hashes(book, found, {"questions": asked})


def _code(book: Book) -> list[str]:
    return [cell.source for cell in book.notebook.cells if cell.cell_type == "code"]


def _hashes(book: Book, found: dict[Place, str], more: dict[str, str]) -> dict[str, str]:
    texts = {f"file {path}": text for path, text in by_file(found).items()}
    texts |= {f"view {name}": text for name, text in _views(found)}
    texts["settings"] = _settings()
    hashes = {name: short_hash(text) for name, text in (texts | more).items()}
    return hashes | {"code": code_hash(book.notebook)}


def _settings() -> str:
    """What every notebook is run under: the environment, and the reader's language as it is."""
    language = os.environ.get(VARIABLE, "")
    translation = LOCALE / language / "LC_MESSAGES" / "attn_course.mo"
    words = translation.read_bytes() if translation.is_file() else b""
    return repr([EXECUTION_ENV, language, words])


def _views(found: Iterable[Place]) -> Iterator[tuple[str, str]]:
    """The views that are shown, with what they are beside Python: browser code and words."""
    for name in explorers.__all__:
        view = getattr(explorers, name)
        if (view.__module__, name) in found:
            yield name, browser_module(view.module) + repr(sorted(words_of(name).items()))


def _exercises(code: list[str]) -> Iterator[Place]:
    """Where the exercises are written that the code names."""
    nodes = [node for text in code for node in ast.walk(ast.parse(plain_python(text)))]
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    named |= {node.value for node in nodes if isinstance(node, ast.Constant)}
    for entry in catalogue.listed():
        if named & {entry.name, entry.number}:
            yield f"{catalogue.__name__}.{entry.home}", "EXERCISE"


def _asked(chapter: str, questions: Questions) -> Questions:
    """The questions that a lesson shows: its own, and those on earlier chapters that open it."""
    recalled = opening(chapter, [parse(name, entry) for name, entry in questions.items()], {})
    shown = {question.id for question in recalled}
    return {k: q for k, q in questions.items() if q["chapter"] == chapter or k in shown}
