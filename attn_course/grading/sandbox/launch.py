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


CALLS = {"x86_64": (0xC000003E, (29, 319, 447)), "aarch64": (0xC00000B7, (194, 279, 447))}
"""By machine: what the kernel calls it, and its shmget, memfd_create and memfd_secret."""


def forbid_hidden_memory() -> None:
    """Take away the calls that make memory which no process holds: no limit would count it."""
    import ctypes
    import struct

    machine = os.uname().machine
    if not sys.platform.startswith("linux") or machine not in CALLS:
        return
    architecture, calls = CALLS[machine]
    # a filter of the kernel's: (what to do, steps if it holds, steps if not, number)
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    program = [(load, 0, 0, 4), (equal, 0, len(calls) + 3, architecture), (load, 0, 0, 0)]
    program += [(at_least, len(calls) + 1, 0, 0x40000000)]  # the x86's other way to number calls
    program += [(equal, len(calls) - k, 0, call) for k, call in enumerate(calls)]
    program += [(give, 0, 0, 0x7FFF0000), (give, 0, 0, 0x00050001)]  # allowed; EPERM
    code = b"".join(struct.pack("HBBI", *step) for step in program)
    held = ctypes.create_string_buffer(code, len(code))
    described = struct.pack("HxxxxxxP", len(program), ctypes.addressof(held))
    system = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, filtered = (38, 1, 0, 0, 0), (22, 2, described, 0, 0)
    if system.prctl(*no_new_privileges) or system.prctl(*filtered):
        sys.exit("the calls that hide memory could not be taken away")


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
    forbid_hidden_memory()
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [here, *(entry for entry in sys.path if entry and entry != here)]
    import_torch()
    sys.argv = ["kernel", "-f", settings["connection"], "--HistoryManager.enabled=False"]
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance()


if __name__ == "__main__":
    main()
