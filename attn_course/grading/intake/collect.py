"""From what an instructor downloaded to a list of files with their students.

Understood are a folder (or zip archive) of students' folders, flat files named as Canvas,
Moodle, Blackboard and Brightspace name them, and nbgrader's `submitted/<student>/<assignment>/`.
Nothing is executed, no link is followed, nothing is unpacked to disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from attn_course.course import find_chapter
from attn_course.grading.intake import names
from attn_course.grading.intake.archives import Refused
from attn_course.grading.intake.names import Sender
from attn_course.grading.intake.walking import Entry, walk
from attn_course.grading.text import one_line
from attn_course.sentences import Spoken, say

_DISGUISES = ("", "json", "txt")  # what browsers and mail programs make of `.ipynb`
_ARCHIVES = ("zip", "rar", "7z", "tar", "gz", "tgz", "bz2", "xz")
_SYSTEM = frozenset({"__macosx", ".ds_store", "thumbs.db", "desktop.ini", ".ipynb_checkpoints"})
_TIME_STAMP = "timestamp.txt"


@dataclass(frozen=True)
class Found:
    """A file that may be a notebook, or is one that cannot be read."""

    entry: Entry
    sender: Sender

    @property
    def student(self) -> str:
        """Who handed it in."""
        return self.sender.student

    @property
    def path(self) -> str:
        """Where it lies below the submissions, for a human."""
        return shown_path(self.entry)

    @property
    def order(self) -> tuple[str, str, str, str]:
        """Sorts the files of one student: the latest is last.

        What a platform says of the time counts first, then the version in the name; a file's
        own time may be that of the download.
        """
        entry = self.entry
        return (self.sender.when, names.version_of(entry.name), entry.when, self.path)


@dataclass(frozen=True)
class Ignored:
    """A file that is no submission, and why."""

    path: str
    reason: Spoken


@dataclass(frozen=True)
class Collected:
    """Everything that went in: each file is in `found` or in `ignored`, and in one of them."""

    found: tuple[Found, ...]
    ignored: tuple[Ignored, ...]
    senders: dict[str, Sender]

    @property
    def files(self) -> int:
        """How many files went in."""
        return len(self.found) + len(self.ignored)


def collect(submissions: Path, leave_out: Path | None = None) -> Collected:
    """All files of `submissions`, each with its student.

    Raises:
        ValueError: if there is nothing at that path.
    """
    if not submissions.exists():
        words = "there is no folder, zip archive or notebook at {path}"
        raise ValueError(say(words, path=submissions))
    entries = list(walk(submissions, leave_out))
    entries, ignored = _without_system_files(entries)
    entries, outside = _rooted(entries)
    ignored += outside
    found: list[Found] = []
    senders: dict[str, Sender] = {}
    stamps = _time_stamps(entries)
    platform = names.platform_of({entry.parts[0] for entry in entries})
    for entry in entries:
        sender = _sender(entry, submissions, platform)
        if stamp := stamps.get(entry.parts[:-1]):
            sender = replace(sender, when=stamp)
        is_candidate = _may_be_notebook(entry)
        if sender.platform or len(entry.parts) > 1 or is_candidate or not entry.is_file:
            known = senders.setdefault(sender.student, sender)
            sender = replace(known, when=sender.when, rest=sender.rest)
        if is_candidate:
            found.append(Found(entry, sender))
        elif entry.is_file:
            reason = "nbgrader's time stamp" if entry.name == _TIME_STAMP else "not a notebook"
            ignored.append(Ignored(shown_path(entry), reason))
    return Collected(tuple(found), tuple(ignored), senders)


def shown_path(entry: Entry) -> str:
    """An entry's path, fit to be shown."""
    return "/".join(one_line(part, 120) for part in entry.parts)


def _may_be_notebook(entry: Entry) -> bool:
    """Whether a file is to be accounted for as a submission: a notebook, or one in disguise."""
    if not entry.is_file:
        return False
    _, dot, ending = entry.name.lower().rpartition(".")
    ending = ending if dot else ""
    if ending.startswith("ipynb"):
        return True
    if entry.refused:
        return ending in ("", *_ARCHIVES)
    return ending in _DISGUISES and _looks_like_notebook(entry)


def _looks_like_notebook(entry: Entry) -> bool:
    try:
        content = entry.read().replace(b"\0", b"")  # as in UTF-16
    except Refused:
        return False
    head = content[:100].lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    return head.startswith(b"{") and (b'"cells"' in content or b'"worksheets"' in content)


def _without_system_files(entries: Sequence[Entry]) -> tuple[list[Entry], list[Ignored]]:
    kept, ignored = [], []
    for entry in entries:
        if any(part.lower() in _SYSTEM or part.startswith("._") for part in entry.parts):
            if entry.is_file:
                ignored.append(Ignored(shown_path(entry), "made by the system, not by the student"))
        else:
            kept.append(entry)
    return kept, ignored


def _rooted(entries: list[Entry]) -> tuple[list[Entry], list[Ignored]]:
    """The entries below the folder whose children are the students (or their files)."""
    if any(entry.parts[0] == "submitted" and len(entry.parts) > 3 for entry in entries):
        inside = [_below(entry) for entry in entries if entry.parts[0] == "submitted"]
        outside = [
            Ignored(shown_path(entry), "beside nbgrader's folder `submitted`")
            for entry in entries
            if entry.parts[0] != "submitted" and entry.is_file
        ]
        return [entry for entry in inside if entry.parts], outside
    while _is_wrapped(entries):
        entries = [_below(entry) for entry in entries]
    return entries, []


def _is_wrapped(entries: list[Entry]) -> bool:
    """Whether all lies in one folder that is not a student's own."""
    if len({entry.parts[0] for entry in entries}) != 1:
        return False
    if min(len(entry.parts) for entry in entries) < 2:
        return False
    children = {entry.parts[1] for entry in entries}
    files = [entry.parts[1] for entry in entries if len(entry.parts) == 2 and entry.is_file]
    if files:  # flat files in a folder: their names say whether they come from a platform
        known = [name for name in files if (sender := names.file_sender(name)) and sender.platform]
        return 2 * len(known) > len(files)
    return len(children) > 1 and not all(map(_names_chapter, children))


def _names_chapter(name: str) -> bool:
    try:
        find_chapter(name)
    except ValueError:
        return False
    return True


def _below(entry: Entry) -> Entry:
    return replace(entry, parts=entry.parts[1:])


def _sender(entry: Entry, submissions: Path, platform: str) -> Sender:
    first = entry.parts[0]
    if len(entry.parts) == 1 and entry.is_file and not first.lower().endswith(".zip"):
        return names.file_sender(first, platform) or names.folder_sender(submissions.stem)
    first = first[:-4] if first.lower().endswith(".zip") else first
    return names.folder_sender(first, platform)


def _time_stamps(entries: Sequence[Entry]) -> dict[tuple[str, ...], str]:
    """nbgrader's time of handing in, by folder."""
    stamps = {}
    for entry in entries:
        if entry.is_file and entry.name == _TIME_STAMP:
            try:
                stamps[entry.parts[:-1]] = one_line(entry.read()[:40].decode("ascii"), 40)
            except (Refused, UnicodeDecodeError):
                continue
    return stamps
