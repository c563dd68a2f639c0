"""The catalogue: a room for each chapter, and in it a module for each exercise.

A room's own list names its exercises; a module is imported when its exercise is asked for. Each
has an `EXERCISE`: its probes and its known mistakes.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from attn_course.checks.catalogue.listed import Listed
from attn_course.checks.exercise import Exercise

ROOMS = tuple(sorted(m.name for m in iter_modules(__path__) if m.ispkg and m.name[:2] == "ch"))


@cache
def listed() -> tuple[Listed, ...]:
    """All exercises in course order, none of them imported."""
    return tuple(entry for room in ROOMS for entry in import_module(f"{__name__}.{room}").EXERCISES)


def exercise(entry: Listed) -> Exercise:
    """The exercise itself."""
    return import_module(f"{__name__}.{entry.home}").EXERCISE
