"""A mistake that all makers of masks know: a mask to be added to scores."""

from __future__ import annotations

from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake
from attn_course.sentences import Spoken


def additive(message: Spoken) -> Mistake:
    """A mask of zeros and of a number far below: an edit of `return mask`."""
    infinite, *finite = map(_with, ("-torch.inf", "-1e9", "torch.finfo(torch.float32).min"))
    return Mistake("additive", message, infinite, also=tuple(finite))


def _with(low: str) -> Edits:
    return {"return mask": f"return torch.zeros(mask.shape).masked_fill(~mask, {low})"}
