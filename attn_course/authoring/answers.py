"""The answer cells of a chapter: each exercise as its stub and as its solution."""

from dataclasses import dataclass

from attn_course.authoring.blanks import has_marks, solved, stubbed, without_body
from attn_course.authoring.errors import BuildError
from attn_course.authoring.links import exercises_linked
from attn_course.authoring.names import definition
from attn_course.authoring.solutions import package_solution
from attn_course.authoring.source import Cell, ChapterSource
from attn_course.checks.exercise import Exercise

_NO_TASK = "{chapter}: no task for what {room} lists: {names}"
_NO_ANSWER = "{chapter}: no answer for what {room} lists: {names}"
_NOT_LISTED = "{chapter}: cells for what {room} does not list: {names}"
_OTHER_ORDER = "{chapter}: {room} lists {wanted} in this order, the chapter has {found}"


@dataclass(frozen=True)
class Answer:
    """One exercise with the two forms of its answer cell."""

    entry: Exercise
    task: Cell
    cell: Cell
    stub: str
    solution: str


def chapter_answers(chapter: ChapterSource, entries: list[Exercise]) -> dict[str, Answer]:
    """The answers to the chapter's exercises, by name, in order.

    `entries` are the package's exercises of this chapter. Raises BuildError unless the
    chapter has a task and an answer for each, in their order, and links to each.
    """
    tasks, cells = chapter.named("task"), chapter.named("answer")
    wanted = [entry.name for entry in entries]
    _hold_to_list(chapter, wanted, list(tasks), _NO_TASK)
    _hold_to_list(chapter, wanted, list(cells), _NO_ANSWER)
    lesson = "\n\n".join(cell.text for cell in chapter.cells if cell.kind == "markdown")
    unlinked = set(wanted) - set(exercises_linked(lesson))
    if unlinked:
        raise BuildError(
            "{chapter}: no {{{{exercise: …}}}} links to {names}",
            chapter=chapter.stem,
            names=sorted(unlinked),
        )
    return {entry.name: _answer(entry, tasks[entry.name], cells[entry.name]) for entry in entries}


def _hold_to_list(chapter: ChapterSource, wanted: list[str], found: list[str], none: str) -> None:
    """Raise BuildError, with `none` for what lacks, unless the cells are those that are listed."""
    where = {
        "chapter": chapter.stem,
        "room": f"attn_course/checks/catalogue/ch{chapter.number}/__init__.py",
    }
    for words, first, second in ((none, wanted, found), (_NOT_LISTED, found, wanted)):
        names = [name for name in first if name not in second]
        if names:
            raise BuildError(words, **where, names=", ".join(names))
    if found != wanted:
        raise BuildError(_OTHER_ORDER, **where, wanted=", ".join(wanted), found=", ".join(found))


def _answer(entry: Exercise, task: Cell, cell: Cell) -> Answer:
    order = [task.where, cell.where]
    if int(task.where.rpartition(":")[2]) > int(cell.where.rpartition(":")[2]):
        raise BuildError(
            "{where}: the answer stands before its task ({task})", where=order[1], task=order[0]
        )
    if cell.module:
        solution = package_solution(entry.name, cell.module, cell.where)
        stub = without_body(solution, entry.name)
    else:
        stub, solution = _held_by_chapter(entry.name, cell)
    title = f"# Exercise {entry.number}: {entry.name}\n"  # a mark for programs, in no language
    return Answer(entry, task, cell, title + stub, title + solution)


def _held_by_chapter(name: str, cell: Cell) -> tuple[str, str]:
    if not has_marks(cell.text):
        raise BuildError(
            "{where}: nothing is taken out of {name!r}: give source=, mark a block with "
            "### BEGIN SOLUTION … ### END SOLUTION or a statement with # BLANK",
            where=cell.where,
            name=name,
        )
    try:
        forms = stubbed(cell.text, name, cell.where), solved(cell.text, cell.where)
        defined = [definition(form, name) for form in forms]
    except SyntaxError as error:
        raise BuildError(
            "{where}: {problem}, line {line} of the cell",
            where=cell.where,
            problem=error.msg,
            line=error.lineno,
        ) from error
    if None in defined:
        raise BuildError(
            "{where}: the cell must define {name!r}, as stub and as solution",
            where=cell.where,
            name=name,
        )
    return forms
