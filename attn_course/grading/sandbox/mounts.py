"""What a sandbox shows of this machine: the system's libraries, this Python, and no course."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def system_mounts() -> Iterator[str]:
    """The system's programs and libraries, read-only."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        place = Path("/", name)
        if place.is_symlink():
            yield from ("--symlink", os.readlink(place), str(place))
        elif place.is_dir():
            yield from ("--ro-bind", str(place), str(place))
    yield from ("--perms", "0755", "--dir", "/etc")
    for name in ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "fonts"):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def folders_above(place: str) -> Iterator[str]:
    """The folders that lead to a place: bubblewrap would close them to all but its own user."""
    for folder in reversed(Path(place).parents[:-1]):
        yield from ("--perms", "0755", "--dir", str(folder))


@cache
def python_places() -> tuple[str, ...]:
    """The folders of this Python and its packages, as far as /usr does not have them."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    found = {Path(sys.prefix), Path(sys.base_prefix), *map(Path, map(sysconfig.get_path, names))}
    found |= {Path(sys.executable).resolve().parent.parent}
    outside = [p for p in found if p.is_dir() and not p.is_relative_to("/usr")]
    return tuple(
        str(place)
        for place in sorted(outside)
        if not any(place != other and place.is_relative_to(other) for other in outside)
    )


@cache
def course_places() -> tuple[str, ...]:
    """Folders that the mounts above would show, and that hold the course itself."""
    package = Path(__file__).resolve().parents[2]
    shown = [*map(Path, python_places()), Path("/usr")]
    places = [Path(p, "attn_course") for p in map(sysconfig.get_path, ("purelib", "platlib"))]
    return tuple(
        sorted(
            {
                str(place)
                for place in (package, *places)
                if place.is_dir() and any(place.is_relative_to(root) for root in shown)
            }
        )
    )
