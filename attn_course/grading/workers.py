"""Doing many submissions at once: on this machine, or on a Dask cluster."""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from attn_course.grading.rebuilt import Rebuilt
from attn_course.grading.settings import RunSettings
from attn_course.grading.state import package_digest
from attn_course.grading.verdict import Verdict
from attn_course.sentences import Code, Spoken, say

Executor = Callable[[Rebuilt, RunSettings], list[Verdict]]
"""Runs one rebuilt notebook and judges it: `attn_course.grading.judging.execute.execute`."""

NO_DASK = "--scheduler needs the package distributed: python -m pip install -e '.[cluster]'"
NO_SCHEDULER = "no Dask scheduler answers at {address} ({why})"
OTHER_VERSION = "the worker has another version of attn_course, of its checks or of torch"
UNDER_A_NANNY = "a worker under a nanny may start nothing: start it with --no-nanny"

_PATIENCE = 15  # seconds for a scheduler to answer


class ClusterError(Exception):
    """The cluster cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Finished:
    """One submission that is done: its verdicts, or what went wrong in the grader itself."""

    rebuilt: Rebuilt
    verdicts: list[Verdict] | None
    failure: Spoken = ""
    seconds: float = 0.0


def locally(
    submissions: Sequence[Rebuilt], settings: RunSettings, executor: Executor, jobs: int
) -> Generator[Finished, None, None]:
    """Each submission's result as it is done, `jobs` at a time.

    The threads only wait: what runs a submission is a process of its own. Closing the generator
    drops what is still running; a thread that waits does not keep the interpreter alive.
    """
    todo: queue.SimpleQueue[Rebuilt] = queue.SimpleQueue()
    # bounded, so that the threads do not run ahead of what is recorded
    done: queue.Queue[Finished] = queue.Queue(maxsize=1)
    for rebuilt in submissions:
        todo.put(rebuilt)
    closed = threading.Event()

    def work() -> None:
        while not closed.is_set():
            try:
                rebuilt = todo.get_nowait()
            except queue.Empty:
                return
            done.put(attempt(rebuilt, settings, executor))

    for k in range(min(jobs, len(submissions))):
        threading.Thread(target=work, name=f"grading-{k}", daemon=True).start()
    try:
        for _ in submissions:
            yield done.get()
    finally:
        closed.set()


def attempt(rebuilt: Rebuilt, settings: RunSettings, executor: Executor) -> Finished:
    """Run one submission; a fault of the grader is recorded, and stops nothing."""
    started = time.monotonic()
    try:
        verdicts, failure = executor(rebuilt, settings), ""
    except BaseException as error:  # an exit in a thread would never be heard of
        verdicts, failure = None, Code(f"{type(error).__name__}: {error}")
    return Finished(rebuilt, verdicts, failure, time.monotonic() - started)


def on_cluster(
    submissions: Sequence[Rebuilt], settings: RunSettings, executor: Executor, address: str
) -> Generator[Finished, None, None]:
    """Each submission's result as it is done by the workers of the Dask scheduler at `address`.

    What a lost worker had is done again by another one, and counts once.

    Raises:
        ClusterError: if there is no scheduler there, or Dask is not installed here.
    """
    try:
        from distributed import Client, as_completed
    except ModuleNotFoundError:
        raise ClusterError(say(NO_DASK)) from None
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(say(NO_SCHEDULER, address=address, why=str(error))) from None
    with contextlib.closing(client):
        digest = package_digest()
        futures = {
            client.submit(_on_worker, rebuilt, settings, executor, digest, pure=False): rebuilt
            for rebuilt in submissions
        }
        try:
            for future in as_completed(futures, loop=client.loop):
                yield _collected(future, futures.pop(future))
                future.release()
        finally:
            client.cancel(list(futures))


def _on_worker(
    rebuilt: Rebuilt, settings: RunSettings, executor: Executor, digest: str
) -> Finished:
    if package_digest() != digest:
        return Finished(rebuilt, None, OTHER_VERSION)
    if multiprocessing.current_process().daemon:
        return Finished(rebuilt, None, UNDER_A_NANNY)
    return attempt(rebuilt, settings, executor)


def _collected(future: Any, rebuilt: Rebuilt) -> Finished:
    if future.status == "finished":
        return future.result()
    reason = future.exception() if future.status == "error" else future.status
    return Finished(rebuilt, None, Code(f"{type(reason).__name__}: {reason}"))
