"""Attention as functions: against PyTorch's own, by gradient, masked, in half precision."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import assert_same, gradients, normal, random_mask, seed, size
from torch.autograd import gradcheck

from attn_course import attention
from attn_course.masks import causal_mask, padding_mask

either_path = pytest.mark.parametrize("need_weights", [True, False])


def qkv(b, h, i, j, d_k, d_v, seed, grad=False):
    return (
        normal(b, h, i, d_k, seed=seed, grad=grad),
        normal(b, h, j, d_k, seed=seed + 1, grad=grad),
        normal(b, h, j, d_v, seed=seed + 2, grad=grad),
    )


# --- scaled dot-product attention ---------------------------------------------------------


@given(b=size, h=size, i=size, j=size, d_k=size, d_v=size, seed=seed, masked=st.booleans())
@example(b=2, h=3, i=4, j=5, d_k=7, d_v=6, seed=0, masked=False)
@example(b=4, h=4, i=4, j=4, d_k=5, d_v=5, seed=0, masked=True)
def test_equals_the_fused_kernel(b, h, i, j, d_k, d_v, seed, masked):
    inputs = qkv(b, h, i, j, d_k, d_v, seed, grad=True)
    mask = random_mask(b, h, i, j, seed=seed) if masked else None
    output, _ = attention.scaled_dot_product_attention(*inputs, mask)
    expected = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    assert_same(output, expected)
    assert_same(gradients(output, inputs), gradients(expected, inputs))


@given(
    b=size, h=size, i=size, j=size, d=size, seed=seed, masked=st.booleans(), biased=st.booleans()
)
def test_both_paths_agree(b, h, i, j, d, seed, masked, biased):
    inputs = qkv(b, h, i, j, d, d, seed, grad=True)
    # this mask has empty rows
    mask = normal(b, 1, i, j, seed=seed) > 0.5 if masked else None
    bias = normal(1, h, i, j, seed=seed) if biased else None
    slow, _ = attention.scaled_dot_product_attention(*inputs, mask, bias=bias)
    fast, weights = attention.scaled_dot_product_attention(
        *inputs, mask, bias=bias, need_weights=False
    )
    assert weights is None
    assert_same(fast, slow)
    assert_same(gradients(fast, inputs), gradients(slow, inputs))


def test_weights_sum_to_one_and_are_those_that_weigh_the_values():
    query, key, value = qkv(2, 3, 4, 5, 7, 6, seed=1)
    mask = random_mask(4, 5, seed=1)
    output, weights = attention.scaled_dot_product_attention(query, key, value, mask)
    assert_same(weights.sum(-1), torch.ones(2, 3, 4, dtype=torch.float64))
    assert_same(weights @ value, output)
    assert (weights[:, :, ~mask] == 0).all()


@either_path
@pytest.mark.parametrize("leading", [(), (2,), (2, 3), (2, 3, 2)])
def test_any_leading_axes_are_independent_look_ups(leading, need_weights):
    query = normal(*leading, 4, 7, seed=0)
    key, value = normal(*leading, 5, 7, seed=1), normal(*leading, 5, 6, seed=2)
    output, _ = attention.scaled_dot_product_attention(query, key, value, need_weights=need_weights)
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (query, key, value)]
    one_by_one = [
        F.scaled_dot_product_attention(q[None], k[None], v[None])[0]
        for q, k, v in zip(*flat, strict=True)
    ]
    assert_same(output, torch.stack(one_by_one).reshape(*leading, 4, 6))


@pytest.mark.parametrize("d_k", [5, 12])
def test_thermometer_reads_the_scale(d_k):
    # scores (s, 0) and values (1, 0): the logit of the output is the scale itself
    query, key = torch.zeros(1, d_k), torch.zeros(2, d_k)
    query[0, 0] = key[0, 0] = 1.0
    output, _ = attention.scaled_dot_product_attention(query, key, torch.tensor([[1.0], [0.0]]))
    assert output.logit().item() == pytest.approx(d_k**-0.5, rel=1e-5)


@either_path
@given(b=size, i=size, j=st.integers(2, 5), seed=seed)
def test_hidden_keys_and_values_change_nothing(need_weights, b, i, j, seed):
    query, key, value = qkv(b, 2, i, j, 3, 3, seed)
    mask = random_mask(b, 1, i, j, seed=seed)
    before, _ = attention.scaled_dot_product_attention(
        query, key, value, mask, need_weights=need_weights
    )
    for hidden_from in range(i):
        poisoned_key, poisoned_value = key.clone(), value.clone()
        hidden = ~mask[:, 0, hidden_from]
        poisoned_key.transpose(1, 2)[hidden] = 1e6
        poisoned_value.transpose(1, 2)[hidden] = 1e6
        after, _ = attention.scaled_dot_product_attention(
            query, poisoned_key, poisoned_value, mask, need_weights=need_weights
        )
        assert_same(after[:, :, hidden_from], before[:, :, hidden_from])


@either_path
def test_masked_equals_truncated(need_weights):
    query, key, value = qkv(3, 2, 4, 6, 5, 5, seed=3)
    lengths = torch.tensor([6, 1, 4])
    mask = padding_mask(lengths, 6)[:, None, None, :]
    output, _ = attention.scaled_dot_product_attention(
        query, key, value, mask, need_weights=need_weights
    )
    for sample, length in enumerate(lengths):
        alone = F.scaled_dot_product_attention(
            query[sample], key[sample, :, :length], value[sample, :, :length]
        )
        assert_same(output[sample], alone)


@either_path
@pytest.mark.parametrize(("n_query", "n_key"), [(5, 5), (2, 5), (1, 4)])
def test_the_past_does_not_depend_on_the_future(n_query, n_key, need_weights):
    query, key, value = qkv(1, 1, n_query, n_key, 3, 3, seed=4, grad=True)
    output, _ = attention.scaled_dot_product_attention(
        query, key, value, causal_mask(n_query, n_key), need_weights=need_weights
    )
    for i in range(n_query):
        for_key, for_value = torch.autograd.grad(
            output[0, 0, i].sum(), (key, value), retain_graph=True
        )
        now = n_key - n_query + i
        assert (for_key[0, 0, now + 1 :] == 0).all()
        assert (for_value[0, 0, now + 1 :] == 0).all()
        assert (for_value[0, 0, : now + 1] != 0).all()


@either_path
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_query_without_keys_gets_zeros_and_finite_gradients(need_weights, biased, dtype):
    inputs = [x.to(dtype).detach().requires_grad_() for x in qkv(2, 3, 4, 5, 8, 8, seed=5)]
    mask = torch.ones(2, 1, 4, 5, dtype=torch.bool)
    mask[0, :, 1] = mask[1, :, 3] = False
    bias = torch.zeros(4, 5) if biased else None
    with torch.autograd.detect_anomaly(check_nan=True):
        output, _ = attention.scaled_dot_product_attention(
            *inputs, mask, bias=bias, need_weights=need_weights
        )
        found = gradients(output, inputs)
    assert (output[0, :, 1] == 0).all()
    assert (output[1, :, 3] == 0).all()
    assert (output[0, :, 0] != 0).all()
    for gradient in found:
        assert gradient.isfinite().all()
    # an empty row asks for nothing and leaves the other rows' gradients as they are
    assert (found[0][0, :, 1] == 0).all()


@either_path
def test_with_no_keys_at_all_the_output_is_zero(need_weights):
    query, key, value = torch.randn(2, 3, 4), torch.empty(2, 0, 4), torch.empty(2, 0, 4)
    mask = torch.empty(3, 0, dtype=torch.bool)
    output, _ = attention.scaled_dot_product_attention(
        query, key, value, mask, need_weights=need_weights
    )
    assert_same(output, torch.zeros(2, 3, 4))


@either_path
@pytest.mark.parametrize("mask_shape", [(4, 5), (1, 1, 4, 5), (2, 1, 1, 5), (2, 3, 4, 1)])
def test_masks_that_broadcast(mask_shape, need_weights):
    query, key, value = qkv(2, 3, 4, 5, 7, 7, seed=6)
    mask = random_mask(*mask_shape, seed=6)
    output, _ = attention.scaled_dot_product_attention(
        query, key, value, mask, need_weights=need_weights
    )
    full = mask.expand(2, 3, 4, 5).contiguous()
    assert_same(output, F.scaled_dot_product_attention(query, key, value, full))


@either_path
@pytest.mark.parametrize("masked", [False, True])
def test_a_bias_is_added_to_the_scaled_scores(masked, need_weights):
    query, key, value = qkv(2, 3, 4, 5, 7, 7, seed=7)
    bias = normal(1, 3, 4, 5, seed=8, grad=True)
    mask = random_mask(4, 5, seed=7) if masked else None
    output, _ = attention.scaled_dot_product_attention(
        query, key, value, mask, bias=bias, need_weights=need_weights
    )
    additive = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    expected = F.scaled_dot_product_attention(query, key, value, additive)
    assert_same(output, expected)
    assert_same(gradients(output, [bias]), gradients(expected, [bias]))


def test_dropout_drops_weights_and_scales_up_the_rest():
    torch.manual_seed(0)
    query, key = torch.zeros(200, 4), torch.zeros(50, 4)
    # with the identity as values the output is the weights that were left
    output, weights = attention.scaled_dot_product_attention(
        query, key, torch.eye(50), dropout_p=0.1
    )
    dropped = (output == 0).float().mean().item()
    assert dropped == pytest.approx(0.1, abs=0.02)
    assert_same(output[output != 0], torch.full_like(output[output != 0], 1 / 50 / 0.9), 1e-6)
    assert_same(weights, torch.full((200, 50), 1 / 50), 1e-6)


def test_dropout_on_the_fast_path_is_alive_and_right_on_average():
    torch.manual_seed(0)
    query, key, value = torch.zeros(1, 1, 400, 8), torch.zeros(1, 1, 40, 8), torch.ones(1, 1, 40, 8)
    output, _ = attention.scaled_dot_product_attention(
        query, key, value, dropout_p=0.5, need_weights=False
    )
    assert output.std() > 0.05
    assert output.mean().item() == pytest.approx(1.0, abs=0.05)


@either_path
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_no_worse_than_the_plain_formula(dtype, need_weights):
    exact = qkv(2, 4, 33, 65, 32, 32, seed=9)
    rounded = [x.to(dtype) for x in exact]
    truth = F.scaled_dot_product_attention(*(x.double() for x in rounded))
    query, key, value = rounded
    scores = query @ key.transpose(-1, -2) / 32**0.5
    naive_error = (scores.softmax(dim=-1) @ value - truth).abs().max()
    output, _ = attention.scaled_dot_product_attention(*rounded, need_weights=need_weights)
    assert output.dtype == dtype
    assert (output - truth).abs().max() <= 1.5 * naive_error


def test_half_precision_does_not_overflow_before_the_scale():
    query = key = torch.full((3, 64), 40.0, dtype=torch.float16)
    output, weights = attention.scaled_dot_product_attention(query, key, torch.eye(3).half())
    assert_same(weights, torch.full((3, 3), 1 / 3, dtype=torch.float16), 1e-3)
    assert_same(output, weights)


def test_scores_far_below_zero_still_outweigh_hidden_ones():
    query, key = torch.tensor([[1.0]]), torch.tensor([[-2.5e5], [-2.5e5], [0.0]])
    mask = torch.tensor([[True, True, False]])
    _, weights = attention.scaled_dot_product_attention(query, key, torch.eye(3), mask)
    assert_same(weights, torch.tensor([[0.5, 0.5, 0.0]]))


def test_gradcheck_of_the_path_with_weights():
    inputs = qkv(1, 2, 3, 4, 2, 3, seed=10, grad=True)
    mask = random_mask(3, 4, seed=10)
    mask[1] = False
    assert gradcheck(lambda *x: attention.scaled_dot_product_attention(*x, mask)[0], inputs)


def test_inputs_are_left_alone():
    query, key, value = qkv(2, 3, 4, 5, 7, 6, seed=11)
    mask = random_mask(4, 5, seed=11)
    copies = [x.clone() for x in (query, key, value, mask)]
    attention.scaled_dot_product_attention(query, key, value, mask)
    attention.scaled_dot_product_attention(query, key, value, mask, need_weights=False)
    for now, before in zip((query, key, value, mask), copies, strict=True):
        assert torch.equal(now, before)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((4,), (5, 4), (5, 4)), r"needs \(\*b, n, d\)"),
        (((2, 4, 7), (3, 5, 7), (3, 5, 6)), r"leading axes differ: query \(2, 4, 7\)"),
        (((2, 4, 7), (2, 5, 6), (2, 5, 6)), r"differ in d_k"),
        (((2, 4, 7), (2, 5, 7), (2, 6, 7)), r"one value for each key"),
    ],
)
def test_shapes_that_do_not_fit(shapes, words):
    with pytest.raises(ValueError, match=words):
        attention.scaled_dot_product_attention(*(torch.zeros(shape) for shape in shapes))


@pytest.mark.usefixtures("without_shape_checks")
def test_integers_are_no_queries():
    with pytest.raises(ValueError, match=r"needs floats, got torch\.int64, torch\.float32"):
        attention.scaled_dot_product_attention(
            torch.ones(2, 3, dtype=torch.long), torch.ones(2, 3), torch.ones(2, 3)
        )


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (torch.ones(4, 5), r"boolean.*float32"),
        (torch.ones(2, 5, dtype=torch.bool), r"\(2, 5\) does not fit.*\(2, 3, 4, 5\)"),
        (torch.ones(1, 5, dtype=torch.bool), r"must be \(4, 5\)"),
        (torch.ones(2, 4, 5, dtype=torch.bool), r"have 4 axes"),
        (torch.ones(2, 2, 4, 5, dtype=torch.bool), r"full size or 1"),
        (torch.ones(5, dtype=torch.bool), r"\(5,\) does not fit"),
    ],
)
def test_masks_that_do_not_fit(mask, words):
    with pytest.raises(ValueError, match=words):
        attention.scaled_dot_product_attention(*qkv(2, 3, 4, 5, 7, 6, seed=0), mask)


@pytest.mark.usefixtures("without_shape_checks")
def test_a_bias_that_does_not_fit():
    with pytest.raises(ValueError, match=r"a bias of shape \(3, 4, 5\) does not fit"):
        attention.scaled_dot_product_attention(
            *qkv(2, 3, 4, 5, 7, 6, seed=0), bias=torch.zeros(3, 4, 5)
        )


@pytest.mark.parametrize("dropout_p", [-0.1, 1.0, float("nan")])
def test_a_dropout_that_is_no_probability(dropout_p):
    with pytest.raises(ValueError, match="dropout_p="):
        attention.scaled_dot_product_attention(*qkv(1, 1, 2, 2, 2, 2, seed=0), dropout_p=dropout_p)
