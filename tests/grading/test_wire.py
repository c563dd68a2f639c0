"""What passes between the processes is data within limits, and nothing else gets in."""

import json
import math

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from attn_course.grading.remote import wire
from attn_course.grading.remote.wire import WireError


def refuse(_):
    raise WireError("nothing else here")


def back(value):
    return wire.decode(wire.loads(wire.dumps({"v": wire.encode(value, refuse)}))["v"], refuse)


@pytest.mark.parametrize("dtype", wire.DTYPES.values(), ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)])
def test_tensors_come_back_as_they_were(dtype, shape):
    value = (torch.randn(shape, dtype=torch.float64) * 5).to(dtype)
    again = back(value)
    assert (again.dtype, again.shape, again.requires_grad) == (dtype, value.shape, False)
    assert torch.equal(again, value)


def test_special_numbers_and_layouts_come_back():
    odd = torch.tensor([math.nan, math.inf, -math.inf, -0.0])
    assert torch.equal(back(odd).view(torch.int32), odd.view(torch.int32))
    whole = torch.arange(24.0).reshape(2, 3, 4)
    sliced = (whole.transpose(1, 2), whole[..., 1:3], whole[:, ::2], torch.ones(2, 1).expand(2, 4))
    for value in (*sliced, sliced[0].bool(), torch.zeros(3, 0, 2).transpose(0, 2)):
        assert torch.equal(back(value), value)
        assert back(value).is_contiguous() == value.is_contiguous()
        assert back(value).stride() == value.stride() or not value.numel()
    windows = torch.arange(5.0).unfold(0, 3, 1)  # the numbers of one are those of another
    assert torch.equal(back(windows), windows)
    assert torch.equal(back(torch.eye(3).to_sparse()), torch.eye(3))
    assert back(torch.empty(2, 3, device="meta")).device.type == "meta"


def test_how_a_tensor_stands_to_its_graph_is_kept():
    leaf = torch.ones(2, requires_grad=True)
    assert back(leaf).requires_grad
    assert not back(leaf).inside_graph
    assert back(leaf * 2).inside_graph


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(deadline=None, max_examples=60)
@given(plain)
def test_plain_values_come_back(value):
    assert repr(back(value)) == repr(value)


def test_numbers_of_numpy_are_numbers():
    assert back(np.float32(0.5)) == 0.5
    assert back(np.bool_(True)) is True
    assert back(np.array(3)) == 3
    with pytest.raises(WireError):
        back(np.ones(3))


@pytest.mark.parametrize(
    "content",
    [
        ["float32", [2**40, 2**40], "AAAA", 0, None],
        ["float32", [-1], "", 0, None],
        ["float32", [1.0], "AAAAAA==", 0, None],
        ["float32", [True], "AAAAAA==", 0, None],
        ["float32", [2], "AAAAAA==", 0, None],
        ["float32", [1], "!!!!", 0, None],
        ["float32", [1], 5, 0, None],
        ["float32", [1], "AAAAAA==", 7, None],
        ["float32", [1] * 100, "AAAAAA==", 0, None],
        ["object", [1], "AAAAAA==", 0, None],
        [["float32"], [1], "AAAAAA==", 0, None],
        ["float32", 1, "AAAAAA==", 0, None],
        ["float32", [1], "AAAAAA==", 0],
        ["float32", [1], "AAAAAA==", 0, [1, 1]],
        ["float32", [1], "AAAAAA==", 0, [-1]],
        ["float32", [1], "AAAAAA==", 0, [2**40]],
        ["float32", [2], "AAAAAAAAAAA=", 0, [wire.MAX_NUMBERS]],
        ["float32", [1], "AAAAAA==", 0, "1"],
        ["float32"],
        None,
    ],
)
def test_what_is_no_tensor_is_refused(content):
    with pytest.raises(WireError):
        wire.decode({"T": content}, refuse)


def test_truth_values_are_true_or_false_whatever_the_byte():
    value = wire.decode({"T": ["bool", [3], "AgD/", 0, None]}, refuse)
    assert value.tolist() == [True, False, True]
    assert (value == torch.tensor([True, False, True])).all()


def test_depth_and_count_and_size_are_limited():
    deep: list = []
    for _ in range(1000):
        deep = [deep]
    assert wire.encode(deep, refuse)  # cut off
    nested = None
    for _ in range(wire.MAX_DEPTH + 2):
        nested = {"l": [nested]}
    with pytest.raises(WireError):
        wire.decode(nested, refuse)
    with pytest.raises(WireError):
        wire.encode([0] * (wire.MAX_ITEMS + 1), refuse)
    with pytest.raises(WireError):
        wire.decode({"l": [0] * (wire.MAX_ITEMS + 1)}, refuse)
    with pytest.raises(WireError):
        wire.encode(torch.zeros(1).expand(wire.MAX_NUMBERS + 1), refuse)
    with pytest.raises(WireError):
        wire.loads(" " * (wire.MAX_CHARACTERS + 1))


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "[" * 100_000, '{"a":' * 100_000, "nan"])
def test_what_is_no_message_is_refused(text):
    with pytest.raises(WireError):
        wire.loads(text)


@pytest.mark.parametrize(
    "data", [[], {"t": 3}, {"d": [[1]]}, {"d": [[{"l": []}, 1]]}, {"f": "x"}, {"dtype": 3}, {}]
)
def test_what_is_no_value_is_refused(data):
    with pytest.raises(WireError):
        wire.decode(data, refuse)


def test_nothing_in_a_message_is_ever_unpickled():
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    seen = []
    text = json.dumps(wire.encode({"x": Bomb()}, lambda value: seen.append(value) or {"o": "Bomb"}))
    assert "Bomb" in text
    assert type(seen[0]) is Bomb
