"""Reading a chapter's source: jupytext's percent format into cells that know their role."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jupytext

from attn_course.authoring.errors import BuildError
from attn_course.course import find_chapter

Role = Literal["plain", "task", "answer", "question", "prediction"]

_ATTRIBUTES = {"part", "exercise", "source", "question", "prediction", "hide", "tags"}
# how jupytext remembers blank lines
_JUPYTEXT_OWN = {"lines_to_next_cell", "lines_to_end_of_cell_marker"}
_PARTS = {"lesson", "exercises", "both"}
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST_ID = 50  # with the builder's prefix it must fit into a cell id's 64 characters


@dataclass(frozen=True)
class Cell:
    """One cell of a chapter's source.

    Attributes:
        kind: "markdown" or "code".
        text: the cell's source, without comment marks for markdown.
        role: what the builder makes of it.
        name: the exercise's name or the question's id; empty for plain cells.
        part: "lesson", "exercises" or "both"; only plain cells choose.
        module: the package module that holds the answer, if it is inserted.
        hidden: whether the notebook shows the source folded away.
        tags: cell tags, passed through.
        where: file and line, for messages.
    """

    kind: str
    text: str
    role: Role
    name: str
    part: str
    module: str
    hidden: bool
    tags: tuple[str, ...]
    where: str


@dataclass(frozen=True)
class ChapterSource:
    """A chapter's source: its header and its cells."""

    path: Path
    title: str
    reading_minutes: int
    exercise_minutes: int
    cells: tuple[Cell, ...]

    @property
    def stem(self) -> str:
        """The file's name without its ending, such as 03_scaled_dot_product."""
        return self.path.stem

    @property
    def number(self) -> str:
        """The chapter's two digits."""
        return self.stem[:2]

    def named(self, role: Role) -> dict[str, Cell]:
        """The cells of one role by their name, in order."""
        return {cell.name: cell for cell in self.cells if cell.role == role}


def read_chapter(path: Path) -> ChapterSource:
    """Read one chapter.

    Raises BuildError, with file and line, for a header or a cell that breaks the format.
    """
    text = path.read_text(encoding="utf-8")
    label = f"chapters/{path.name}"
    try:
        notebook = jupytext.reads(text, fmt="py:percent")
    except Exception as error:  # jupytext passes on whatever YAML or nbformat raise
        raise BuildError(
            "{label}: not readable as py:percent: {error}", label=label, error=error
        ) from error
    starts = [n for n, line in enumerate(text.splitlines(), 1) if line.startswith("# %%")]
    cells = list(notebook.cells)
    if cells and not cells[0].source.strip() and len(cells) == len(starts) + 1:
        del cells[0]  # blank lines below the header
    if len(starts) != len(cells):
        raise BuildError(
            "{label}: {starts} lines start with `# %%`, but jupytext reads {cells} cells: "
            "begin with a `# %%` line and keep them out of strings",
            label=label,
            starts=len(starts),
            cells=len(cells),
        )
    header = _header(
        dict(notebook.metadata.get("attn_course", {})), find_chapter(path.stem).title, label
    )
    read = [_cell(cell, f"{label}:{line}") for cell, line in zip(cells, starts, strict=True)]
    _refuse_twins(read)
    return ChapterSource(path=path, cells=tuple(read), **header)


def _header(header: dict[str, Any], title: str, label: str) -> dict[str, Any]:
    for key in ("reading_minutes", "exercise_minutes"):
        if not isinstance(header.get(key), int) or header[key] < 0:
            raise BuildError(
                "{label}: the header's `jupyter: attn_course:` needs {key}, a whole number; it "
                "has {value!r}",
                label=label,
                key=key,
                value=header.get(key),
            )
    if header.setdefault("title", title) != title:
        raise BuildError(
            "{label}: the title in the header, {given!r}, is not the one in "
            "attn_course/course.py, {title!r}; it may be left out here",
            label=label,
            given=header["title"],
            title=title,
        )
    unknown = set(header) - {"title", "reading_minutes", "exercise_minutes"}
    if unknown:
        raise BuildError(
            "{label}: unknown keys in the header: {names}",
            label=label,
            names=", ".join(sorted(unknown)),
        )
    return header


def _cell(cell: Any, where: str) -> Cell:
    given = {key: value for key, value in cell.metadata.items() if key not in _JUPYTEXT_OWN}
    unknown = set(given) - _ATTRIBUTES
    if unknown:
        told = ", ".join(f"{key}={given[key]!r}" for key in sorted(unknown))
        raise BuildError(
            "{where}: unknown attributes {told}; known: {known}",
            where=where,
            told=told,
            known=sorted(_ATTRIBUTES),
        )
    role, name = _role(cell, given, where)
    part = given.get("part", "lesson")
    if part not in _PARTS or (role != "plain" and "part" in given):
        raise BuildError(
            "{where}: part={part!r}; plain cells take one of {parts}",
            where=where,
            part=part,
            parts=sorted(_PARTS),
        )
    if given.get("hide") not in (None, "input") or ("hide" in given and cell.cell_type != "code"):
        raise BuildError(
            '{where}: hide={value!r}; code cells take hide="input"',
            where=where,
            value=given["hide"],
        )
    if role == "plain" and cell.cell_type == "markdown":
        _refuse_title(cell.source, where)
    return Cell(
        kind=cell.cell_type,
        text=cell.source.strip("\n"),
        role=role,
        name=name,
        part=part,
        module=given.get("source", ""),
        hidden="hide" in given,
        tags=tuple(given.get("tags", ())),
        where=where,
    )


def _role(cell: Any, given: dict[str, Any], where: str) -> tuple[Role, str]:
    named = [key for key in ("exercise", "question", "prediction") if key in given]
    markdown = cell.cell_type == "markdown"
    if cell.cell_type not in ("markdown", "code"):
        raise BuildError(
            "{where}: a {kind} cell has no place in a chapter", where=where, kind=cell.cell_type
        )
    if len(named) > 1:
        raise BuildError(
            "{where}: a cell is one of {one} or {other}, not both",
            where=where,
            one=named[0],
            other=named[1],
        )
    if "source" in given and (named != ["exercise"] or markdown or cell.source.strip()):
        raise BuildError(
            "{where}: source= belongs on an exercise's code cell with no body", where=where
        )
    if not named:
        return "plain", ""
    name = given[named[0]]
    if named == ["exercise"]:
        return ("task" if markdown else "answer"), name
    if not markdown or not _ID.fullmatch(name) or len(name) > _LONGEST_ID:
        raise BuildError(
            "{where}: {kind}={name!r} must be a markdown cell, its id of the form "
            "small-words-and-2-digits, at most {longest} characters",
            where=where,
            kind=named[0],
            name=name,
            longest=_LONGEST_ID,
        )
    return ("question" if named == ["question"] else "prediction"), name


def _refuse_title(text: str, where: str) -> None:
    fenced = False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith("```")
        if line.startswith("# ") and not fenced:
            raise BuildError(
                "{where}: the builder writes the title; begin with ## ({line!r})",
                where=where,
                line=line,
            )


def _refuse_twins(cells: list[Cell]) -> None:
    seen: dict[tuple[str, str], Cell] = {}
    for cell in cells:
        # questions and predictions share the ids of one file
        key = ("question" if cell.role == "prediction" else cell.role, cell.name)
        if cell.name and key in seen:
            raise BuildError(
                "{where}: {name!r} is also at {other}",
                where=cell.where,
                name=cell.name,
                other=seen[key].where,
            )
        seen[key] = cell
