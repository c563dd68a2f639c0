import numpy as np
import pytest
import torch
import traitlets

from attn_course.explorers import PositionExplorer
from attn_course.explorers.position import KINDS
from attn_course.positions import (
    LearnedPositions,
    alibi_slopes,
    apply_rope,
    sinusoidal_encoding,
)


def close(got: dict, expected: dict) -> None:
    assert got.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(got[name], values, atol=1e-5, rtol=1e-5, err_msg=name)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


# -- the numbers ------------------------------------------------------------------------

STATES = [
    {},
    {"position": 3, "token": 0, "dimension": 31},
    {"position": 47, "base": 10.0, "max_len": 1},
    {"n": 128, "d_model": 128, "max_len": 128, "position": 127, "dimension": 127},
    {"n": 5, "d_model": 2, "dimension": 1, "num_heads": 6, "head": 5},
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", STATES)
def test_the_browser_computes_the_same(computed, kind, state):
    widget = PositionExplorer(kind=kind, **state)
    close(computed(widget), dict(widget.numbers()))


@pytest.mark.parametrize("kind", KINDS)
def test_the_browser_computes_the_same_for_given_data(computed, kind):
    widget = PositionExplorer(drawn(1, 6), ["alone"], table=drawn(9, 6), kind=kind, position=8)
    close(computed(widget), dict(widget.numbers()))


@pytest.mark.parametrize("kind", KINDS)
def test_nan_and_infinities_come_out_alike(computed, kind):
    x, table = drawn(3, 4), drawn(8, 4)
    x[2, 1], table[5, 0] = float("nan"), float("inf")
    widget = PositionExplorer(x, table=table, kind=kind, position=5)
    numbers = dict(widget.numbers())
    assert np.isnan(numbers["attention"]).any()
    close(computed(widget), numbers)


def test_at_the_base_of_the_paper_the_table_is_the_package_s():
    numbers = PositionExplorer(n=128, d_model=6, dimension=3).numbers()
    np.testing.assert_allclose(numbers["table"], sinusoidal_encoding(128, 6), atol=1e-6)
    np.testing.assert_array_equal(numbers["waves"], numbers["table"].T[[3, 2]])


def test_rope_turns_by_the_table_and_sees_distances_alone():
    widget = PositionExplorer(kind="rope", n=20, d_model=8, dimension=0, base=100.0)
    numbers = widget.numbers()
    turned = apply_rope(torch.tensor([[1.0, 0.0] * 4] * 20), torch.arange(20), 100.0)
    np.testing.assert_allclose(numbers["table"], turned, atol=1e-6)
    together = PositionExplorer(
        kind="rope", n=20, d_model=8, dimension=0, base=100.0, places=[7, 8, 9, 10, 11]
    )
    np.testing.assert_allclose(together.numbers()["attention"], numbers["attention"], atol=1e-9)


def test_alibi_subtracts_the_published_slope():
    numbers = PositionExplorer(kind="alibi", num_heads=6, head=4, n=9, position=6).numbers()
    slope = alibi_slopes(6)[4].item()
    np.testing.assert_allclose(numbers["row"], -slope * np.abs(np.arange(9) - 6), rtol=1e-6)


def test_equal_words_are_told_apart_by_their_places_alone():
    for kind in KINDS:
        numbers = PositionExplorer(kind=kind).numbers()
        without = numbers["attention_without"]
        assert without[0] == without[3]
        assert abs(numbers["attention"][0] - numbers["attention"][3]) > 0.005


def test_a_learned_table_has_no_row_beyond_its_length():
    table = LearnedPositions(10, 8).table
    inside, beyond = (PositionExplorer(table=table, n=16, position=at) for at in (9, 10))
    assert (inside.kind, inside.max_len, inside.d_model) == ("learned", 10, 8)
    numbers = inside.numbers()
    np.testing.assert_allclose(numbers["table"][:10], table.detach(), rtol=1e-6)
    assert np.isnan(numbers["table"][10:]).all()
    assert np.isfinite(numbers["attention"]).all()
    assert np.isnan(beyond.numbers()["attention"]).all()
    assert "no row for position 10: 0 … 9" in beyond.alt()


@pytest.mark.parametrize("kind", ["sinusoidal", "rope", "alibi"])
def test_formulas_go_on_beyond_the_trained_length_and_it_is_said(kind):
    assert "never seen in training" not in PositionExplorer(kind=kind, position=31).alt()
    beyond = PositionExplorer(kind=kind, position=32)
    assert "from 32 on were never seen in training" in beyond.alt()
    assert np.isfinite(beyond.numbers()["attention"]).all()


def test_who_stood_at_the_new_place_swaps_with_the_chosen_token():
    widget = PositionExplorer()
    assert widget.standing() == [0, 1, 2, 3, 4]
    widget.position = 3
    assert widget.standing() == [0, 3, 2, 1, 4]
    widget.position = 30
    assert widget.standing() == [0, 30, 2, 3, 4]


# -- what is taken and what is refused --------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "none"},
        {"n": 1},
        {"n": 129},
        {"n": 4},
        {"d_model": 7},
        {"dimension": 128},
        {"max_len": 0},
        {"base": 1.0},
        {"base": 0.5},
        {"position": 48},
        {"dimension": -1},
        {"head": 8},
        {"num_heads": 0},
        {"token": 5},
        {"places": [0, 1, 2, 3]},
        {"places": [0, 1, 2, 2, 4]},
        {"places": [0, 1, 2, 3, 48]},
    ],
)
def test_both_sides_refuse_the_same_in_the_same_words(refusals, changes):
    python, browser = refusals(PositionExplorer(), **changes)
    assert python == browser != ""


def test_a_dimension_beyond_d_model_waits_for_it(computed, refusals):
    assert refusals(PositionExplorer(), d_model=2) == ("", "")
    widget = PositionExplorer(d_model=2, dimension=9)
    numbers = widget.numbers()
    np.testing.assert_array_equal(numbers["waves"], numbers["table"].T[[1, 0]])
    close(computed(widget), dict(numbers))


def test_sizes_that_the_given_data_decide_are_refused_on_both_sides(refusals):
    widget = PositionExplorer(drawn(3, 6), table=drawn(9, 6))
    for changes in ({"d_model": 8}, {"max_len": 8}):
        python, browser = refusals(widget, **changes)
        assert python == browser
        assert "must have shape" in python


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"x": drawn(3)}, "2 axes"),
        ({"x": drawn(3, 5)}, "d_model must be even.*got 5"),
        ({"x": drawn(3, 6), "tokens": ["a"]}, r"x must have shape \(1, 6\), got \(3, 6\)"),
        ({"x": drawn(3, 6), "table": drawn(9, 8)}, r"table must have shape \(9, 6\)"),
        ({"table": drawn(200, 8)}, "max_len .* 1 to 128, got 200"),
        ({"table": [["a"]]}, "must hold numbers"),
        ({"tokens": []}, "1 to 128 words, got 0"),
        ({"tokens": ["a"], "token": 3}, "token .* 0 to 0, got 3"),
        ({"base": float("nan")}, "above 1"),
        ({"colour": 1}, "has no 'colour'"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_came(given, said):
    with pytest.raises(traitlets.TraitError, match=said):
        PositionExplorer(**given)


# -- in a page --------------------------------------------------------------------------


def test_a_token_is_moved_and_another_chosen_by_keyboard(opened):
    view = opened(PositionExplorer())
    height = view.root.bounding_box()["height"]
    view.page.keyboard.press("Tab")
    view.press("ArrowRight", "ArrowRight")
    assert "“dog” stands at position 3, at first at 1." in view.caption
    view.press("ArrowUp")  # the dog stays where it was put
    assert "“the” stands at position 0, as at first." in view.caption
    view.press("ArrowDown", "End")
    assert "“dog” stands at position 47, at first at 3." in view.caption
    assert "never seen in training" in view.caption
    assert view.root.bounding_box()["height"] == height
    view.press("Tab")
    assert view.focused.startswith("kind")


def test_a_token_is_dragged(opened):
    view = opened(PositionExplorer(token=0, n=11))
    line = view.root.get_by_role("application").first
    box = line.bounding_box()
    edge = 0.8 * 16
    step = (box["width"] - 2 * edge) / 10
    floor = box["y"] + box["height"] - 2 * 16
    view.page.mouse.move(box["x"] + edge + 4 * step, floor)  # the man
    view.page.mouse.down()
    view.page.mouse.move(box["x"] + edge + 6 * step, floor, steps=3)
    view.page.mouse.move(box["x"] + edge + 9 * step, floor, steps=3)
    view.page.mouse.up()
    view.page.mouse.move(box["x"] + edge + 2 * step, floor)  # let go: nothing moves any more
    view.settle()
    assert "“man” stands at position 9, at first at 4." in view.caption
    view.click("Put it back")
    assert "“man” stands at position 4, as at first." in view.caption


# kills: a slider that moves and changes nothing that is seen
@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("position", "sinusoidal"), ("dimension", "sinusoidal"), ("positions n", "sinusoidal"),
        ("trained length", "learned"), ("d_model", "sinusoidal"), ("base", "rope"),
        ("head", "alibi"),
    ],
)  # fmt: skip
def test_each_slider_changes_the_pictures(opened, label, kind):
    view = opened(PositionExplorer(kind=kind))
    pictures = """Array.from(document.querySelectorAll(".attn-ex canvas"),
        (canvas) => canvas.toDataURL()).slice(1)"""
    before = view.page.evaluate(pictures)
    view.root.get_by_role("slider", name=label, exact=True).press("ArrowLeft")
    view.settle()
    assert view.page.evaluate(pictures) != before


def test_controls_that_mean_nothing_to_a_kind_are_grey(opened):
    view = opened(PositionExplorer(kind="alibi"))
    usable = {
        name: view.root.get_by_role("slider", name=name, exact=False).is_enabled()
        for name in ("base", "dimension", "head", "trained length")
    }
    assert usable == {"base": False, "dimension": False, "head": True, "trained length": True}


def test_a_sequence_too_short_for_the_tokens_is_refused_in_the_view(opened):
    view = opened(PositionExplorer())
    view.root.get_by_role("slider", name="positions n").focus()
    view.press("Home")
    assert "places must be different positions from 0 to 1" in view.message
    assert view.root.get_by_role("slider", name="positions n").input_value() == "48"


def test_a_cell_of_the_table_chooses_position_and_dimension(opened):
    view = opened(PositionExplorer(position=2, dimension=3))
    view.root.get_by_role("application").nth(1).focus()
    view.press("ArrowDown", "ArrowDown", "ArrowRight", "Enter")
    assert "stands at position 4" in view.caption
    assert view.root.get_by_role("slider", name="dimension").input_value() == "4"


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_has_the_same_numbers(opened, kind):
    rows = opened(PositionExplorer(kind=kind, n=6, d_model=2, dimension=0)).table()
    assert [row[:2] for row in rows[1:6]] == [
        ["the", "0"], ["dog", "1"], ["bit", "2"], ["the", "3"], ["man", "4"]
    ]  # fmt: skip
    assert len(rows) == 6 + 7 + 7


# kills: a scale between the largest and the smallest of no numbers at all
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_table_without_a_finite_number_is_drawn_too(opened, value):
    view = opened(PositionExplorer(table=torch.full((8, 4), value), tokens=["a", "b"]))
    assert "“b” stands at position 1" in view.caption


def test_tensors_can_be_set_while_it_is_shown():
    widget = PositionExplorer(kind="learned", max_len=8, d_model=4)
    widget.table = torch.zeros(8, 4)
    assert widget.table == [[0.0] * 4] * 8


# kills: an output that nbval finds changed wherever training went another way
def test_figures_of_given_vectors_stay_out_of_the_alternative_text():
    tables = [drawn(8, 6), drawn(8, 6) * 1.05]
    assert len({PositionExplorer(table=table).alt() for table in tables}) == 1
    assert "It gives itself the weight" in PositionExplorer().alt()
