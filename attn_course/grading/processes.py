"""What a process and its descendants hold, memory and threads, read from /proc."""

from __future__ import annotations

from pathlib import Path

_PROC = Path("/proc")


def tree_memory_mb(pid: int, enough: float) -> float:
    """Memory of a process and all its descendants, in MiB; 0 where there is no /proc.

    Up to `enough` it is an upper bound; beyond, pages that several processes share after a fork
    are counted once, which takes longer to read.
    """
    tree = _tree(pid)
    bound = sum(_kb(p, "status", ("RssAnon:", "RssShmem:")) for p in tree) / 1024
    if bound <= enough:
        return bound
    exact = sum(_kb(p, "smaps_rollup", ("Pss_Anon:", "Pss_Shmem:")) for p in tree) / 1024
    return exact or bound


def tree_tasks(pid: int) -> int:
    """How many threads a process and its descendants have together."""
    return sum(_number(p, "status", "Threads:") for p in _tree(pid))


def _tree(pid: int) -> set[int]:
    parents = _parents()
    tree, waiting = set[int](), [pid]
    while waiting:
        current = waiting.pop()
        tree.add(current)
        waiting += [child for child, parent in parents.items() if parent == current]
    return tree


def _parents() -> dict[int, int]:
    """The parent of every process that can be seen."""
    found = {}
    try:
        entries = list(_PROC.iterdir())
    except OSError:
        return found
    for entry in entries:
        if entry.name.isdigit():
            try:
                # the name, in brackets, may hold anything; what follows the last one is numbers
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                found[int(entry.name)] = int(fields[1])
            except (OSError, IndexError, ValueError):
                continue  # it has ended meanwhile
    return found


def _kb(pid: int, file: str, wanted: tuple[str, ...]) -> int:
    return sum(_number(pid, file, name) for name in wanted)


def _number(pid: int, file: str, name: str) -> int:
    """The number behind a name in one of a process's files; 0 if it has ended."""
    try:
        text = (_PROC / str(pid) / file).read_text(errors="replace")
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(name))
