"""The notebooks under nbgrader: what it takes for a mark must not be there for nothing."""

import pytest
import torch

from attn_course.checks import WrongAnswer, check, get
from grading.notebooks import course, handed_out, solved


@pytest.fixture(autouse=True)
def _own_progress(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", str(tmp_path / "progress.json"))


@pytest.mark.parametrize("chapter", list(course()))
@pytest.mark.parametrize("built", [handed_out, solved])
def test_every_exercise_is_a_cell_to_answer_and_a_locked_one_with_points(built, chapter):
    grades = [cell["metadata"].get("nbgrader") for cell in built(chapter)["cells"]]
    grades = [grade for grade in grades if grade]
    assert len({grade["grade_id"] for grade in grades}) == len(grades)
    for task in course()[chapter].exercises:
        answer, judged = (
            next(grade for grade in grades if grade["grade_id"] == name)
            for name in (task.name, f"check-{task.name}")
        )
        assert (answer["solution"], answer["grade"], answer["locked"]) == (True, False, False)
        assert (judged["solution"], judged["grade"], judged["locked"]) == (False, True, True)
        assert judged["points"] == task.points == get(task.name).points


def test_a_wrong_answer_is_an_error_while_nbgrader_marks(monkeypatch):
    def softmax_jacobian(weights):
        return weights

    assert not check(softmax_jacobian).passed
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    with pytest.raises(WrongAnswer):
        check(softmax_jacobian)


def test_a_right_answer_is_none(monkeypatch):
    def softmax_jacobian(weights):
        return torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]

    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert check(softmax_jacobian).passed
