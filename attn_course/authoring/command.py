"""`attn-course build`: chapters/ -> notebooks/, exercises/, solutions/."""

import click

from attn_course.authoring.build import Options
from attn_course.authoring.build import build as build_chapters
from attn_course.authoring.compare import differences
from attn_course.authoring.errors import BuildError
from attn_course.authoring.layout import Course


@click.command()
@click.argument("chapters", nargs=-1, metavar="[CHAPTER]...")
@click.option("--check", is_flag=True, help="Compare without executing; exit status 1 if stale.")
@click.option("--force", is_flag=True, help="Execute again what has not changed, too.")
@click.option("--draft", is_flag=True, help="Write without executing, to look at a chapter.")
@click.option(
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
        raise click.UsageError("--check compares only: it goes with neither --force nor --draft")
    if force and draft:
        raise click.UsageError("--force executes and --draft does not")
    try:
        course = Course.here()
        if check:
            _report(differences(course, chapters))
        else:
            options = Options(force=force, draft=draft, timeout=timeout)
            build_chapters(course, chapters, options, tell=click.echo)
    except BuildError as error:
        raise click.ClickException(str(error)) from None


def _report(found: list[str]) -> None:
    for told in found:
        click.echo(told)
    if found:
        raise click.ClickException(
            f"files that differ from what their sources build: {len(found)}. "
            "Run `attn-course build`."
        )
