"""The end of the line in the student's kernel: a check cell calls `serve`.

It runs beside the student's code and can be changed by it. Nothing depends on its honesty: it
can only hand over values, which are compared outside with what the reference gives.
"""

from __future__ import annotations

import builtins
import getpass
import json
import linecache
import os
import traceback
from pathlib import Path
from typing import Any

import torch

from .errors import Gone
from .peer import Peer
from .watching import watching

_COURSE = str(Path(__file__).parents[1]) + os.sep
_GIVEN = "<course: "
_NOT_OWN = (_COURSE, _GIVEN, "<frozen")
_LIBRARY = os.sep + "lib" + os.sep + "python"


def serve(name: str, *, watch: bool = False) -> None:
    """Answer the trusted process, which judges `name`, until it says that it is done."""
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    # the line is the kernel's own for input; IPython puts `input` back after the cell
    builtins.input = getpass.getpass = nobody
    peer = Peer(shell.kernel.raw_input, "k", lambda name: find(shell.user_ns, name))
    peer.locate = locate
    peer.watch = watching if watch else None
    torch.set_num_threads(1)  # numbers must not hang on how many there are
    text = shell.kernel.raw_input(json.dumps({"found": kind_of(shell.user_ns, name)}))
    while text != "done":
        text = shell.kernel.raw_input(peer.serve_one(text))


def nobody(prompt: object = "", *_args: object, **_kwargs: object) -> str:
    """Take the place of `input` in an answer that is called.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("there is nobody to answer input() while a notebook is graded")


def kind_of(names: dict[str, Any], name: str) -> str:
    """Whether an answer of that name is there, and if it is none, what it is."""
    if name not in names:
        return "undefined"
    return "callable" if callable(names[name]) else type(names[name]).__name__


def find(names: dict[str, Any], name: str) -> Any:
    """The answer among the notebook's names.

    Raises:
        Gone: if there is none.
    """
    if name not in names:
        raise Gone("undefined")
    return names[name]


def release(module: str, function: str, source: str, name: str, answer: str) -> None:
    """Put a function or a class of the course where later cells look for it.

    Args:
        module, function: its home in the course; the module is "" if that is not there.
        source: its text, with all that it needs.
        name: what the exercise calls it.
        answer: code that defines it as the exercise asks for it, to take the place of a wrong
            answer in the notebook; "" where the student's own is right.
    """
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    if module:
        made = _run(source, module, function)
        setattr(__import__(module, fromlist=["*"]), function, made[function])
    if answer:
        shell.user_ns[name] = _run(answer, "__main__", name)[name]


def _run(source: str, module: str, name: str) -> dict[str, Any]:
    """The names that the course's own code defines, as if it stood in a module."""
    namespace: dict[str, Any] = {"__name__": module}
    filename = f"{_GIVEN}{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), namespace)
    return namespace


def locate(error: BaseException) -> dict[str, Any]:
    """The last line of the student's own that an error passed through, and whether it rose there.

    The frames are those of cells; what is above and below belongs to libraries or to the course.
    """
    line, own = "", False
    for frame, number in traceback.walk_tb(error.__traceback__):
        filename = frame.f_code.co_filename
        own = not (filename.startswith(_NOT_OWN) or _LIBRARY in filename)
        if own:
            line = linecache.getline(filename, number).strip()
    return {"line": line[:200], "own": own}
