"""Where a student's kernel runs: what it sees of the machine, and how much of it it may use.

Bubblewrap makes a sandbox as an ordinary user: no network, the system's libraries and Python
read-only, a small disk of its own, and nothing else. Docker and Podman do as much at the price
of a start. "none" protects from nothing and has to be asked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from itertools import count
from pathlib import Path
from typing import Any

from attn_course.grading.sandbox.available import CONTAINERS, REMEDY, SandboxError, what_failed
from attn_course.grading.sandbox.enclosure import Enclosure, Limits
from attn_course.grading.sandbox.processes import Processes, all_in, is_over, tree
from attn_course.grading.sandbox.relay import CONNECTS, Relay
from attn_course.sentences import Spoken, constant, say

SOCKETS = "/run/kernel/s"
"""Where the kernel's sockets are inside a sandbox: `s-1` … `s-5`."""

PORTS = {"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5}

DISKS = ("/tmp", "/home/student", "/dev/shm", "/run/kernel")
"""What can be written to inside bubblewrap; all of it is memory."""

FIRST_UID = 1_800_000_000
"""Root's sandboxes run as users of their own, numbered from here; nobody else has such numbers."""

NO_BUBBLEWRAP = "bubblewrap did not start: {log}\n{remedy}"
NO_KERNEL = "the kernel did not start: {death} {log}"

START_SECONDS = 120.0
END_SECONDS = 10.0


class Sandbox:
    """One running kernel in its sandbox.

    Args:
        kind: one of KINDS.
        edition: the folder with the student edition of the course, read-only inside.
        limits: what it may use.

    Raises:
        SandboxError: if it does not start.
    """

    def __init__(self, kind: str, edition: Path, limits: Limits) -> None:
        self.kind = kind
        self.limits = limits
        self._folder = Path(tempfile.mkdtemp(prefix="kernel-"))
        self.key = uuid.uuid4().hex
        self._log = self._folder / "log"
        self._relay: Relay | None = None
        uid = _own_uid() if kind == "bubblewrap" and os.geteuid() == 0 else 0
        self._name = f"attn-course-{uuid.uuid4().hex[:12]}"
        self._enclosure = Enclosure(kind, edition, limits, self._folder, self._name, uid)
        try:
            self._start()
        except OSError as error:
            self.kill()
            raise SandboxError(say("the sandbox did not start: {why}", why=str(error))) from error
        except BaseException:
            self.kill()
            raise

    # -- what the plugin uses -----------------------------------------------------------------

    @property
    def connection(self) -> dict[str, Any]:
        """How a client reaches the kernel."""
        return self._connection(self._seen_from_outside())

    def alive(self) -> bool:
        """Whether the kernel's process still runs."""
        return self._process.poll() is None

    def memory_mb(self) -> float:
        """The memory that all processes in the sandbox hold together, shared pages once each."""
        return self._processes().memory_mb(self.limits.memory_mb)

    def entries(self) -> int:
        """How many files and folders there are on its disks; 0 where they are not its own."""
        if self.kind != "bubblewrap":
            return 0
        found = 0
        for disk in DISKS:
            with contextlib.suppress(OSError):
                stored = os.statvfs(f"/proc/{self._init}/root{disk}")
                found += stored.f_files - stored.f_ffree
        return found

    def tasks(self) -> int:
        """How many threads all its processes have together."""
        return self._processes().tasks()

    def _processes(self) -> Processes:
        if self.kind == "bubblewrap":
            # the sandbox's own list: short, and complete however they were started
            return all_in(Path(f"/proc/{self._init}/root/proc"))
        return tree(self._process.pid)

    def death(self) -> Spoken:
        """Why it is not alive, in words; for a kernel that is still there, an empty text."""
        code = self._process.poll()
        if code is None:
            return ""
        # a shell's way to say it: 128 and the number of the signal
        number = -code if code < 0 else code - 128
        if 0 < number < 65:
            name = signal.Signals(number).name if number in list(signal.Signals) else str(number)
            return say("it was ended by signal {name}", name=name)
        return say("it ended itself with exit code {code}", code=code)

    def log(self) -> str:
        """The last that was written to standard error before the kernel took over."""
        try:
            return self._log.read_bytes()[-2000:].decode(errors="replace").strip()
        except OSError:
            return ""

    def kill(self) -> None:
        """End all that runs in the sandbox, at once, and remove what it left."""
        process = getattr(self, "_process", None)
        if process is not None:
            _end(process)
            self._await_end()
        if self.kind in CONTAINERS:
            if self._relay is not None:
                self._relay.close()
            subprocess.run([self.kind, "rm", "-f", self._name], capture_output=True, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _await_end(self) -> None:
        """Wait for the last of the sandbox's processes: they still count, and hold memory."""
        end = time.monotonic() + END_SECONDS
        init = getattr(self, "_init", 0)  # which ends after all others of its space
        while self.kind == "bubblewrap" and not is_over(init) and time.monotonic() < end:
            time.sleep(0.01)

    # -- starting -----------------------------------------------------------------------------

    def _start(self) -> None:
        inside = self._folder / "connection.json"
        inside.write_text(json.dumps(self._connection(self._seen_from_inside())))
        inside.chmod(0o644)
        read, write = os.pipe()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                list(self._enclosure.command(write)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=[write] if self.kind == "bubblewrap" else (),
                env=self._enclosure.environment() if self.kind == "none" else None,
                start_new_session=True,
            )
        os.close(write)
        self._init = self._pid_inside(read)
        self._await_sockets()
        if self.kind in CONTAINERS:
            here, there = self._seen_from_outside(), self._seen_from_inside()
            places = {Path(f"{here}-{k}"): f"{there}-{k}" for k in PORTS.values()}
            self._relay = Relay([self.kind, "exec", "-i", self._name], places)

    def _pid_inside(self, read: int) -> int:
        with os.fdopen(read, "rb") as pipe:
            text = pipe.read() if self.kind == "bubblewrap" else b""
        if self.kind != "bubblewrap":
            return self._process.pid
        try:
            return int(json.loads(text)["child-pid"])
        except (ValueError, KeyError):
            self._process.wait(timeout=10)
            raise SandboxError(say(NO_BUBBLEWRAP, log=self.log(), remedy=say(REMEDY))) from None

    def _await_sockets(self) -> None:
        end = time.monotonic() + START_SECONDS
        while not self._listens():
            if not self.alive() or time.monotonic() > end:
                death = constant(self.death())
                raise SandboxError(say(NO_KERNEL, death=death, log=self.log()))
            time.sleep(0.01)

    def _listens(self) -> bool:
        """Whether connections to all of the kernel's sockets would be taken."""
        if self.kind not in CONTAINERS:
            return all(_listens(f"{self._seen_from_outside()}-{k}") for k in PORTS.values())
        inside = (f"{self._seen_from_inside()}-{k}" for k in PORTS.values())
        command = (self.kind, "exec", self._name, "python", "-I", "-c", CONNECTS, *inside)
        return what_failed(command) is None

    def _connection(self, sockets: str) -> dict[str, Any]:
        return {
            "transport": "ipc",
            "ip": sockets,
            "key": self.key,
            "signature_scheme": "hmac-sha256",
            **PORTS,
        }

    def _seen_from_inside(self) -> str:
        return SOCKETS if self.kind != "none" else str(self._folder / "s")

    def _seen_from_outside(self) -> str:
        if self.kind == "bubblewrap":
            # the sandbox's disk is nowhere else: the kernel cannot fill the instructor's
            return f"/proc/{self._init}/root{SOCKETS}"
        return str(self._folder / "s")


_started = count()


def _own_uid() -> int:
    """A user number that no other running sandbox has: limits are counted by user."""
    return FIRST_UID + 16 * os.getpid() + next(_started) % 16


def _listens(place: str) -> bool:
    """Whether a connection to this socket would be taken."""
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
        probe.connect(place)
        return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
