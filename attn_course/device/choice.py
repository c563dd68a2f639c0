"""Which device the cells compute on: the toggle's choice, else a variable, else the CPU."""

import os
import sys

import torch

VARIABLE = "ATTN_COURSE_DEVICE"

WORDS = {
    "no_cuda_build": "this PyTorch was built without CUDA",
    "no_cuda_device": "no GPU and driver that fit this PyTorch were found",
    "no_mps": "it exists on Apple computers only",
    "no_mps_build": "this PyTorch or this macOS does not support it",
}
"""Why a device cannot be used."""

# The choice is the session's, not one widget's: a cell that is run again makes a
# new toggle, and what had been chosen stays.
_choice: str | None = None


def device_reasons() -> dict[str, str | None]:
    """Return for "cpu", "cuda" and "mps" why it cannot be used here, or None if it can."""
    cuda = mps = None
    if not torch.cuda.is_available():
        built = torch.version.cuda or torch.version.hip
        cuda = WORDS["no_cuda_device" if built else "no_cuda_build"]
    if not torch.backends.mps.is_available():
        mps = WORDS["no_mps_build" if sys.platform == "darwin" else "no_mps"]
    return {"cpu": None, "cuda": cuda, "mps": mps}


def pick_device() -> torch.device:
    """Return the device that cells should compute on.

    It is the choice made in a `DeviceToggle`, if there is one; else what the
    environment variable ATTN_COURSE_DEVICE names; else the CPU, which is fast
    enough for all models of the course and gives the same numbers everywhere.

    Raises:
        ValueError: if ATTN_COURSE_DEVICE names no device of this machine.
    """
    if _choice is not None:
        return torch.device(_choice)
    return torch.device(_usable(os.environ.get(VARIABLE) or "cpu", source=f"{VARIABLE}="))


def choose_device(name: str) -> None:
    """Have the session's cells compute on a device from now on.

    Raises:
        ValueError: if this machine has no such device.
    """
    global _choice
    _choice = _usable(name, source="device ")


def _usable(name: str, source: str) -> str:
    kind, _, index = name.partition(":")
    reasons = device_reasons()
    if kind in reasons and reasons[kind] is None and _index_exists(kind, index):
        return name
    valid = ", ".join(repr(other) for other, reason in reasons.items() if reason is None)
    absent = "; ".join(f"{other!r}: {reason}" for other, reason in reasons.items() if reason)
    raise ValueError(
        f"{source}{name!r} cannot be used here. Valid: {valid}" + (f" ({absent})" if absent else "")
    )


def _index_exists(kind: str, index: str) -> bool:
    if index == "":
        return True
    count = torch.cuda.device_count() if kind == "cuda" else 1
    return index.isdecimal() and int(index) < count
