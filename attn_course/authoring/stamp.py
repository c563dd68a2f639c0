"""The stamp of a built notebook: short hashes of what it was built from and of what was built.

It stands in the notebook's metadata under `attn_course.built`, the one place where a build
leaves anything for the next one.
"""

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from nbformat import NotebookNode

from attn_course.authoring.names import plain_python
from attn_course.authoring.reach import form

KEY = "built"


@dataclass(frozen=True)
class Stamp:
    """What a build has noted.

    Attributes:
        cells: of what stands in the cells; outputs and what a front end adds do not count.
        sources: of all that the outputs depend on, each by its name; empty if not executed.
        outputs: of the outputs.
    """

    cells: str
    sources: Mapping[str, str] = field(default_factory=dict)
    outputs: str = ""


def stamped(notebook: NotebookNode, sources: Mapping[str, str]) -> NotebookNode:
    """The notebook with its stamp; `sources` are those of the outputs that it holds, if any."""
    if sources:
        stamp = Stamp(cells_hash(notebook), dict(sorted(sources.items())), outputs_hash(notebook))
    else:
        stamp = Stamp(cells_hash(notebook))
    notebook.metadata.attn_course[KEY] = {k: v for k, v in asdict(stamp).items() if v}
    return notebook


def stamp_of(notebook: NotebookNode) -> Stamp | None:
    """The stamp of a stored notebook, None if no build of this version has left one."""
    found = notebook.metadata.get("attn_course", {}).get(KEY, {})
    names = {field.name for field in fields(Stamp)}
    return Stamp(**found) if "cells" in found and names >= found.keys() else None


def without_stamp(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A notebook's metadata but for the stamp."""
    own = {k: v for k, v in metadata.get("attn_course", {}).items() if k != KEY}
    return {**metadata, "attn_course": own}


def cells_hash(notebook: NotebookNode) -> str:
    """Of the kind and text of each cell, in order, whatever program has saved the notebook.

    No ids: Colab keeps none. No space at the ends, no empty cells: editors add and drop them.
    """
    return short_hash([(c.cell_type, c.source.strip()) for c in notebook.cells if c.source.strip()])


def code_hash(notebook: NotebookNode) -> str:
    """Of what the code cells do, comments and layout left out."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return short_hash([(_form(c.source), c.metadata.get("tags", [])) for c in cells])


def outputs_hash(notebook: NotebookNode) -> str:
    """Of all outputs, and of the order in which they were made."""
    outputs = [(c.outputs, c.execution_count) for c in notebook.cells if c.cell_type == "code"]
    return short_hash(json.dumps(outputs, sort_keys=True))


def short_hash(value: Any) -> str:
    """Eight hexadecimal digits."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:8]


def _form(code: str) -> Any:
    """What a cell does: a semicolon at its end keeps its value from being shown."""
    try:
        return form(ast.parse(plain_python(code)).body), code.rstrip().endswith(";")
    except SyntaxError:  # of a stored notebook, where somebody is at work
        return code
