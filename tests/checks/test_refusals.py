"""What is said of a ValueError whose message lacks the numbers that were asked for."""

import pytest
import torch

from attn_course.checks import examine, get
from attn_course.checks.refusals import refusal


def causal(say):
    """An answer to 4.1 whose error says this."""

    def causal_mask(n_query, n_key=None):
        n_key = n_query if n_key is None else n_key
        if n_query > n_key:
            raise ValueError(*say(n_query, n_key))
        return torch.ones(n_query, n_key).tril(n_key - n_query).bool()

    return causal_mask


@pytest.mark.parametrize(
    "say",
    [
        lambda q, k: (f"n_query={q}>n_key={k}",),
        lambda q, k: (q, k),
        lambda q, k: (f"Only {k} keys for the queries 0 … {q - 1}, that is {q} of them",),
        lambda q, k: (f"{float(q)} / {float(k)}",),
    ],
)
def test_the_numbers_are_found_in_any_wording(say):
    report = examine(causal(say), get("causal_mask"))
    assert report.passed
    assert report.remarks == ()


# kills: a remark that costs marks, one that is satisfied by any digit
@pytest.mark.parametrize(
    ("say", "lacking"),
    [
        (lambda _q, _k: (), "'3 and 2'"),
        (lambda _q, _k: ("more queries than keys",), "'3 and 2'"),
        (lambda q, _k: (f"{q} queries are too many",), "'2'"),
        (lambda q, k: (f"{10 * q} > {10 * k}",), "'3 and 2'"),
    ],
)
def test_a_message_without_them_is_remarked_on_and_costs_nothing(say, lacking):
    report = examine(causal(say), get("causal_mask"))
    assert report.passed
    (remark,) = report.remarks
    assert f"lacks` is {lacking}, expected 'nothing'" in remark


def test_one_of_several_numbers_is_enough_where_there_are_several_ways_to_say_it():
    def add_positions(x, table, offset=0):
        end = offset + x.shape[-2]
        if end > len(table):
            raise ValueError(f"position {end - 1} has no row")
        return x + table[offset:end]

    report = examine(add_positions, get("add_positions"))
    assert report.passed
    assert report.remarks == ()


def test_an_error_that_is_no_value_error_is_no_matter_of_its_message():
    def causal_mask(n_query, n_key=None):
        if n_key is not None and n_query > n_key:
            raise IndexError(f"{n_query} > {n_key}")
        return causal(lambda *_: ())(n_query, n_key)

    report = examine(causal_mask, get("causal_mask"))
    assert not report.passed
    assert "IndexError" in report.message


@pytest.mark.parametrize("returned", [ValueError, ValueError("3 > 2")])
def test_an_error_that_is_returned_is_none(returned):
    assert "`raise` is missing" in refusal(lambda: returned)
