import numpy as np
import pytest
import torch
import traitlets

from attn_course.explorers import ScalingExplorer


def close(got: dict, expected: dict) -> None:
    assert got.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(got[name], values, atol=1e-5, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("state", [{}, {"d_k": 1}, {"d_k": 1024, "seed": 7}, {"d_k": 2, "seed": 1}])
def test_the_browser_computes_the_same_for_random_vectors(computed, state):
    widget = ScalingExplorer(**state)
    close(computed(widget), dict(widget.numbers()))


@pytest.mark.parametrize(("n_query", "n_key", "features"), [(1, 1, 1), (3, 5, 6), (2, 128, 24)])
def test_the_browser_computes_the_same_for_given_vectors(computed, n_query, n_key, features):
    generator = torch.Generator().manual_seed(n_key)
    query = torch.randn(n_query, features, generator=generator)
    key = 30 * torch.randn(n_key, features, generator=generator)
    widget = ScalingExplorer(query, key)
    assert widget.d_k == features
    close(computed(widget), dict(widget.numbers()))


def test_nan_and_infinities_are_carried_to_the_same_numbers(computed):
    query = torch.tensor([[float("nan"), 1.0], [1.0, float("inf")]])
    widget = ScalingExplorer(query, torch.eye(2))
    close(computed(widget), dict(widget.numbers()))


def test_one_more_feature_leaves_the_others_as_they_were():
    small, large = (ScalingExplorer(d_k=d_k).numbers() for d_k in (2, 64))
    for name in ("scaled_spread", "unscaled_entropy", "sizes"):
        np.testing.assert_array_equal(small[name], large[name])
    assert not np.array_equal(small["scaled_weights"], large["scaled_weights"])


def test_dividing_keeps_the_spread_and_not_dividing_lets_it_grow_as_the_root():
    numbers = ScalingExplorer().numbers()
    np.testing.assert_allclose(numbers["scaled_spread"], 1, atol=0.35)
    np.testing.assert_allclose(
        numbers["unscaled_spread"], numbers["scaled_spread"] * np.sqrt(numbers["sizes"]), rtol=1e-6
    )


@pytest.mark.parametrize("changes", [{"d_k": 3}, {"d_k": 0}, {"d_k": 2048}, {"seed": -1}])
def test_both_sides_refuse_what_is_not_offered_in_the_same_words(refusals, changes):
    python, browser = refusals(ScalingExplorer(), **changes)
    assert python == browser != ""
    assert str(next(iter(changes.values()))) in python


def test_a_number_of_features_that_is_no_power_of_two_is_offered(refusals):
    widget = ScalingExplorer(torch.ones(2, 6), torch.ones(3, 6))
    assert refusals(widget, d_k=6) == ("", "")
    assert refusals(widget, d_k=4) == ("", "")
    assert all("1, 2, 4, 6" in said for said in refusals(widget, d_k=8))


@pytest.mark.parametrize(
    ("query", "key", "said"),
    [
        ([[1.0, 2.0]], None, "both query and key"),
        ([[1.0, 2.0]], [[1.0, 2.0, 3.0]], r"\(n_key, 2\), got \(1, 3\)"),
        ([1.0, 2.0], [[1.0, 2.0]], r"query must have 2 axes.*\(2,\)"),
        ([[1.0], [1.0, 2.0]], [[1.0]], "equal rows"),
        ([["a"]], [[1.0]], "must hold numbers"),
        (torch.empty(0, 3), torch.ones(2, 3), r"none of them empty.*\(0, 3\)"),
    ],
)
def test_vectors_that_do_not_fit_are_refused_with_what_came(query, key, said):
    with pytest.raises(traitlets.TraitError, match=said):
        ScalingExplorer(query, key)


@pytest.mark.parametrize(
    "changes",
    [
        {"query": [[1.0]]},
        {"query": [[1.0]] * 129, "key": [[1.0]], "d_k": 1},
        {"query": [[1.0]], "key": [[1.0] * 1025], "d_k": 1},
        {"query": [[1.0]], "key": [[1.0, 2.0]], "d_k": 1},
    ],
)
def test_both_sides_refuse_vectors_that_do_not_fit_in_the_same_words(refusals, changes):
    python, browser = refusals(ScalingExplorer(), **changes)
    assert python == browser != ""


# kills: a page that works for minutes at each draw of the slider
def test_vectors_that_are_too_many_are_refused_with_their_shape():
    with pytest.raises(traitlets.TraitError, match=r"128 rows.*got shape \(2000, 64\)"):
        ScalingExplorer(torch.ones(2000, 64), torch.ones(2, 64))


def test_tensors_can_be_set_while_it_is_shown(opened):
    widget = ScalingExplorer()
    with widget.hold_trait_notifications():
        widget.query, widget.key, widget.d_k = torch.ones(2, 3), torch.ones(4, 3), 3
    assert widget.query == [[1.0] * 3] * 2
    view = opened(ScalingExplorer())
    view.page.evaluate(
        "(state) => { for (const name of ['query', 'key', 'd_k'])"
        " [...attnCourseViews][0].model.set(name, state[name]); }",
        widget.state,
    )
    view.settle()
    assert view.root.get_by_role("button", name="Draw other keys").is_hidden()
    view.page.keyboard.press("Tab")
    view.press("ArrowLeft")
    assert "At d_k = 2 " in view.caption


@pytest.mark.parametrize("scale", [30.0, 1e-9, float("nan"), float("inf")])
def test_the_alternative_text_writes_numbers_as_the_view_does(opened, scale):
    widget = ScalingExplorer(scale * torch.eye(4), torch.ones(4, 4))
    assert widget.alt() == f"{widget.t('title')}. {opened(widget).caption}"


def test_the_slider_answers_the_arrow_keys(opened):
    view = opened(ScalingExplorer())
    view.page.keyboard.press("Tab")
    view.press("ArrowRight")
    assert "At d_k = 128" in view.caption
    view.press("Home")
    assert "At d_k = 1 " in view.caption


# kills: a curve that does not say where on it the slider stands
def test_each_curve_has_a_marker_at_the_slider(opened):
    view = opened(ScalingExplorer(d_k=16))
    markers = """[...attnCourseViews][0].surfaces.map(({ data }) =>
        [data.lines.length, data.lines[0]?.xs.includes(data.marker) && data.marker])"""
    curves = [[2, 16]] * 3
    assert view.page.evaluate(markers)[1:] == curves
    view.root.get_by_role("slider").press("ArrowRight")
    view.settle()
    assert view.page.evaluate(markers)[1:] == [[2, 32]] * 3


def test_other_keys_can_be_drawn(opened):
    view = opened(ScalingExplorer())
    before = view.caption
    view.click("Draw other keys")
    assert view.caption != before
    assert "At d_k = 64" in view.caption
