"""The cells of a notebook: what each kind carries in its source and metadata."""

import json
from collections.abc import Iterator
from typing import Any

import nbformat
from nbformat import NotebookNode

from attn_course.authoring import wording
from attn_course.authoring.answers import Answer
from attn_course.authoring.source import Cell
from attn_course.sentences import spoken

_INSTALL = """\
import subprocess
import sys
from importlib.util import find_spec

if "google.colab" in sys.modules and find_spec("attn_course") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "git+{address}"], check=True)
"""
_SAY_WHAT_TO_INSTALL = """\
import sys
from importlib.util import find_spec

if "google.colab" in sys.modules and find_spec("attn_course") is None:
    raise ImportError(
        {message}
        "%pip install ./attn_course-*.whl"
    )
"""


def markdown_cell(cell_id: str, text: str, tags: tuple[str, ...] = ()) -> NotebookNode:
    """A markdown cell."""
    metadata = {"tags": list(tags)} if tags else {}
    return nbformat.v4.new_markdown_cell(text, id=cell_id, metadata=metadata)


def code_cell(
    cell_id: str,
    code: str,
    tags: tuple[str, ...] = (),
    *,
    hidden: str | None = None,
    nbgrader: dict[str, Any] | None = None,
) -> NotebookNode:
    """A code cell; `hidden` folds its source away, in Colab under that title unless empty."""
    metadata: dict[str, Any] = {"tags": list(tags)} if tags else {}
    if hidden is not None:
        metadata |= {"jupyter": {"source_hidden": True}, "cellView": "form"}
        code = f"# @title {hidden}\n{code}" if hidden else code
    if nbgrader is not None:
        metadata["nbgrader"] = {**nbgrader, "schema_version": 3, "task": False}
    return nbformat.v4.new_code_cell(code, id=cell_id, metadata=metadata)


def install_cell(address: str | None) -> NotebookNode:
    """The set-up for Colab: installs from the address, or says what to install without one."""
    if address is None:
        lines = [f"{spoken(words)} " for words in wording.NOT_INSTALLED]
        literals = [json.dumps(line, ensure_ascii=False) for line in lines]
        code = _SAY_WHAT_TO_INSTALL.format(message="\n        ".join(literals))
    else:
        code = _INSTALL.format(address=address)
    return code_cell("install", code.rstrip(), hidden=spoken(wording.INSTALL_TITLE))


def question_cell(cell: Cell) -> NotebookNode:
    """The call that asks a question or takes a prediction."""
    call, title = {
        "question": ("quiz", wording.QUESTION_TITLE),
        "prediction": ("predict", wording.PREDICTION_TITLE),
    }[cell.role]
    code = f'{call}("{cell.name}")'
    return code_cell(f"{cell.role}-{cell.name}", code, cell.tags, hidden=spoken(title))


def exercise_cells(answer: Answer, folder: str) -> Iterator[NotebookNode]:
    """The answer cell, in exercises/ the hints for it, and its check."""
    entry, stubbed = answer.entry, folder == "exercises"
    yield code_cell(
        f"answer-{entry.name}",
        answer.stub if stubbed else answer.solution,
        answer.cell.tags,
        nbgrader={"grade": False, "grade_id": entry.name, "locked": False, "solution": True},
    )
    if stubbed and entry.hints:
        # a comment, so that Run All gives nothing away
        code = f'# {spoken(wording.HINT_HELP)}\n# hint("{entry.number}")'
        yield code_cell(f"hint-{entry.name}", code)
    grade = {"grade": True, "grade_id": f"check-{entry.name}", "locked": True, "solution": False}
    grade["points"] = entry.points
    yield code_cell(f"check-{entry.name}", f"check({entry.name})", nbgrader=grade)
