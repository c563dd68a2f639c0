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
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from attn_course.grading.sandbox.available import (
    CONTAINERS,
    REMEDY,
    SandboxError,
    image,
    what_failed,
)
from attn_course.grading.sandbox.mounts import (
    course_places,
    folders_above,
    python_places,
    system_mounts,
)
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


@dataclass(frozen=True)
class Limits:
    """What one sandbox may use of the machine.

    Attributes:
        memory_mb: memory of all its processes together, and address space of each.
        processes: processes and threads.
        disk_mb: its private disk; what is on it counts as memory too.
        file_mb: one file.
        files: open files of one process.
        entries: files and folders on its disks: an empty one takes memory too, and no room.
        cpu: seconds of processor time of one process.
    """

    memory_mb: int = 4096
    processes: int = 64
    disk_mb: int = 128
    file_mb: int = 64
    files: int = 256
    entries: int = 20_000
    cpu: int = 900


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
        self.edition = edition
        self._folder = Path(tempfile.mkdtemp(prefix="kernel-"))
        self.key = uuid.uuid4().hex
        self._log = self._folder / "log"
        self._relay: Relay | None = None
        self._uid = _own_uid() if kind == "bubblewrap" and os.geteuid() == 0 else 0
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
                list(self._command(write)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=[write] if self.kind == "bubblewrap" else (),
                env=self._environment() if self.kind == "none" else None,
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

    # -- commands -----------------------------------------------------------------------------

    def _command(self, info: int) -> Iterator[str]:
        if self.kind == "bubblewrap":
            yield from self._bubblewrap(info)
            yield from ("--", sys.executable, "-I", "/course/launch.py", self._settings())
        elif self.kind == "none":
            yield from (sys.executable, "-I", str(self.edition / "launch.py"), self._settings())
        else:
            yield from self._container()

    def _settings(self, *, memory: bool = True) -> str:
        limits = self.limits
        connection = "/course-connection.json"
        if self.kind == "none":
            connection = str(self._folder / "connection.json")
        # torch maps libraries of about a gigabyte before it has computed anything
        address_space = max(limits.memory_mb, 2048) if memory else 2**20
        return json.dumps(
            {
                "memory_mb": address_space,
                "processes": limits.processes if self.kind != "none" else 4096,
                "file_mb": limits.file_mb,
                "files": limits.files,
                "cpu": limits.cpu,
                "uid": self._uid,
                "connection": connection,
            }
        )

    def _bubblewrap(self, info: int) -> Iterator[str]:
        disk = str(self.limits.disk_mb * 2**20)
        yield "bwrap"
        if self._uid:
            # root's own namespace, or the limit on processes would not bind; see launch.py
            for space in ("ipc", "pid", "net", "uts", "cgroup-try"):
                yield f"--unshare-{space}"
            yield from ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
        else:
            yield from ("--unshare-all", *_no_nested_namespaces())
        yield from ("--die-with-parent", "--new-session", "--info-fd", str(info), "--clearenv")
        for name, value in self._environment().items():
            yield from ("--setenv", name, value)
        yield from ("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev")
        yield from ("--perms", "1777", "--size", disk, "--tmpfs", "/dev/shm")
        yield from system_mounts()
        # before Python's places: the course may itself lie below /tmp
        for place, size in (("/tmp", disk), ("/home/student", disk), ("/run/kernel", "65536")):
            yield from (*folders_above(place), "--perms", "1777", "--size", size)
            yield from ("--tmpfs", place)
        for place in python_places():
            yield from (*folders_above(place), "--ro-bind", place, place)
        for hidden in course_places():
            yield from ("--tmpfs", hidden, "--remount-ro", hidden)
        yield from ("--ro-bind", str(self.edition), "/course")
        yield from ("--ro-bind", str(self._folder / "connection.json"), "/course-connection.json")
        yield from ("--remount-ro", "/", "--chdir", "/home/student")

    def _container(self) -> Iterator[str]:
        self._name = f"attn-course-{uuid.uuid4().hex[:12]}"
        limits = self.limits
        yield from (self.kind, "run", "--rm", "--name", self._name, "--network", "none")
        yield from ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
        if self.kind == "podman":  # which else adds disks that are as large as the memory
            yield "--read-only-tmpfs=false"
        yield from ("--pids-limit", str(limits.processes), "--memory", f"{limits.memory_mb}m")
        yield from ("--memory-swap", f"{limits.memory_mb}m", "--user", "65534:65534")
        for place in ("/tmp", "/home/student", "/run/kernel"):
            yield from ("--tmpfs", f"{place}:rw,size={limits.disk_mb}m,mode=1777")
        for name, value in self._environment().items():
            if name != "PATH":  # the image knows where its Python is
                yield from ("--env", f"{name}={value}")
        yield from ("--volume", f"{self.edition}:/course:ro")
        connection = self._folder / "connection.json"
        yield from ("--volume", f"{connection}:/course-connection.json:ro")
        yield from ("--workdir", "/home/student", image())
        yield from ("python", "-I", "/course/launch.py", self._settings(memory=False))

    def _environment(self) -> dict[str, str]:
        home = str(self._folder) if self.kind == "none" else "/home/student"
        return {
            "HOME": home,
            "USER": "student",
            "LOGNAME": "student",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PATH": "/usr/bin:/bin",
            "IPYTHONDIR": f"{home}/.ipython",
            "MPLCONFIGDIR": f"{home}/.matplotlib",
            "MPLBACKEND": "agg",
            "JUPYTER_PLATFORM_DIRS": "1",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "ATTN_COURSE_PROGRESS": ":memory:",
        }


@cache
def _no_nested_namespaces() -> tuple[str, ...]:
    """Bubblewrap 0.8 and later can forbid namespaces within its own."""
    options = ("--unshare-user", "--disable-userns")
    command = ["bwrap", "--unshare-all", *options, *system_mounts(), "--", "/bin/true"]
    return options if what_failed(command) is None else ()


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
