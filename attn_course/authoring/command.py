"""`attn-course build`: chapters/ -> notebooks/, exercises/, solutions/."""

import click

from attn_course.authoring.build import build as build_chapters
from attn_course.authoring.compare import differences, outdated
from attn_course.authoring.errors import BuildError
from attn_course.authoring.layout import Course
from attn_course.authoring.plan import Options
from attn_course.sentences import say, spoken
from attn_course.terminal import command, option


@command()
@click.argument("chapters", nargs=-1, metavar="[CHAPTER]...")
@option("--check", is_flag=True, help="Compare without executing; exit status 1 if stale.")
@option("--force", is_flag=True, help="Execute again what has not changed, too.")
@option("--draft", is_flag=True, help="Write without executing, to look at a chapter.")
@option(
    "--timeout",
    type=click.IntRange(min=1),
    default=300,
    show_default=True,
    help="Seconds that one cell may take.",
)
def build(chapters: tuple[str, ...], check: bool, force: bool, draft: bool, timeout: int) -> None:
    """Write the lesson, exercise and solution notebooks from chapters/.

    CHAPTER is a number, a name or a file; without any, all chapters are built. Only what
    has changed is executed.
    """
    if check and (force or draft):
        words = "--check compares only: it goes with neither --force nor --draft"
        raise click.UsageError(spoken(words))
    if force and draft:
        raise click.UsageError(spoken("--force executes and --draft does not"))
    try:
        course = Course.here()
        if check:
            _report(differences(course, chapters), outdated(course, chapters))
        else:
            options = Options(force=force, draft=draft, timeout=timeout)
            build_chapters(course, chapters, options, tell=click.echo)
    except BuildError as error:
        raise click.ClickException(str(error)) from None


def _report(differing: list[str], to_do: list[str]) -> None:
    for told in [*differing, *to_do]:
        click.echo(told)
    if differing:
        words = "files that differ from what their sources build: {n}. Run `attn-course build`."
        raise click.ClickException(spoken(say(words, n=len(differing))))
    if to_do:
        words = "what a build would do, though no file differs: {n}. Run `attn-course build`."
        raise click.ClickException(spoken(say(words, n=len(to_do))))
