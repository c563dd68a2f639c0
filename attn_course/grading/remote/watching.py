"""What is called while an answer runs, as a learner's own check sees it, too.

The student edition has the module itself in this one's place.
"""

from attn_course.checks.watching import watching

__all__ = ["watching"]
