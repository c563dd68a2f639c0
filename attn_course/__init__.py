"""attn_course: attention and the Transformer, computed, predicted, written and debugged.

The names below are imported on first use, so that `import attn_course` costs
nothing beyond Python itself and a module pays only for what it draws in.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attn_course.checks import check
    from attn_course.device import DeviceToggle, pick_device
    from attn_course.drawings import course_map
    from attn_course.lesson.asking import calibration, predict, quiz, recall, reveal
    from attn_course.lesson.hints import hint
    from attn_course.lesson.overview import show_progress

__version__ = "0.1.0"

_HOMES = {
    "check": "attn_course.checks",
    "hint": "attn_course.lesson.hints",
    "course_map": "attn_course.drawings",
    "DeviceToggle": "attn_course.device",
    "pick_device": "attn_course.device",
    "show_progress": "attn_course.lesson.overview",
    "calibration": "attn_course.lesson.asking",
    "predict": "attn_course.lesson.asking",
    "quiz": "attn_course.lesson.asking",
    "recall": "attn_course.lesson.asking",
    "reveal": "attn_course.lesson.asking",
}
__all__ = [  # noqa: RUF022 (the order in which a learner meets them)
    "check",
    "hint",
    "show_progress",
    "course_map",
    "DeviceToggle",
    "pick_device",
    "quiz",
    "predict",
    "reveal",
    "recall",
    "calibration",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
