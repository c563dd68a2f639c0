"""`attn-course doctor`: what is installed, whether it fits, and how to fix what does not."""

import sys

from attn_course import terminal
from attn_course.sentences import spoken
from attn_course.setup.condition import Condition
from attn_course.setup.examinations import EXAMINATIONS

COLOURS = {"ok": "green", "note": "yellow", "stops": "bold red"}
WORDS = {"ok": "ok", "note": "note", "stops": "stops"}


@terminal.command()
def command() -> None:
    """Show what is installed, and for each problem the line that mends it.

    The exit status is 1 if something would stop the course.
    """
    conditions = examine()
    _show(conditions)
    sys.exit(any(condition.state == "stops" for condition in conditions))


def examine() -> list[Condition]:
    """All conditions of this machine, in the order in which they are shown."""
    return [condition for look_at in EXAMINATIONS for condition in look_at()]


def _show(conditions: list[Condition]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("", spoken("found"), "", title="attn_course")
    for condition in conditions:
        what, found = escape(spoken(condition.what)), escape(spoken(condition.found))
        state = f"[{COLOURS[condition.state]}]{escape(spoken(WORDS[condition.state]))}[/]"
        table.add_row(what, found, state)
    console = Console()
    console.print(table)
    # Outside the table, so that a line can be copied whole.
    for condition in conditions:
        if condition.fix:
            line = f"{spoken(condition.what)}: {spoken(condition.fix)}"
            console.print(escape(line), soft_wrap=True, highlight=False)
