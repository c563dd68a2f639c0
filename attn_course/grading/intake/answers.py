"""Which of a student's cells answers which exercise: by its exercise line, with tolerance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from attn_course.grading.intake.notebook import Notebook
from attn_course.grading.intake.scaffold import Scaffold, Task
from attn_course.grading.student_code import (
    Mark,
    defines,
    is_empty,
    marks,
    normal_form,
    parse,
    without_tools,
)


@dataclass(frozen=True)
class Piece:
    """A stretch of the student's code: a cell, or what stands below one exercise line in it."""

    source: str
    task: Task | None = None


@dataclass(frozen=True)
class Answers:
    """A student's code for one chapter.

    Attributes:
        pieces: everything that counts, in the student's order; one answer at most to a task.
        left_as_handed_out: names of the exercises whose cells are still the stubs.
        notes: what was tolerated, for a human.
    """

    pieces: tuple[Piece, ...]
    left_as_handed_out: frozenset[str]
    notes: tuple[str, ...]


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
    notes: list[str] = []
    pieces = [piece for source in notebook.code for piece in _pieces(source, scaffold, notes)]
    pieces = _join_split(pieces, notes)
    stubs = {p.task.name for p in pieces if p.task and _is_stub(p)}
    pieces = [piece for piece in pieces if not (piece.task and _is_stub(piece))]
    pieces = _one_each(pieces, notes)
    pieces = _promote(pieces, scaffold, notes)
    answered = {piece.task.name for piece in pieces if piece.task}
    return Answers(tuple(pieces), frozenset(stubs - answered), tuple(notes))


def _pieces(source: str, scaffold: Scaffold, notes: list[str]) -> list[Piece]:
    """A cell, cut before its second and each later exercise line."""
    tasks = [(mark, _task(mark, source, scaffold)) for mark in marks(source)]
    for mark, task in tasks:
        if task is None:
            notes.append(f"an exercise line of another chapter: Exercise {mark.number}")
        elif mark.number != task.number:
            notes.append(f"an exercise line says {mark.number}, its cell answers {task.number}")
    known = [(mark, task) for mark, task in tasks if task is not None]
    if not known and normal_form(source) in scaffold.given:
        return []
    lines = source.split("\n")
    starts: list[tuple[int, Task | None]] = [(mark.line, task) for mark, task in known]
    if not starts or (starts[0][0] > 0 and parse("\n".join(lines[: starts[0][0]]))):
        starts.insert(0, (0, None))
    if len({task.name for _, task in known}) > 1:
        notes.append(f"one cell answers {len(known)} exercises")
    pieces: list[Piece] = []
    for k, (first, task) in enumerate(starts):
        last = starts[k + 1][0] if k + 1 < len(starts) else len(lines)
        text = "\n".join(lines[first if k else 0 : last])
        if pieces and pieces[-1].task == task:
            pieces[-1] = replace(pieces[-1], source=f"{pieces[-1].source}\n{text}")
        else:
            pieces.append(Piece(text, task))
    cleaned = [replace(piece, source=without_tools(piece.source)) for piece in pieces]
    return [piece for piece in cleaned if piece.task or not is_empty(piece.source)]


def _task(mark: Mark, source: str, scaffold: Scaffold) -> Task | None:
    """The exercise that a line means, by its number and its name."""
    by_number = scaffold.by_number.get(mark.number)
    by_name = scaffold.by_name.get(mark.name or "")
    if by_number and by_name and by_number != by_name:
        return by_name if defines(source, by_name.name) else by_number
    return by_number or by_name


def _join_split(pieces: Sequence[Piece], notes: list[str]) -> list[Piece]:
    """Put an answer together that the student has split into several cells."""
    joined: list[Piece] = []
    k = 0
    while k < len(pieces):
        piece, taken = pieces[k], 1
        if piece.task and not defines(piece.source, piece.task.name):
            taken = _parts(pieces, k)
            if taken > 1:
                notes.append(f"the answer to {piece.task.number} is split into {taken} cells")
                text = "\n".join(part.source for part in pieces[k : k + taken])
                piece = replace(piece, source=text)
        joined.append(piece)
        k += taken
    return joined


def _parts(pieces: Sequence[Piece], start: int) -> int:
    """How many pieces from `start` on make one answer; 1 where no following ones complete it."""
    task = pieces[start].task
    text = pieces[start].source
    for k in range(start + 1, min(start + 6, len(pieces))):
        if pieces[k].task is not None:
            break
        text = f"{text}\n{pieces[k].source}"
        if task and defines(text, task.name):
            return k - start + 1
    return 1


def _is_stub(piece: Piece) -> bool:
    task = piece.task
    return task is not None and normal_form(piece.source) in (
        normal_form(task.stub),
        normal_form(""),
    )


def _one_each(pieces: Sequence[Piece], notes: list[str]) -> list[Piece]:
    """Of several answers to one exercise keep the last that defines what is asked."""
    chosen: dict[str, int] = {}
    for k, piece in enumerate(pieces):
        if piece.task is None:
            continue
        name = piece.task.name
        if name not in chosen or defines(piece.source, name) or parse(piece.source) is None:
            chosen[name] = k
    counted = Counter(piece.task.number for piece in pieces if piece.task)
    notes += [
        f"{count} cells answer exercise {number}; the last one counts"
        for number, count in counted.items()
        if count > 1
    ]
    return [p for k, p in enumerate(pieces) if p.task is None or chosen[p.task.name] == k]


def _promote(pieces: Sequence[Piece], scaffold: Scaffold, notes: list[str]) -> list[Piece]:
    """Take a cell without an exercise line that defines what an unanswered exercise asks for."""
    pieces = list(pieces)
    answered = {piece.task.name for piece in pieces if piece.task}
    for task in scaffold.tasks:
        if task.name in answered:
            continue
        found = [k for k, p in enumerate(pieces) if not p.task and defines(p.source, task.name)]
        if found:
            pieces[found[-1]] = replace(pieces[found[-1]], task=task)
            notes.append(f"the answer to {task.number} has lost its exercise line; found by name")
    return pieces
