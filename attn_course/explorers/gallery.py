"""One page with every explorer, alive without a kernel: `attn-course explorers`."""

import inspect
from html import escape
from pathlib import Path
from string import Template

import click

import attn_course.explorers as explorers
from attn_course import terminal
from attn_course.explorers.base import Explorer
from attn_course.explorers.words import words_of
from attn_course.sentences import say, spoken

PAGE = Path("docs") / "explorers.html"


@terminal.command()
@click.argument("page", type=click.Path(path_type=Path, dir_okay=False), default=PAGE)
def command(page: Path) -> None:
    """Write PAGE (docs/explorers.html), which shows every explorer without a kernel."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(gallery(), encoding="utf-8")
    written = say(
        "{page}: {n} explorers, {size:.1f} MB",
        page=page,
        n=len(explorers.__all__),
        size=page.stat().st_size / 1e6,
    )
    click.echo(spoken(written))


def gallery() -> str:
    """Return the page as HTML; it needs no other file and no network."""
    words = words_of("gallery")
    template = Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
    views = [getattr(explorers, name)() for name in explorers.__all__]
    return template.substitute(
        {key: escape(words[key]) for key in ("title", "introduction", "contents")},
        language=words["language"],
        links="\n".join(f'<li><a href="#{name}">{name}</a></li>' for name in explorers.__all__),
        sections="\n".join(map(_section, views)),
    )


def summary(view: type[Explorer]) -> str:
    """Return the sentence that says what a view is: the first of its docstring."""
    return (inspect.getdoc(view) or "").split("\n\n")[0]


def _section(view: Explorer) -> str:
    name = type(view).__name__
    says = spoken(summary(type(view)))
    return f'<h3 id="{name}"><code>{name}</code></h3>\n<p>{escape(says)}</p>\n{view.html()}'
