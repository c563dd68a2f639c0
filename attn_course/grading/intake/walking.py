"""Every file below a folder or in an archive, archives in it included; nothing is executed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path

from attn_course.grading.intake import archives
from attn_course.grading.intake.archives import Allowance, Refused
from attn_course.sentences import Spoken, say

_DEEPEST_FOLDER = 25
_DEEPEST_ARCHIVE = 3
_UNREAD_ARCHIVES = (".rar", ".7z", ".tar", ".gz", ".tgz", ".bz2", ".xz")

UNREADABLE = "cannot be read ({why})"
FOLDER_UNREADABLE = "a folder that cannot be read ({why})"

Source = str | Callable[[], bytes]
"""An archive: by its path, or by what gives its bytes."""


@dataclass(frozen=True)
class Entry:
    """One file that went in, or an empty folder.

    Attributes:
        parts: its path below the submissions, an archive counting as a folder.
        when: its time, sortable; "" where there is none.
        refused: why it cannot be read, as a sentence without a full stop.
        is_file: False for an empty folder.
    """

    parts: tuple[str, ...]
    when: str = ""
    refused: Spoken | None = None
    is_file: bool = True
    _content: Callable[[], bytes] | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The file's name."""
        return self.parts[-1]

    def read(self) -> bytes:
        """Its bytes. Raises Refused with the reason."""
        if self.refused or self._content is None:
            raise Refused(self.refused or "an empty folder")
        return self._content()


def walk(root: Path, leave_out: Path | None = None) -> Iterator[Entry]:
    """All files of `root` (a folder, a zip archive or one notebook), in a settled order.

    `leave_out` is the folder of the results, which may stand inside.
    """
    if root.is_dir():
        yield from _folder(root, (), leave_out.resolve() if leave_out else None)
    elif _is_zip(root.name):
        yield from _archive(str(root), (), 0)
    else:
        yield from _file(root, (root.name,))


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file that is no link. Raises Refused with the reason."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refused("not a regular file")
            content = file.read(archives.LARGEST_FILE + 1)
    except OSError as error:
        raise Refused(say(UNREADABLE, why=error.strerror or str(error))) from None
    if len(content) > archives.LARGEST_FILE:
        raise Refused(archives.too_large(os.path.getsize(path)))
    return content


def _folder(folder: Path, parts: tuple[str, ...], leave_out: Path | None) -> Iterator[Entry]:
    if len(parts) > _DEEPEST_FOLDER:
        yield Entry(parts, refused=say("more than {most} folders deep", most=_DEEPEST_FOLDER))
        return
    try:
        children = sorted(os.scandir(folder), key=lambda child: child.name)
    except OSError as error:
        yield Entry(parts, refused=say(FOLDER_UNREADABLE, why=error.strerror or ""))
        return
    if not children and parts:
        yield Entry(parts, is_file=False)
    for child in children:
        path, below = Path(child.path), (*parts, child.name)
        if child.is_dir(follow_symlinks=False):
            if path.resolve() != leave_out:
                yield from _folder(path, below, leave_out)
        else:
            yield from _file(path, below)


def _file(path: Path, parts: tuple[str, ...]) -> Iterator[Entry]:
    try:
        status = path.lstat()
    except OSError as error:
        yield Entry(parts, refused=say(UNREADABLE, why=error.strerror or ""))
        return
    when = f"{datetime.fromtimestamp(status.st_mtime, tz=UTC):%Y-%m-%d %H:%M:%S.%f}"
    if stat.S_ISLNK(status.st_mode):
        yield Entry(parts, when, "a link, which is not followed")
    elif not stat.S_ISREG(status.st_mode):
        yield Entry(parts, when, "not a regular file")
    elif _is_zip(path.name):
        # by its path, since an archive of pictures may be larger than a notebook may be
        yield from _archive(str(path), parts, 1)
    else:
        yield _entry(parts, when, None, partial(read_regular, path))


def _archive(
    source: Source, parts: tuple[str, ...], depth: int, limits: Allowance | None = None
) -> Iterator[Entry]:
    # archives in a student's archive share its limits: each of them could hold as many again
    limits = limits or (Allowance.of_student() if depth else Allowance())
    try:
        inside = list(archives.members(_bytes(source), limits))
    except Refused as error:
        yield Entry(parts or ("",), refused=error.reason)
        return
    if not inside and parts:
        yield Entry(parts, refused="an empty archive")
    for member in inside:
        below = (*parts, *(part for part in member.path.parts if part not in ("/", "..")))
        # read anew for each: three hundred archives at once would not fit in memory
        content = partial(_read_member, source, member.index)
        if member.refused or not _is_zip(below[-1]):
            yield _entry(below, member.when, member.refused, content)
        elif depth >= _DEEPEST_ARCHIVE:
            yield Entry(below, member.when, "an archive in an archive in an archive")
        else:
            yield from _archive(content, below, depth + 1, limits if depth else None)


def _read_member(source: Source, index: int) -> bytes:
    return archives.read_member(_bytes(source), index)


@lru_cache(maxsize=2)  # one that holds many files would be unpacked for each of them
def _bytes(source: Source) -> bytes | str:
    return source if isinstance(source, str) else source()


def _entry(
    parts: tuple[str, ...], when: str, refused: Spoken | None, content: Callable[[], bytes]
) -> Entry:
    name = parts[-1].lower()
    if refused is None and name.endswith(_UNREAD_ARCHIVES):
        refused = "an archive of a kind that is not read; a zip archive would be"
    return Entry(parts, when, refused, _content=content)


def _is_zip(name: str) -> bool:
    return name.lower().endswith(".zip")
