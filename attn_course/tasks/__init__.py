"""Tasks to learn: seeded sources of examples, with training and test kept apart."""

from attn_course.tasks.base import IGNORE, START, Batch, Task, shift_right
from attn_course.tasks.sequences import copy_task, reverse_task, sort_task

__all__ = [
    "IGNORE",
    "START",
    "Batch",
    "Task",
    "copy_task",
    "reverse_task",
    "shift_right",
    "sort_task",
]
