"""The `attn-course` command.

Each subcommand lives in a module of its own that is imported when it runs, so
that `attn-course --help` needs neither torch nor the packages of `[dev]`.
"""

from importlib import import_module

import click

from attn_course import __version__, terminal
from attn_course.sentences import say, spoken

# name: (module, attribute, what the list of commands says of it)
_COMMANDS = {
    "doctor": (
        "attn_course.setup.doctor",
        "command",
        say("Show what is installed, and the line that mends what is not."),
    ),
    "lab": ("attn_course.setup.lab", "command", say("Open JupyterLab at a chapter.")),
    "progress": ("attn_course.cli", "progress", say("Show which exercises you have passed.")),
    "grade": (
        "attn_course.grading.command",
        "command",
        say("Grade a folder of submissions."),
    ),
    "explorers": (
        "attn_course.explorers.gallery",
        "command",
        say("Write a page with every interactive view."),
    ),
    "build": (
        "attn_course.authoring.command",
        "build",
        say("Write the notebooks from chapters/."),
    ),
    "words": (
        "attn_course.authoring.translation",
        "command",
        say("Write every sentence of the course for translators."),
    ),
}

INSTALL_DEV = "python -m pip install -c constraints.txt -e '.[dev]'"
NEEDS_PACKAGE = (
    "`attn-course {command}` needs the package {package!r}. In the course's folder run: {line}"
)


class _LazyGroup(terminal.SpokenGroup):
    """A group that imports a subcommand only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        try:
            return getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("attn_course"):
                raise
            told = say(NEEDS_PACKAGE, command=cmd_name, package=error.name, line=INSTALL_DEV)
            raise click.ClickException(spoken(told)) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(spoken("Commands")):
            formatter.write_dl([(name, spoken(text)) for name, (*_, text) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="attn-course")
def main() -> None:
    """Open, check and build the course on attention and the Transformer."""


@terminal.command()
def progress() -> None:
    """Show which exercises you have passed, as a bar for each chapter."""
    from attn_course.lesson.overview import render_text

    click.echo(render_text())
