"""The bar over a training run: in notebooks and terminals, and nowhere else."""

import os
import sys
from typing import Any

from attn_course.notebook.shell import in_notebook
from attn_course.sentences import say, spoken

VARIABLE = "ATTN_COURSE_PROGRESS_BAR"

# tqdm fills these in
STEPS_DONE = (
    "{desc} {percentage:3.0f}%|{bar}| {n:.0f} of {total:.0f} steps, {remaining} left{postfix}"
)
SECONDS_DONE = (
    "{desc} {percentage:3.0f}%|{bar}| {n:.0f} of {total:.0f} CPU-seconds, {remaining} left{postfix}"
)
STEPS = "{label}: {total} steps"
SECONDS = "{label}: {total} CPU-seconds"


def training_bar(label: str, steps: int | None, seconds: float | None, *, done: float = 0.0) -> Any:
    """Return a tqdm bar over the budget; a silent one where nobody would see it.

    Without a front end a bar on stderr would be stored as an output that
    differs from run to run. ATTN_COURSE_PROGRESS_BAR=0 switches it off, an empty label this one.
    What is `done` when a run goes on from a checkpoint says nothing about the time that is left.
    """
    # imported here: it draws in ipywidgets, which a script does not need
    from tqdm.auto import tqdm
    from tqdm.notebook import tqdm_notebook

    total = steps if steps is not None else seconds
    settings = {
        "desc": label,
        "total": total,
        "initial": done,
        # each redrawing is three messages; a client that reads none until the cell has ended,
        # as nbval, loses some after a thousand or two
        "mininterval": 0.5,
        "bar_format": spoken(STEPS_DONE if steps is not None else SECONDS_DONE),
    }
    if not label or not _has_audience():
        return tqdm(**settings, disable=True)
    if not issubclass(tqdm, tqdm_notebook):
        return tqdm(**settings)
    bar = tqdm(**settings, display=False)
    budget = STEPS if steps is not None else SECONDS
    _display(bar.container, spoken(say(budget, label=label, total=total)))
    return bar


def _display(container: Any, text: str) -> None:
    """Show the bar, with words in its stead for those who read the notebook without a kernel.

    tqdm's own stand-in is the bar as it was before the first step, for ever at 0 %.
    """
    from IPython.display import display

    view = {"version_major": 2, "version_minor": 0, "model_id": container.model_id}
    bundle = {"text/plain": text, "application/vnd.jupyter.widget-view+json": view}
    display(bundle, raw=True)


def _has_audience() -> bool:
    if os.environ.get(VARIABLE) == "0":
        return False
    return in_notebook() or sys.stderr.isatty()
