"""What the doctor says of one thing."""

from dataclasses import dataclass
from typing import Literal

from attn_course.sentences import Spoken

State = Literal["ok", "note", "stops"]


@dataclass(frozen=True)
class Condition:
    """One row: what was looked at, what was found, whether it matters, how to fix it.

    `stops` is for what would stop the course, `note` for what would not.
    """

    what: Spoken
    found: Spoken
    state: State = "ok"
    fix: Spoken = ""
