"""What starts a kernel in its sandbox: command lines, and what they show of this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attn_course.grading.sandbox.available import image, what_failed
from attn_course.grading.sandbox.mounts import (
    course_places,
    folders_above,
    python_places,
    system_mounts,
)


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


@dataclass(frozen=True)
class Enclosure:
    """What one sandbox is made of.

    Attributes:
        kind: one of KINDS.
        edition: the folder with the student edition of the course, read-only inside.
        limits: what it may use.
        folder: the instructor's side of it, with the kernel's connection file.
        name: a container's name.
        uid: the user that root's sandboxes run as; 0 where there is no need of another one.
    """

    kind: str
    edition: Path
    limits: Limits
    folder: Path
    name: str
    uid: int = 0

    def command(self, info: int) -> Iterator[str]:
        """The command that starts the kernel; bubblewrap tells its process id to `info`."""
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
            connection = str(self.folder / "connection.json")
        # torch maps libraries of about a gigabyte before it has computed anything
        address_space = max(limits.memory_mb, 2048) if memory else 2**20
        return json.dumps(
            {
                "memory_mb": address_space,
                "processes": limits.processes if self.kind != "none" else 4096,
                "file_mb": limits.file_mb,
                "files": limits.files,
                "cpu": limits.cpu,
                "uid": self.uid,
                "connection": connection,
            }
        )

    def _bubblewrap(self, info: int) -> Iterator[str]:
        disk = str(self.limits.disk_mb * 2**20)
        yield "bwrap"
        if self.uid:
            # root's own namespace, or the limit on processes would not bind; see launch.py
            for space in ("ipc", "pid", "net", "uts", "cgroup-try"):
                yield f"--unshare-{space}"
            yield from ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
        else:
            yield from ("--unshare-all", *_no_nested_namespaces())
        yield from ("--die-with-parent", "--new-session", "--info-fd", str(info), "--clearenv")
        for name, value in self.environment().items():
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
        yield from ("--ro-bind", str(self.folder / "connection.json"), "/course-connection.json")
        yield from ("--remount-ro", "/", "--chdir", "/home/student")

    def _container(self) -> Iterator[str]:
        limits = self.limits
        yield from (self.kind, "run", "--rm", "--name", self.name, "--network", "none")
        yield from ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
        if self.kind == "podman":  # which else adds disks that are as large as the memory
            yield "--read-only-tmpfs=false"
        yield from ("--pids-limit", str(limits.processes), "--memory", f"{limits.memory_mb}m")
        yield from ("--memory-swap", f"{limits.memory_mb}m", "--user", "65534:65534")
        for place in ("/tmp", "/home/student", "/run/kernel"):
            yield from ("--tmpfs", f"{place}:rw,size={limits.disk_mb}m,mode=1777")
        for name, value in self.environment().items():
            if name != "PATH":  # the image knows where its Python is
                yield from ("--env", f"{name}={value}")
        yield from ("--volume", f"{self.edition}:/course:ro")
        connection = self.folder / "connection.json"
        yield from ("--volume", f"{connection}:/course-connection.json:ro")
        yield from ("--workdir", "/home/student", image())
        yield from ("python", "-I", "/course/launch.py", self._settings(memory=False))

    def environment(self) -> dict[str, str]:
        """The environment's variables, of which none are the instructor's."""
        home = str(self.folder) if self.kind == "none" else "/home/student"
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
