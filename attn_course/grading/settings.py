"""How submissions are run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunSettings:
    """How submissions are run. All of it takes part in the fingerprint of a result.

    Attributes:
        sandbox: "bubblewrap", "docker", "podman" or "none".
        timeout: wall-clock seconds for one cell.
        total_timeout: wall-clock seconds for one notebook.
        memory_mb: memory of one kernel.
        seed: the hidden inputs of every check are drawn from it, and from the student's code.
    """

    sandbox: str = "bubblewrap"
    timeout: float = 120.0
    total_timeout: float = 900.0
    memory_mb: int = 4096
    seed: int = 0
