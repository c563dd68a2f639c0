"""Hints for an exercise, one at a time."""

from typing import Any

from attn_course.checks import get
from attn_course.learner import progress
from attn_course.notebook.display import display_bundle, inline_html
from attn_course.sentences import say, spoken

TITLE = "Hint {given} of {available} for {number} {name}"
LAST = "That was the last one; the solution is in solutions/."


def hint(exercise: Any) -> None:
    """Show the next hint for an exercise: a nudge first, nearly the answer at the end.

    Args:
        exercise: its number, such as "3.2", its name, or what you wrote for it.

    Raises:
        ValueError: if there is no such exercise.
    """
    entry = get(getattr(exercise, "__name__", exercise))
    available = len(entry.hints)
    given = progress.next_hint(entry.name, available)
    fields = {"given": given, "available": available, "number": entry.number, "name": entry.name}
    title = spoken(say(TITLE, **fields))
    lines = [spoken(entry.hints[given - 1])]
    if given == available:
        lines.append(spoken(LAST))
    body = "".join(f"<p>{inline_html(line)}</p>" for line in lines)
    display_bundle("\n  ".join([title, *lines]), f"<strong>{inline_html(title)}</strong>{body}")
