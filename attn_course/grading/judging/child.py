"""The process that grades one notebook: it runs pytest, with nbval and the grading plugin.

It is forked from a server that has imported what takes long (torch above all) already, so that
a notebook costs its own work only, and a crash costs one notebook.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import resource
import signal
import sys
import threading
from multiprocessing.connection import wait
from pathlib import Path

import nbval.plugin  # noqa: F401 (imported here, so that each notebook has it already)
import pytest
import torch
import torch._dynamo

from attn_course.grading.judging import session  # noqa: F401 (likewise)

MEMORY_GB = 8
"""Address space of the trusted process: what a student has it compute cannot fill the machine."""


def grade(folder: str, timeout: float) -> None:
    """Grade the notebook in `folder`, whose job file is there."""
    place = Path(folder)
    gc.freeze()  # all that the server has imported is no garbage
    _end_with_parent()
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_GB * 2**30, MEMORY_GB * 2**30))
    torch.set_num_threads(1)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ.pop("PYTEST_ADDOPTS", None)
    os.chdir(place)
    with (place / "log").open("w", encoding="utf-8") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        code = pytest.main(arguments(place, timeout))
        sys.stdout.flush()
    os._exit(0 if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else int(code))


def arguments(place: Path, timeout: float) -> list[str]:
    """Pytest's command line for the notebook in a folder."""
    return [
        *(
            "-p",
            "nbval.plugin",
            "-p",
            "attn_course.grading.judging.plugin",
            "-p",
            "no:cacheprovider",
        ),
        *("-c", str(place / "pytest.ini"), "--rootdir", str(place), "-q", "--tb=short"),
        # which collects garbage of all that the server has imported, twice
        *("-p", "no:unraisableexception", "-p", "no:threadexception"),
        *("--nbval-lax", f"--nbval-cell-timeout={timeout}"),
        *("--grading-job", str(place / "job.json"), str(place / "graded.ipynb")),
    ]


def _end_with_parent() -> None:
    """End this process when the one that wanted the notebook graded is no more.

    The server that forked it would not tell: it lives as long as any of its children.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
