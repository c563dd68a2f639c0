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

BY_NAME: frozenset[Place] = frozenset(
    {
        ("attn_course.checks", "exercises"),
        ("attn_course.checks", "get"),
        ("attn_course.explorers.words", "WORDS"),
    }
)
"""What these give is told by name, so that one exercise or view concerns those who show it."""

CHECK: Place = ("attn_course.checks", "check")
"""What shows the verdicts of solutions."""

TELLING: frozenset[Place] = frozenset(
    {("attn_course.checks", "examine"), ("attn_course.lesson.hints", "hint")}
)
"""These show what stands in the catalogue: messages and hints."""

VERDICT = "verdict "
"""What the names of verdicts begin with."""


def solution_sources(book: Book, verdicts: Mapping[str, str]) -> dict[str, str]:
    """Short hashes of what the outputs of solutions depend on.

    Args:
        book: the notebook.
        verdicts: what is shown of each exercise when its solution is checked.
    """
    told = {f"{VERDICT}{name}": text for name, text in verdicts.items()}
    return _hashes(book, BY_NAME | {CHECK}, told)


def lesson_sources(book: Book, questions: Questions) -> dict[str, str]:
    """Short hashes of what the outputs of a lesson depend on.

    Args:
        book: the notebook.
        questions: of the whole course: some on earlier chapters are asked again.
    """
    return _hashes(book, BY_NAME, {"questions": as_json(_asked(book.chapter, questions))})


def _hashes(book: Book, known: frozenset[Place], told: dict[str, str]) -> dict[str, str]:
    """The hashes of what a notebook reaches, but for what is `known`, and of what is told of it."""
    code = [cell.source for cell in book.notebook.cells if cell.cell_type == "code"]
    found = reached(mentioned(code), known)
    if TELLING & found.keys():
        found |= reached(_exercises(code), known)
    texts = {f"file {path}": text for path, text in by_file(found).items()}
    texts |= {f"view {name}": text for name, text in _views(found)}
    texts |= {"settings": _settings(), **told}
    hashes = {name: short_hash(text) for name, text in texts.items()}
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
