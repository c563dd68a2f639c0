"""The pytest plugin that grades: nbval runs the cells, in a sandbox, and this makes the verdicts.

    pytest -p attn_course.grading.judging.plugin --nbval-lax --grading-job JOB graded.ipynb

JOB is what `execute` has written: the chapter, the cells, the settings. Each verdict is written
down as soon as it is made.

What is nbval's: it makes a test of each cell, sends the cells to a kernel in their order, gives
each its time, and reports. What is replaced is its kernel (`RunningKernel`), by a `Session` that
has the same methods, for four things that nbval's own kernel cannot do:

- It lives in a sandbox, behind sockets that only the session opens.
- What it sends is counted and measured before it is read; its death, memory and files are watched.
- A kernel that has ended is started anew, and what ran before is run again: one answer that
  kills its kernel costs one exercise, not the notebook.
- While a check cell runs in it, the answer is called from outside and judged there.

Two habits of nbval's are set right besides: a cell that timed out makes it skip all later ones,
and after the last cell it asks once more for its kernel.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import nbval.plugin
import pytest

from attn_course.grading.judging.job import NO_SANDBOX
from attn_course.grading.judging.session import Session
from attn_course.grading.sandbox.available import SandboxError

_session: pytest.StashKey[Session] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the job."""
    parser.addoption("--grading-job", help="JSON file with what is to be graded")


def pytest_configure(config: pytest.Config) -> None:
    """Let nbval use a kernel in a sandbox."""
    job = config.getoption("--grading-job")
    if job:
        session = config.stash[_session] = Session(Path(job))
        nbval.plugin.RunningKernel = session.kernel_for_nbval  # type: ignore[misc]


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the kernel, also where nbval did not get so far as to start it."""
    session = config.stash.get(_session, None)
    if session is not None:
        session.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Tell the session which cell is next. A cell before that timed out is no reason to skip."""
    cell, session = getattr(item, "cell", None), item.config.stash.get(_session, None)
    if cell is not None and session is not None:
        item.parent.timed_out = False  # type: ignore[union-attr]
        cell.source = session.begin(cell.metadata["attn_course"]["place"])
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Let nbval run the cell; a check fails where its verdict is not that all is right."""
    session = item.config.stash.get(_session, None)
    try:
        result = yield
    except BaseException as error:
        if session is None or isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        if isinstance(error, SandboxError):  # the grader's fault: nothing of it is an answer's
            _end(item)
            pytest.exit(str(error), returncode=NO_SANDBOX)
        session.finish(error)
        # nbval's report shows an exception's text; one that is no Exception would end the run
        raise nbval.plugin.NbCellError(item.cell_num, str(error), item.cell.source) from None  # type: ignore[attr-defined]
    if session is not None:
        failed = session.finish(None)
        if failed:
            raise nbval.plugin.NbCellError(item.cell_num, failed, item.cell.source)  # type: ignore[attr-defined]
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Start nothing after the last cell, where nbval asks once more for its kernel."""
    if nextitem is None and item.config.stash.get(_session, None) is not None:
        _end(item)


def _end(item: pytest.Item) -> None:
    item.config.stash[_session].close()
    item.parent.kernel = None  # type: ignore[union-attr]
