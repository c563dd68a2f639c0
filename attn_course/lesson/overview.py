"""The exercises passed, as a bar for each chapter."""

import html
from dataclasses import dataclass

from attn_course.checks import exercises, get
from attn_course.course import CHAPTERS, Chapter
from attn_course.learner.progress import passed
from attn_course.notebook.display import display_bundle
from attn_course.sentences import say, spoken

BAR_CELLS = 20

OF_CHAPTER = "{done} of {total}"
OF_COURSE = "{done} of {total} exercises passed."
BAR_NAME = "Chapter {number}"


@dataclass(frozen=True)
class ChapterProgress:
    """How much of a chapter is done: its exercises, the optional ones left out, and those passed.

    Attributes:
        chapter: the chapter.
        done, total: how many exercises are passed, and how many there are.
    """

    chapter: Chapter
    done: int
    total: int


def by_chapter() -> list[ChapterProgress]:
    """How much is done of each chapter that has exercises."""
    done, asked = passed(), [get(name) for name in exercises()]
    rows = []
    for chapter in CHAPTERS:
        names = {e.name for e in asked if e.chapter == chapter.number and not e.optional}
        if names:
            rows.append(ChapterProgress(chapter, len(names & done), len(names)))
    return rows


def show_progress() -> None:
    """Show the progress, one bar a chapter: HTML in a notebook, text elsewhere."""
    display_bundle(render_text(), _render_html())


def render_text() -> str:
    """The progress as a table of bars, for a terminal."""
    rows = by_chapter()
    width = max(len(spoken(row.chapter.title)) for row in rows)
    lines = [
        f"{row.chapter.number}  {spoken(row.chapter.title):<{width}}  {_bar(row)}  {_count(row)}"
        for row in rows
    ]
    return "\n".join([*lines, _summary(rows)])


def _render_html() -> str:
    rows = by_chapter()
    cells = "".join(map(_html_row, rows))
    return f"<table><tbody>{cells}</tbody></table><p>{html.escape(_summary(rows))}</p>"


def _html_row(row: ChapterProgress) -> str:
    number = row.chapter.number
    name = html.escape(spoken(say(BAR_NAME, number=number)), quote=True)
    return (
        f"<tr><td>{number}</td>"
        f"<td style='text-align:left'>{html.escape(spoken(row.chapter.title))}</td>"
        f"<td><progress value='{row.done}' max='{row.total}' aria-label='{name}'></progress></td>"
        f"<td>{html.escape(_count(row))}</td></tr>"
    )


def _count(row: ChapterProgress) -> str:
    return spoken(say(OF_CHAPTER, done=row.done, total=row.total))


def _summary(rows: list[ChapterProgress]) -> str:
    done, total = sum(row.done for row in rows), sum(row.total for row in rows)
    return spoken(say(OF_COURSE, done=done, total=total))


def _bar(row: ChapterProgress) -> str:
    filled = BAR_CELLS * row.done // row.total
    return "█" * filled + "░" * (BAR_CELLS - filled)
