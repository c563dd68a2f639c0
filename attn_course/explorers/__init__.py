"""Interactive views that compute and draw in the browser, with a kernel or without one.

Imported on first use: anywidget and ipywidgets cost a fifth of importing torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attn_course.explorers.heads import HeadsExplorer
    from attn_course.explorers.mask import MaskExplorer
    from attn_course.explorers.position import PositionExplorer
    from attn_course.explorers.predict import Predict
    from attn_course.explorers.quiz import Quiz
    from attn_course.explorers.scaling import ScalingExplorer
    from attn_course.explorers.stepper import AttentionStepper
    from attn_course.explorers.training_view import TrainingView
    from attn_course.explorers.viewer import AttentionViewer

_HOMES = {
    "AttentionStepper": "attn_course.explorers.stepper",
    "AttentionViewer": "attn_course.explorers.viewer",
    "HeadsExplorer": "attn_course.explorers.heads",
    "PositionExplorer": "attn_course.explorers.position",
    "MaskExplorer": "attn_course.explorers.mask",
    "Predict": "attn_course.explorers.predict",
    "Quiz": "attn_course.explorers.quiz",
    "ScalingExplorer": "attn_course.explorers.scaling",
    "TrainingView": "attn_course.explorers.training_view",
}
__all__ = [
    "AttentionStepper",
    "AttentionViewer",
    "HeadsExplorer",
    "MaskExplorer",
    "PositionExplorer",
    "Predict",
    "Quiz",
    "ScalingExplorer",
    "TrainingView",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
