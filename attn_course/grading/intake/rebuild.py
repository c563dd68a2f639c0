"""The graded notebook: the course's set-up and checks around the student's answers."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from attn_course.grading.intake.answers import Answers, Piece, find_answers
from attn_course.grading.intake.notebook import Notebook
from attn_course.grading.intake.scaffold import HandedOut, Scaffold
from attn_course.grading.rebuilt import Rebuilt, RebuiltCell, Settled
from attn_course.grading.student_code import defined_names, defines, marks, needed_names, parse
from attn_course.sentences import Spoken, say

DEFINES_NOTHING = "The cell of this exercise does not define `{name}`: nothing."
DEFINES_OTHERS = "The cell of this exercise does not define `{name}`: it defines {others}."

_ALWAYS_THERE = frozenset(dir(builtins)) | {"display", "get_ipython"}


def rebuild(
    student: str, notebook: Notebook, scaffold: Scaffold, notes: Sequence[Spoken] = ()
) -> Rebuilt:
    """What is run for one student's one chapter: pure data, nothing of the student's but code.

    Exercises stand in the course's order, the student's helper cells before the answer that
    they stood before, or earlier where an answer could not run without them.
    """
    answers = find_answers(notebook, scaffold)
    cells = _cells(answers, scaffold)
    settled = {
        exercise.name: found
        for exercise in scaffold.exercises
        if (found := _settled(exercise, answers, notebook)) is not None
    }
    all_notes = (*notes, *notebook.notes, *answers.notes, *_order_note(answers, scaffold))
    return Rebuilt(student, scaffold.chapter, tuple(cells), all_notes, settled)


def nothing_handed_in(student: str, scaffold: Scaffold, why: Settled) -> Rebuilt:
    """A chapter without a readable file: all exercises are settled alike."""
    cells = [_check(exercise) for exercise in scaffold.exercises]
    settled = dict.fromkeys((exercise.name for exercise in scaffold.exercises), why)
    return Rebuilt(student, scaffold.chapter, tuple(cells), (), settled)


def _cells(answers: Answers, scaffold: Scaffold) -> list[RebuiltCell]:
    waiting = _helpers(answers)
    cells: list[RebuiltCell] = []
    bound = set(_ALWAYS_THERE)
    for exercise in scaffold.exercises:
        setup = [RebuiltCell("setup", source) for source in scaffold.setup[exercise.name]]
        answer = _answer(exercise, answers)
        bound |= {name for cell in setup for name in defined_names(cell.source)}
        helpers = waiting.pop(exercise.name, [])
        helpers = [*_pulled_up([*helpers, *([answer] if answer else [])], bound, waiting), *helpers]
        cells += [*setup, *(RebuiltCell("helper", helper.source) for helper in helpers)]
        for piece in (*helpers, *([answer] if answer else [])):
            bound |= defined_names(piece.source)
        if answer:
            cells.append(
                RebuiltCell(
                    "answer", answer.source, exercise.name, exercise.number, exercise.points
                )
            )
        cells.append(_check(exercise))
    return cells


def _helpers(answers: Answers) -> dict[str, list[Piece]]:
    """Helper cells by the exercise whose answer they stand before; "" for those at the end."""
    waiting: dict[str, list[Piece]] = {}
    pending: list[Piece] = []
    for piece in answers.pieces:
        if piece.exercise:
            waiting.setdefault(piece.exercise.name, []).extend(pending)
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


def _answer(exercise: HandedOut, answers: Answers) -> Piece | None:
    return next((piece for piece in answers.pieces if piece.exercise == exercise), None)


def _check(exercise: HandedOut) -> RebuiltCell:
    return RebuiltCell(
        "check", exercise.check, exercise.name, exercise.number, exercise.points, exercise.solution
    )


def _settled(exercise: HandedOut, answers: Answers, notebook: Notebook) -> Settled | None:
    answer = _answer(exercise, answers)
    if answer is None:
        if exercise.name in answers.left_as_handed_out:
            return Settled("missing", "The cell is as it was handed out.")
        if any(mark.number == exercise.number for text in notebook.other for mark in marks(text)):
            return Settled("missing", "The cell of this exercise is no code cell any more.")
        return Settled("missing", "There is no cell for this exercise.")
    if parse(answer.source) is None or defines(answer.source, exercise.name):
        return None  # code that Python cannot read is for the kernel to report
    others = sorted(defined_names(answer.source))
    if not others:
        return Settled("unmatched", say(DEFINES_NOTHING, name=exercise.name))
    names = ", ".join(f"`{name}`" for name in others[:5])
    return Settled("unmatched", say(DEFINES_OTHERS, name=exercise.name, others=names))


def _order_note(answers: Answers, scaffold: Scaffold) -> list[Spoken]:
    order = [scaffold.exercises.index(piece.exercise) for piece in answers.pieces if piece.exercise]
    return [] if order == sorted(order) else ["the exercises are not in their order"]
