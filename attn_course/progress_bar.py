"""The bar over a training run: in notebooks and terminals, and nowhere else."""

import os
import sys
from typing import Any

VARIABLE = "ATTN_COURSE_PROGRESS_BAR"


def training_bar(label: str, steps: int | None, seconds: float | None) -> Any:
    """Return a tqdm bar over the budget; a silent one where nobody would see it.

    Without a front end a bar on stderr would be stored as an output that
    differs from run to run. ATTN_COURSE_PROGRESS_BAR=0 switches it off.
    """
    # imported here: it draws in ipywidgets, which a script does not need
    from tqdm.auto import tqdm

    unit = "steps" if steps is not None else "CPU-seconds"
    return tqdm(
        desc=label,
        total=steps if steps is not None else seconds,
        bar_format="{desc} {percentage:3.0f}%|{bar}| {n:.0f} of {total:.0f} "
        + unit
        + ", {remaining} left{postfix}",
        disable=not _has_audience(),
    )


def _has_audience() -> bool:
    if os.environ.get(VARIABLE) == "0":
        return False
    return _in_kernel() or sys.stderr.isatty()


def _in_kernel() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
