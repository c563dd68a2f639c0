"""Reading zip archives of strangers: nothing is written to disk, and every size has a limit."""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from attn_course.sentences import Sentence, Spoken, say, spoken

LARGEST_FILE = 100 * 2**20
"""Bytes of one notebook; one with more is refused."""


TOO_MANY = "an archive with {entries} files; at most {left} more are read"
TOO_LARGE = "too large: {size:,} bytes or more, at most {most:,} are read"
GROWS = "an archive bomb: {packed:,} bytes grow to {size:,}"


@dataclass
class Allowance:
    """What an archive and those in it may still hold together: bytes when unpacked, and entries."""

    size: int = 8 * 2**30
    entries: int = 20_000

    @classmethod
    def of_student(cls) -> Allowance:
        """For an archive that a student made."""
        return cls(2**30, 2_000)

    def take(self, size: int, entries: int) -> None:
        """Count what one of them holds. Raises Refused if that is more than is left."""
        if entries > self.entries:
            raise Refused(say(TOO_MANY, entries=entries, left=self.entries))
        if size > self.size:
            raise Refused(say("an archive bomb: it unpacks to {size:,} bytes", size=size))
        self.size -= size
        self.entries -= entries


BOMB = 200
"""Times that a too large entry has grown when it is called a bomb; honest outputs reach 100."""

_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # a compression that Python does not know
    OSError,
    RuntimeError,  # encrypted
    ValueError,
    MemoryError,
)


class Refused(Exception):
    """A file that is not read, with the reason as a sentence without a full stop."""

    def __init__(self, reason: Spoken) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        """The reason in the reader's language."""
        return spoken(self.reason)


@dataclass(frozen=True)
class Member:
    """One entry of an archive: its place, its time for sorting, and why it is refused, if it is."""

    index: int
    path: PurePosixPath
    when: str
    refused: Spoken | None


def members(archive: bytes | str, limits: Allowance | None = None) -> Iterator[Member]:
    """The files of an archive, given by its path or its bytes, in its own order.

    Raises Refused if the archive as a whole cannot be read, or holds more than `limits` allow.
    """
    with _opened(archive) as opened:
        entries = opened.infolist()
        (limits or Allowance()).take(sum(entry.file_size for entry in entries), len(entries))
        for index, entry in enumerate(entries):
            if not entry.is_dir():
                path = PurePosixPath(entry.filename.replace("\\", "/"))
                year, month, day, hour, minute, second = entry.date_time
                when = f"{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
                yield Member(index, path, when, _reason(entry, path))


def read_member(archive: bytes | str, index: int) -> bytes:
    """The bytes of one entry.

    Raises Refused, also if the entry is not what the archive says of it.
    """
    try:
        with _opened(archive) as opened, opened.open(opened.infolist()[index]) as file:
            content = file.read(LARGEST_FILE + 1)
    except (IndexError, *_BROKEN) as error:
        why = str(error) or type(error).__name__
        raise Refused(say("cannot be unpacked ({why})", why=why)) from None
    if len(content) > LARGEST_FILE:
        raise Refused(too_large(len(content)))
    return content


def too_large(size: int) -> Sentence:
    """The sentence on a file of more than LARGEST_FILE bytes."""
    return say(TOO_LARGE, size=size, most=LARGEST_FILE)


def _opened(archive: bytes | str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(io.BytesIO(archive) if isinstance(archive, bytes) else archive)
    except _BROKEN as error:
        why = str(error) or type(error).__name__
        raise Refused(say("no readable zip archive ({why})", why=why)) from None


def _reason(entry: zipfile.ZipInfo, path: PurePosixPath) -> Spoken | None:
    """Why an entry is not read, None if it is."""
    drive = len(entry.filename) > 1 and entry.filename[1] == ":"
    if path.is_absolute() or ".." in path.parts or drive:
        return "its path leads out of the archive"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "a link"
    if entry.flag_bits & 1:
        return "encrypted"
    if entry.file_size > LARGEST_FILE:
        if entry.file_size > BOMB * entry.compress_size:
            return say(GROWS, packed=entry.compress_size, size=entry.file_size)
        return too_large(entry.file_size)
    return None
