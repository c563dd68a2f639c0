"""What somebody has written into a built notebook is never overwritten."""

from itertools import count
from pathlib import Path

from nbformat import NotebookNode

from attn_course.authoring.files import read_notebook
from attn_course.authoring.stamp import cells_hash, stamp_of

PATTERN = "*.mine*.ipynb"


def place_beside(path: Path, built: NotebookNode) -> Path | None:
    """Where the notebook at `path` is to be kept when `built` is written there.

    None where nothing is lost with it: there is none, its cells are as some build has written
    them, or they are those of `built`. Outputs alone are no loss.
    """
    if not path.is_file() or not _is_somebodys(read_notebook(path), built):
        return None
    names = (f"{path.stem}.mine{'' if n == 1 else f'-{n}'}.ipynb" for n in count(1))
    return next(p for p in map(path.with_name, names) if not p.exists())


def _is_somebodys(stored: NotebookNode | None, built: NotebookNode) -> bool:
    if stored is None:  # not to be read: broken off while it was saved, perhaps
        return True
    stamp = stamp_of(stored)
    return cells_hash(stored) not in {cells_hash(built), stamp.cells if stamp else ""}
