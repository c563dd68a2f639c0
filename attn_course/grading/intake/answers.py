"""Which of a student's cells answers which exercise: by its exercise line, with tolerance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from attn_course.grading.intake.notebook import Notebook
from attn_course.grading.intake.scaffold import HandedOut, Scaffold
from attn_course.grading.student_code import (
    Mark,
    defines,
    is_empty,
    marks,
    normal_form,
    parse,
    without_tools,
)
from attn_course.sentences import Spoken, say

OF_ANOTHER_CHAPTER = "an exercise line of another chapter: Exercise {number}"
SAYS_ANOTHER = "an exercise line says {said}, its cell answers {answered}"
SPLIT = "the answer to {number} is split into {n} cells"
REPEATED = "{n} cells answer exercise {number}; the last one counts"
FOUND_BY_NAME = "the answer to {number} has lost its exercise line; found by name"


@dataclass(frozen=True)
class Piece:
    """A stretch of the student's code: a cell, or what stands below one exercise line in it."""

    source: str
    exercise: HandedOut | None = None


@dataclass(frozen=True)
class Answers:
    """A student's code for one chapter.

    Attributes:
        pieces: everything that counts, in the student's order; one answer at most to an exercise.
        left_as_handed_out: names of the exercises whose cells are still the stubs.
        notes: what was tolerated, for a human.
    """

    pieces: tuple[Piece, ...]
    left_as_handed_out: frozenset[str]
    notes: tuple[Spoken, ...]


def recognise(notebook: Notebook, scaffolds: Mapping[str, Scaffold]) -> str | None:
    """The chapter that most exercise lines of the notebook belong to; None without any.

    Cells of another chapter may have been pasted in; of two with as many lines, the later one
    is taken, since what is pasted comes from before.
    """
    found = {mark.number for source in notebook.code for mark in marks(source)}
    chapters = {number: f"{int(number.partition('.')[0]):02d}" for number in found}
    counted = Counter(
        chapter
        for number, chapter in chapters.items()
        if chapter in scaffolds and number in scaffolds[chapter].by_number
    )
    return max(counted, key=lambda chapter: (counted[chapter], chapter), default=None)


def find_answers(notebook: Notebook, scaffold: Scaffold) -> Answers:
    """The student's answers and helper code for the chapter of `scaffold`."""
    notes: list[Spoken] = []
    pieces = [piece for source in notebook.code for piece in _pieces(source, scaffold, notes)]
    pieces = _join_split(pieces, notes)
    stubs = {p.exercise.name for p in pieces if p.exercise and _is_stub(p)}
    pieces = [piece for piece in pieces if not (piece.exercise and _is_stub(piece))]
    pieces = _one_each(pieces, notes)
    pieces = _promote(pieces, scaffold, notes)
    answered = {piece.exercise.name for piece in pieces if piece.exercise}
    return Answers(tuple(pieces), frozenset(stubs - answered), tuple(notes))


def _pieces(source: str, scaffold: Scaffold, notes: list[Spoken]) -> list[Piece]:
    """A cell, cut before its second and each later exercise line."""
    exercises = [(mark, _exercise_of(mark, source, scaffold)) for mark in marks(source)]
    for mark, exercise in exercises:
        if exercise is None:
            notes.append(say(OF_ANOTHER_CHAPTER, number=mark.number))
        elif mark.number != exercise.number:
            notes.append(say(SAYS_ANOTHER, said=mark.number, answered=exercise.number))
    known = [(mark, exercise) for mark, exercise in exercises if exercise is not None]
    if not known and normal_form(source) in scaffold.given:
        return []
    lines = source.split("\n")
    starts: list[tuple[int, HandedOut | None]] = [(mark.line, exercise) for mark, exercise in known]
    if not starts or (starts[0][0] > 0 and parse("\n".join(lines[: starts[0][0]]))):
        starts.insert(0, (0, None))
    if len({exercise.name for _, exercise in known}) > 1:
        notes.append(say("one cell answers {n} exercises", n=len(known)))
    pieces: list[Piece] = []
    for k, (first, exercise) in enumerate(starts):
        last = starts[k + 1][0] if k + 1 < len(starts) else len(lines)
        text = "\n".join(lines[first if k else 0 : last])
        if pieces and pieces[-1].exercise == exercise:
            pieces[-1] = replace(pieces[-1], source=f"{pieces[-1].source}\n{text}")
        else:
            pieces.append(Piece(text, exercise))
    cleaned = [replace(piece, source=without_tools(piece.source)) for piece in pieces]
    return [piece for piece in cleaned if piece.exercise or not is_empty(piece.source)]


def _exercise_of(mark: Mark, source: str, scaffold: Scaffold) -> HandedOut | None:
    """The exercise that a line means, by its number and its name."""
    by_number = scaffold.by_number.get(mark.number)
    by_name = scaffold.by_name.get(mark.name or "")
    if by_number and by_name and by_number != by_name:
        return by_name if defines(source, by_name.name) else by_number
    return by_number or by_name


def _join_split(pieces: Sequence[Piece], notes: list[Spoken]) -> list[Piece]:
    """Put an answer together that the student has split into several cells."""
    joined: list[Piece] = []
    k = 0
    while k < len(pieces):
        piece, taken = pieces[k], 1
        if piece.exercise and not defines(piece.source, piece.exercise.name):
            taken = _parts(pieces, k)
            if taken > 1:
                notes.append(say(SPLIT, number=piece.exercise.number, n=taken))
                text = "\n".join(part.source for part in pieces[k : k + taken])
                piece = replace(piece, source=text)
        joined.append(piece)
        k += taken
    return joined


def _parts(pieces: Sequence[Piece], start: int) -> int:
    """How many pieces from `start` on make one answer; 1 where no following ones complete it."""
    exercise = pieces[start].exercise
    text = pieces[start].source
    for k in range(start + 1, min(start + 6, len(pieces))):
        if pieces[k].exercise is not None:
            break
        text = f"{text}\n{pieces[k].source}"
        if exercise and defines(text, exercise.name):
            return k - start + 1
    return 1


def _is_stub(piece: Piece) -> bool:
    exercise = piece.exercise
    return exercise is not None and normal_form(piece.source) in (
        normal_form(exercise.stub),
        normal_form(""),
    )


def _one_each(pieces: Sequence[Piece], notes: list[Spoken]) -> list[Piece]:
    """Of several answers to one exercise keep the last that defines what is asked."""
    chosen: dict[str, int] = {}
    for k, piece in enumerate(pieces):
        if piece.exercise is None:
            continue
        name = piece.exercise.name
        if name not in chosen or defines(piece.source, name) or parse(piece.source) is None:
            chosen[name] = k
    counted = Counter(piece.exercise.number for piece in pieces if piece.exercise)
    notes += [
        say(REPEATED, n=count, number=number) for number, count in counted.items() if count > 1
    ]
    return [p for k, p in enumerate(pieces) if p.exercise is None or chosen[p.exercise.name] == k]


def _promote(pieces: Sequence[Piece], scaffold: Scaffold, notes: list[Spoken]) -> list[Piece]:
    """Take a cell without an exercise line that defines what an unanswered exercise asks for."""
    pieces = list(pieces)
    answered = {piece.exercise.name for piece in pieces if piece.exercise}
    for exercise in scaffold.exercises:
        if exercise.name in answered:
            continue
        found = [
            k for k, p in enumerate(pieces) if not p.exercise and defines(p.source, exercise.name)
        ]
        if found:
            pieces[found[-1]] = replace(pieces[found[-1]], exercise=exercise)
            notes.append(say(FOUND_BY_NAME, number=exercise.number))
    return pieces
