"""A wrong version is an edit of a right one."""

import math

import pytest
import torch
from torch import Tensor, nn

from attn_course.checks.edits import composed, edited


def scaled(query: Tensor, key: Tensor) -> Tensor:
    """A right answer: the softmax over dim=-1."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return scores.softmax(dim=-1)


class Doubling(nn.Module):
    """A right class."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return 2 * self.inner(x)


Q, K = torch.eye(3)[:2], torch.ones(4, 3)


def test_a_piece_is_replaced_and_the_rest_stays():
    wrong = edited(scaled, {" / math.sqrt(query.shape[-1])": ""})
    assert torch.equal(wrong(2 * Q, K), (2 * Q @ K.mT).softmax(-1))
    assert wrong.__name__ == "scaled"
    assert torch.equal(scaled(Q, K), (Q @ K.mT / math.sqrt(3)).softmax(-1))


def test_a_class_is_edited_as_a_function_is():
    wrong = edited(Doubling, {"2 * ": ""})(3)
    assert isinstance(wrong, nn.Module)
    assert torch.equal(wrong(Q), wrong.inner(Q))


def test_edits_are_looked_for_in_the_right_answer_whatever_their_order():
    swapped = {"query @": "key @", "key.mT": "query.mT"}
    for edits in (swapped, dict(reversed(swapped.items()))):
        assert edited(scaled, edits)(Q, K).shape == (4, 2)


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ({"nowhere": ""}, "stands 0 times"),
        ({"query": "key"}, "stands 3 times"),
        ({"scores.softmax": "x", "softmax(dim=-1)": "y"}, "overlap"),
    ],
)
def test_a_piece_that_is_not_there_once_is_refused(edits, told):
    with pytest.raises(ValueError, match=told):
        edited(scaled, edits)


def test_a_replacement_may_use_what_learners_import():
    wrong = edited(
        scaled, {"scores.softmax(dim=-1)": "F.softmax(rearrange(scores, 'i j -> j i'), 0)"}
    )
    assert wrong(Q, K).shape == (4, 2)


def test_what_does_not_stand_by_itself_is_refused():
    def inner():
        return 1

    with pytest.raises(ValueError, match="top of its module"):
        edited(inner, {"1": "2"})


def test_two_edits_compose_unless_they_meet():
    no_scale = {" / math.sqrt(query.shape[-1])": ""}
    both = composed(scaled, no_scale, {"dim=-1": "dim=-2"})
    assert torch.equal(edited(scaled, both)(Q, K), (Q @ K.mT).softmax(-2))
    assert composed(scaled, no_scale, {"math.sqrt(query.shape[-1])": "3"}) is None
    assert composed(scaled, no_scale, {" / math.sqrt(query.shape[-1])": " / 3"}) is None
