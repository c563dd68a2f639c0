"""The primer's functions, against the library's own and against one step by hand."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from oracles import assert_same, gradients, normal, seed, size
from torch import nn
from torch.autograd import gradcheck

from attn_course import primer


@given(n=size, m=size, d=size, seed=seed)
def test_dot_products_of_all_pairs(n, m, d, seed):
    a, b = normal(n, d, seed=seed), normal(m, d, seed=seed + 1)
    products = primer.dot_products(a, b)
    assert products.shape == (n, m)
    for row in range(n):
        for column in range(m):
            assert_same(products[row, column], torch.dot(a[row], b[column]))


@given(n=size, classes=size, seed=seed)
def test_cross_entropy_equals_torch(n, classes, seed):
    logits = normal(n, classes, seed=seed, grad=True)
    targets = torch.arange(seed, seed + n) % classes
    loss, expected = primer.cross_entropy(logits, targets), F.cross_entropy(logits, targets)
    assert_same(loss, expected)
    assert_same(gradients(loss, [logits]), gradients(expected, [logits]))


def test_cross_entropy_by_its_own_arithmetic():
    targets = torch.tensor([2, 0])
    logits = normal(2, 3, seed=0, grad=True)
    assert gradcheck(lambda x: primer.cross_entropy(x, targets), logits)


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_cross_entropy_of_huge_logits(size):
    logits = torch.tensor([[size, size + 1, size - 1]], dtype=torch.float64)
    loss = primer.cross_entropy(logits, torch.tensor([0]))
    assert_same(loss, F.cross_entropy(torch.tensor([[0.0, 1.0, -1.0]]).double(), torch.tensor([0])))


@pytest.mark.usefixtures("without_shape_checks")
def test_cross_entropy_needs_one_target_for_each_row():
    with pytest.raises(ValueError, match="4 rows of logits but 3 targets"):
        primer.cross_entropy(torch.zeros(4, 5), torch.zeros(3, dtype=torch.long))


@pytest.mark.parametrize("target", [-1, 5])
def test_cross_entropy_refuses_a_class_that_is_none(target):
    with pytest.raises(RuntimeError, match="out of bounds"):
        primer.cross_entropy(torch.zeros(1, 5), torch.tensor([target]))


def test_training_step_is_one_step_of_gradient_descent():
    model = nn.Linear(3, 4).double()
    inputs, targets = normal(5, 3, seed=0), torch.tensor([0, 3, 1, 1, 2])
    loss = F.cross_entropy(model(inputs), targets)
    expected = [
        (parameter - 0.1 * gradient).detach()
        for parameter, gradient in zip(
            model.parameters(), torch.autograd.grad(loss, list(model.parameters())), strict=True
        )
    ]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    returned = primer.training_step(model, optimizer, inputs, targets)
    assert isinstance(returned, float)
    assert returned == pytest.approx(loss.item())
    for parameter, wanted in zip(model.parameters(), expected, strict=True):
        assert_same(parameter.detach(), wanted)


def test_training_steps_do_not_add_their_gradients_up():
    model = nn.Linear(3, 4).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    inputs, targets = normal(5, 3, seed=0), torch.tensor([0, 3, 1, 1, 2])
    primer.training_step(model, optimizer, inputs, targets)
    first = model.weight.grad.clone()
    primer.training_step(model, optimizer, inputs, targets)
    assert first.abs().max() > 0
    assert_same(model.weight.grad, first)
