"""Commands whose help is said in the reader's language: the edge towards the terminal.

A command's docstring and its options' `help` are constants; they become text when help is
shown, and not when the command is made.
"""

import inspect
from copy import copy
from functools import partial

import click

from attn_course.sentences import spoken


class SpokenOption(click.Option):
    """An option with help in the reader's language."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Its name and its help, as they stand in a command's help."""
        told = copy(self)
        told.help = spoken(self.help or "")
        return super(SpokenOption, told).get_help_record(ctx)


class SpokenCommand(click.Command):
    """A command with help in the reader's language."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command is for."""
        told = copy(self)
        told.help = spoken(inspect.cleandoc(self.help or ""))
        super(SpokenCommand, told).format_help_text(ctx, formatter)


class SpokenGroup(SpokenCommand, click.Group):
    """A group of commands with help in the reader's language."""


command = partial(click.command, cls=SpokenCommand)
option = partial(click.option, cls=SpokenOption)
