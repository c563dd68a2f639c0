"""The catalogue is the test suite of the checks: right answers pass, wrong ones are named."""

import importlib
import pkgutil
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from attn_course.checks import examine, exercises, get

EXERCISES = [get(name) for name in exercises()]
MISTAKES = [
    (exercise, mistake.id, made)
    for exercise in EXERCISES
    for mistake in exercise.mistakes
    for made in (mistake.versions or mistake.examples)
]
"""Each known version as the catalogue has it; `exercise.version(made)` compiles one."""

FIRST = [
    (exercise, mistake.id, (mistake.versions or mistake.examples)[0])
    for exercise in EXERCISES
    for mistake in exercise.mistakes
]
"""One version of each mistake; the slow tests have all of them."""


def collected(attribute: str) -> list[tuple]:
    """(exercise, answer, …) from the modules `tests/checks/answers_*.py`."""
    found = []
    for info in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if info.name.startswith("answers_"):
            table = getattr(importlib.import_module(f"{__package__}.{info.name}"), attribute, {})
            found += [(get(name), answer) for name, answers in table.items() for answer in answers]
    return found


def label(value: object) -> str:
    """A name without addresses: parallel workers must collect the same names."""
    if isinstance(value, Mapping):
        return "edit"
    name = getattr(value, "name", None) or getattr(value, "__name__", str(value))
    return re.sub(r" at 0x[0-9a-f]+", "", name)


@pytest.mark.parametrize("exercise", EXERCISES, ids=label)
def test_the_reference_passes_whatever_the_seed(exercise):
    for seed in range(5):
        report = examine(exercise.reference, exercise, seed)
        assert report.passed, report.message
        assert not report.remarks


# kills: mistakes that are edits of an answer which is wrong itself
@pytest.mark.parametrize("exercise", [each for each in EXERCISES if each.right], ids=label)
def test_the_answer_that_mistakes_are_edits_of_passes_whatever_the_seed(exercise):
    for seed in range(5):
        report = examine(exercise.right, exercise, seed)
        assert report.passed, report.message
        assert not report.remarks


@pytest.mark.parametrize("exercise", EXERCISES, ids=label)
def test_a_stub_and_empty_answers_are_rejected(exercise):
    def stub(*_args):
        raise NotImplementedError("your code")

    assert "NotImplementedError" in examine(stub, exercise).message
    for nothing in (lambda *_: None, lambda *_: 0.0, lambda *args: args[0], lambda *_: ()):
        report = examine(nothing, exercise)
        assert not report.passed
        assert report.message


@pytest.mark.parametrize(("exercise", "mistake", "made"), FIRST, ids=label)
def test_each_mistake_is_rejected_by_name(exercise, mistake, made):
    report = examine(exercise.version(made), exercise)
    assert not report.passed
    assert report.mistake == mistake, report.message


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("exercise", "mistake", "made"), MISTAKES, ids=label)
def test_each_mistake_is_rejected_by_name_whatever_the_seed(exercise, mistake, made, seed):
    report = examine(exercise.version(made), exercise, seed)
    assert not report.passed
    assert report.mistake == mistake, report.message


@pytest.mark.parametrize(("exercise", "answer"), collected("RIGHT"), ids=label)
def test_correct_variants_are_accepted(exercise, answer):
    report = examine(answer, exercise)
    assert report.passed, report.message


@pytest.mark.parametrize(("exercise", "case"), collected("WRONG"), ids=label)
def test_other_wrong_answers_are_rejected_with_a_cause(exercise, case):
    answer, mistake, *words = case
    report = examine(answer, exercise)
    assert not report.passed
    assert report.mistake == mistake, report.message
    for word in words:
        assert word in report.message


# kills: a first stage with the same inputs in every run, whose results a table could hold; a class
# is asked for its parts first, which have to be made
@pytest.mark.parametrize(
    "exercise", [each for each in EXERCISES if each.wire != "class"], ids=label
)
def test_the_first_stage_asks_something_else_in_each_run(exercise):
    first = exercise.stages[0]
    asked = [[case.args for case in exercise.cases(k) if case.stage is first] for k in range(5)]
    assert len({repr(args) for args in asked}) > 1, (
        f"{first.draw.__name__} yields the same in each run: take a case from the generator, such "
        "as normal(rng, 3, 5) or whole(rng, 2, 9), or a table of results would pass"
    )


@pytest.mark.parametrize("exercise", EXERCISES, ids=label)
def test_every_exercise_is_complete(exercise):
    assert len({mistake.id for mistake in exercise.mistakes}) == len(exercise.mistakes)
    assert len(exercise.mistakes) >= 3
    assert len(exercise.hints) >= 3
    assert exercise.difficulty in (1, 2, 3)
    assert exercise.may_use
    # a small first probe is what a message can show in numbers
    assert exercise.cases()[0].size <= 16
