"""Running what a learner has written, and saying in words what it raised."""

from collections.abc import Callable
from typing import Any

from attn_course.sentences import Sentence, say


class Words(str):
    """Text that a notebook shows without quotation marks."""

    def __repr__(self) -> str:
        """Return the text itself."""
        return str(self)


UNWRITTEN = say("Your function is not written yet. Write it, run its cell, and move a slider.")
MODULE = say("module")
BLOCK = say("block")


def told(error: Exception, unwritten: Sentence = UNWRITTEN) -> Sentence:
    """What to say beside a slider of the error that the learner's function raised."""
    if isinstance(error, NotImplementedError):
        return unwritten
    if isinstance(error, NameError):
        return say(
            "{error}: run the cell of your function first, then move a slider.", error=str(error)
        )
    kind = type(error).__name__
    return say("Your function raised {kind}: {error}", kind=kind, error=str(error))


def shown_or_told(show: Callable[[], Any], what: Sentence) -> Any:
    """Return what `show` gives, or words on what the learner's `what` (`MODULE`) raised in it."""
    try:
        return show()
    except NotImplementedError:
        return Words(
            say("Your {what} is not written yet. Write it, run its cell, then this one.", what=what)
        )
    except Exception as error:  # the learner's code may raise anything, and sees it here
        raised = say(
            "Your {what} could not be run. {kind}: {error}. The check above names the cause.",
            what=what,
            kind=type(error).__name__,
            error=str(error),
        )
        return Words(raised)
