"""Cross-attention: PyTorch's own layer with one head agrees, padding hides keys, lengths differ."""

import pytest
import torch
from torch import nn

from attn_course.attention import cross_attention

B, I, J, D_MODEL, D_MEMORY = 3, 4, 6, 5, 7


def drawn(seed=0, d_k=D_MODEL, d_v=D_MODEL):
    generator = torch.Generator().manual_seed(seed)
    shapes = (B, I, D_MODEL), (B, J, D_MEMORY), (D_MODEL, d_k), (D_MEMORY, d_k), (D_MEMORY, d_v)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


# kills: queries and keys from the wrong sequence, weights exchanged, a wrong scale
def test_pytorchs_layer_with_one_head_agrees():
    x, memory, W_q, W_k, W_v = drawn()
    layer = nn.MultiheadAttention(
        D_MODEL, 1, bias=False, kdim=D_MEMORY, vdim=D_MEMORY, batch_first=True
    ).double()
    with torch.no_grad():
        layer.q_proj_weight.copy_(W_q.T)
        layer.k_proj_weight.copy_(W_k.T)
        layer.v_proj_weight.copy_(W_v.T)
        layer.out_proj.weight.copy_(torch.eye(D_MODEL))
    padding = torch.arange(J) < torch.tensor([[6], [2], [4]])
    expected = layer(x, memory, memory, key_padding_mask=~padding)
    found = cross_attention(x, memory, W_q, W_k, W_v, padding)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


# kills: padding read as (i, j), a padding of another sequence, padding on the queries
@pytest.mark.parametrize("n_key", [J, B, I])
def test_padded_keys_are_as_good_as_absent(n_key):
    x, memory, W_q, W_k, W_v = drawn(d_k=3, d_v=2)
    memory = memory[:, :n_key]
    lengths = [n_key, 1, 2]
    padding = torch.arange(n_key) < torch.tensor(lengths)[:, None]
    poisoned = memory.masked_fill(~padding[..., None], 1e6)
    output, weights = cross_attention(x, poisoned, W_q, W_k, W_v, padding)
    for k, length in enumerate(lengths):
        alone, _ = cross_attention(x[k : k + 1], memory[k : k + 1, :length], W_q, W_k, W_v)
        torch.testing.assert_close(output[k : k + 1], alone)
        assert weights[k, :, length:].eq(0).all()


def test_a_memory_without_a_token_gives_zeros_and_finite_gradients():
    inputs = [tensor.requires_grad_() for tensor in drawn()]
    padding = torch.tensor([[False] * J, [True] * J, [True] * J])
    output, weights = cross_attention(*inputs, padding)
    assert output[0].eq(0).all()
    assert weights[0].eq(0).all()
    gradients = torch.autograd.grad(output.square().sum(), inputs)
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("shape", [(B, I), (B, 1, J), (J,), (B, J + 1)])
def test_padding_that_does_not_fit(shape):
    with pytest.raises(ValueError, match="does not fit memory"):
        cross_attention(*drawn(), torch.ones(shape, dtype=torch.bool))


@pytest.mark.usefixtures("without_shape_checks")
def test_a_padding_of_numbers_is_refused():
    with pytest.raises(ValueError, match="bool"):
        cross_attention(*drawn(), torch.ones(B, J))
