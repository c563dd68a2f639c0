"""What happens in the course and who hears of it, so that who tells need not know who listens.

A check tells that an exercise was attempted; that progress is kept of it is no business of the
check. Listeners are named by text and fetched when something happens, and not before.
"""

from importlib import import_module
from typing import Any

# event: (module, function) of each listener, called with what the event tells
LISTENERS = {
    "exercise-attempted": [("attn_course.learner.progress", "record_attempt")],
}


def tell(event: str, /, **what: Any) -> None:
    """Call the listeners of an event with what happened, in turn."""
    for module, function in LISTENERS[event]:
        getattr(import_module(module), function)(**what)
