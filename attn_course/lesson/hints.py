"""Hints for an exercise, one at a time."""

from attn_course.checks import get
from attn_course.learner import progress
from attn_course.notebook.display import display_bundle, inline_html
from attn_course.sentences import say, spoken

TITLE = "Hint {given} of {available} for {number} {name}"
LAST = "That was the last one; the solution is in solutions/."


def hint(exercise: str) -> None:
    """Show the next hint for an exercise: a nudge first, nearly the answer at the end.

    Args:
        exercise: its number, such as "3.2", or its name.

    Raises:
        ValueError: if there is no such exercise.
    """
    entry = get(exercise if isinstance(exercise, str) else getattr(exercise, "__name__", ""))
    available = len(entry.hints)
    given = progress.next_hint(entry.name, available)
    fields = {"given": given, "available": available, "number": entry.number, "name": entry.name}
    title = spoken(say(TITLE, **fields))
    lines = [spoken(entry.hints[given - 1])]
    if given == available:
        lines.append(spoken(LAST))
    body = "".join(f"<p>{inline_html(line)}</p>" for line in lines)
    display_bundle("\n  ".join([title, *lines]), f"<strong>{inline_html(title)}</strong>{body}")
