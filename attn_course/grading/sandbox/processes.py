"""What processes hold, memory and threads, read from a /proc: this machine's or a sandbox's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Processes:
    """Some processes, as they are listed in `proc`."""

    pids: Collection[int]
    proc: Path = PROC

    def memory_mb(self, enough: float) -> float:
        """The memory that they hold together, in MiB; 0 where there is no /proc.

        Up to `enough` it is an upper bound; beyond, pages that several processes share after a
        fork are counted once, which takes longer to read.
        """
        bound = self._sum("status", "RssAnon:", "RssShmem:") / 1024
        if bound <= enough:
            return bound
        return self._sum("smaps_rollup", "Pss_Anon:", "Pss_Shmem:") / 1024 or bound

    def tasks(self) -> int:
        """How many threads they have together."""
        return self._sum("status", "Threads:")

    def _sum(self, file: str, *names: str) -> int:
        return sum(self._numbers(pid, file, names) for pid in self.pids)

    def _numbers(self, pid: int, file: str, names: tuple[str, ...]) -> int:
        """The numbers behind names in one of a process's files; 0 if it has ended."""
        try:
            text = (self.proc / str(pid) / file).read_text(errors="replace")
        except OSError:
            return 0
        return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(names))


def all_in(proc: Path) -> Processes:
    """All processes that a /proc lists: in a sandbox with its own, those of the sandbox."""
    try:
        return Processes(
            [int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()], proc
        )
    except OSError:
        return Processes((), proc)


def tree(pid: int) -> Processes:
    """A process and all that it has started, directly or not."""
    parents = _parents()
    found, waiting = set[int](), [pid]
    while waiting:
        current = waiting.pop()
        found.add(current)
        waiting += [child for child, parent in parents.items() if parent == current]
    return Processes(found)


def is_over(pid: int) -> bool:
    """Whether a process is gone, or dead and waiting to be collected, which may take seconds."""
    try:
        return _stat(pid)[0] in ("Z", "X")
    except (OSError, IndexError):
        return True


def _parents() -> dict[int, int]:
    """The parent of every process that can be seen."""
    found = {}
    for pid in all_in(PROC).pids:
        try:
            found[pid] = int(_stat(pid)[1])
        except (OSError, IndexError, ValueError):
            continue  # it has ended meanwhile
    return found


def _stat(pid: int) -> list[str]:
    """A process's state, its parent, and more numbers."""
    # its name, in brackets, comes before them and may hold anything
    return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
