"""Drawings of what the course teaches: pictures made by code, that scale and can be read aloud."""

from attn_course.drawings.architectures import (
    block,
    encoder_decoder,
    heads,
    positions,
    recurrence,
)
from attn_course.drawings.course import course_map
from attn_course.drawings.looking import look_up, recurrent_copying
from attn_course.drawings.masks import families, masks

__all__ = [
    "block",
    "course_map",
    "encoder_decoder",
    "families",
    "heads",
    "look_up",
    "masks",
    "positions",
    "recurrence",
    "recurrent_copying",
]
