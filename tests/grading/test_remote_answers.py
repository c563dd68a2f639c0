"""Answers judged through the line between two processes fare as they do without it."""

import pytest
from torch import nn

from attn_course.checks import Exercise, examine, exercises, get
from attn_course.grading import forms, inside
from attn_course.grading.peer import Peer
from tests.checks.test_catalogue import MISTAKES, collected, label

EXERCISES = [get(name) for name in exercises()]

# a class is another one at the other end, and a kernel has no checker of shapes
pytestmark = pytest.mark.usefixtures("without_shape_checks")


def remote(answer):
    """`answer` at the other end of a line within this process: every value passes as text."""
    trusted = Peer(lambda text: kernel.serve_one(text), "t")
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
def test_the_reference_passes_through_the_line(exercise: Exercise):
    for seed in (1, 2):
        report = examine(remote(exercise.reference), exercise, seed)
        assert report.passed, report.message
        assert not report.remarks


@pytest.mark.parametrize(("exercise", "answer"), collected("RIGHT"), ids=label)
def test_correct_variants_pass_through_the_line(exercise, answer):
    here, there = examine(answer, exercise), examine(remote(answer), exercise)
    assert there.passed, there.message
    assert there.remarks == here.remarks


@pytest.mark.slow
@pytest.mark.parametrize(("exercise", "mistake", "answer"), MISTAKES, ids=label)
def test_each_mistake_is_named_through_the_line(exercise, mistake, answer):
    report = examine(remote(answer), exercise)
    assert not report.passed
    assert report.mistake == mistake, report.message


@pytest.mark.slow
@pytest.mark.parametrize(("exercise", "case"), collected("WRONG"), ids=label)
def test_other_wrong_answers_are_told_the_same_through_the_line(exercise, case):
    answer, mistake, *words = case
    report = examine(remote(answer), exercise)
    assert not report.passed
    assert report.mistake == mistake, report.message
    for word in words:
        assert word in report.message
