"""`attn-course lab`: JupyterLab, opened at a chapter."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import click

from attn_course import terminal
from attn_course.course import CHAPTERS, find_chapter, project_root
from attn_course.sentences import say, spoken

INSTALL_LAB = """python -m pip install -c constraints.txt -e ".[lab]\""""

NO_FOLDER = "the course's folder is not here; run this inside it"
NO_LAB = "JupyterLab is not installed. In {folder} run: {line}"
NO_NOTEBOOK = "chapter {number} ({title}) has no notebook yet"
STARTING = "JupyterLab prints its address below. Press Ctrl-C twice to stop it."


@terminal.command(context_settings={"ignore_unknown_options": True})
@click.argument("chapter", required=False)
@click.argument("jupyter_options", nargs=-1, type=click.UNPROCESSED)
def command(chapter: str | None, jupyter_options: tuple[str, ...]) -> None:
    """Open JupyterLab at CHAPTER: its number, name or file name; the first one if none is given.

    What follows goes to JupyterLab: attn-course lab 03 --port=9000
    """
    if chapter is not None and chapter.startswith("-"):
        chapter, jupyter_options = None, (chapter, *jupyter_options)
    root = project_root()
    if root is None:
        raise click.ClickException(spoken(NO_FOLDER))
    notebook = chapter_notebook(root, chapter)
    if importlib.util.find_spec("jupyterlab") is None:
        told = say(NO_LAB, folder=str(root), line=INSTALL_LAB)
        raise click.ClickException(spoken(told))
    sys.exit(run_lab(root, notebook, jupyter_options))


def chapter_notebook(root: Path, chapter: str | None) -> Path | None:
    """The notebook to open: of the chapter asked for, else of the first; None while there is none.

    Raises:
        click.ClickException: for an unknown chapter, with the list of chapters,
            and for one whose notebook has not been written yet.
    """
    try:
        wanted = CHAPTERS[0] if chapter is None else find_chapter(chapter)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    notebook = wanted.notebook(root)
    if notebook.exists():
        return notebook
    if chapter is None:
        return None
    told = say(NO_NOTEBOOK, number=wanted.number, title=say(wanted.title))
    raise click.ClickException(spoken(told))


def run_lab(root: Path, notebook: Path | None, extra: tuple[str, ...] = ()) -> int:
    """Become JupyterLab on `root`; where a process cannot do that (Windows), run it."""
    click.echo(spoken(STARTING))
    command_line = [sys.executable, "-m", "jupyterlab", *lab_options(root, notebook), *extra]
    if sys.platform == "win32":
        return subprocess.call(command_line)
    # The terminal's signals reach JupyterLab itself, with nothing in between.
    os.execv(sys.executable, command_line)


def lab_options(root: Path, notebook: Path | None) -> list[str]:
    """JupyterLab's options: the page to show, and what this machine asks for."""
    # Jupyter's own news would ask a question over the first page, and another host for an answer.
    options = [f"--ServerApp.root_dir={root}", "--LabApp.news_url=None"]
    if notebook is not None:
        # As the default page, it is part of the address that is printed.
        page = f"/lab/tree/{notebook.relative_to(root).as_posix()}"
        options.append(f"--LabApp.default_url={page}")
    if _is_superuser():
        options.append("--allow-root")
    if not _has_screen():
        options.append("--no-browser")
    return options


def _is_superuser() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _has_screen() -> bool:
    """Whether a browser could open; without one, a text browser would take the terminal."""
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
