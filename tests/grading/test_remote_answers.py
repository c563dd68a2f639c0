"""Answers judged through the line between two processes fare as they do without it."""

from itertools import cycle

import pytest
import torch
from torch import nn

from attn_course.checks import Exercise, examine, exercises, get
from attn_course.checks.exercise import call_stage
from attn_course.checks.runner import copy_of
from attn_course.grading.judging import assess
from attn_course.grading.remote import forms, inside
from attn_course.grading.remote.peer import Peer
from attn_course.sentences import spoken
from tests.checks.test_catalogue import MISTAKES, collected, label

EXERCISES = [get(name) for name in exercises()]

# a class is another one at the other end, and a kernel has no checker of shapes
pytestmark = pytest.mark.usefixtures("without_shape_checks")


def remote(answer, form="class"):
    """`answer` at the other end of a line within this process: every value passes as text."""
    trusted = Peer(lambda text: kernel.serve_one(text), "t", form=form)
    kernel = Peer(lambda text: trusted.serve_one(text), "k", lambda _: answer)
    kernel.locate = inside.locate
    return lambda *args, **kwargs: trusted.call("answer:it", "", args, kwargs)


def test_a_part_under_two_names_is_one_part_at_the_other_end():
    def made():
        block = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        return nn.ModuleDict({"twice": nn.ModuleList([block] * 2), "other": nn.Linear(2, 2)})

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = made()

    model = remote(Model)()
    first, second = model.parts["twice"]
    assert first is second
    assert first[0].weight is second[0].weight
    assert len(list(model.parameters())) == 4


def judged(name, answer):
    trusted = Peer(lambda text: kernel.serve_one(text), "t", form=get(name).wire)
    kernel = Peer(lambda text: trusted.serve_one(text), "k", lambda _: answer)
    return assess.assess(name, 10.0, trusted, 1, 60)


def test_by_turns_yes_and_no_is_no_test_and_a_weak_test_is_half_of_one():
    turns = cycle([True, False])
    found = judged("is_permutation_equivariant", lambda layer, x: next(turns))
    assert (found.status, found.points) == ("wrong", 0)
    assert "Asked again" in spoken(found.cause)
    exercise = get("is_permutation_equivariant")
    weak, *_ = exercise.versions(exercise.mistake("reversal-only"))
    assert judged("is_permutation_equivariant", weak).points == 5


@pytest.mark.parametrize("returned", [ValueError("two numbers"), ValueError])
def test_an_error_that_is_returned_is_an_error_at_the_other_end(returned):
    found = remote(lambda: returned)()
    kind = found if isinstance(returned, type) else type(found)
    assert issubclass(kind, ValueError)
    assert str(found) == str(returned) or found is kind


@pytest.mark.parametrize("levels", [3, 30])
def test_parts_without_number_are_refused(levels):
    paths = [".".join(["a"] * k) for k in range(1, levels + 1)]
    layers = [[path, "Layer", None, path] for path in paths]
    layers += [[f"{path[:-1]}b", "Layer", None, path] for path in reversed(paths)]
    description = {"class": "Model", "layers": layers, "names": [], "modes": []}
    with pytest.raises(ValueError, match="hang together"):
        forms.build_module(Peer(str, "t"), "k1", description, [])


@pytest.mark.parametrize("exercise", EXERCISES, ids=label)
def test_every_exercise_declares_what_passes_between_the_processes(exercise):
    given, made = [], []

    def noted(*args, **kwargs):
        given.extend([*args, *kwargs.values()])
        made.append(exercise.reference(*args, **kwargs))
        return made[-1]

    for case in {case.stage.name: case for case in exercise.cases()}.values():
        call_stage(case.stage, noted, copy_of(case.args))
    if any(isinstance(value, torch.Generator) for value in given):
        due = "samples"
    elif any(map(callable, given)):
        due = "callable"
    else:
        due = "class" if any(isinstance(value, nn.Module) for value in made) else "arrays"
    assert exercise.wire == due


@pytest.mark.parametrize("form", ["arrays", "samples"])
def test_no_module_is_let_in_where_arrays_are_asked_for(form):
    class Answer(nn.Linear):
        pass

    found = remote(lambda: (Answer(2, 2), nn.ModuleList([Answer(2, 2)])), form)()
    assert [type(one).__name__ for one in found] == ["Answer", "ModuleList"]
    assert not any(isinstance(one, nn.Module) or callable(one) for one in found)
    assert isinstance(remote(lambda: Answer(2, 2))(), nn.Module)


@pytest.mark.parametrize("form", ["arrays", "samples"])
def test_nothing_is_done_for_an_answer_that_is_given_arrays_only(form):
    def double(x):
        return 2 * x

    def ask(given):
        return given(torch.ones(2))

    assert remote(ask, "callable")(double).tolist() == [2, 2]
    with pytest.raises(Exception, match="no such operation"):
        remote(ask, form)(double)


@pytest.mark.parametrize("exercise", EXERCISES, ids=label)
def test_the_reference_passes_through_the_line(exercise: Exercise):
    for seed in (1, 2):
        report = examine(remote(exercise.reference, exercise.wire), exercise, seed)
        assert report.passed, report.message
        assert not report.remarks


@pytest.mark.parametrize(("exercise", "answer"), collected("RIGHT"), ids=label)
def test_correct_variants_pass_through_the_line(exercise, answer):
    here, there = examine(answer, exercise), examine(remote(answer, exercise.wire), exercise)
    assert there.passed, there.message
    assert there.remarks == here.remarks


@pytest.mark.slow
@pytest.mark.parametrize(("exercise", "mistake", "made"), MISTAKES, ids=label)
def test_each_mistake_is_named_through_the_line(exercise, mistake, made):
    report = examine(remote(exercise.version(made), exercise.wire), exercise)
    assert not report.passed
    assert report.mistake == mistake, report.message


@pytest.mark.slow
@pytest.mark.parametrize(("exercise", "case"), collected("WRONG"), ids=label)
def test_other_wrong_answers_are_told_the_same_through_the_line(exercise, case):
    answer, mistake, *words = case
    report = examine(remote(answer, exercise.wire), exercise)
    assert not report.passed
    assert report.mistake == mistake, report.message
    for word in words:
        assert word in report.message
