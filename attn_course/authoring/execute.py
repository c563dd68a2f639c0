"""Running a built notebook in a kernel, and keeping of its outputs what holds elsewhere."""

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ipykernel.kernelspec import RESOURCES, get_kernel_dict
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from attn_course.authoring.environment import execution_environment
from attn_course.authoring.errors import BuildError
from attn_course.authoring.notebooks import Book

# names a model of the kernel that made it: it would show an error in any other session
_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_EXEMPT = "nbval-ignore-output"


class _ThisPython(KernelSpecManager):
    """Runs the Python that builds, whatever kernel a user has installed as python3."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        return KernelSpec(resource_dir=RESOURCES, **get_kernel_dict())


class _Client(NotebookClient):
    """A client that is no front end, as nbval is none, so that both see the same outputs."""

    def reset_execution_trackers(self) -> None:
        super().reset_execution_trackers()
        self.comm_open_handlers = {}  # would keep what goes into an Output widget to itself


def execute(
    book: Book, folder: Path, timeout: int, step: Callable[[], object] = lambda: None
) -> None:
    """Run the notebook in `folder` and store its outputs in it.

    `timeout` is in seconds for each cell; `step` is called after each code cell.
    Raises BuildError, with the cell and its traceback, for a cell that fails or takes too
    long, and for outputs that strict nbval refuses: errors, and what goes to stderr.
    """
    at: list[NotebookNode] = []

    def starts(cell: NotebookNode, **_: object) -> None:
        at[:] = [cell]

    def finished(cell: NotebookNode, **_: object) -> None:
        step()

    client = _Client(
        book.notebook,
        timeout=timeout,
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        on_cell_start=starts,
        on_cell_executed=finished,
    )
    language = book.notebook.metadata.language_info
    folder.mkdir(exist_ok=True)
    try:
        with execution_environment(), _kernel_manager() as client.km:
            client.execute(cleanup_kc=True)
    except CellExecutionError as error:
        raise BuildError(
            "{place} failed:\n{problem}", place=book.place(at[0]), problem=_ANSI.sub("", str(error))
        ) from None
    except CellTimeoutError:
        raise BuildError(
            "{place} ran longer than {timeout} s:\n{code}",
            place=book.place(at[0]),
            timeout=timeout,
            code=at[0].source,
        ) from None
    except DeadKernelError:
        raise BuildError(
            "{place} ended its kernel:\n{code}", place=book.place(at[0]), code=at[0].source
        ) from None
    book.notebook.metadata.language_info = language
    for cell in book.notebook.cells:
        if cell.cell_type == "code":
            _clean(cell, book.place(cell))


@contextmanager
def _kernel_manager() -> Iterator[AsyncKernelManager]:
    """A manager whose sockets lie in a folder of its own.

    Builds that run side by side would race for ports.
    """
    with tempfile.TemporaryDirectory(prefix="attn-") as private:
        yield AsyncKernelManager(
            kernel_spec_manager=_ThisPython(),
            kernel_name="python3",
            transport="tcp" if sys.platform == "win32" else "ipc",
            connection_file=str(Path(private) / "kernel.json"),
        )


def _clean(cell: NotebookNode, place: str) -> None:
    cell.metadata.pop("execution", None)
    kept = []
    for output in cell.outputs:
        if output.output_type == "error":
            raise BuildError(
                "{place} stores an error, which strict nbval refuses: catch it and print it",
                place=place,
            )
        if output.get("name") == "stderr" and _EXEMPT not in cell.metadata.get("tags", []):
            raise BuildError(
                "{place} writes to stderr, which differs between machines: silence it, or tag "
                "the cell {tag}\n{text}",
                place=place,
                tag=_EXEMPT,
                text=output.text,
            )
        if "data" in output:
            output.data.pop(_WIDGET_VIEW, None)
        if output.get("data") != {}:
            kept.append(output)
    cell.outputs = kept
