"""Which cell has shown a view, so that running the cell again takes the old view away.

A widget stays alive, in the kernel and in the page, until somebody closes it.
"""

import weakref
from typing import Protocol

from attn_course.notebook.shell import running_shell


class Closable(Protocol):
    """Anything with a `close()`."""

    def close(self) -> None:
        """Take the view out of the page and out of the registry of widgets."""
        ...


_shown: "weakref.WeakKeyDictionary[Closable, tuple[str, int]]" = weakref.WeakKeyDictionary()


def shown(view: Closable) -> None:
    """Note that the running cell shows `view`, and close what earlier runs of it have shown."""
    cell = current_cell()
    if cell is None:
        return
    for other, (cell_id, count) in list(_shown.items()):
        if other is not view and cell_id == cell[0] and count != cell[1]:
            del _shown[other]
            other.close()
    _shown[view] = cell


def current_cell() -> tuple[str, int] | None:
    """Return the front end's id of the running cell and the count of its run, if it tells."""
    shell = running_shell()
    kernel = getattr(shell, "kernel", None)
    if shell is None or kernel is None:
        return None
    parent = kernel.get_parent("shell") if hasattr(kernel, "get_parent") else {}
    cell_id = parent.get("metadata", {}).get("cellId")
    return (cell_id, shell.execution_count) if cell_id else None
