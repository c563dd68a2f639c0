"""What there is to grade: a rebuilt notebook for each student and chapter, each file's fate."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from attn_course.grading.intake.answers import recognise
from attn_course.grading.intake.archives import Refused
from attn_course.grading.intake.collect import Collected, Found
from attn_course.grading.intake.names import Sender
from attn_course.grading.intake.notebook import Notebook, read_notebook
from attn_course.grading.intake.rebuild import nothing_handed_in, rebuild
from attn_course.grading.intake.scaffold import Scaffold
from attn_course.grading.rebuilt import Rebuilt, Settled
from attn_course.sentences import (
    Sentence,
    Spoken,
    as_data,
    constant,
    counted,
    from_data,
    joined,
    say,
)

FATES = ("graded", "superseded", "left out", "unmatched", "corrupt", "ignored")
"""What can become of a file."""

_MOST_REASONS = 5


@dataclass(frozen=True)
class File:
    """What became of one file that went in."""

    path: str
    student: str
    fate: str
    reason: Spoken = ""
    chapter: str = ""

    def as_data(self) -> dict[str, Any]:
        """It as plain JSON data."""
        return {**asdict(self), "reason": as_data(self.reason)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> File:
        """What `as_data` has made data of."""
        return cls(**{**data, "reason": from_data(data["reason"])})


@dataclass(frozen=True)
class Plan:
    """Everything that is to be graded, and an account of every file.

    Attributes:
        submissions: sorted by student and chapter; every student has one for each chapter.
        files: every file that went in, once.
        senders: what the platforms' names say of the students.
        chapters: those that are graded.
        adrift: students of whom no chapter can be told, and why.
    """

    submissions: tuple[Rebuilt, ...]
    files: tuple[File, ...]
    senders: Mapping[str, Sender]
    chapters: tuple[str, ...]
    adrift: Mapping[str, Settled] = field(default_factory=dict)

    def account(self) -> Sentence:
        """One line that names what became of all files."""
        numbers = Counter(file.fate for file in self.files)
        parts = [
            say("{n} {fate}", n=numbers[fate], fate=constant(fate))
            for fate in FATES
            if numbers[fate]
        ]
        fates = joined(parts, ", ") if parts else constant("nothing")
        return counted(
            "{n} file went in: {fates}",
            "{n} files went in: {fates}",
            n=len(self.files),
            fates=fates,
        )


@dataclass(frozen=True)
class Recognised:
    """A file that was looked into.

    Attributes:
        found: the file.
        notebook: what it holds; None where it cannot be read.
        chapter: the one that it answers, if any.
        reason: why it cannot be read, as a sentence without a full stop.
    """

    found: Found
    notebook: Notebook | None = None
    chapter: str | None = None
    reason: Spoken = ""


def recognise_all(
    found: Iterable[Found], scaffolds: Mapping[str, Scaffold]
) -> Iterator[Recognised]:
    """Read each file and tell which chapter it answers."""
    for one in found:
        try:
            notebook = read_notebook(one.entry.read())
        except Refused as error:
            yield Recognised(one, reason=error.reason)
        else:
            yield Recognised(one, notebook, recognise(notebook, scaffolds))


def make_plan(
    collected: Collected,
    recognised: Iterable[Recognised],
    scaffolds: Mapping[str, Scaffold],
    only: Sequence[str] = (),
) -> Plan:
    """Settle which file of each student counts, and rebuild it; say what became of the others.

    `only` names the chapters to grade; without it, all that anybody handed in.
    """
    sorted_out = _SortedOut(collected, list(recognised))
    chapters = tuple(sorted(only or sorted_out.chapters()))
    submissions = [
        sorted_out.submission(student, scaffolds[chapter])
        for student in sorted(collected.senders)
        for chapter in chapters
    ]
    adrift = {}
    if not chapters:
        adrift = {s: sorted_out.why_nothing(s) for s in sorted(collected.senders)}
    files = sorted(sorted_out.files(chapters), key=lambda file: file.path)
    return Plan(tuple(submissions), tuple(files), collected.senders, chapters, adrift)


class _SortedOut:
    """The files of all students: those that can be used by chapter, and those that cannot."""

    def __init__(self, collected: Collected, recognised: Sequence[Recognised]) -> None:
        self._collected = collected
        self._unusable: dict[str, list[File]] = defaultdict(list)
        self._by_key: dict[tuple[str, str], list[Recognised]] = defaultdict(list)
        for one in sorted(recognised, key=lambda one: one.found.order):
            if one.chapter is not None:
                self._by_key[one.found.student, one.chapter].append(one)
        for one in recognised:
            if one.notebook is None:
                self._put_aside(one, "corrupt", one.reason)
        for one in recognised:
            if one.notebook is not None and one.chapter is None:
                self._put_aside(one, "unmatched", "no exercise line in it")

    def _put_aside(self, one: Recognised, fate: str, reason: Spoken) -> None:
        student = one.found.student
        self._unusable[student].append(File(one.found.path, student, fate, reason))

    def chapters(self) -> set[str]:
        """The chapters that anybody handed in."""
        return {chapter for _, chapter in self._by_key}

    def submission(self, student: str, scaffold: Scaffold) -> Rebuilt:
        """A student's latest file of a chapter, rebuilt; or that there is none, and why."""
        *earlier, latest = self._by_key.get((student, scaffold.chapter), [None])
        if latest is None or latest.notebook is None:
            return nothing_handed_in(student, scaffold, self.why_nothing(student))
        notes = [say("{path} is an earlier file", path=one.found.path) for one in earlier if one]
        notes += [
            say(
                "{path}: {fate}, {reason}",
                path=bad.path,
                fate=constant(bad.fate),
                reason=constant(bad.reason),
            )
            for bad in self._unusable.get(student, ())
        ]
        return rebuild(student, latest.notebook, scaffold, notes)

    def files(self, chapters: Sequence[str]) -> Iterator[File]:
        """What became of every file, where these chapters are graded."""
        for ignored in self._collected.ignored:
            yield File(ignored.path, "", "ignored", ignored.reason)
        for bad in self._unusable.values():
            yield from bad
        for (student, chapter), files in self._by_key.items():
            *_, latest = files
            for one in files:
                yield self._fate(one, latest, student, chapter, graded=chapter in chapters)

    def _fate(
        self, one: Recognised, latest: Recognised, student: str, chapter: str, *, graded: bool
    ) -> File:
        path = one.found.path
        if not graded:
            return File(path, student, "left out", say("chapter {number}", number=chapter), chapter)
        if one is latest:
            return File(path, student, "graded", "", chapter)
        reason = say("{path} is later", path=latest.found.path)
        return File(path, student, "superseded", reason, chapter)

    def why_nothing(self, student: str) -> Settled:
        """Why a student has no answers to a chapter."""
        bad = self._unusable.get(student, [])
        for fate in ("corrupt", "unmatched"):
            reasons = [
                say("{path}: {reason}", path=file.path, reason=constant(file.reason))
                for file in bad
                if file.fate == fate
            ]
            if reasons:
                listed = joined(reasons[:_MOST_REASONS], "; ")
                return Settled(fate, say("{reasons}.", reasons=listed))
        if any(found.student == student for found in self._collected.found):
            return Settled("missing", "No notebook of this chapter was handed in.")
        return Settled("missing", "No notebook was handed in.")
