"""What a learner has done so far, in one small JSON file that is never left half-written.

The file is at ATTN_COURSE_PROGRESS, else `.attn_course_progress.json` in the project root,
else beside the notebook. ATTN_COURSE_PROGRESS=":memory:" keeps progress in this process
only: builds, tests and nbval use that. Deleting the file only loses progress.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from attn_course.course import project_root
from attn_course.sentences import Sentence, say, spoken

FILE_NAME = ".attn_course_progress.json"
MEMORY = ":memory:"
VERSION = 1
LOCK_SECONDS = 10.0

NOT_SAVED = "progress: not saved ({error})"
NOT_SAVED_YET_KEPT = "progress: not saved, kept in this session only ({error})"
NO_FILE = "progress: {path} is no file that can be read"
SET_ASIDE = "progress: {path} could not be read and is kept as {name}; progress starts anew"
UNREADABLE = "progress: {path} could not be read ({error})"

_memory: dict[str, Any] = {}


def path() -> Path | None:
    """Where progress is kept; None when it is kept in this process only."""
    chosen = os.environ.get("ATTN_COURSE_PROGRESS")
    if chosen == MEMORY:
        return None
    if chosen:
        return Path(chosen).expanduser()
    return (project_root() or Path.cwd()) / FILE_NAME


def load() -> dict[str, Any]:
    """All that is recorded: `exercises` and `answers`, by name and by question id."""
    where = path()
    if where is None:
        return _complete(_memory)
    try:
        state = json.loads(where.read_text(encoding="utf-8"))
        if _is_sound(state):
            return state
    except FileNotFoundError:
        return _complete({})
    except (OSError, ValueError):
        pass
    _set_aside(where)
    return _complete({})


def record_attempt(exercise: str, passed: bool) -> None:
    """Count an attempt at an exercise; once passed it stays passed."""
    with _changing() as state:
        entry = state["exercises"].setdefault(exercise, {})
        entry["attempts"] = entry.get("attempts", 0) + 1
        entry["passed"] = entry.get("passed", False) or passed


def next_hint(exercise: str, available: int) -> int:
    """Which hint to show now, 1 … `available`; the last one is repeated."""
    with _changing() as state:
        entry = state["exercises"].setdefault(exercise, {})
        entry["hints"] = min(entry.get("hints", 0) + 1, available)
        return entry["hints"]


def record_answer(question: str, **answer: Any) -> None:
    """Append an answer to a question or prediction, such as choice=…, right=…, confidence=…."""
    with _changing() as state:
        state["answers"].setdefault(question, []).append(answer)


def amend_answer(question: str, **more: Any) -> None:
    """Add to the latest answer to a question, such as right=… once it has been measured."""
    with _changing() as state:
        if state["answers"].get(question):
            state["answers"][question][-1].update(more)


def answers(question: str) -> list[dict[str, Any]]:
    """All answers to a question, the latest last."""
    return load()["answers"].get(question, [])


def passed() -> set[str]:
    """The names of the exercises passed."""
    return {name for name, entry in load()["exercises"].items() if entry.get("passed")}


@contextmanager
def _changing() -> Iterator[dict[str, Any]]:
    """The state, to be changed; written as a whole afterwards, under a lock."""
    where = path()
    if where is None:
        yield _complete(_memory)
        return
    lock = FileLock(f"{where}.lock", timeout=LOCK_SECONDS)
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except (OSError, Timeout) as error:
        _warn(say(NOT_SAVED_YET_KEPT, error=error))
        yield _complete(_memory)
        return
    try:
        state = load()
        yield state
        _write(where, state)
    except OSError as error:
        _warn(say(NOT_SAVED, error=error))
    finally:
        lock.release()


def _write(where: Path, state: dict[str, Any]) -> None:
    """Replace the file in one step: a crash leaves the old one or the new one."""
    handle, name = tempfile.mkstemp(dir=where.parent, prefix=where.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(state, file, ensure_ascii=False, indent=1)
        os.replace(name, where)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _complete(state: dict[str, Any]) -> dict[str, Any]:
    state.setdefault("version", VERSION)
    state.setdefault("exercises", {})
    state.setdefault("answers", {})
    return state


def _is_sound(state: Any) -> bool:
    """Whether the file has the form that this module writes."""
    if not isinstance(state, dict) or state.get("version") != VERSION:
        return False
    exercises, given = state.get("exercises"), state.get("answers")
    return (
        isinstance(exercises, dict)
        and all(isinstance(entry, dict) for entry in exercises.values())
        and isinstance(given, dict)
        and all(isinstance(entry, list) for entry in given.values())
    )


def _set_aside(where: Path) -> None:
    """Keep an unreadable file under another name: nothing is lost."""
    if not where.is_file():
        _warn(say(NO_FILE, path=where))
        return
    aside = where.with_name(f"{where.name}.unreadable-{datetime.now():%Y%m%d-%H%M%S-%f}")
    try:
        os.replace(where, aside)
        _warn(say(SET_ASIDE, path=where, name=aside.name))
    except OSError as error:
        _warn(say(UNREADABLE, path=where, error=error))


def _warn(sentence: Sentence) -> None:
    warnings.warn(spoken(sentence), stacklevel=3)
