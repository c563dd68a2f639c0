"""The answer cells of a chapter: each exercise as its stub and as its solution."""

from dataclasses import dataclass

from attn_course.authoring import wording
from attn_course.authoring.blanks import has_marks, solved, stubbed, without_body
from attn_course.authoring.errors import BuildError
from attn_course.authoring.links import exercises_linked
from attn_course.authoring.names import definition
from attn_course.authoring.solutions import package_solution
from attn_course.authoring.source import Cell, Chapter
from attn_course.checks.exercise import Exercise


@dataclass(frozen=True)
class Answer:
    """One exercise with the two forms of its answer cell."""

    entry: Exercise
    task: Cell
    cell: Cell
    stub: str
    solution: str


def chapter_answers(chapter: Chapter, entries: list[Exercise]) -> dict[str, Answer]:
    """The answers to the chapter's exercises, by name, in order.

    `entries` are the package's exercises of this chapter. Raises BuildError unless the
    chapter has a task and an answer for each, in their order, and links to each.
    """
    tasks, cells = chapter.named("task"), chapter.named("answer")
    wanted = [entry.name for entry in entries]
    for what, found in (("tasks", list(tasks)), ("answers", list(cells))):
        if found != wanted:
            raise BuildError(
                f"{chapter.stem}: the package's exercises of this chapter are {wanted}, "
                f"the chapter's {what} are {found}"
            )
    lesson = "\n\n".join(cell.text for cell in chapter.cells if cell.kind == "markdown")
    unlinked = set(wanted) - set(exercises_linked(lesson))
    if unlinked:
        raise BuildError(f"{chapter.stem}: no {{{{exercise: …}}}} links to {sorted(unlinked)}")
    return {entry.name: _answer(entry, tasks[entry.name], cells[entry.name]) for entry in entries}


def _answer(entry: Exercise, task: Cell, cell: Cell) -> Answer:
    order = [task.where, cell.where]
    if int(task.where.rpartition(":")[2]) > int(cell.where.rpartition(":")[2]):
        raise BuildError(f"{order[1]}: the answer stands before its task ({order[0]})")
    if cell.module:
        solution = package_solution(entry.name, cell.module, cell.where)
        stub = without_body(solution, entry.name)
    else:
        stub, solution = _held_by_chapter(entry.name, cell)
    title = f"# {wording.exercise_title(entry.number, entry.name)}\n"
    return Answer(entry, task, cell, title + stub, title + solution)


def _held_by_chapter(name: str, cell: Cell) -> tuple[str, str]:
    if not has_marks(cell.text):
        raise BuildError(
            f"{cell.where}: nothing is taken out of {name!r}: give source=, mark a block with "
            "### BEGIN SOLUTION … ### END SOLUTION or a statement with # BLANK"
        )
    try:
        forms = stubbed(cell.text, name, cell.where), solved(cell.text, cell.where)
        defined = [definition(form, name) for form in forms]
    except SyntaxError as error:
        raise BuildError(f"{cell.where}: {error.msg}, line {error.lineno} of the cell") from error
    if None in defined:
        raise BuildError(f"{cell.where}: the cell must define {name!r}, as stub and as solution")
    return forms
