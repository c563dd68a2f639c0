"""Mistakes in refusing what cannot be."""

from attn_course.checks.exercise import Mistake
from attn_course.sentences import Spoken, joined

LEFT_OUT = (
    "An assert is left out under `python -O`; a user's mistake is a ValueError with the numbers."
)
FOR_THE_PROGRAMMER = (
    "An assert is for the programmer, and is left out under `python -O`; a user's mistake is a "
    "ValueError with the numbers."
)
WITH_THE_NUMBER = (
    "An assert is for the programmer, and is left out under `python -O`; a user's mistake is a "
    "ValueError with the number."
)


def asserted(case: Spoken, why: Spoken = LEFT_OUT) -> Mistake:
    """What should be refused fails an assert: an edit of `raise ValueError(`.

    Args:
        case: when that happens, as a sentence.
        why: what is wrong with it.
    """
    return Mistake("asserted", joined([case, why]), {"raise ValueError(": "raise AssertionError("})
