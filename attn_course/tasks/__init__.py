"""Tasks to learn: seeded sources of examples, with training and test kept apart."""

from attn_course.tasks.base import IGNORE, START, Batch, Task, shift_right
from attn_course.tasks.dates import DateTask, date_task
from attn_course.tasks.language import mask_tokens, next_token_targets
from attn_course.tasks.lookups import latest_write_task, recall_task, staircase_task
from attn_course.tasks.sequences import (
    bracket_task,
    copy_task,
    k_back_task,
    reverse_task,
    sort_task,
)
from attn_course.tasks.text import Text, prose, text_file, tiny_shakespeare

__all__ = [
    "IGNORE",
    "START",
    "Batch",
    "DateTask",
    "Task",
    "Text",
    "bracket_task",
    "copy_task",
    "date_task",
    "k_back_task",
    "latest_write_task",
    "mask_tokens",
    "next_token_targets",
    "prose",
    "recall_task",
    "reverse_task",
    "shift_right",
    "sort_task",
    "staircase_task",
    "text_file",
    "tiny_shakespeare",
]
