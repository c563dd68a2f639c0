"""The IPython that the code runs in, if it runs in one; asking does not import it."""

import sys
from typing import Any


def running_shell() -> Any:
    """IPython's shell: of a kernel or of a terminal; None in a script."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def in_notebook() -> bool:
    """Whether a kernel shows rich output (IPython in a terminal does not)."""
    return getattr(running_shell(), "kernel", None) is not None


def execution_count() -> int | None:
    """The count of the running cell; None outside IPython."""
    return getattr(running_shell(), "execution_count", None)
