"""One page with every explorer, alive without a kernel: `attn-course explorers`."""

import inspect
from html import escape
from pathlib import Path
from string import Template

import click

import attn_course.explorers as explorers
from attn_course.explorers.base import Explorer
from attn_course.explorers.words import WORDS

PAGE = Path("docs") / "explorers.html"


@click.command()
@click.argument("page", type=click.Path(path_type=Path, dir_okay=False), default=PAGE)
def command(page: Path) -> None:
    """Write PAGE (docs/explorers.html), which shows every explorer without a kernel."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(gallery(), encoding="utf-8")
    click.echo(f"{page}: {len(explorers.__all__)} explorers, {page.stat().st_size / 1e6:.1f} MB")


def gallery() -> str:
    """Return the page as HTML; it needs no other file and no network."""
    words = WORDS["gallery"]
    template = Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
    views = [getattr(explorers, name)() for name in explorers.__all__]
    return template.substitute(
        {key: escape(words[key]) for key in ("title", "introduction", "contents")},
        language=WORDS["shared"]["language"],
        links="\n".join(f'<li><a href="#{name}">{name}</a></li>' for name in explorers.__all__),
        sections="\n".join(map(_section, views)),
    )


def _section(view: Explorer) -> str:
    name = type(view).__name__
    says = (inspect.getdoc(type(view)) or "").split("\n\n")[0]
    return f'<h3 id="{name}"><code>{name}</code></h3>\n<p>{escape(says)}</p>\n{view.html()}'
