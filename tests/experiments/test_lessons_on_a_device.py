"""Each lesson's cells run on a device other than the CPU: what they compute is all there.

The trainings are cut short, one step for each time that a lesson measures.
"""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest
from pretend_device import DEVICE, pretended

import attn_course
from attn_course import experiments
from attn_course.authoring.layout import Course
from attn_course.authoring.source import Cell, read_chapter
from attn_course.device import choice
from attn_course.training import StepInfo, fit

CHAPTERS = [read_chapter(path) for path in Course.here().sources()]


def cut_short(*args: Any, steps: int, eval_every: int | None = None, **settings: Any) -> Any:
    """As `fit`, with one step for each measurement; observers hear of all that it stands for."""
    stride = eval_every or max(1, steps // 2)
    on_step, settings = settings.get("on_step"), {**settings, "checkpoint": None}
    if on_step is not None:
        settings["on_step"] = _told_of_all(on_step, stride)
    history = fit(*args, steps=max(1, steps // stride), eval_every=eval_every and 1, **settings)
    for values in (history.loss, history.lr, history.gradient_norm, history.seconds):
        values[:] = [value for value in values for _ in range(stride)]
    return history


def _told_of_all(on_step: Callable[[StepInfo], Any], stride: int) -> Callable[[StepInfo], Any]:
    def tell(info: StepInfo) -> None:
        for step in range((info.step - 1) * stride + 1, info.step * stride + 1):
            on_step(replace(info, step=step))

    return tell


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch):
    """Choose the pretended device, and cut every training short."""
    monkeypatch.setattr(choice, "_usable", lambda name, source: name)
    monkeypatch.setattr(choice, "_choice", str(DEVICE))
    monkeypatch.setenv("ATTN_COURSE_PROGRESS_BAR", "0")
    for found in walk_packages(experiments.__path__, f"{experiments.__name__}."):
        module = import_module(found.name)
        if hasattr(module, "fit"):
            monkeypatch.setattr(module, "fit", cut_short)
    with pretended():
        yield


def cells(chapter: Any) -> list[Cell]:
    """What a reader of the lesson runs."""
    return [
        cell
        for cell in chapter.cells
        if cell.kind == "code" and cell.part == "lesson" and cell.role == "plain"
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("elsewhere", "without_shape_checks")
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.path.stem)
def test_a_lesson_follows_the_chosen_device(chapter):
    names = {name: getattr(attn_course, name) for name in attn_course.__all__}
    names["reveal"] = lambda *measured: None  # after so few steps nothing is as it was measured
    for cell in cells(chapter):
        exec(compile(cell.text, cell.where, "exec"), names)
