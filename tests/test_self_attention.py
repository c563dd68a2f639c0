"""Self-attention with its weights, and the two tests of layers."""

import pytest
import torch
from torch import nn

from attn_course.checks.catalogue.ch04 import is_permutation_equivariant as order
from attn_course.checks.catalogue.ch04 import layers as parts
from attn_course.checks.catalogue.ch04 import leaks_future as future
from attn_course.masks import causal_mask
from attn_course.self_attention import SelfAttention, is_permutation_equivariant, leaks_future


# kills: roles exchanged, a bias, the scale of d_model, a mask that is not handed on
@pytest.mark.parametrize("masked", [False, True])
def test_one_head_agrees_with_torchs_own_layer(masked):
    torch.manual_seed(0)
    d_model, x = 6, torch.randn(2, 5, 6)
    ours = SelfAttention(d_model, d_model)
    theirs = nn.MultiheadAttention(d_model, 1, bias=False, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.W_q.weight, ours.W_k.weight, ours.W_v.weight]))
        theirs.out_proj.weight.copy_(torch.eye(d_model))
    mask = causal_mask(5) if masked else None
    output, weights = ours(x, mask)
    expected, expected_weights = theirs(x, x, x, attn_mask=None if mask is None else ~mask)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(weights, expected_weights)


# kills: projections back to d_model, leading axes that are counted from the left
def test_shapes_and_parameters():
    layer = SelfAttention(6, 4)
    assert {name: tuple(p.shape) for name, p in layer.named_parameters()} == {
        f"W_{role}.weight": (4, 6) for role in "qkv"
    }
    for leading in ((), (3,), (2, 3)):
        output, weights = layer(torch.randn(*leading, 5, 6))
        assert output.shape == (*leading, 5, 4)
        assert weights.shape == (*leading, 5, 5)


# kills: a layer that the exercises' check would judge by the wrong truth
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(3))
def test_the_layers_of_the_exercises_are_what_their_tables_say(seed, dtype):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(3, 7, 4, generator=rng, dtype=torch.float64)
    for name, (layer, _) in order.LAYERS.items():
        equivariant = is_permutation_equivariant(parts.unused(layer), x)
        assert equivariant == (name in order.EQUIVARIANT), name
    for name, (layer, _) in future.LAYERS.items():
        assert leaks_future(layer, x) == (name in future.LEAKY), name
    # rounding of float32 is no order and no leak
    x = torch.randn(2, 40, 8, generator=rng, dtype=dtype)
    attention = SelfAttention(8, 8).to(dtype)
    assert is_permutation_equivariant(lambda x: attention(x)[0], x)
    assert not leaks_future(lambda x: attention(x, causal_mask(x.shape[1]))[0], x)


# kills: tokens that are replaced by themselves
@pytest.mark.parametrize("seed", range(5))
def test_a_leak_is_found_whatever_x_was_drawn_from(seed):
    x = torch.randn(2, 12, 32, generator=torch.Generator().manual_seed(seed))
    assert leaks_future(lambda x: x - x.mean(dim=1, keepdim=True), x)


# kills: positions read as the second axis where there is no batch
def test_both_tests_take_any_leading_axes():
    for leading in ((), (2,), (2, 3)):
        x = torch.randn(*leading, 5, 4)
        assert not is_permutation_equivariant(lambda x: x.cumsum(dim=-2), x)
        assert is_permutation_equivariant(torch.tanh, x)
        assert not leaks_future(lambda x: x.cumsum(dim=-2), x)
        assert leaks_future(lambda x: x.flip(-2), x)


# kills: a global generator that is moved on, or a global seed
def test_the_tests_leave_the_global_generator_alone():
    x = torch.randn(2, 5, 4)
    before = torch.get_rng_state()
    is_permutation_equivariant(torch.tanh, x)
    leaks_future(torch.tanh, x)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("test", [is_permutation_equivariant, leaks_future])
def test_what_cannot_be_tested_is_refused(test):
    with pytest.raises(ValueError, match=r"at least 2 positions, got \(3, 1, 4\)"):
        test(torch.tanh, torch.randn(3, 1, 4))
    with pytest.raises(ValueError, match=r"it gave tuple; .*lambda x: attention\(x\)\[0\]"):
        test(SelfAttention(4, 4), torch.randn(3, 5, 4))
    with pytest.raises(ValueError, match=r"it gave \(3, 4\)"):
        test(lambda x: x.mean(dim=1), torch.randn(3, 5, 4))
