"""Positions against their formulas, and against what they promise of distances."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import assert_same, normal, seed
from torch.autograd import gradcheck

from attn_course import positions

# --- sinusoidal ---------------------------------------------------------------------------


@pytest.mark.parametrize("d_model", [1, 2, 9, 16, 64])
def test_sinusoidal_encoding_by_its_formula(d_model):
    encoding = positions.sinusoidal_encoding(60, d_model)
    assert encoding.dtype == torch.get_default_dtype()
    for position in (0, 1, 3, 59):
        wave = [math.sin, math.cos]
        expected = [
            wave[feature % 2](position / 10000 ** ((feature - feature % 2) / d_model))
            for feature in range(d_model)
        ]
        assert_same(encoding[position], torch.tensor(expected), 1e-6)


def test_sinusoidal_pairs_lie_on_a_circle():
    even, odd = positions.sinusoidal_encoding(50, 16).double().unflatten(-1, (8, 2)).unbind(-1)
    assert_same(even.square() + odd.square(), torch.ones(50, 8).double(), 1e-6)


def test_sinusoidal_encoding_is_precise_far_out():
    far = positions.sinusoidal_encoding(100_000, 6)[99_999]
    angles = [99_999 / 10000 ** (2 * pair / 6) for pair in range(3)]
    expected = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
    assert_same(far, torch.tensor(expected), 1e-6)


# kills: the whole table, the last rows, rows by the batch axis, an offset that is ignored
@pytest.mark.parametrize("leading", [(), (3,), (2, 3)])
@pytest.mark.parametrize("offset", [0, 2, 4])
def test_each_position_gets_its_row(leading, offset):
    x, table = normal(*leading, 3, 4, seed=0), normal(7, 4, seed=1)
    moved = positions.add_positions(x, table, offset)
    for i in range(3):
        assert_same(moved[..., i, :], x[..., i, :] + table[offset + i])


# kills: a table that makes the sum wider than x, a table cut off from the gradient
def test_added_positions_keep_the_dtype_and_train_the_table():
    table = normal(5, 4, seed=1, grad=True)
    summed = positions.add_positions(torch.zeros(2, 3, 4, dtype=torch.bfloat16), table, 1)
    assert summed.dtype == torch.bfloat16
    summed.sum().backward()
    assert table.grad[:, 0].tolist() == [0, 2, 2, 2, 0]


@pytest.mark.parametrize(("n", "offset"), [(8, 0), (3, 5), (2, -1)])
def test_a_position_without_a_row(n, offset):
    words = rf"positions {offset} … {offset + n - 1} asked for, the table has 0 … 6"
    with pytest.raises(ValueError, match=words):
        positions.add_positions(torch.zeros(2, n, 4), torch.zeros(7, 4), offset)


# kills: the transposed matrix, pairs that share a rate, halves taken for pairs
@given(shift=st.integers(-300, 300), pairs=st.integers(1, 16))
def test_a_shift_is_one_matrix_for_all_positions(shift, pairs):
    matrix = positions.relative_shift(shift, 2 * pairs).double()
    encoding = positions.sinusoidal_encoding(701, 2 * pairs).double()
    assert_same(encoding[300:400] @ matrix, encoding[300 + shift : 400 + shift], 1e-5)


# kills: a matrix fitted to some positions instead of a rotation
def test_a_shift_is_a_rotation():
    one, two = positions.relative_shift(3, 64).double(), positions.relative_shift(-8, 64).double()
    assert_same(one @ one.mT, torch.eye(64, dtype=torch.float64), 1e-6)
    assert_same(one @ two, positions.relative_shift(-5, 64).double(), 1e-6)
    assert torch.equal(positions.relative_shift(0, 6), torch.eye(6))


def test_a_shift_needs_pairs():
    with pytest.raises(ValueError, match="d_model=5 is odd"):
        positions.relative_shift(2, 5)


# --- learned ------------------------------------------------------------------------------


def test_learned_positions_are_slices_of_a_trained_table():
    learned = positions.LearnedPositions(7, 4)
    assert [parameter.shape for parameter in learned.parameters()] == [(7, 4)]
    assert torch.equal(learned(3), learned.table[:3])
    assert torch.equal(learned(2, offset=5), learned.table[5:7])
    assert learned(0, offset=7).shape == (0, 4)
    learned(2, offset=5).sum().backward()
    assert learned.table.grad is not None
    assert learned.table.grad.any(dim=-1).tolist() == [False] * 5 + [True] * 2


def test_learned_positions_start_small_and_all_different():
    torch.manual_seed(0)
    table = positions.LearnedPositions(64, 128).table
    assert table.std().item() == pytest.approx(0.02, rel=0.05)
    assert len(table.unique(dim=0)) == 64


@pytest.mark.parametrize(("n", "offset"), [(8, 0), (3, 5), (2, -1)])
def test_a_position_that_was_never_learned(n, offset):
    words = rf"positions {offset} … {offset + n - 1} asked for, 0 … 6 learned"
    with pytest.raises(ValueError, match=words):
        positions.LearnedPositions(7, 4)(n, offset)


@pytest.mark.parametrize(("max_len", "d_model"), [(0, 4), (7, 0)])
def test_a_table_needs_rows_and_columns(max_len, d_model):
    with pytest.raises(ValueError, match=f"max_len={max_len} and d_model={d_model}"):
        positions.LearnedPositions(max_len, d_model)


# --- RoPE ---------------------------------------------------------------------------------


def rope_as_complex(x, at, base):
    """Each pair as one complex number, turned by multiplication with e^(iθ)."""
    d = x.shape[-1]
    pairs = torch.view_as_complex(x.unflatten(-1, (d // 2, 2)).contiguous())
    frequencies = [base ** (-2 * i / d) for i in range(d // 2)]
    angles = torch.tensor([[m * f for f in frequencies] for m in at.tolist()], dtype=x.dtype)
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


at_any = st.lists(st.integers(0, 5000), min_size=1, max_size=5).map(torch.tensor)


@given(at=at_any, pairs=st.integers(1, 16), base=st.sampled_from([100.0, 10000.0]), seed=seed)
def test_rope_equals_complex_multiplication(at, pairs, base, seed):
    x = normal(2, 3, len(at), 2 * pairs, seed=seed)
    assert_same(positions.apply_rope(x, at, base), rope_as_complex(x, at, base))


def test_rope_has_the_papers_base_unless_told():
    x, at = normal(4, 16, seed=0), torch.arange(4)
    assert torch.equal(positions.apply_rope(x, at), positions.apply_rope(x, at, 10000.0))


@given(at=at_any, seed=seed)
def test_rope_keeps_norms(at, seed):
    x = normal(len(at), 16, seed=seed)
    assert_same(positions.apply_rope(x, at).norm(dim=-1), x.norm(dim=-1))


@given(m=st.integers(0, 300), n=st.integers(0, 300), shift=st.integers(1, 300), seed=seed)
def test_rope_scores_depend_on_differences_alone(m, n, shift, seed):
    query, key = normal(1, 16, seed=seed), normal(1, 16, seed=seed + 1)

    def score(m, n):
        turned = positions.apply_rope(query, torch.tensor([m]))
        return (turned * positions.apply_rope(key, torch.tensor([n]))).sum()

    assert_same(score(m, n), score(m + shift, n + shift))
    assert (score(m, n) - score(m + 1, n)).abs() > 1e-6


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.bfloat16, 1e-2), (torch.float16, 2e-3), (torch.float32, 1e-3)]
)
def test_rope_far_out_in_half_precision(dtype, tolerance):
    x = torch.zeros(1, 16, dtype=dtype)
    x[0, 0::2] = 1.0
    turned = positions.apply_rope(x, torch.tensor([4001]))
    exact = rope_as_complex(x.double(), torch.tensor([4001]), 10000.0)
    assert turned.dtype == dtype
    assert (turned - exact).abs().max() < tolerance


def test_gradcheck_of_rope():
    at = torch.tensor([3, 0, 7])
    assert gradcheck(lambda x: positions.apply_rope(x, at), normal(2, 3, 4, seed=0, grad=True))


@pytest.mark.usefixtures("without_shape_checks")
def test_rope_refuses_what_it_cannot_turn():
    with pytest.raises(ValueError, match="d=5 is odd"):
        positions.apply_rope(torch.zeros(3, 5), torch.arange(3))
    with pytest.raises(ValueError, match=r"x has 3 rows, positions the shape \(4,\)"):
        positions.apply_rope(torch.zeros(3, 4), torch.arange(4))
    with pytest.raises(ValueError, match=r"positions the shape \(2, 3\)"):
        positions.apply_rope(torch.zeros(2, 3, 4), torch.arange(6).reshape(2, 3))


# --- ALiBi and the relative bias ----------------------------------------------------------


def published_slopes(n):
    """The rule as the authors of ALiBi published it, by recursion."""

    def of_a_power_of_two(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return of_a_power_of_two(n)
    lower = 2 ** math.floor(math.log2(n))
    return of_a_power_of_two(lower) + published_slopes(2 * lower)[0::2][: n - lower]


@pytest.mark.parametrize("num_heads", [1, 2, 3, 6, 8, 12, 16, 20])
def test_alibi_slopes_follow_the_published_rule(num_heads):
    slopes = positions.alibi_slopes(num_heads)
    assert_same(slopes, torch.tensor(published_slopes(num_heads)), 1e-6)


@pytest.mark.parametrize(("n_query", "n_key"), [(4, 4), (2, 5), (1, 9)])
def test_alibi_bias_falls_with_distance(n_query, n_key):
    bias = positions.alibi_bias(3, n_query, n_key)
    assert bias.shape == (3, n_query, n_key)
    for h, slope in enumerate(published_slopes(3)):
        for i in range(n_query):
            now = n_key - n_query + i
            expected = torch.tensor([-slope * abs(now - j) for j in range(n_key)])
            assert_same(bias[h, i], expected, 1e-6)


@pytest.mark.parametrize(("n_query", "n_key", "k"), [(6, 6, 2), (2, 6, 3), (3, 4, 9)])
def test_relative_bias_has_one_number_for_each_clipped_distance(n_query, n_key, k):
    table = normal(3, 2 * k + 1, seed=0)
    bias = positions.relative_bias(table, n_query, n_key)
    for i in range(n_query):
        for j in range(n_key):
            distance = j - (n_key - n_query + i)
            assert_same(bias[:, i, j], table[:, max(-k, min(k, distance)) + k])


def test_relative_positions_put_the_queries_last():
    assert positions.relative_positions(2, 3).tolist() == [[-1, 0, 1], [-2, -1, 0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: positions.relative_positions(3, 2),
        lambda: positions.alibi_bias(2, 3, 2),
        lambda: positions.relative_bias(torch.zeros(2, 3), 3, 2),
    ],
)
def test_more_queries_than_keys_have_no_distance(make):
    with pytest.raises(ValueError, match="n_query <= n_key, got 3 and 2"):
        make()


def test_a_relative_table_has_a_middle():
    with pytest.raises(ValueError, match="the table has 4"):
        positions.relative_bias(torch.zeros(2, 4), 3, 3)


def test_alibi_needs_a_head():
    with pytest.raises(ValueError, match="num_heads=0"):
        positions.alibi_slopes(0)


# --- the hooks of multi-head attention ----------------------------------------------------


def test_a_plain_hook_changes_nothing():
    hook = positions.PositionHook()
    x = normal(1, 2, 3, 4, seed=0)
    assert torch.equal(hook.rotate(x, torch.arange(3)), x)
    assert hook.score_bias(3, 3, x.device) is None


def test_hooks_hold_the_functions():
    x, at = normal(1, 2, 3, 4, seed=0), torch.tensor([4, 5, 6])
    assert_same(positions.RotaryPositions(50.0).rotate(x, at), positions.apply_rope(x, at, 50.0))
    assert positions.RotaryPositions().score_bias(2, 3, x.device) is None
    alibi = positions.AlibiPositions(6)
    assert torch.equal(alibi.score_bias(2, 3, x.device), positions.alibi_bias(6, 2, 3))
    assert torch.equal(alibi.rotate(x, at), x)


def test_relative_positions_are_trained_from_zero():
    hook = positions.RelativePositions(2, max_distance=1)
    bias = hook.score_bias(3, 3, torch.device("cpu"))
    assert (bias == 0).all()
    bias.sum().backward()
    # of nine pairs three look back, three at themselves and three ahead
    assert hook.table.grad.tolist() == [[3, 3, 3], [3, 3, 3]]


def test_biases_are_made_where_the_scores_are():
    assert positions.AlibiPositions(2).score_bias(2, 3, torch.device("meta")).is_meta


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: positions.RotaryPositions(0.0), "base=0.0"),
        (lambda: positions.AlibiPositions(0), "num_heads=0"),
        (lambda: positions.RelativePositions(0, 3), "num_heads=0 and max_distance=3"),
        (lambda: positions.RelativePositions(2, 0), "max_distance=0"),
    ],
)
def test_hooks_refuse_sizes_that_are_none(make, words):
    with pytest.raises(ValueError, match=words):
        make()
