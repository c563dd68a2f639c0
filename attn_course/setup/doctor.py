"""`attn-course doctor`: what is installed, whether it fits, and how to fix what does not."""

import sys

from attn_course import terminal
from attn_course.sentences import spoken
from attn_course.setup.diagnosis import Diagnosis
from attn_course.setup.examinations import EXAMINATIONS

COLOURS = {"ok": "green", "note": "yellow", "stops": "bold red"}


@terminal.command()
def command() -> None:
    """Show what is installed, and for each problem the line that mends it.

    The exit status is 1 if something would stop the course.
    """
    diagnoses = examine()
    _show(diagnoses)
    sys.exit(any(diagnosis.state == "stops" for diagnosis in diagnoses))


def examine() -> list[Diagnosis]:
    """All diagnoses of this machine, in the order in which they are shown."""
    return [diagnosis for look_at in EXAMINATIONS for diagnosis in look_at()]


def _show(diagnoses: list[Diagnosis]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("", spoken("found"), "", title="attn_course")
    for diagnosis in diagnoses:
        what, found = escape(spoken(diagnosis.what)), escape(spoken(diagnosis.found))
        state = f"[{COLOURS[diagnosis.state]}]{escape(spoken(diagnosis.state))}[/]"
        table.add_row(what, found, state)
    console = Console()
    console.print(table)
    # Outside the table, so that a line can be copied whole.
    for diagnosis in diagnoses:
        if diagnosis.fix:
            line = f"{spoken(diagnosis.what)}: {spoken(diagnosis.fix)}"
            console.print(escape(line), soft_wrap=True, highlight=False)
