"""Running what a learner has written, and saying in words what it raised."""

from collections.abc import Callable
from typing import Any


class Words(str):
    """Text that a notebook shows without quotation marks."""

    def __repr__(self) -> str:
        """Return the text itself."""
        return str(self)


UNWRITTEN = "Your function is not written yet. Write it, run its cell, and move a slider."


def told(error: Exception, unwritten: str = UNWRITTEN) -> str:
    """What to say beside a slider of the error that the learner's function raised."""
    if isinstance(error, NotImplementedError):
        return unwritten
    if isinstance(error, NameError):
        return f"{error}: run the cell of your function first, then move a slider."
    return f"Your function raised {type(error).__name__}: {error}"


def shown_or_told(show: Callable[[], Any], what: str) -> Any:
    """Return what `show` gives, or words on what the learner's `what` ("module") raised in it."""
    try:
        return show()
    except NotImplementedError:
        return Words(f"Your {what} is not written yet. Write it, run its cell, then this one.")
    except Exception as error:  # the learner's code may raise anything, and sees it here
        told = f"Your {what} could not be run. {type(error).__name__}: {error}"
        return Words(f"{told}. The check above names the cause.")
