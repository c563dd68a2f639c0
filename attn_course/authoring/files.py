"""Reading and writing built files: whole or not at all, and only when they change."""

import os
import warnings
from pathlib import Path

import nbformat
from nbformat import NotebookNode


def read_notebook(path: Path) -> NotebookNode | None:
    """The stored notebook, None if there is none that can be read."""
    if not path.is_file():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook saved elsewhere may lack cell ids
            return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    except Exception:  # nbformat raises what its parsers raise: nothing to build on
        return None


def as_text(notebook: NotebookNode) -> str:
    """The notebook as it is stored."""
    return nbformat.writes(notebook) + "\n"


def write_if_changed(path: Path, text: str) -> bool:
    """Write the text in one step, so that no reader meets half a file; False if it stood there."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return True
