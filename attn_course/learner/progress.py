"""What a learner has done so far, in one small JSON file that is never left half-written.

The file is at ATTN_COURSE_PROGRESS, else `.attn_course_progress.json` in the project root,
else beside the notebook. ATTN_COURSE_PROGRESS=":memory:" keeps progress in this process
only: builds, tests and nbval use that. Deleting the file only loses progress.
"""

from __future__ import annotations

import html
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

from attn_course.course import CHAPTERS, project_root

FILE_NAME = ".attn_course_progress.json"
MEMORY = ":memory:"
VERSION = 1
LOCK_SECONDS = 10.0
BAR_CELLS = 20

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


def by_chapter() -> list[tuple[str, str, list[str], set[str]]]:
    """For each chapter with exercises: number, title, their names, and those passed."""
    from attn_course.checks import exercises, get

    done, names = passed(), [get(name) for name in exercises()]
    rows = []
    for chapter in CHAPTERS:
        of_chapter = [e.name for e in names if e.chapter == chapter.number and not e.optional]
        if of_chapter:
            rows.append((chapter.number, chapter.title, of_chapter, done & set(of_chapter)))
    return rows


def render_text() -> str:
    """The progress as a table of bars, for a terminal."""
    rows = by_chapter()
    width = max(len(title) for _, title, _, _ in rows)
    lines = [
        f"{number}  {title:<{width}}  {_bar(len(done), len(names))}  {len(done)} of {len(names)}"
        for number, title, names, done in rows
    ]
    return "\n".join([*lines, _summary(rows)])


def show_progress() -> None:
    """Show the progress, one bar a chapter: HTML in a notebook, text elsewhere."""
    from attn_course.notebook.display import display_bundle

    display_bundle(render_text(), _render_html())


def _render_html() -> str:
    rows = by_chapter()
    cells = "".join(
        f"<tr><td>{number}</td><td style='text-align:left'>{html.escape(title)}</td>"
        f"<td><progress value='{len(done)}' max='{len(names)}' "
        f"aria-label='Chapter {number}'></progress></td>"
        f"<td>{len(done)} of {len(names)}</td></tr>"
        for number, title, names, done in rows
    )
    return f"<table><tbody>{cells}</tbody></table><p>{_summary(rows)}</p>"


def _summary(rows: list[tuple[str, str, list[str], set[str]]]) -> str:
    total, done = sum(len(row[2]) for row in rows), sum(len(row[3]) for row in rows)
    return f"{done} of {total} exercises passed."


def _bar(done: int, total: int) -> str:
    filled = BAR_CELLS * done // total
    return "█" * filled + "░" * (BAR_CELLS - filled)


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
        _warn(f"not saved, kept in this session only ({error})")
        yield _complete(_memory)
        return
    try:
        state = load()
        yield state
        _write(where, state)
    except OSError as error:
        _warn(f"not saved ({error})")
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
        _warn(f"{where} is no file that can be read")
        return
    aside = where.with_name(f"{where.name}.unreadable-{datetime.now():%Y%m%d-%H%M%S-%f}")
    try:
        os.replace(where, aside)
        _warn(f"{where} could not be read and is kept as {aside.name}; progress starts anew")
    except OSError as error:
        _warn(f"{where} could not be read ({error})")


def _warn(text: str) -> None:
    warnings.warn(f"progress: {text}", stacklevel=3)
