"""The same numbers as full attention, gradients too, without the n × n weights."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd.graph import saved_tensors_hooks

from attn_course.attention import scaled_dot_product_attention
from attn_course.efficient import (
    KVCache,
    attention_memory,
    chunked_attention,
    online_softmax,
    sliding_window_attention,
)
from attn_course.masks import causal_mask, sliding_window_mask
from attn_course.multihead import MultiHeadAttention
from benchmarks.measure import peak_memory

sizes = st.integers(1, 9)


def qkv(b, h, i, j, d, seed=0, dtype=torch.float64):
    rng = torch.Generator().manual_seed(seed)
    shapes = ((b, h, i, d), (b, h, j, d), (b, h, j, d + 1))
    return [
        torch.randn(shape, generator=rng, dtype=torch.float64).to(dtype).requires_grad_()
        for shape in shapes
    ]


@settings(deadline=None, max_examples=40)
@given(i=sizes, j=sizes, block=st.integers(1, 12), hidden=st.integers(0, 9))
def test_online_softmax_is_the_softmax(i, j, block, hidden):
    rng = torch.Generator().manual_seed(i * 100 + j)
    # maxima that rise from block to block, far below zero at first
    scores = torch.randn(2, i, j, generator=rng, dtype=torch.float64) + torch.arange(j) * 5 - 300
    scores[..., : min(hidden, j)] = -math.inf
    value = torch.randn(2, j, 3, generator=rng, dtype=torch.float64)
    expected = scores.softmax(-1).nan_to_num() @ value
    torch.testing.assert_close(online_softmax(scores, value, block), expected)


def test_online_softmax_has_gradients_even_with_hidden_rows():
    rng = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 7, generator=rng, dtype=torch.float64)
    scores[1] = -math.inf
    scores[0, :3] = -math.inf
    leaf, value = scores.requires_grad_(), torch.randn(7, 2, generator=rng, dtype=torch.float64)
    output = online_softmax(leaf, value, 2)
    (gradient,) = torch.autograd.grad(output.sin().sum(), leaf)
    assert gradient.isfinite().all()
    visible = leaf[2:].detach().requires_grad_()
    (expected,) = torch.autograd.grad((visible.softmax(-1) @ value).sin().sum(), visible)
    torch.testing.assert_close(gradient[2:], expected)


def masks(i, j):
    rng = torch.Generator().manual_seed(1)
    ragged = torch.rand(2, 3, i, j, generator=rng) < 0.4
    ragged[:, :, 0] = False  # a query that sees nothing
    return {
        "none": None,
        "ragged": ragged,
        "one for all heads": ragged[:, :1],
        "padding": ragged[:, :1, 1:2],
        "plain": ragged[0, 0],
        "causal": causal_mask(i, j) if i <= j else None,
    }


@pytest.mark.parametrize("name", masks(1, 1))
@pytest.mark.parametrize(("i", "j", "chunk"), [(10, 10, 4), (3, 11, 5), (12, 5, 3), (6, 6, 64)])
def test_chunked_attention_is_attention(name, i, j, chunk):
    mask = masks(i, j)[name]
    inputs = qkv(2, 3, i, j, 4)
    full = None if mask is None else mask.expand(2, 3, i, j)
    expected, _ = scaled_dot_product_attention(*inputs, full)
    output, weights = chunked_attention(*inputs, mask, chunk)
    assert weights is None
    torch.testing.assert_close(output, expected)
    for ours, theirs in zip(
        torch.autograd.grad(output.sin().sum(), inputs),
        torch.autograd.grad(expected.sin().sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


def test_a_rule_is_aligned_bottom_right_and_its_hidden_blocks_are_skipped():
    inputs, seen = qkv(2, 3, 4, 10, 4), []

    def causal(i, j):
        seen.append((int(i.max()), int(j.min())))
        return j <= i

    output, _ = chunked_attention(*inputs, causal, 2)
    expected, _ = scaled_dot_product_attention(*inputs, causal_mask(4, 10))
    torch.testing.assert_close(output, expected)
    assert max(i for i, _ in seen) == 9


def test_the_backward_pass_has_the_right_numbers():
    inputs = qkv(1, 2, 5, 7, 3)
    mask = masks(5, 7)["plain"]
    assert torch.autograd.gradcheck(lambda *x: chunked_attention(*x, mask, 3)[0], inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_no_worse_than_the_plain_formula(dtype):
    inputs = [x.detach() for x in qkv(2, 3, 40, 40, 16, dtype=dtype)]
    exact, _ = scaled_dot_product_attention(*(x.double() for x in inputs))
    plain, _ = scaled_dot_product_attention(*inputs)
    output, _ = chunked_attention(*inputs, None, 8)
    assert output.dtype == dtype
    error = (output.double() - exact).abs().max()
    assert error <= 1.1 * (plain.double() - exact).abs().max()


def test_no_block_is_larger_than_a_chunk_squared():
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            result = func(*args, **(kwargs or {}))
            for tensor in result if isinstance(result, tuple | list) else (result,):
                if isinstance(tensor, torch.Tensor):
                    largest = max(largest, tensor.numel())
            return result

    inputs = qkv(1, 1, 256, 256, 8)
    with Watch():
        chunked_attention(*inputs, lambda i, j: j <= i, 16)[0].sum().backward()
    assert largest <= 256 * 9


@settings(deadline=None, max_examples=40)
@given(n=sizes, extra=st.integers(0, 9), window=st.integers(1, 12))
def test_a_window_is_attention_under_its_mask(n, extra, window):
    inputs = qkv(2, 3, n, n + extra, 4, seed=n)
    mask = sliding_window_mask(n, n + extra, window=window)
    expected, _ = scaled_dot_product_attention(*inputs, mask)
    output, weights = sliding_window_attention(*inputs, window)
    assert weights is None
    torch.testing.assert_close(output, expected)
    ours, theirs = (torch.autograd.grad(x.sin().sum(), inputs) for x in (output, expected))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda q, k, v: chunked_attention(q, k, v, None, 0), "chunk_size must be at least 1"),
        (lambda q, k, v: chunked_attention(q, k[..., :2], v), "differ in d_k"),
        (lambda q, k, v: chunked_attention(q, k, v, torch.ones(4, 5)), "boolean"),
        (lambda q, k, v: chunked_attention(q, k[:1], v), "leading axes"),
        (lambda q, k, v: chunked_attention(q, k, v, torch.ones(3, 3).bool()), "does not fit"),
        (lambda q, k, v: sliding_window_attention(q, k, v, 0), "window must be at least 1"),
        (lambda q, k, v: sliding_window_attention(k, q, v[..., :4, :], 2), "n_query <= n_key"),
        (lambda q, k, v: online_softmax(q, v), "one value for each score"),
        (lambda q, k, v: attention_memory(10, 3, 4), "d_model=10"),
        (lambda q, k, v: attention_memory(10, 5, 0), "n_query must be at least 1"),
        (lambda q, k, v: KVCache(0), "max_len must be at least 1"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_what_does_not_fit_is_an_error_with_the_numbers(call, words):
    with pytest.raises(ValueError, match=words):
        call(*qkv(2, 3, 4, 5, 6))


def test_a_cache_returns_all_positions_and_refuses_more_than_it_holds():
    cache, rng = KVCache(5), torch.Generator().manual_seed(0)
    key, value = torch.randn(2, 3, 5, 4, generator=rng), torch.randn(2, 3, 5, 6, generator=rng)
    for start, end in ((0, 2), (2, 5)):
        keys, values = cache.append(key[:, :, start:end], value[:, :, start:end])
        assert torch.equal(keys, key[:, :, :end])
        assert torch.equal(values, value[:, :, :end])
        assert cache.length == end
    with pytest.raises(ValueError, match="room for 5 positions: 5 are stored, 1 more"):
        cache.append(key[:, :, :1], value[:, :, :1])
    cache.reset()
    assert cache.length == 0
    assert cache.append(key[:1, :, :1], value[:1, :, :1])[0].shape == (1, 3, 1, 4)


@pytest.mark.parametrize("change", [lambda t: t[:1], lambda t: t[..., :2], lambda t: t.double()])
@pytest.mark.usefixtures("without_shape_checks")
def test_a_cache_refuses_what_does_not_continue_it(change):
    cache, key = KVCache(5), torch.zeros(2, 3, 1, 4)
    cache.append(key, key)
    with pytest.raises(ValueError, match="must continue what is stored"):
        cache.append(change(key), key)
    with pytest.raises(ValueError, match="must continue what is stored"):
        cache.append(key, change(key))
    assert cache.length == 1


def test_a_cache_reorders_its_sequences():
    cache, key = KVCache(3), torch.arange(3.0).reshape(3, 1, 1, 1)
    cache.append(key, key)
    cache.reorder(torch.tensor([2, 2, 0]))
    keys, _ = cache.append(key, key)
    assert keys[:, 0, 0, 0].tolist() == [2, 2, 0]


def kept_for_backward(module, *inputs, **options):
    """Bytes of distinct memory that autograd keeps, besides parameters and inputs."""
    known = {t.untyped_storage().data_ptr() for t in (*module.parameters(), *inputs)}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        output = module(*inputs, **options)
    return sum(kept.values()), output


@pytest.mark.parametrize("num_heads", [1, 2, 8])
@pytest.mark.parametrize(("b", "i", "j"), [(1, 48, 48), (3, 16, 40)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_memory_account_is_what_autograd_keeps(num_heads, b, i, j, dtype):
    torch.manual_seed(0)
    module = MultiHeadAttention(32, num_heads).to(dtype)
    x, y = torch.randn(b, i, 32, dtype=dtype), torch.randn(b, j, 32, dtype=dtype)
    account = attention_memory(32, num_heads, i, j, batch=b, dtype=dtype)
    kept, _output = kept_for_backward(module, x, y, y)
    assert kept == account.activations
    assert account.parameters == sum(p.nbytes for p in module.parameters())


@pytest.mark.parametrize(
    ("d_model", "num_heads", "n"), [(64, 1, 256), (64, 8, 256), (128, 16, 512)]
)
def test_the_account_explains_the_measured_peak(d_model, num_heads, n):
    torch.manual_seed(0)
    module, x, kept = MultiHeadAttention(d_model, num_heads), torch.randn(1, n, d_model), []
    account = attention_memory(d_model, num_heads, n)
    peak = peak_memory(lambda: kept.append(module(x, x, x)), torch.device("cpu"))
    # while the softmax runs the scores stand beside the weights, and a few copies of tokens
    passing = account.weights + 3 * x.nbytes
    assert account.activations <= peak <= account.activations + passing
    fused = attention_memory(d_model, num_heads, n, fused=True)
    options = {"need_weights": False}
    peak = peak_memory(lambda: kept.append(module(x, x, x, **options)), torch.device("cpu"))
    assert fused.activations <= peak <= fused.activations + 3 * x.nbytes


def test_a_fused_kernel_keeps_no_weights():
    torch.manual_seed(0)
    module, x = MultiHeadAttention(32, 8), torch.randn(2, 64, 32)
    kept, _output = kept_for_backward(module, x, x, x, need_weights=False)
    account = attention_memory(32, 8, 64, batch=2, fused=True)
    assert account.weights == 0
    # besides the account it keeps one number for each query and head
    assert kept - account.activations <= 2 * 8 * 64 * 4 + 64
