"""A sandboxed kernel as nbval uses one, with an eye on death, time, memory and output.

nbval runs the cells; this takes the place of its own kernel. All messages are read here as they
come, so that nothing piles up, and a kernel that has died is noticed at once.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty
from typing import Any

import zmq
from jupyter_client.blocking.client import BlockingKernelClient

from attn_course.grading.remote.wire import MAX_CHARACTERS, MAX_ITEMS
from attn_course.grading.sandbox.sandbox import Sandbox
from attn_course.sentences import Spoken, constant, say

OUTPUT_LIMIT = 2**22
"""Characters that one cell may put out; more ends the kernel."""

EXCERPT = 2000
"""Characters of a cell's output that are kept."""

READY_SECONDS = 120.0
SOME_TASKS = 6
"""Threads that a kernel may have gained without anybody meaning harm."""

CHANNELS = {
    "shell": (2**20, 50),
    "stdin": (2 * MAX_CHARACTERS, 4),
    "iopub": (4 * OUTPUT_LIMIT, 100),
}
"""Bytes of a part of a message, and messages that may wait to be read, on each channel."""

MARKS = 40 * MAX_ITEMS
"""Brackets and commas of one message: more would be slow to read, and large when read."""

TOO_MUCH_MEMORY = "its processes held more than {most} MB of memory"

_LOOK = 0.2
_MOST_GARBAGE = 1000
_MOST_BESIDE = 2**17  # bytes of a message's headers and signature


class KernelGone(BaseException):
    """The kernel is no longer there. No `Exception`: nothing that judges an answer catches it.

    Attributes:
        status: "timeout" or "killed".
        reason: a sentence without a full stop.
    """

    def __init__(self, status: str, reason: Spoken) -> None:
        super().__init__(constant(reason))
        self.status, self.reason = status, reason


class Kernel:
    """One kernel in its sandbox, and the messages to and from it.

    Args:
        start: starts a sandbox.
        deadline: the moment (of `time.monotonic`) after which nothing runs any more.
    """

    language = "python"

    def __init__(self, start: Callable[[], Sandbox], deadline: float) -> None:
        self.deadline = deadline
        self.gone: KernelGone | None = None
        self.output = ""
        self.error: dict[str, Any] | None = None
        self._written = 0
        self._garbage = 0
        self._replies: set[str] = set()
        self._inputs: deque[str] = deque()
        self._published: deque[dict[str, Any]] = deque()
        self._sandbox = start()
        self._context = zmq.Context()
        self._context.setsockopt(zmq.LINGER, 0)
        # the sockets lie where the kernel can replace them: nothing is opened a second time
        self._context.setsockopt(zmq.RECONNECT_IVL, -1)
        self._stopped, self._lock = threading.Event(), threading.Lock()
        try:
            self._connect()
        except BaseException:
            self.stop()
            raise
        self._tasks = self._sandbox.tasks()
        threading.Thread(target=self._watch, daemon=True).start()

    # -- what nbval uses ----------------------------------------------------------------------

    def execute_cell_input(self, cell_input: str, allow_stdin: bool | None = None) -> str:
        """Send code to be run, and return the id of the request."""
        self.output, self.error, self._written = "", None, 0
        self._inputs.clear()
        return self._client.execute(
            cell_input, store_history=False, allow_stdin=bool(allow_stdin), stop_on_error=False
        )

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        """Wait until a request has been answered.

        Raises:
            Empty: if that takes longer than `timeout` seconds.
            KernelGone: if the kernel has died, or was ended.
        """
        end = time.monotonic() + (READY_SECONDS if timeout is None else timeout)
        while msg_id not in self._replies:
            self._pump(end)

    def await_idle(self, parent_id: str, timeout: float) -> None:
        """Wait until all output of a request has arrived."""
        while True:
            message = self.get_message("iopub", timeout)
            idle = message["content"].get("execution_state") == "idle"
            if idle and message["parent_header"].get("msg_id") == parent_id:
                return

    def get_message(self, stream: str, timeout: float | None = None) -> dict[str, Any]:
        """The next message that was published.

        Raises:
            Empty: if none comes within `timeout` seconds.
        """
        end = time.monotonic() + (timeout or 0)
        while not self._published:
            self._pump(end)
        return self._published.popleft()

    def is_alive(self) -> bool:
        """Whether cells can be run."""
        return self.gone is None and self._sandbox.alive()

    def interrupt(self) -> None:
        """A cell has run too long. A kernel that swallows interrupts is no different: it ends."""
        self.end("timeout", "it did not end within its time limit")

    def stop(self) -> None:
        """End the kernel and remove what it left."""
        self._stopped.set()
        self._sandbox.kill()
        client = getattr(self, "_client", None)
        if client is not None:
            client.stop_channels()
        self._context.destroy(linger=0)

    # -- what the plugin uses besides ---------------------------------------------------------

    def end(self, status: str, reason: Spoken) -> None:
        """End the kernel for this reason."""
        self._give_up(status, reason)
        self._sandbox.kill()

    def await_input(self, msg_id: str, seconds: float | None = None) -> str:
        """The text of the next request for input that a running check makes.

        Raises:
            KernelGone: if the kernel dies, or the check ends without a word.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while not self._inputs:
            if end is not None and time.monotonic() > end:
                self.end("timeout", "the check did not begin within the time limit")
            if msg_id in self._replies:
                raise KernelGone("error", "the check was ended from within")
            with contextlib.suppress(Empty):
                self._pump(time.monotonic() + 1.0)
        return self._inputs.popleft()

    def is_crowded(self) -> bool:
        """Whether the student's code has left processes or threads behind."""
        return self.is_alive() and self._sandbox.tasks() > self._tasks + SOME_TASKS

    def give_input(self, text: str) -> None:
        """Answer a request for input."""
        self._client.input(text)

    def run(self, code: str, timeout: float) -> bool:
        """Run code of the course's own, and say whether it raised nothing."""
        msg_id = self.execute_cell_input(code)
        self.await_reply(msg_id, timeout)
        with contextlib.suppress(Empty):
            self.await_idle(msg_id, 5.0)
        return self.error is None

    # -- messages -----------------------------------------------------------------------------

    def _connect(self) -> None:
        self._client = BlockingKernelClient(context=self._context)
        self._client.load_connection_info(self._sandbox.connection)  # type: ignore[arg-type]
        take = {
            "shell": self._take_reply,
            "stdin": self._take_input,
            "iopub": self._take_published,
        }
        self._channels: dict[zmq.Socket, Callable[[dict[str, Any]], None]] = {}
        self._ends: set[zmq.Socket] = set()
        self._poller = zmq.Poller()
        for name, (size, waiting) in CHANNELS.items():
            self._context.setsockopt(zmq.MAXMSGSIZE, size)
            self._context.setsockopt(zmq.RCVHWM, waiting)
            socket = getattr(self._client, f"{name}_channel").socket  # opened when asked for
            self._channels[socket] = take[name]
            self._ends.add(socket.get_monitor_socket(zmq.EVENT_DISCONNECTED))
        self._client.start_channels(hb=False, control=False)
        for socket in (*self._channels, *self._ends):
            self._poller.register(socket, zmq.POLLIN)
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            msg_id = self._client.kernel_info()
            self.await_reply(msg_id, READY_SECONDS)
            with contextlib.suppress(Empty):
                self.await_idle(msg_id, 1.0)
                return
        raise KernelGone("killed", "the kernel did not get ready")

    def _pump(self, end: float) -> None:
        """Take what has arrived; Empty at `end`, KernelGone once the kernel is no more."""
        if self.gone is not None:
            raise self.gone
        now = time.monotonic()
        if now >= self.deadline:
            self.end("timeout", "the time for the whole notebook was used up")
        if self.gone is not None:
            raise self.gone
        wait = max(0.0, min(end, self.deadline, now + _LOOK) - now)
        ready = self._poller.poll(int(wait * 1000) + 1)
        for socket, _ in ready:
            if socket in self._ends:
                self._hung_up()
            else:
                self._receive(socket)
        if self.gone is not None:
            raise self.gone
        if not ready and time.monotonic() >= end:
            raise Empty

    def _hung_up(self) -> None:
        """A connection has ended: with the kernel, or by a message larger than any may be."""
        end = time.monotonic() + 2.0
        while self._sandbox.alive() and time.monotonic() < end:
            time.sleep(0.01)
        self._look_at_sandbox()
        if self.gone is None:
            self.end("killed", "it broke off the line, or sent more than fits into a message")

    def _watch(self) -> None:
        """Look at the sandbox, also while nobody waits for it but computes."""
        while not self._stopped.wait(_LOOK) and self.gone is None:
            self._look_at_sandbox()

    def _look_at_sandbox(self) -> None:
        limits = self._sandbox.limits
        if not self._sandbox.alive():
            self._give_up("killed", self._sandbox.death())
        elif self._sandbox.memory_mb() > limits.memory_mb:
            self.end("killed", say(TOO_MUCH_MEMORY, most=limits.memory_mb))
        elif self._sandbox.entries() > limits.entries:
            self.end("killed", say("it made more than {most} files", most=limits.entries))

    def _give_up(self, status: str, reason: Spoken) -> None:
        with self._lock:  # the first reason is the reason
            if self.gone is None:
                self.gone = KernelGone(status, reason)

    def _receive(self, socket: zmq.Socket) -> None:
        session = self._client.session
        for _ in range(100):
            try:
                parts = socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                _, parts = session.feed_identities(parts)
                measure(parts)
                message = session.deserialize(parts)
                self._channels[socket](message)
            except Exception:  # not signed, no JSON, no message: whoever sent it may have it back
                self._garbage += 1
                if self._garbage > _MOST_GARBAGE:
                    self.end("killed", "it sent what is no message")

    def _take_reply(self, message: dict[str, Any]) -> None:
        self._replies.add(message["parent_header"]["msg_id"])

    def _take_input(self, message: dict[str, Any]) -> None:
        text = message["content"]["prompt"]
        if isinstance(text, str) and len(self._inputs) < 10:
            self._inputs.append(text)

    def _take_published(self, message: dict[str, Any]) -> None:
        content, kind = message["content"], message["msg_type"]
        size = sum(map(len, map(str, content.values()))) if kind != "status" else 0
        self._written += size
        if self._written > OUTPUT_LIMIT:
            self.end("killed", say("it put out more than {most} characters", most=OUTPUT_LIMIT))
            return
        if kind == "stream":
            self.output = (self.output + str(content["text"]))[:EXCERPT]
        elif kind == "error":
            self.error = content
        self._published.append(message)


def measure(parts: list[bytes]) -> None:
    """Raise ValueError for a message that would be large, or slow, to read."""
    _signature, *headers, content = parts[:5]
    marks = sum(map(content.count, (b"[", b"{", b",")))
    if sum(map(len, headers)) > _MOST_BESIDE or marks > MARKS:
        raise ValueError("a message that is too much")
