"""Frequent errors are told with what to do; each is raised here by PyTorch or Python itself."""

import math

import pytest
import torch
from einops import rearrange
from torch import nn

from attn_course.checks import examine, get
from attn_course.checks.advice import ADVICE, advice

x = torch.ones(2, 3)


class WithoutSuper(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 2)


def leaf_altered():
    leaf = torch.ones(2, requires_grad=True)
    leaf += 1


def needed_altered():
    leaf = torch.ones(2, requires_grad=True)
    y = leaf.exp()
    y += 1
    y.sum().backward()


def unassigned():
    if x is None:
        found = 1
    return found


RAISED = [
    (lambda: x.sum().backward(), "requires_grad_()"),
    (lambda: x.max(dim=-1).exp(), "amax"),
    (lambda: x - x.max(dim=-1), "amax"),
    (lambda: x[::-1], "flip"),
    (lambda: math.exp(x), "torch.exp"),
    (lambda: max(0, x), "clamp"),
    (lambda: x @ x, "last but one"),
    (lambda: nn.Linear(4, 2)(x), "in_features"),
    (lambda: torch.ones(2, 3, 4) @ torch.ones(2, 3, 4), ".mT"),
    (lambda: torch.ones(2, 3) + torch.ones(2), "from the right"),
    (lambda: torch.ones(2, 3).T.view(6), "rearrange"),
    (leaf_altered, "x = x + …"),
    (needed_altered, "x = x + …"),
    (WithoutSuper, "super().__init__()"),
    (lambda: rearrange(x, "b n d -> b d n"), "..."),
    (lambda: x @ x.T.double(), "dtype=x.dtype"),
    (lambda: undefined, "self."),
    (unassigned, "assigned"),
]


@pytest.mark.parametrize(("raising", "told"), RAISED)
def test_a_frequent_error_is_told_with_what_to_do(raising, told):
    with pytest.raises(Exception, match=r"[\s\S]*") as raised:
        raising()
    assert told in (advice(type(raised.value).__name__, str(raised.value)) or str(raised.value))


def test_every_advice_is_given_to_some_error():
    given = set()
    for raising, _ in RAISED:
        try:
            raising()
        except Exception as error:
            given.add(advice(type(error).__name__, str(error)))
    assert {told for _, _, told in ADVICE} <= given | {ADVICE[1][2]}


def test_an_error_without_a_known_cause_is_left_as_it_is():
    assert advice("RuntimeError", "something else") is None
    assert advice("KeyError", "does not require grad and does not have a grad_fn") is None


def test_the_error_itself_stays_in_view():
    report = examine(lambda scores, dim=-1: scores - scores.max(dim, keepdim=True), get("softmax"))
    assert "TypeError" in report.message
    assert "`amax` gives the values alone" in report.message


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda a, b: [[float((r * c).sum()) for c in b.T] for r in a], "torch.tensor"),
        (lambda a, b: [(a[:, :1] * b[:1]).sum(1)], "torch.stack"),
    ],
)
def test_a_list_is_told_what_makes_a_tensor_of_it(made, told):
    assert told in examine(made, get("dot_products")).message
