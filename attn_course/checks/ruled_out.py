"""What an answer takes ready made although its exercise asks to write it.

That is what torch has under a name in `Exercise.rules_out`, and the course's own version of what
the exercise asks for. A learner's check tells it; in grading it is looked for in the code as well,
where a student may have reason to hide it (`grading/judging/forbidden.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

from attn_course.checks.exercise import Case, Exercise
from attn_course.checks.findings import observe
from attn_course.checks.watching import watching


def taken_ready_made(answer: Any, exercise: Exercise, cases: Sequence[Case]) -> list[str]:
    """The names of what an answer takes ready made, sorted; empty if it is the learner's own.

    Args:
        answer: one that passed.
        exercise: what it is an answer to.
        cases: its probes; the first of each stage is tried again.
    """
    if _is_of_the_course(answer, courses_own(exercise)):
        return [f"attn_course.{exercise.name}"]
    if not exercise.rules_out:
        return []
    used = set[str]()
    first = {case.stage.name: case for case in reversed(cases) if not case.stage.remark}
    observe(_watched(answer, used), list(first.values()))
    return called(exercise, used)


def called(exercise: Exercise, used: Iterable[str]) -> list[str]:
    """The ready-made functions of torch among those that were called, sorted."""
    return sorted(exercise.rules_out & set(used))


def courses_own(exercise: Exercise) -> list[Any]:
    """What the course has of what an exercise asks for: the reference, and what it may rest on."""
    home = sys.modules[exercise.reference.__module__]
    under_its_name = getattr(home, exercise.name, exercise.reference)
    return list({id(own): own for own in (exercise.reference, under_its_name)}.values())


def _watched(answer: Any, used: set[str]) -> Any:
    """The same answer; what it calls is noted in `used`."""

    def noting(call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **kwargs: Any) -> Any:
            with watching() as found:
                try:
                    return call(*args, **kwargs)
                finally:
                    used.update(found)

        return noted

    if isinstance(answer, type):
        return type(answer.__name__, (answer,), {"__call__": noting(answer.__call__)})
    return noting(answer)


def _is_of_the_course(answer: Any, own: Sequence[Any]) -> bool:
    """Whether an answer is the course's own version, derives from it or calls it."""
    if any(answer is version for version in own):
        return True
    if isinstance(answer, type):
        functions = [f for f in vars(answer).values() if isinstance(f, FunctionType)]
        return any(v in answer.__mro__ for v in own) or any(_calls(f, own) for f in functions)
    return isinstance(answer, FunctionType) and _calls(answer, own)


def _calls(function: FunctionType, own: Sequence[Any]) -> bool:
    return any(
        value is version
        for code in _codes(function.__code__)
        for value in _named(code, function.__globals__)
        for version in own
    )


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions inside it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _named(code: CodeType, names: dict[str, Any]) -> Iterator[Any]:
    """What the names in a piece of code stand for, also as parts of modules, as far as is known."""
    found = [names.get(name, sys.modules.get(name)) for name in code.co_names]
    yield from found
    for module in found:
        for name in code.co_names:
            yield getattr(module, "__dict__", {}).get(name)
