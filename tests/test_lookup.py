"""The functions of the first chapters: against PyTorch's own, loops and autograd."""

from math import log

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from oracles import assert_same, gradients, normal, seed, size
from torch.autograd import gradcheck

from attn_course import attention

# --- the functions of the first chapters --------------------------------------------------


def test_embed_looks_rows_up():
    table = normal(6, 3, seed=0, grad=True)
    ids = torch.tensor([[5, 0, 2], [2, 2, 5]])
    expected = F.embedding(ids, table)
    assert_same(attention.embed(ids, table), expected)
    assert_same(gradients(attention.embed(ids, table), [table]), gradients(expected, [table]))
    assert attention.embed(torch.tensor([4]), table).shape == (1, 3)


@pytest.mark.parametrize("bad", [-1, 6])
def test_embed_refuses_ids_that_are_no_row(bad):
    with pytest.raises(ValueError, match=rf"0 … 5, got \[{bad}\]"):
        attention.embed(torch.tensor([[0, bad]]), torch.zeros(6, 3))


@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_softmax_equals_torch(dim):
    scores = normal(3, 4, 5, seed=0)
    assert_same(attention.softmax(scores, dim), scores.softmax(dim))
    assert gradcheck(lambda x: attention.softmax(x, dim), normal(2, 3, 4, seed=1, grad=True))


@pytest.mark.parametrize("row", [[1000, 1001, 999], [-1000, -1001, -1002], [-torch.inf, 0, 1]])
def test_softmax_of_extreme_scores(row):
    scores = torch.tensor(row, dtype=torch.float64)
    assert_same(attention.softmax(scores), scores.softmax(-1))


def test_softmax_looks_along_the_last_axis_unless_told():
    scores = normal(3, 4, seed=2)
    assert_same(attention.softmax(scores), scores.softmax(-1))


def test_attention_scores_are_dot_products():
    query, key = normal(2, 3, 4, seed=0), normal(2, 5, 4, seed=1)
    scores = attention.attention_scores(query, key)
    for b in range(2):
        for i in range(3):
            for j in range(5):
                assert_same(scores[b, i, j], query[b, i] @ key[b, j])


def test_project_qkv_equals_three_linear_maps():
    x = normal(2, 5, 4, seed=0)
    W_q, W_k, W_v = normal(4, 3, seed=1), normal(4, 3, seed=2), normal(4, 6, seed=3)
    # nn.Linear and F.linear store the matrix transposed
    expected = F.linear(x, W_q.T), F.linear(x, W_k.T), F.linear(x, W_v.T)
    assert_same(attention.project_qkv(x, W_q, W_k, W_v), expected)


@given(b=size, i=size, j=size, d_k=size, d_v=size, seed=seed)
def test_lookup_is_attention_without_scale(b, i, j, d_k, d_v, seed):
    query = normal(b, i, d_k, seed=seed)
    key, value = normal(b, j, d_k, seed=seed + 1), normal(b, j, d_v, seed=seed + 2)
    output, weights = attention.lookup(query, key, value)
    assert_same(output, F.scaled_dot_product_attention(query, key, value, scale=1.0))
    assert_same(weights @ value, output)


def test_additive_attention_by_its_formula():
    query, key, value = normal(2, 3, 4, seed=0), normal(2, 5, 6, seed=1), normal(2, 5, 7, seed=2)
    W_q, W_k, w = normal(4, 8, seed=3), normal(6, 8, seed=4), normal(8, seed=5)
    output, weights = attention.additive_attention(query, key, value, W_q, W_k, w)
    for b in range(2):
        for i in range(3):
            scores = [w @ torch.tanh(query[b, i] @ W_q + key[b, j] @ W_k) for j in range(5)]
            expected = torch.stack(scores).softmax(-1)
            assert_same(weights[b, i], expected)
            assert_same(output[b, i], expected @ value[b])


def test_entropy_of_weights():
    weights = normal(3, 4, 6, seed=0).softmax(-1)
    assert_same(attention.attention_entropy(weights), torch.special.entr(weights).sum(-1))
    uniform = torch.full((6,), 1 / 6, dtype=torch.float64)
    assert attention.attention_entropy(uniform).item() == pytest.approx(log(6))


def test_entropy_where_weights_are_zero():
    scores = torch.tensor([[1.0, -torch.inf, 2.0], [-torch.inf, 3.0, -torch.inf]])
    scores.requires_grad_()
    entropy = attention.attention_entropy(scores.softmax(-1))
    entropy.sum().backward()
    assert_same(entropy, torch.special.entr(scores.detach().softmax(-1)).sum(-1), 1e-6)
    assert entropy[1] == 0
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 0] != 0


@given(n=size, seed=seed)
def test_softmax_gradient_equals_autograd(n, seed):
    scores = normal(n, seed=seed)
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores)
    for index in range(n):
        measured = attention.softmax_gradient(scores, index)
        assert_same(measured, jacobian[index], 1e-9)


def test_softmax_gradient_is_taken_in_float64():
    scores = normal(4, seed=0).float()
    measured = attention.softmax_gradient(scores, 2)
    assert_same(measured, attention.softmax_gradient(scores.double(), 2))


def test_softmax_gradient_takes_the_step_it_is_given():
    scores = torch.tensor([0.0, 0.0], dtype=torch.float64)
    # so wide a step that the quotient is far from the derivative 1/4: (σ(2) − σ(−2)) / 4
    expected = (torch.tensor(2.0).sigmoid() - torch.tensor(-2.0).sigmoid()).item() / 4
    assert attention.softmax_gradient(scores, 0, 2.0)[0].item() == pytest.approx(expected)


@pytest.mark.parametrize("eps", [0.0, -1e-5])
def test_softmax_gradient_needs_a_step(eps):
    with pytest.raises(ValueError, match="eps="):
        attention.softmax_gradient(torch.zeros(3), 0, eps)


@given(b=size, n=size, seed=seed)
def test_softmax_jacobian_equals_autograd(b, n, seed):
    scores = normal(b, n, seed=seed)
    jacobian = attention.softmax_jacobian(scores.softmax(-1))
    for row, found in zip(scores, jacobian, strict=True):
        assert_same(found, torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row))


# kills: a wrong coefficient in the closed form, a mean over the wrong axis
@given(b=size, n=size, seed=seed)
def test_the_size_of_the_jacobian_is_its_norm(b, n, seed):
    weights = normal(b, n, seed=seed).softmax(dim=-1)
    expected = attention.softmax_jacobian(weights).flatten(-2).norm(dim=-1)
    assert_same(attention.jacobian_sizes(weights), expected, 1e-6)
    assert attention.jacobian_sizes(torch.eye(4)).tolist() == [0, 0, 0, 0]
