"""Reading a student's notebook: its code cells, in order, whatever saved it.

Tolerated: nbformat 2 to 4.5 and what only looks like it, Colab's and VS Code's forms, odd
encodings, outputs of any size. Outputs, metadata, ids and tags are not looked at.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from attn_course.grading.intake.archives import Refused
from attn_course.sentences import Spoken, say

TOO_MUCH_CODE = "too much code: {cells} cells, {characters:,} characters"

_MOST_PARTS = 8_000_000
_MOST_CELLS = 1_000
_MOST_CODE = 500_000


@dataclass(frozen=True)
class Notebook:
    """What a notebook holds: its code cells, its other cells' texts, and what was odd in it."""

    code: tuple[str, ...]
    other: tuple[str, ...]
    notes: tuple[Spoken, ...]


def read_notebook(content: bytes) -> Notebook:
    """The notebook in these bytes.

    Raises:
        Refused: with the reason, if it is none.
    """
    if not content.strip():
        raise Refused("empty")
    if content.startswith(b"PK\x03\x04"):
        raise Refused("a zip archive under a notebook's name")
    text, notes = _decode(content)
    cells, more = _cells(_load(text, len(content)))
    code = [source for kind, source in cells if kind == "code"]
    other = [source for kind, source in cells if kind != "code"]
    if len(cells) > _MOST_CELLS or sum(map(len, code)) > _MOST_CODE:
        raise Refused(say(TOO_MUCH_CODE, cells=len(cells), characters=sum(map(len, code))))
    return Notebook(tuple(code), tuple(other), tuple(notes + more))


def _decode(content: bytes) -> tuple[str, list[Spoken]]:
    """The text, by its byte-order mark or what JSON must begin with, else as Windows had it."""
    encoding = json.detect_encoding(content)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        # every byte has a meaning there, so that code in ASCII survives anyway
        return content.decode("latin-1"), ["the file is not in UTF-8; read as Latin-1"]
    if encoding in ("utf-8", "utf-8-sig"):
        return text, []
    return text, [say("the file is in {encoding}, not in UTF-8", encoding=encoding.upper())]


def _load(text: str, size: int) -> dict[str, Any]:
    # a few bytes of JSON become a hundred in memory
    if text.count(",") + text.count("[") + text.count("{") > _MOST_PARTS:
        raise Refused(say("too large: {size:,} bytes of many small parts", size=size))
    try:
        notebook = json.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise Refused("not a notebook (nested too deeply)") from None
    except ValueError as error:
        raise Refused(_why_no_json(text, error)) from None
    if not isinstance(notebook, dict):
        raise Refused("not a notebook (JSON, but no object)")
    return notebook


def _why_no_json(text: str, error: ValueError) -> Spoken:
    if not text.lstrip("\ufeff \t\r\n").startswith("{"):
        return "not a notebook (no JSON)"
    position = getattr(error, "pos", 0)
    unterminated = "Unterminated string" in str(error)
    if unterminated or position >= len(text.rstrip()):
        return say("truncated after {n:,} characters", n=len(text))
    return say("not a notebook (broken JSON at character {n:,})", n=position)


def _cells(notebook: dict[str, Any]) -> tuple[list[tuple[str, str]], list[Spoken]]:
    """Kind and source of every cell, with a note on whatever is not as it should be."""
    notes: list[Spoken] = []
    raw = notebook.get("cells")
    if not isinstance(raw, list):
        worksheets = notebook.get("worksheets")
        if not isinstance(worksheets, list):
            raise Refused("not a notebook (JSON without cells)")
        notes.append("saved in an old format (nbformat 3 or earlier)")
        raw = [
            cell
            for sheet in worksheets
            if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list)
            for cell in sheet["cells"]
        ]
    cells = [read for cell in raw if (read := _cell(cell)) is not None]
    if len(cells) < len(raw):
        words = "{lost} of {all} cells cannot be read"
        notes.append(say(words, lost=len(raw) - len(cells), all=len(raw)))
    return cells, notes


def _cell(cell: Any) -> tuple[str, str] | None:
    if not isinstance(cell, dict):
        return None
    source = cell.get("source", cell.get("input", ""))  # `input` until nbformat 3
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = ("" if any(line.endswith("\n") for line in source) else "\n").join(source)
    kind = cell.get("cell_type")
    if not isinstance(source, str) or not isinstance(kind, str):
        return None
    # a lone surrogate, which JSON can hold, could not be sent to a kernel
    source = source.encode("utf-8", "replace").decode("utf-8")
    return kind, source.replace("\r\n", "\n").replace("\r", "\n")
