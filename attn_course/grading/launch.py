"""The first program in a sandbox: takes the limits on itself and becomes the student's kernel.

It is copied beside the student edition and run by its path; what it needs stands in one JSON
argument. Limits are hard ones, and privileges are dropped, before any of the student's code is
there.
"""

from __future__ import annotations

import json
import os
import sys


def limit(settings: dict) -> None:
    """Set hard limits, and give up root where the sandbox was started by it."""
    import resource

    mib = 2**20
    for name, value in (
        ("RLIMIT_AS", settings["memory_mb"] * mib),
        ("RLIMIT_FSIZE", settings["file_mb"] * mib),
        ("RLIMIT_NOFILE", settings["files"]),
        ("RLIMIT_CPU", settings["cpu"]),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_NPROC", settings["processes"]),
    ):
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]  # who started the sandbox may have a lower one
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    if settings.get("uid"):
        os.setgroups([])
        os.setresgid(settings["uid"], settings["uid"], settings["uid"])
        os.setresuid(settings["uid"], settings["uid"], settings["uid"])
        if os.getuid() == 0 or _can_return():
            sys.exit("privileges could not be dropped")


def _can_return() -> bool:
    try:
        os.setuid(0)
    except PermissionError:
        return False
    return True


def import_torch() -> None:
    """Import what every notebook imports, with no search for garbage in it, now or later."""
    import gc

    gc.disable()
    import torch  # noqa: F401

    gc.freeze()
    gc.enable()


def main() -> None:
    """Become the kernel."""
    settings = json.loads(sys.argv[1])
    limit(settings)
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [here, *(entry for entry in sys.path if entry and entry != here)]
    import_torch()
    sys.argv = ["kernel", "-f", settings["connection"], "--HistoryManager.enabled=False"]
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance()


if __name__ == "__main__":
    main()
