"""What there is to grade: a rebuilt notebook for each student and chapter, each file's fate."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from attn_course.grading.intake.answers import recognise
from attn_course.grading.intake.archives import Refused
from attn_course.grading.intake.collect import Collected, Found
from attn_course.grading.intake.names import Sender
from attn_course.grading.intake.notebook import Notebook, read_notebook
from attn_course.grading.intake.rebuild import nothing_handed_in, rebuild
from attn_course.grading.intake.scaffold import Scaffold
from attn_course.grading.rebuilt import Problem, Rebuilt

FATES = ("graded", "superseded", "left out", "unmatched", "corrupt", "ignored")
"""What can become of a file."""


@dataclass(frozen=True)
class File:
    """What became of one file that went in."""

    path: str
    student: str
    fate: str
    reason: str = ""
    chapter: str = ""


@dataclass(frozen=True)
class Plan:
    """Everything that is to be graded, and an account of every file.

    Attributes:
        tasks: sorted by student and chapter; every student has one for each chapter.
        files: every file that went in, once.
        senders: what the platforms' names say of the students.
        chapters: those that are graded.
        adrift: students of whom no chapter can be told, and why.
    """

    tasks: tuple[Rebuilt, ...]
    files: tuple[File, ...]
    senders: Mapping[str, Sender]
    chapters: tuple[str, ...]
    adrift: Mapping[str, Problem] = field(default_factory=dict)

    def account(self) -> str:
        """One line that names what became of all files."""
        counted = Counter(file.fate for file in self.files)
        parts = [f"{counted[fate]} {fate}" for fate in FATES if counted[fate]]
        noun = "file" if len(self.files) == 1 else "files"
        return f"{len(self.files)} {noun} went in: {', '.join(parts) or 'nothing'}"


@dataclass(frozen=True)
class _Read:
    """A file that could be read: its notebook and the chapter that it answers, if any."""

    found: Found
    notebook: Notebook
    chapter: str | None


def make_plan(
    collected: Collected,
    scaffolds: Mapping[str, Scaffold],
    only: Sequence[str] = (),
    tick: Callable[[], object] = lambda: None,
) -> Plan:
    """Read every file and settle what counts.

    `only` names the chapters to grade; without it, all that anybody handed in. `tick` is called
    after each file.
    """
    files = [File(i.path, "", "ignored", i.reason) for i in collected.ignored]
    read: list[_Read] = []
    unusable: dict[str, list[File]] = defaultdict(list)
    for found in collected.found:
        try:
            notebook = read_notebook(found.entry.read())
        except Refused as error:
            bad = File(found.path, found.student, "corrupt", str(error))
            unusable[found.student].append(bad)
        else:
            read.append(_Read(found, notebook, recognise(notebook, scaffolds)))
        tick()
    for one in read:
        if one.chapter is None:
            bad = File(one.found.path, one.found.student, "unmatched", "no exercise line in it")
            unusable[one.found.student].append(bad)
    chosen, superseded = _latest(read)
    chapters = tuple(sorted(only or {one.chapter for one in chosen if one.chapter}))
    files += [file for bad in unusable.values() for file in bad]
    files += _fates(chosen, superseded, chapters)
    tasks = _tasks(collected, scaffolds, chapters, chosen, superseded, unusable)
    adrift = {}
    if not chapters:
        adrift = {s: _why_nothing(s, unusable, collected) for s in sorted(collected.senders)}
    files.sort(key=lambda file: file.path)
    return Plan(tuple(tasks), tuple(files), collected.senders, chapters, adrift)


def _latest(read: Sequence[_Read]) -> tuple[list[_Read], dict[tuple[str, str], list[_Read]]]:
    """The latest file of every student and chapter, and the others by student and chapter."""
    by_key: dict[tuple[str, str], list[_Read]] = defaultdict(list)
    for one in sorted(read, key=lambda one: one.found.order):
        if one.chapter is not None:
            by_key[one.found.student, one.chapter].append(one)
    return [ones[-1] for ones in by_key.values()], {k: ones[:-1] for k, ones in by_key.items()}


def _fates(
    chosen: Sequence[_Read],
    superseded: Mapping[tuple[str, str], list[_Read]],
    chapters: Sequence[str],
) -> list[File]:
    files = []
    for latest in chosen:
        student, chapter = latest.found.student, latest.chapter or ""
        for one in (*superseded[student, chapter], latest):
            path = one.found.path
            if chapter not in chapters:
                files.append(File(path, student, "left out", f"chapter {chapter}", chapter))
            elif one is latest:
                files.append(File(path, student, "graded", "", chapter))
            else:
                reason = f"{latest.found.path} is later"
                files.append(File(path, student, "superseded", reason, chapter))
    return files


def _tasks(
    collected: Collected,
    scaffolds: Mapping[str, Scaffold],
    chapters: Sequence[str],
    chosen: Sequence[_Read],
    superseded: Mapping[tuple[str, str], list[_Read]],
    unusable: Mapping[str, list[File]],
) -> list[Rebuilt]:
    latest = {(one.found.student, one.chapter): one for one in chosen}
    tasks = []
    for student in sorted(collected.senders):
        for chapter in chapters:
            one = latest.get((student, chapter))
            if one is None:
                problem = _why_nothing(student, unusable, collected)
                tasks.append(nothing_handed_in(student, scaffolds[chapter], problem))
                continue
            notes = [
                f"{other.found.path} is an earlier file" for other in superseded[student, chapter]
            ]
            notes += [f"{bad.path}: {bad.fate}, {bad.reason}" for bad in unusable.get(student, ())]
            tasks.append(rebuild(student, one.notebook, scaffolds[chapter], notes))
    return tasks


def _why_nothing(student: str, unusable: Mapping[str, list[File]], collected: Collected) -> Problem:
    """Why a student has no answers to a chapter."""
    bad = unusable.get(student, [])
    for fate in ("corrupt", "unmatched"):
        reasons = [f"{file.path}: {file.reason}" for file in bad if file.fate == fate]
        if reasons:
            return Problem(fate, "; ".join(reasons[:5]) + ".")
    if any(found.student == student for found in collected.found):
        return Problem("missing", "No notebook of this chapter was handed in.")
    return Problem("missing", "No notebook was handed in.")
