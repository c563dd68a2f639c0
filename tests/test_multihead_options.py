"""Multi-head attention with positions and a cache; its start, its record, its errors."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from oracles import assert_same, normal, randomise
from torch import nn

from attn_course import multihead, positions
from attn_course.masks import causal_mask
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


@either_path
@pytest.mark.parametrize(
    "position",
    [
        positions.RotaryPositions(),
        positions.AlibiPositions(3),
        positions.RelativePositions(3, 2),
    ],
    ids=lambda position: type(position).__name__,
)
def test_positions_are_made_where_the_tokens_are(position, need_weights):
    # tensors of another device than "meta" may not be combined with its own
    attention = MultiHeadAttention(12, 3, position=position).to("meta")
    x, mask = torch.empty(2, 5, 12, device="meta"), causal_mask(5, device="meta")
    assert attention(x, x, x, mask, need_weights=need_weights)[0].device.type == "meta"


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
