"""Differences are told by kind, by relation and by axis."""

import math

import pytest
import torch

from attn_course.checks.compare import Expected, describe, problem, same
from attn_course.sentences import spoken

F32 = torch.float32


def told(actual, target, axes="", dtype=F32):
    found = problem(actual, Expected("`out`", tuple(axes.split()), target), dtype)
    return found and spoken(found.told)


def described(value):
    return spoken(describe(value))


def grid(*shape):
    return torch.arange(1.0, 1 + math.prod(shape), dtype=torch.float64).reshape(shape).sin()


def test_equal_up_to_the_dtype_is_no_problem():
    target = grid(3, 4)
    assert told(target.float(), target) is None
    assert told(target.half(), target, dtype=torch.float16) is None
    assert told(target + 1e-3, target) is not None
    assert told(target + 1e-6, target, dtype=torch.float64) is not None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: 3 * t, "3 times what is expected"),
        (lambda t: -t, "-1 times"),
        (lambda t: t + 0.25, "plus 0.25"),
        (lambda t: t.mT.clone(), "transpose"),
        (lambda t: t.flip(0), "axis 0 is reversed"),
        (lambda t: torch.cat([t[:1], t[1:] + grid(2, 3) ** 2]), "only the first query position"),
        (lambda t: torch.cat([t[:2] + grid(2, 3) ** 2, t[2:]]), "only the last query position"),
        (
            lambda t: t + torch.tensor([0.0, 0.1, 0.1]) * t,
            "only the first key position (0) is right",
        ),
        (lambda t: t.masked_fill(torch.eye(3).bool(), math.nan), "NaN at 3 of 9"),
        (lambda t: t.masked_fill(torch.eye(3).bool(), math.inf), "infinite at 3 of 9"),
        (lambda t: t[:, :2], "shape (3, 2), expected (3, 3) = (i, j)"),
        (lambda t: t[None], "axes of size 1"),
        (lambda t: t.sum(0), "summed or indexed away"),
        (lambda t: t.flatten(), "joined into one"),
        (lambda t: t[:, 0].repeat(4), "shape (12,), expected (3, 3) = (i, j)"),
        (lambda t: t.half().to(t.dtype), "right to three digits"),
        (lambda t: 1.0005 * t, "right to three digits"),
        (lambda t: t.long(), "torch.int64"),
        (lambda t: t.tolist(), "a list or tuple of 3"),
        (lambda _: 0.5, "keep the tensor"),
        (lambda _: None, "`return`"),
    ],
)
def test_a_tensor_that_differs_is_described(change, words):
    target = grid(3, 3)
    assert words in told(change(target), target, "i j")


def test_exchanged_axes_are_told_by_their_sizes():
    assert "exchanged" in told(grid(4, 3), grid(3, 4), "i j")


def test_an_inner_stretch_of_positions_is_listed():
    target, actual = grid(6, 2), grid(6, 2)
    actual[1:4] += grid(3, 2) ** 2
    assert "right at position 0, 4, 5, wrong at 1…3" in told(actual, target, "n d")


def test_an_axis_with_a_name_of_words_is_called_by_it():
    target, actual = grid(3, 2), grid(3, 2)
    actual[2] += 1
    assert "only the last row of a (2) is wrong" in told(actual, target, "row_of_a d")
    assert "only the last index along axis 0 (2) is wrong" in told(actual, target, "k d")


def test_masks_must_be_boolean_and_their_inversion_is_seen():
    target = torch.ones(3, 3).tril().bool()
    assert told(target, target, "i j") is None
    assert "exchanged" in told(~target, target, "i j")
    assert "torch.bool" in told(target.float(), target, "i j")
    assert "torch.bool" in told(target.long(), target, "i j")


def test_numbers_may_come_as_tensors_of_one():
    assert told(torch.tensor([0.5]), 0.5) is None
    assert told(0.5, 0.5) is None
    assert told(0.75, 0.5) == "`out` is 0.75, expected 0.5"
    assert "must be a number" in told("0.5", 0.5)
    assert "`return`" in told(None, 0.5)
    assert "must be a number" in told(True, 0.5)


def test_plain_values_are_compared_with_their_type():
    assert told(True, True) is None
    assert told(torch.tensor(True), True) is None
    assert "expected True" in told(1, True)


def test_same_knows_nan_devices_and_nesting():
    nan = torch.tensor([math.nan, 1.0])
    assert same((nan, 2.0), (nan.clone(), 2.0), F32)
    assert not same(nan, nan.to("meta"), F32)
    assert not same((nan,), (nan, nan), F32)
    assert not same(nan, 1.0, F32)
    assert same(None, None, F32)


def test_a_coarser_result_is_another_result():
    wide = torch.tensor([0.5, 0.25], dtype=torch.float64)
    assert not same(wide, wide.float(), torch.float64)
    assert same(wide, wide.float(), F32)


def test_arrays_are_no_numbers():
    told_of_array = told(torch.zeros(2).numpy(), torch.zeros(2, dtype=torch.float64))
    assert "ndarray" in told_of_array
    assert "a number" not in told_of_array
    assert told(torch.tensor(0.5).numpy()[()], 0.5) is None  # numpy's scalars are


def test_descriptions_are_short():
    assert described(torch.tensor([[1.0, 0.25]])) == "[[1, 0.25]]"
    assert described(torch.zeros(3, 6)) == "a tensor of shape (3, 6), torch.float32"
    assert described(1.112096905708313) == "1.112"
    assert described((None, 1)) == "a list or tuple of 2 (None, 1)"
    assert len(described("x" * 500)) <= 240
    assert described("x" * 500).endswith("…")
    assert described("x" * 100) == repr("x" * 100)


def test_what_is_left_of_terms_that_cancel_is_no_mistake():
    exact = torch.tensor([[2e-8]], dtype=torch.float64)
    assert told(torch.tensor([[6e-8]]), exact) is None
    assert told(torch.tensor([[6e-7]]), exact) is not None
