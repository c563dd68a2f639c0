"""Multi-head attention: against PyTorch's with weights loaded, and by what it must not mix."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given
from hypothesis import strategies as st
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

from attn_course import multihead, positions
from attn_course.masks import causal_mask, combine_masks, padding_mask
from attn_course.multihead import MultiHeadAttention

either_path = pytest.mark.parametrize("need_weights", [True, False])


class ListCache:
    """The plainest cache: what was appended, one after the other."""

    def __init__(self):
        self.keys, self.values = [], []

    @property
    def length(self):
        return sum(key.shape[2] for key in self.keys)

    def append(self, key, value):
        self.keys.append(key)
        self.values.append(value)
        return torch.cat(self.keys, dim=2), torch.cat(self.values, dim=2)


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
    pairs = multihead.attention_pairs(attention, gradients_as_weights(theirs))
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
        multihead.copy_pairs([(torch.zeros(3), None)])


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


# --- positions ----------------------------------------------------------------------------


def by_hand(attention, x, mask, turn=lambda x: x, bias=None):
    q = turn(multihead.split_heads(attention.W_q(x), 3))
    k = turn(multihead.split_heads(attention.W_k(x), 3))
    v = multihead.split_heads(attention.W_v(x), 3)
    additive = torch.zeros(5, 5).double().masked_fill(~mask, -torch.inf)
    additive = additive if bias is None else additive + bias
    return attention.W_o(multihead.merge_heads(F.scaled_dot_product_attention(q, k, v, additive)))


@either_path
def test_rope_turns_queries_and_keys_of_each_head_and_no_values(need_weights):
    attention = ours(position=positions.RotaryPositions(base=100.0))
    x, mask = normal(2, 5, 12, seed=17), causal_mask(5)
    output, _ = attention(x, x, x, mask, need_weights=need_weights)
    turned = by_hand(attention, x, mask, lambda x: positions.apply_rope(x, torch.arange(5), 100.0))
    assert_same(output, turned)
    assert (output - by_hand(attention, x, mask)).abs().max() > 1e-3


@either_path
def test_alibi_is_added_to_the_scores(need_weights):
    attention = ours(position=positions.AlibiPositions(3))
    x, mask = normal(2, 5, 12, seed=18), causal_mask(5)
    output, _ = attention(x, x, x, mask, need_weights=need_weights)
    assert_same(output, by_hand(attention, x, mask, bias=positions.alibi_bias(3, 5, 5).double()))


def test_a_relative_bias_is_trained_with_the_attention():
    attention = ours(position=positions.RelativePositions(3, 2))
    x = normal(2, 5, 12, seed=19)
    attention(x, x, x, need_weights=False)[0].square().sum().backward()
    assert attention.position.table.grad.all()


def test_positions_need_as_many_keys_as_queries():
    attention = ours(position=positions.RotaryPositions())
    with pytest.raises(ValueError, match="n_query <= n_key, got 3 and 2"):
        attention(*(normal(1, n, 12, seed=0) for n in (3, 2, 2)))


# --- the cache ----------------------------------------------------------------------------


@either_path
@pytest.mark.parametrize("chunks", [(2, 3, 2), (7,), (1, 1, 1, 1, 1, 1, 1), (5, 1, 1)])
@pytest.mark.parametrize(
    "position",
    [
        None,
        positions.RotaryPositions(),
        positions.AlibiPositions(4),
        positions.RelativePositions(4, 2),
    ],
    ids=lambda position: type(position).__name__,
)
@pytest.mark.parametrize("num_kv_heads", [4, 2])
def test_cached_equals_uncached(chunks, position, num_kv_heads, need_weights):
    attention = ours(16, 4, position=position, num_kv_heads=num_kv_heads)
    x = normal(2, 7, 16, seed=20)
    whole, _ = attention(x, x, x, causal_mask(7))
    cache, parts = ListCache(), []
    for chunk in x.split(list(chunks), dim=1):
        n = chunk.shape[1]
        mask = causal_mask(n, cache.length + n)
        parts.append(
            attention(chunk, chunk, chunk, mask, need_weights=need_weights, cache=cache)[0]
        )
    assert cache.keys[0].shape == (2, num_kv_heads, chunks[0], 4)
    assert_same(torch.cat(parts, dim=1), whole)


# --- starting values, recording, errors ---------------------------------------------------


@pytest.mark.parametrize(("d_in", "d_out"), [(256, 256), (64, 256)])
def test_projections_start_as_xavier_says(d_in, d_out):
    torch.manual_seed(0)
    linear = multihead.projection(d_in, d_out)
    variance = 2 / (d_in + d_out)
    assert linear.weight.shape == (d_out, d_in)
    assert linear.weight.var().item() == pytest.approx(variance, rel=0.03)
    assert linear.weight.abs().max().item() == pytest.approx((3 * variance) ** 0.5, rel=0.01)
    assert not linear.bias.any()
    assert multihead.projection(d_in, d_out, bias=False).bias is None


def test_scores_start_with_variance_one():
    torch.manual_seed(0)
    attention = MultiHeadAttention(256, 4)
    x = torch.randn(1, 128, 256)
    q, k = (multihead.split_heads(W(x), 4) for W in (attention.W_q, attention.W_k))
    assert (q @ k.mT / 8).var().item() == pytest.approx(1.0, rel=0.1)


def test_recorded_weights_are_those_of_each_module():
    model = nn.ModuleDict({"first": ours(), "second": ours()})
    x = normal(2, 4, 12, seed=21)
    with multihead.record_attention(model) as maps:
        for attention in model.values():
            output, _ = attention(x, x, x, causal_mask(4), need_weights=False)
    expected, weights = model["second"](x, x, x, causal_mask(4))
    assert maps.keys() == {"first", "second"}
    assert_same(maps["second"], weights.detach())
    assert not maps["second"].requires_grad
    assert_same(output, expected)
    # afterwards nothing is recorded, and the fast path is fast again
    assert model["first"](x, x, x, need_weights=False)[1] is None


def test_recording_ends_when_the_model_fails():
    attention, x = ours(), normal(2, 4, 12, seed=22)
    with pytest.raises(ZeroDivisionError), multihead.record_attention(attention):
        raise ZeroDivisionError
    assert attention(x, x, x, need_weights=False)[1] is None


@either_path
def test_mixed_precision(need_weights):
    attention = MultiHeadAttention(16, 2, position=positions.AlibiPositions(2))
    x = torch.randn(2, 5, 16)
    exact, _ = attention(x, x, x, causal_mask(5))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = attention(x, x, x, causal_mask(5), need_weights=need_weights)
    assert output.dtype == torch.bfloat16
    assert (output - exact).abs().max() < 0.05


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"d_model": 10, "num_heads": 3},
            r"d_model=10 .* num_heads=3; possible are \[1, 2, 5, 10\]",
        ),
        ({"d_model": 10, "num_heads": 0}, r"num_heads=0; possible"),
        ({"d_model": 12, "num_heads": 6, "num_kv_heads": 4}, r"num_heads=6 .*\[1, 2, 3, 6\]"),
        ({"d_model": 12, "num_heads": 6, "num_kv_heads": 0}, r"num_kv_heads=0"),
        ({"d_model": 12, "num_heads": 3, "dropout_p": 1.0}, r"dropout_p=1.0"),
        ({"d_model": 12, "num_heads": 3, "dropout_p": -0.5}, r"dropout_p=-0.5"),
    ],
)
def test_settings_that_cannot_be(arguments, words):
    with pytest.raises(ValueError, match=words):
        MultiHeadAttention(**arguments)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((2, 4, 11), (2, 5, 7), (2, 5, 12)), r"query must be \(b, n, 12\), got \(2, 4, 11\)"),
        (((2, 4, 12), (2, 5, 8), (2, 5, 12)), r"key must be \(b, n, 7\), got \(2, 5, 8\)"),
        (((2, 4, 12), (2, 5, 7), (5, 12)), r"value must be \(b, n, 12\), got \(5, 12\)"),
        (((2, 4, 12), (3, 5, 7), (3, 5, 12)), r"agree in batch"),
        (((2, 4, 12), (2, 5, 7), (2, 6, 12)), r"key and value in length"),
    ],
)
def test_inputs_that_do_not_fit(shapes, words):
    with pytest.raises(ValueError, match=words):
        MultiHeadAttention(12, 3, kdim=7)(*(torch.zeros(shape) for shape in shapes))


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("mask_shape", [(2, 5), (3, 4, 5), (2, 2, 4, 5)])
def test_masks_that_do_not_fit(mask_shape):
    x, memory = torch.zeros(2, 4, 12), torch.zeros(2, 5, 12)
    with pytest.raises(ValueError, match="a mask of shape"):
        MultiHeadAttention(12, 3)(x, memory, memory, torch.ones(mask_shape, dtype=torch.bool))


@pytest.mark.usefixtures("without_shape_checks")
def test_positions_for_another_number_of_heads():
    attention, x = (
        MultiHeadAttention(12, 3, position=positions.AlibiPositions(4)),
        torch.zeros(1, 2, 12),
    )
    with pytest.raises(ValueError, match="a bias of shape"):
        attention(x, x, x)


def test_the_module_holds_four_named_projections_and_nothing_else():
    names = {name for name, _ in MultiHeadAttention(12, 3, bias=False).named_parameters()}
    assert names == {"W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight"}


@given(h=st.integers(1, 4), kv=st.integers(1, 4))
def test_the_listed_head_counts_are_those_that_work(h, kv):
    if h % kv == 0:
        assert MultiHeadAttention(12, h, num_kv_heads=kv).num_kv_heads == kv
    else:
        with pytest.raises(ValueError, match=f"num_heads={h} is not divisible"):
            MultiHeadAttention(12, h, num_kv_heads=kv)
