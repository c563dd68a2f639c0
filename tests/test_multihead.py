"""Multi-head attention: against PyTorch's with weights loaded, and by what it must not mix."""

import pytest
import torch
from hypothesis import example, given
from oracles import (
    assert_same,
    gradients,
    gradients_as_weights,
    normal,
    random_mask,
    randomise,
    seed,
    size,
)
from torch import nn

from attn_course import multihead, positions, torch_layers
from attn_course.masks import causal_mask, combine_masks, padding_mask
from attn_course.multihead import MultiHeadAttention

either_path = pytest.mark.parametrize("need_weights", [True, False])


def ours(d_model=12, num_heads=3, **options):
    return randomise(MultiHeadAttention(d_model, num_heads, **options))


# --- heads --------------------------------------------------------------------------------


@given(b=size, n=size, h=size, d=size, seed=seed)
def test_heads_lie_one_after_the_other(b, n, h, d, seed):
    x = normal(b, n, h * d, seed=seed)
    split = multihead.split_heads(x, h)
    assert split.shape == (b, h, n, d)
    for head in range(h):
        assert torch.equal(split[:, head], x[:, :, head * d : (head + 1) * d])
    assert torch.equal(multihead.merge_heads(split), x)


@pytest.mark.parametrize("num_heads", [3, 0, -2])
def test_features_that_cannot_be_split(num_heads):
    with pytest.raises(ValueError, match=f"d_model=10 is not divisible by num_heads={num_heads}"):
        multihead.split_heads(torch.zeros(1, 2, 10), num_heads)


def test_key_heads_are_shared_in_blocks():
    x = normal(1, 2, 3, 4, seed=0)
    shared = multihead.share_heads(x, 6)
    assert torch.equal(shared, x[:, [0, 0, 0, 1, 1, 1]])
    assert multihead.share_heads(x, 2) is x


def test_key_heads_that_cannot_be_shared():
    with pytest.raises(ValueError, match="2 heads cannot be shared evenly by 5"):
        multihead.share_heads(torch.zeros(1, 2, 3, 4), 5)


# --- against PyTorch ----------------------------------------------------------------------

torch_settings = pytest.mark.parametrize(
    ("bias", "kdim", "vdim"), [(True, None, None), (False, None, None), (True, 7, 5), (False, 8, 8)]
)


def torch_inputs(kdim, vdim, b=4, i=5, j=6, d_model=12):
    return (
        normal(b, i, d_model, seed=1, grad=True),
        normal(b, j, kdim or d_model, seed=2, grad=True),
        normal(b, j, vdim or d_model, seed=3, grad=True),
    )


@either_path
@torch_settings
def test_equals_torch_with_its_weights(bias, kdim, vdim, need_weights):
    theirs = randomise(
        nn.MultiheadAttention(12, 3, bias=bias, kdim=kdim, vdim=vdim, batch_first=True)
    )
    attention = MultiHeadAttention.from_torch(theirs)
    inputs = torch_inputs(kdim, vdim)
    padding = padding_mask(torch.tensor([6, 1, 4, 3]), 6)
    pairs = random_mask(5, 6, seed=4) | torch.tensor([True, *[False] * 5])
    mask = combine_masks(pairs, padding=padding)
    output, weights = attention(*inputs, mask, need_weights=need_weights)
    # PyTorch's masks are True where they hide
    expected, expected_weights = theirs(
        *inputs, key_padding_mask=~padding, attn_mask=~pairs, average_attn_weights=False
    )
    assert_same(output, expected)
    if need_weights:
        assert_same(weights, expected_weights)
    else:
        assert weights is None
    assert_same(gradients(output, inputs), gradients(expected, inputs))
    assert_same(
        output, attention.to_torch()(*inputs, key_padding_mask=~padding, attn_mask=~pairs)[0]
    )


@torch_settings
def test_every_weight_has_torchs_gradient(bias, kdim, vdim):
    attention = ours(bias=bias, kdim=kdim, vdim=vdim)
    theirs = attention.to_torch()
    inputs = torch_inputs(kdim, vdim)
    attention(*inputs)[0].square().sum().backward()
    theirs(*inputs)[0].square().sum().backward()
    pairs = torch_layers.attention_pairs(attention, gradients_as_weights(theirs))
    assert len(pairs) == 8
    for weight, expected in pairs:
        assert_same(weight if weight is None else weight.grad, expected)


@given(b=size, i=size, j=size, h=size, d=size, seed=seed)
@example(b=4, i=4, j=4, h=4, d=5, seed=0)
def test_equals_torch_at_any_shape(b, i, j, h, d, seed):
    attention = ours(h * d, h)
    query, memory = normal(b, i, h * d, seed=seed), normal(b, j, h * d, seed=seed + 1)
    mask = random_mask(b, i, j, seed=seed)
    theirs = attention.to_torch()
    expected = theirs(query, memory, memory, attn_mask=~mask.repeat_interleave(h, dim=0))[0]
    assert_same(attention(query, memory, memory, mask)[0], expected)


def test_there_and_back_gives_the_same_weights_and_settings():
    attention = ours(dropout_p=0.3, kdim=7).eval()
    back = MultiHeadAttention.from_torch(attention.to_torch())
    assert back.state_dict().keys() == attention.state_dict().keys()
    for name, weight in attention.state_dict().items():
        assert torch.equal(back.state_dict()[name], weight)
        assert back.state_dict()[name].data_ptr() != weight.data_ptr()
    assert (back.dropout_p, back.num_heads, back.training) == (0.3, 3, False)


def test_torchs_sequence_first_layer_is_read_batch_first():
    theirs = randomise(nn.MultiheadAttention(12, 3))
    query, key, value = torch_inputs(None, None)
    expected, _ = theirs(*(x.transpose(0, 1) for x in (query, key, value)))
    output, _ = MultiHeadAttention.from_torch(theirs)(query, key, value)
    assert_same(output, expected.transpose(0, 1))


@pytest.mark.parametrize("options", [{"add_bias_kv": True}, {"add_zero_attn": True}])
def test_what_torch_has_and_we_have_not(options):
    with pytest.raises(ValueError, match="no counterpart"):
        MultiHeadAttention.from_torch(nn.MultiheadAttention(12, 3, **options))


@pytest.mark.parametrize(
    "options", [{"num_kv_heads": 1}, {"position": positions.RotaryPositions()}]
)
def test_what_we_have_and_torch_has_not(options):
    with pytest.raises(ValueError, match="knows no positions and no shared key heads"):
        MultiHeadAttention(12, 3, **options).to_torch()


def test_weights_are_not_copied_where_one_side_has_no_bias():
    with pytest.raises(ValueError, match="a bias that the other lacks"):
        torch_layers.copy_pairs([(torch.zeros(3), None)])


# --- what must not mix --------------------------------------------------------------------


def test_samples_do_not_see_each_other():
    attention = ours()
    x, mask = normal(3, 4, 12, seed=5), random_mask(3, 4, 4, seed=5)
    unmasked, masked = attention(x, x, x)[0], attention(x, x, x, mask)[0]
    for b in range(3):
        alone = x[b : b + 1]
        assert_same(attention(alone, alone, alone)[0], unmasked[b : b + 1])
        assert_same(attention(alone, alone, alone, mask[b])[0], masked[b : b + 1])


def test_without_mask_and_position_tokens_are_a_set():
    attention = ours()
    x, order = normal(2, 6, 12, seed=6), torch.tensor([3, 0, 5, 1, 4, 2])
    assert_same(
        attention(x[:, order], x[:, order], x[:, order])[0], attention(x, x, x)[0][:, order]
    )


def test_a_token_that_sees_itself_alone_depends_on_itself_alone():
    attention = ours()
    x = normal(1, 5, 12, seed=7, grad=True)
    output, _ = attention(x, x, x, torch.eye(5, dtype=torch.bool))
    for t in range(5):
        (gradient,) = torch.autograd.grad(output[0, t].sum(), x, retain_graph=True)
        assert gradient[0].any(dim=-1).tolist() == [s == t for s in range(5)]


@either_path
@pytest.mark.parametrize(
    "position", [None, positions.RotaryPositions(), positions.AlibiPositions(3)]
)
def test_the_past_does_not_depend_on_the_future(position, need_weights):
    attention = ours(position=position)
    x = normal(1, 5, 12, seed=8, grad=True)
    output, _ = attention(x, x, x, causal_mask(5), need_weights=need_weights)
    for t in range(5):
        (gradient,) = torch.autograd.grad(output[0, t].sum(), x, retain_graph=True)
        assert gradient[0].any(dim=-1).tolist() == [s <= t for s in range(5)]


@either_path
def test_masked_equals_truncated(need_weights):
    attention = ours()
    query, memory = normal(3, 4, 12, seed=9), normal(3, 6, 12, seed=10)
    lengths = torch.tensor([6, 1, 4])
    mask = combine_masks(padding=padding_mask(lengths, 6))
    output, _ = attention(query, memory, memory, mask, need_weights=need_weights)
    for b, length in enumerate(lengths):
        short = memory[b : b + 1, :length]
        assert_same(attention(query[b : b + 1], short, short)[0], output[b : b + 1])


def test_a_mask_of_samples_is_not_one_of_heads():
    # three samples, three heads: plain broadcasting would not notice
    attention = ours(12, 3)
    x, mask = normal(3, 4, 12, seed=11), random_mask(3, 4, 4, seed=11)
    _, weights = attention(x, x, x, mask)
    for head in range(3):
        assert torch.equal(weights[:, head] > 0, mask)


def test_query_key_and_value_each_play_their_part():
    attention = ours()
    query, key, value = (
        normal(1, 3, 12, seed=12, grad=True),
        normal(1, 4, 12, seed=13, grad=True),
        normal(1, 4, 12, seed=14, grad=True),
    )
    output, weights = attention(query, key, value)
    assert (torch.autograd.grad(weights[..., 0].sum(), query, retain_graph=True)[0] != 0).any()
    assert (torch.autograd.grad(weights[..., 0].sum(), key, retain_graph=True)[0] != 0).any()
    assert torch.autograd.grad(weights.sum(), value, retain_graph=True, allow_unused=True) == (
        None,
    )
    assert (torch.autograd.grad(output.sum(), value)[0] != 0).all()


# --- grouped queries ----------------------------------------------------------------------


@either_path
@pytest.mark.parametrize("num_kv_heads", [1, 2, 3, 6])
def test_grouped_queries_equal_full_heads_with_repeated_weights(num_kv_heads, need_weights):
    grouped, full = ours(24, 6, num_kv_heads=num_kv_heads), ours(24, 6)
    full.W_q.load_state_dict(grouped.W_q.state_dict())
    full.W_o.load_state_dict(grouped.W_o.state_dict())
    block = [head // (6 // num_kv_heads) for head in range(6)]
    with torch.no_grad():
        for name in ("W_k", "W_v"):
            small, large = getattr(grouped, name), getattr(full, name)
            large.weight.copy_(small.weight.unflatten(0, (num_kv_heads, 4))[block].flatten(0, 1))
            large.bias.copy_(small.bias.unflatten(0, (num_kv_heads, 4))[block].flatten(0, 1))
    x = normal(2, 5, 24, seed=15)
    assert grouped.W_k.weight.shape == (4 * num_kv_heads, 24)
    assert_same(grouped(x, x, x, need_weights=need_weights)[0], full(x, x, x)[0])


# --- the output projection ----------------------------------------------------------------


@given(b=size, i=size, h=size, d=size, seed=seed)
@example(b=2, i=4, h=3, d=3, seed=0)
def test_values_and_outputs_fuse_into_one_matrix_a_head(b, i, h, d, seed):
    attention, x = ours(h * d, h), normal(b, i, h * d, seed=seed)
    fused = multihead.fuse_value_output(attention.W_v.weight.T, attention.W_o.weight.T, h)
    output, weights = attention(x, x, x)
    # the weights of a row sum to one, so the bias of the values comes through whole
    bias = attention.W_o(attention.W_v.bias)
    assert_same(output, torch.einsum("bhij,bjm,hmo->bio", weights, x, fused) + bias)
    assert all(torch.linalg.matrix_rank(matrix) <= d for matrix in fused)


@pytest.mark.parametrize(
    ("W_v", "W_o", "num_heads", "words"),
    [
        ((6, 4), (6, 5), 2, r"do not fit: \(6, 4\) and \(6, 5\)"),
        ((6, 4), (4, 5), 3, "h d=4 is not divisible by num_heads=3"),
    ],
)
def test_what_cannot_be_fused(W_v, W_o, num_heads, words):
    with pytest.raises(ValueError, match=words):
        multihead.fuse_value_output(torch.zeros(W_v), torch.zeros(W_o), num_heads)


@pytest.mark.parametrize("heads", [[], [1], [2, 0], (0, 1, 2), range(1, 3), {2}])
def test_ablated_heads_add_nothing(heads):
    attention, x = ours(), normal(2, 4, 12, seed=18)
    before = attention.W_o.weight.clone()
    output, weights = multihead.ablate_heads(attention, heads)(x, x, x)
    fused = multihead.fuse_value_output(attention.W_v.weight.T, attention.W_o.weight.T, 3)
    # what is left: the other heads, and the biases of W_o and of their values
    expected = attention.W_o.bias.expand_as(output)
    for head in set(range(3)) - set(heads):
        part = slice(4 * head, 4 * head + 4)
        bias = attention.W_v.bias[part] @ attention.W_o.weight[:, part].T
        expected = expected + weights[:, head] @ x @ fused[head] + bias
    assert_same(output, expected)
    assert torch.equal(attention.W_o.weight, before)
    assert_same(weights, attention(x, x, x)[1])


@pytest.mark.parametrize("heads", [[3], [-1], [0, 7]])
def test_heads_that_there_are_not(heads):
    with pytest.raises(ValueError, match=r"heads are 0 … 2, there is no head (3|-1|7)"):
        multihead.ablate_heads(ours(), heads)


# --- dropout ------------------------------------------------------------------------------


@either_path
def test_dropout_in_training_only(need_weights):
    attention, x = ours(dropout_p=0.5), normal(2, 5, 12, seed=16)
    without = ours()
    first, _ = attention(x, x, x, need_weights=need_weights)
    second, _ = attention(x, x, x, need_weights=need_weights)
    assert (first - second).abs().max() > 1e-3
    attention.eval()
    assert_same(attention(x, x, x, need_weights=need_weights)[0], without(x, x, x)[0])


def test_dropout_is_on_the_weights_not_on_the_scores():
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2, dropout_p=0.5)
    nn.init.zeros_(attention.W_v.weight)
    nn.init.ones_(attention.W_v.bias)
    nn.init.eye_(attention.W_o.weight)
    x = torch.randn(1, 30, 8)
    output, weights = attention(x, x, x)
    # all values are one: rows that sum to one give one, dropped weights do not
    assert output.std() > 0.05
    assert output.mean().item() == pytest.approx(1.0, abs=0.1)
    assert_same(weights.sum(-1), torch.ones(1, 2, 30), 1e-5)
