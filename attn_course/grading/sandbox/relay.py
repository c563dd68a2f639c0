"""The sockets of a kernel in a container, brought out through the container program's own pipes.

A folder that both sides see would be the student's to fill and to put links into, and the virtual
machines in which Docker runs on macOS pass no sockets on. A pipe goes everywhere.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

CONNECTS = """
import socket, sys
for place in sys.argv[1:]:
    socket.socket(socket.AF_UNIX).connect(place)
"""
"""Run in the container: whether connections to all of these sockets are taken."""

_INSIDE = """
import socket, sys, threading
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])

def out():
    while data := line.recv(65536):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

sending = threading.Thread(target=out)
sending.start()
while data := sys.stdin.buffer.read1(65536):
    line.sendall(data)
line.shutdown(socket.SHUT_WR)
sending.join()
"""


class Relay:
    """Sockets out here, each connection to which is one to a socket in a container.

    Args:
        run: the command that runs a program in the container, connected to standard input and
            output, such as `docker exec -i NAME`.
        places: from each socket out here to the one in the container.
    """

    def __init__(self, run: Sequence[str], places: dict[Path, str]) -> None:
        self._run = [*run, "python", "-I", "-c", _INSIDE]
        self._lines: list[subprocess.Popen[bytes]] = []
        self._listening: list[socket.socket] = []
        self._closed, self._lock = False, threading.Lock()
        for here, there in places.items():
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(str(here))
            listening.listen()
            self._listening.append(listening)
            threading.Thread(target=self._take, args=(listening, there), daemon=True).start()

    def close(self) -> None:
        """Cut all connections and take no more."""
        with self._lock:
            self._closed = True
        for listening in self._listening:
            with contextlib.suppress(OSError):  # wakes the thread that waits for a connection
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        for line in self._lines:
            line.kill()
            line.wait()

    def _take(self, listening: socket.socket, there: str) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = listening.accept()
                with connection, self._lock:
                    if self._closed:
                        return
                    line = subprocess.Popen(
                        [*self._run, there],
                        stdin=connection.fileno(),
                        stdout=connection.fileno(),
                        stderr=subprocess.DEVNULL,
                    )
                    self._lines.append(line)
