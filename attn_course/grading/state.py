"""What a run has found out, kept in SQLite so that nothing finished is lost.

One transaction for each submission: a kill at any moment, or a full disk, leaves the results
before it. A result belongs to a fingerprint of everything that it depends on.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from attn_course.grading.rebuilt import Rebuilt
from attn_course.grading.settings import RunSettings
from attn_course.grading.text import clean_data
from attn_course.grading.verdict import Verdict
from attn_course.sentences import say

FILE = "state.sqlite"
"""The name of the file in the folder of the results."""

_VERSION, _BEFORE = 2, 1
"""The form of this file, and the form before it, in which verdicts held texts."""

_TABLES = """
create table if not exists settings (key text primary key, value text not null);
create table if not exists results (
    student text not null,
    chapter text not null,
    fingerprint text not null,
    verdicts text not null,
    seconds real not null,
    primary key (student, chapter)
);
"""
# what has no say in a verdict
_WITHOUT_SAY = ("authoring", "explorers", "plots")
_REPORTING, _COMMAND = ("grading", "reports"), ("grading", "command.py")


LATER_VERSION = (
    "{path} was written by another version of the course, a later one: go on with that, or grade "
    "into another folder"
)


class StorageError(Exception):
    """The folder of the results cannot be written (a full disk, most of all), or not be read."""

    def __init__(self, place: Path, why: Exception) -> None:
        super().__init__(say("{place}: {why}", place=place, why=str(why)))


class State:
    """The results of the folder `out`, as far as they are known. A context manager."""

    def __init__(self, out: Path) -> None:
        """Open the results in `out`, or begin them.

        Raises:
            StorageError: if the file there cannot be read or written.
            ValueError: if a later version of the course wrote it.
        """
        path = out / FILE
        with _storage(path):
            self._database = sqlite3.connect(path, timeout=10)
            version = self._database.execute("pragma user_version").fetchone()[0]
            if version not in (0, _BEFORE, _VERSION):
                raise ValueError(say(LATER_VERSION, path=path))
            # the default journal, not WAL: results may lie on a network drive
            self._database.execute("pragma synchronous = full")
            with self._database:
                self._database.executescript(f"begin; {_TABLES} commit;")
                if version == _BEFORE:  # code other than ours found them: they are out of date
                    self._database.execute("delete from results")
                self._database.execute(f"pragma user_version = {_VERSION}")
        self._path = path

    def __enter__(self) -> State:
        """Return the state."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._database.close()

    def seed(self, wanted: int | None, fresh: int) -> int:
        """The seed of this folder: the wanted one, else the recorded one, else `fresh`."""
        with _storage(self._path), self._database:
            row = self._database.execute("select value from settings where key = 'seed'").fetchone()
            seed = wanted if wanted is not None else int(row[0]) if row else fresh
            self._database.execute(
                "insert or replace into settings values ('seed', ?)", [str(seed)]
            )
        return seed

    def find(self, student: str, chapter: str, fingerprint: str) -> list[Verdict] | None:
        """The verdicts that are recorded under this fingerprint, None if there are none."""
        with _storage(self._path):
            row = self._database.execute(
                "select verdicts from results where (student, chapter, fingerprint) = (?, ?, ?)",
                [student, chapter, fingerprint],
            ).fetchone()
        return [Verdict.from_data(fields) for fields in json.loads(row[0])] if row else None

    def keep(
        self,
        student: str,
        chapter: str,
        fingerprint: str,
        verdicts: list[Verdict],
        seconds: float,
    ) -> None:
        """Keep the verdicts on one submission in place of earlier ones, all of them or none.

        Raises:
            StorageError: if they cannot be written; what was kept before is still there.
        """
        fields = json.dumps(clean_data([verdict.as_data() for verdict in verdicts]))
        with _storage(self._path), self._database:
            self._database.execute(
                "insert or replace into results values (?, ?, ?, ?, ?)",
                [student, chapter, fingerprint, fields, seconds],
            )

    def forget(self) -> None:
        """Drop all results, so that everything is graded again."""
        with _storage(self._path), self._database:
            self._database.execute("delete from results")


def fingerprint(rebuilt: Rebuilt, settings: RunSettings) -> str:
    """A digest of everything that a result depends on: the code, the checks, the seed, the limits.

    The student's name is not in it: it is the other half of the key.
    """
    parts = {
        "cells": [dataclasses.asdict(cell) for cell in rebuilt.cells],
        "settled": {name: settled.as_data() for name, settled in rebuilt.settled.items()},
        "settings": dataclasses.asdict(settings),
        "code": package_digest(),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def package_digest() -> str:
    """A digest of the package's code that has a say in a verdict, and of torch's version."""
    from importlib.metadata import version

    root = Path(__file__).parents[1]
    digest = hashlib.sha256(version("torch").encode())
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        reporting = inside.parts[:2] == _REPORTING or inside.parts == _COMMAND
        if inside.parts[0] not in _WITHOUT_SAY and not reporting:
            digest.update(f"{inside.as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


@contextmanager
def _storage(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, json.JSONDecodeError) as error:
        raise StorageError(path, error) from error
