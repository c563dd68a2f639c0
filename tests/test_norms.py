"""Norms and the feed-forward layer: against PyTorch's and their formulas."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from oracles import assert_same, normal, randomise, seed, size
from torch import nn
from torch.autograd import gradcheck

from attn_course import blocks
from attn_course.blocks import FeedForward, LayerNorm, RMSNorm

# --- norms --------------------------------------------------------------------------------


@given(b=size, n=size, d=size, seed=seed)
def test_layer_norm_equals_torch(b, n, d, seed):
    x, gain, bias = normal(b, n, d, seed=seed), normal(d, seed=seed + 1), normal(d, seed=seed + 2)
    assert_same(blocks.layer_norm(x, gain, bias), F.layer_norm(x, (d,), gain, bias))


def test_layer_norm_has_its_epsilon_within_the_root():
    x = 1e-3 * normal(3, 4, seed=0)
    gain, bias = torch.ones(4).double(), torch.zeros(4).double()
    for eps in (1e-5, 1e-3):
        assert_same(blocks.layer_norm(x, gain, bias, eps), F.layer_norm(x, (4,), gain, bias, eps))


def test_layer_norm_module_equals_the_function():
    x = 1e-2 * normal(2, 3, 5, seed=1)
    module = randomise(LayerNorm(5, eps=1e-3))
    assert_same(module(x), blocks.layer_norm(x, module.gain, module.bias, 1e-3))
    bare = randomise(LayerNorm(5, bias=False))
    assert bare.bias is None
    assert_same(bare(x), blocks.layer_norm(x, bare.gain, torch.zeros(5).double()))


@given(b=size, d=size, seed=seed)
def test_rms_norm_equals_torch(b, d, seed):
    x, module = 1e-2 * normal(b, d, seed=seed), randomise(RMSNorm(d, eps=1e-4))
    assert_same(module(x), F.rms_norm(x, (d,), module.gain, eps=1e-4))
    assert_same(module(x), blocks.rms_norm(x, module.gain, 1e-4))


def test_norms_start_as_the_plain_normalisation():
    x = normal(2, 3, 8, seed=2).float()
    assert_same(LayerNorm(8)(x), F.layer_norm(x, (8,)))
    assert_same(RMSNorm(8)(x), F.rms_norm(x, (8,), eps=1e-6), 1e-6)


def test_gradcheck_of_the_norms():
    x, gain, bias = (normal(*s, seed=i, grad=True) for i, s in enumerate([(2, 5), (5,), (5,)]))
    assert gradcheck(blocks.layer_norm, (x, gain, bias))
    assert gradcheck(blocks.rms_norm, (x, gain))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rms_norm_of_tiny_numbers_in_half_precision(dtype):
    # their squares are 0 in float16
    x = (1e-4 * normal(2, 64, seed=3)).to(dtype)
    out = blocks.rms_norm(x, torch.ones(64, dtype=dtype), eps=1e-12)
    assert out.dtype == dtype
    exact = blocks.rms_norm(x.double(), torch.ones(64).double(), eps=1e-12)
    assert_same(out.double(), exact, 1e-2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_layer_norm_in_half_precision_is_no_worse_than_the_plain_formula(dtype):
    x = (3 * normal(50, 64, seed=4) + 1).to(dtype)
    gain, bias = torch.ones(64, dtype=dtype), torch.zeros(64, dtype=dtype)
    truth = F.layer_norm(x.double(), (64,))
    naive = (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    naive_error = (naive - truth).abs().max()
    assert (blocks.layer_norm(x, gain, bias) - truth).abs().max() <= 1.5 * naive_error
    assert (LayerNorm(64).to(dtype)(x) - truth).abs().max() <= 1.5 * naive_error


@pytest.mark.parametrize("module", [LayerNorm(4), RMSNorm(4)])
def test_norms_look_at_one_token_at_a_time(module):
    x = torch.randn(2, 3, 4)
    changed = x.clone()
    changed[1, 2] = 7 * torch.randn(4)
    same = torch.ones(2, 3, dtype=torch.bool)
    same[1, 2] = False
    assert torch.equal(module(x)[same], module(changed)[same])


# --- feed-forward -------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
def test_feed_forward_by_its_formula(activation, bias):
    module = randomise(FeedForward(5, 7, activation=activation, bias=bias))
    x = normal(2, 3, 5, seed=5)
    hidden = F.linear(x, module.W_1.weight, module.W_1.bias)
    if activation == "relu":
        hidden = hidden * (hidden > 0)
    elif activation == "gelu":
        hidden = hidden * torch.distributions.Normal(0.0, 1.0).cdf(hidden)
    else:
        gate = F.linear(x, module.W_gate.weight, module.W_gate.bias)
        hidden = gate / (1 + torch.exp(-gate)) * hidden
    assert_same(module(x), F.linear(hidden, module.W_2.weight, module.W_2.bias))
    assert (module.W_1.bias is not None) == bias
    assert (module.W_gate is not None) == (activation == "swiglu")


def test_feed_forward_drops_hidden_features_in_training():
    torch.manual_seed(0)
    module = FeedForward(4, 4, dropout_p=0.25)
    nn.init.zeros_(module.W_1.weight)
    nn.init.ones_(module.W_1.bias)
    nn.init.eye_(module.W_2.weight)
    x = torch.randn(50, 20, 4)
    hidden = module(x)
    assert (hidden == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert_same(hidden[hidden != 0], torch.full_like(hidden[hidden != 0], 1 / 0.75), 1e-6)
    assert torch.equal(module.eval()(x), torch.ones(50, 20, 4))


def test_feed_forward_starts_as_xavier_says():
    torch.manual_seed(0)
    module = FeedForward(64, 256, activation="swiglu")
    for linear in (module.W_1, module.W_gate, module.W_2):
        assert linear.weight.var().item() == pytest.approx(2 / 320, rel=0.05)
        assert not linear.bias.any()
