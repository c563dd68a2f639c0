"""The graded notebook: the course's set-up and checks around the student's answers."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from attn_course.grading.intake.answers import Answers, Piece, find_answers
from attn_course.grading.intake.notebook import Notebook
from attn_course.grading.intake.scaffold import Scaffold, Task
from attn_course.grading.rebuilt import Problem, Rebuilt, RebuiltCell
from attn_course.grading.student_code import defined_names, defines, marks, needed_names, parse

_ALWAYS_THERE = frozenset(dir(builtins)) | {"display", "get_ipython"}


def rebuild(
    student: str, notebook: Notebook, scaffold: Scaffold, notes: Sequence[str] = ()
) -> Rebuilt:
    """What is run for one student's one chapter: pure data, nothing of the student's but code.

    Exercises stand in the course's order, the student's helper cells before the answer that
    they stood before, or earlier where an answer could not run without them.
    """
    answers = find_answers(notebook, scaffold)
    cells = _cells(answers, scaffold)
    problems = {
        task.name: problem
        for task in scaffold.tasks
        if (problem := _problem(task, answers, notebook)) is not None
    }
    all_notes = (*notes, *notebook.notes, *answers.notes, *_order_note(answers, scaffold))
    return Rebuilt(student, scaffold.chapter, tuple(cells), all_notes, problems)


def nothing_handed_in(student: str, scaffold: Scaffold, problem: Problem) -> Rebuilt:
    """A chapter without a readable file: every exercise has the same problem."""
    cells = [_check(task) for task in scaffold.tasks]
    problems = {task.name: problem for task in scaffold.tasks}
    return Rebuilt(student, scaffold.chapter, tuple(cells), (), problems)


def _cells(answers: Answers, scaffold: Scaffold) -> list[RebuiltCell]:
    waiting = _helpers(answers)
    cells: list[RebuiltCell] = []
    bound = set(_ALWAYS_THERE)
    for task in scaffold.tasks:
        setup = [RebuiltCell("setup", source) for source in scaffold.setup[task.name]]
        answer = _answer(task, answers)
        bound |= {name for cell in setup for name in defined_names(cell.source)}
        helpers = waiting.pop(task.name, [])
        helpers = [*_pulled_up([*helpers, *([answer] if answer else [])], bound, waiting), *helpers]
        cells += [*setup, *(RebuiltCell("helper", helper.source) for helper in helpers)]
        for piece in (*helpers, *([answer] if answer else [])):
            bound |= defined_names(piece.source)
        if answer:
            cells.append(RebuiltCell("answer", answer.source, task.name, task.number, task.points))
        cells.append(_check(task))
    return cells


def _helpers(answers: Answers) -> dict[str, list[Piece]]:
    """Helper cells by the exercise whose answer they stand before; "" for those at the end."""
    waiting: dict[str, list[Piece]] = {}
    pending: list[Piece] = []
    for piece in answers.pieces:
        if piece.task:
            waiting.setdefault(piece.task.name, []).extend(pending)
            pending = []
        else:
            pending.append(piece)
    waiting[""] = pending
    return waiting


def _pulled_up(
    pieces: Sequence[Piece], bound: set[str], waiting: dict[str, list[Piece]]
) -> list[Piece]:
    """Helpers from further down without which `pieces` would miss a name, in their order."""
    pulled: set[Piece] = set()
    everything = [helper for helpers in waiting.values() for helper in helpers]
    makers: dict[str, list[Piece]] = {}
    for helper in everything:
        for name in defined_names(helper.source):
            makers.setdefault(name, []).append(helper)
    known, asking = set(bound), list(pieces)
    while asking:  # each piece is asked once what it needs: a chain may be long
        known |= {name for piece in asking for name in defined_names(piece.source)}
        missing = {name for piece in asking for name in needed_names(piece.source)} - known
        asking = [h for name in missing for h in makers.get(name, ()) if h not in pulled]
        pulled.update(asking)
    for helpers in waiting.values():
        helpers[:] = [helper for helper in helpers if helper not in pulled]
    return [helper for helper in everything if helper in pulled]


def _answer(task: Task, answers: Answers) -> Piece | None:
    return next((piece for piece in answers.pieces if piece.task == task), None)


def _check(task: Task) -> RebuiltCell:
    return RebuiltCell("check", task.check, task.name, task.number, task.points, task.solution)


def _problem(task: Task, answers: Answers, notebook: Notebook) -> Problem | None:
    answer = _answer(task, answers)
    if answer is None:
        if task.name in answers.left_as_handed_out:
            return Problem("missing", "The cell is as it was handed out.")
        if any(mark.number == task.number for text in notebook.other for mark in marks(text)):
            return Problem("missing", "The cell of this exercise is no code cell any more.")
        return Problem("missing", "There is no cell for this exercise.")
    if parse(answer.source) is None or defines(answer.source, task.name):
        return None  # code that Python cannot read is for the kernel to report
    others = sorted(defined_names(answer.source))
    what = f"it defines {', '.join(f'`{name}`' for name in others[:5])}" if others else "nothing"
    return Problem("unmatched", f"The cell of this exercise does not define `{task.name}`: {what}.")


def _order_note(answers: Answers, scaffold: Scaffold) -> list[str]:
    order = [scaffold.tasks.index(piece.task) for piece in answers.pieces if piece.task]
    return [] if order == sorted(order) else ["the exercises are not in their order"]
