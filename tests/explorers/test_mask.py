import itertools

import numpy as np
import pytest
import torch
import traitlets

from attn_course.explorers import MaskExplorer
from attn_course.masks import causal_mask, combine_masks, padding_mask, sliding_window_mask


def close(got: dict, expected: dict) -> None:
    assert got.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(got[name], values, atol=1e-5, err_msg=name)


SIZES = [(1, 1), (1, 16), (3, 7), (6, 6), (16, 16)]
RULES = list(itertools.product([False, True], [0, 1, 3], [0, 2], ["bottom-right", "top-left"]))


# -- numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize(("n_query", "n_key"), SIZES)
def test_the_browser_masks_and_weighs_as_the_package_does(computed, n_query, n_key):
    for k, (causal, window, padding, align) in enumerate(RULES):
        widget = MaskExplorer(
            n_query=n_query,
            n_key=n_key,
            causal=causal,
            window=window,
            padding=min(padding, n_key),
            align=align,
            fill=("zeros", "-inf", "-1e9")[k % 3],
            painted=[[0, 0, k % 2 == 0], [15, 15, True], [2, 1, False]],
        )
        close(computed(widget), dict(widget.numbers()))


@pytest.mark.parametrize("fill", ["zeros", "-inf", "-1e9"])
def test_with_more_queries_than_keys_the_first_corner_is_left(computed, fill):
    widget = MaskExplorer(n_query=7, n_key=3, align="top-left", padding=3, fill=fill, window=2)
    close(computed(widget), dict(widget.numbers()))
    widget = MaskExplorer(n_query=7, n_key=3, causal=False, fill=fill)
    close(computed(widget), dict(widget.numbers()))


@pytest.mark.parametrize("fill", ["zeros", "-inf", "-1e9"])
@pytest.mark.parametrize("strange", [float("nan"), float("inf"), -1e30])
def test_strange_scores_go_where_the_package_sends_them(computed, fill, strange):
    scores = torch.zeros(3, 3)
    scores[2, 1] = strange
    widget = MaskExplorer(scores=scores, fill=fill)
    close(computed(widget), dict(widget.numbers()))


def test_the_mask_is_what_the_package_combines():
    widget = MaskExplorer(n_query=4, n_key=6, window=3, padding=1)
    padding = padding_mask(torch.tensor([5]), 6)
    window = sliding_window_mask(4, 6, window=3)
    expected = combine_masks(causal_mask(4, 6), window, padding=padding)
    assert expected is not None
    np.testing.assert_array_equal(widget.numbers()["allowed"], expected[0, 0])


def test_both_alignments_agree_on_squares_alone():
    def allowed(align: str, n_query: int) -> np.ndarray:
        return MaskExplorer(n_query=n_query, n_key=5, align=align).numbers()["allowed"]

    np.testing.assert_array_equal(allowed("top-left", 5), allowed("bottom-right", 5))
    assert allowed("bottom-right", 2).tolist() == [[1, 1, 1, 1, 0], [1] * 5]
    assert allowed("top-left", 2).tolist() == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]]


@pytest.mark.parametrize(("fill", "expected"), [("zeros", 0), ("-inf", np.nan), ("-1e9", 0.25)])
def test_what_becomes_of_a_row_that_sees_nothing(computed, fill, expected):
    painted = [[1, j, False] for j in range(4)]
    widget = MaskExplorer(n_query=4, n_key=4, painted=painted, fill=fill)
    np.testing.assert_allclose(computed(widget)["weights"][1], [expected] * 4)
    assert "Query 1 sees nothing" in widget.alt()


def test_a_mask_and_scores_of_ones_own():
    mask = torch.tensor([[True, False, True], [False, True, False]])
    widget = MaskExplorer(mask, scores=torch.zeros(2, 3), tokens=["a", "b", "c"])
    assert (widget.n_query, widget.n_key, widget.causal) == (2, 3, False)
    np.testing.assert_array_equal(widget.numbers()["allowed"], mask)
    np.testing.assert_allclose(widget.numbers()["weights"], [[0.5, 0, 0.5], [0, 1, 0]])
    widget.causal = True
    np.testing.assert_array_equal(widget.numbers()["allowed"], mask & causal_mask(2, 3))


# -- what is refused --------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"n_query": 0}, {"n_key": 17, "n_query": 1}, {"n_query": 7}, {"window": -1},
        {"padding": 7}, {"align": "centre"}, {"fill": "0"}, {"i": 6}, {"j": -1},
        {"n_query": 7, "causal": False, "window": 2}, {"tokens": ["a"]},
        {"mask": [[True] * 6] * 5}, {"scores": [[0.0] * 5] * 6}, {"painted": [[0, 16, True]]},
        {"painted": [[0, 0, 1]]}, {"painted": [[0, 0]]},
    ],
)  # fmt: skip
def test_both_sides_refuse_in_the_same_words(refusals, changes):
    python, browser = refusals(MaskExplorer(), **changes)
    assert python == browser != ""


@pytest.mark.parametrize(
    "changes",
    [
        {"n_query": 7, "causal": False}, {"n_query": 7, "align": "top-left"}, {"padding": 6},
        {"window": 16}, {"painted": [[15, 15, True]]},
    ],
)  # fmt: skip
def test_both_sides_take_what_is_possible(refusals, changes):
    assert refusals(MaskExplorer(), **changes) == ("", "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mask": torch.ones(2, 2)}, "mask must be boolean"),
        ({"mask": torch.ones(2, 2, 2, dtype=torch.bool)}, r"mask must have 2 axes.*\(2, 2, 2\)"),
        ({"mask": torch.ones(32, 4, dtype=torch.bool)}, "n_query must be .*16, got 32"),
        ({"mask": [[True], [True, False]]}, "equal rows"),
        ({"mask": 3}, "mask must"),
        ({"mask": torch.ones(2, 3, dtype=torch.bool), "scores": torch.ones(3, 2)}, r"\(3, 2\)"),
        ({"scores": [["a"]]}, "scores must hold numbers"),
        ({"tokens": []}, "n_query must be"),
        ({"tokens": ["a"], "n_key": 2}, "tokens must name 2 keys, got 1"),
        ({"n_query": "two"}, "n_query"),
        ({"n_query": 8}, "n_query <= n_key, got 8 and 6"),
    ],
)
def test_data_that_does_not_fit_is_refused_with_what_came(given, said):
    with pytest.raises(traitlets.TraitError, match=said):
        MaskExplorer(**given)


# -- the view ---------------------------------------------------------------------------


def chips(view, which: int) -> tuple[list[str], list[str]]:
    """The tokens that are seen, and those that are not, in one of the two lists."""
    line = view.root.locator(".who").nth(which)
    return line.locator(".seen").all_inner_texts(), line.locator(".unseen").all_inner_texts()


def test_the_token_lists_say_who_sees_whom(opened):
    view = opened(MaskExplorer(n_query=4, n_key=6, i=1, j=3))
    assert chips(view, 0) == (["the", "cat", "ate", "the"], ["fish", "that"])
    assert chips(view, 1) == (["the", "fish", "that"], ["ate"])
    view.root.locator("canvas").first.focus()
    view.press("ArrowRight", "ArrowUp")
    assert chips(view, 0) == (["the", "cat", "ate"], ["the", "fish", "that"])
    assert "hidden by causal" in view.root.locator(".reason").inner_text()


def test_every_rule_that_hides_a_cell_is_named(opened):
    view = opened(MaskExplorer(padding=3, i=2, j=5, window=1))
    reason = view.root.locator(".reason").inner_text()
    assert reason.endswith("hidden by causal and window and padding.")


def test_cells_are_painted_by_key_and_the_painting_taken_away(opened):
    view = opened(MaskExplorer())
    assert view.caption.startswith("21 of 36")
    canvas = view.root.locator("canvas").first
    canvas.focus()
    view.press("End", "Enter")
    assert view.caption.startswith("22 of 36")
    assert "painted open" in view.root.locator(".reason").inner_text()
    assert "mask[..., 2, 5] = True" in view.root.locator(".call").inner_text()
    view.press("Home", " ")
    assert view.caption.startswith("21 of 36")
    assert "hidden by paint" in view.root.locator(".reason").inner_text()
    view.press("End", "Enter")
    assert "mask[..., 2, 5]" not in view.root.locator(".call").inner_text()  # as the rules have it
    view.click("Take the painting away")
    assert view.caption.startswith("21 of 36")


def test_a_stroke_of_the_mouse_paints_all_it_meets_alike(opened):
    view = opened(MaskExplorer(n_query=4, n_key=4, causal=False))
    box = view.root.locator("canvas").first.bounding_box()
    y = box["y"] + 0.6 * box["height"]
    mouse = view.page.mouse
    mouse.move(box["x"] + 0.2 * box["width"], y)
    mouse.down()
    mouse.move(box["x"] + 0.95 * box["width"], y, steps=30)
    view.settle()
    mouse.up()
    view.settle()
    assert "12 of 16" in view.caption
    assert "sees nothing" in view.caption
    mouse.click(box["x"] + 0.2 * box["width"], y)
    view.settle()
    assert "13 of 16" in view.caption


def test_more_queries_than_keys_are_refused_in_the_view(opened):
    view = opened(MaskExplorer())

    def slider(name: str):
        return view.root.get_by_role("slider", name=name)

    slider("n_query").focus()
    view.press("ArrowRight")
    assert "needs n_query <= n_key, got 7 and 6" in view.message
    assert slider("n_query").input_value() == "6"
    slider("n_key").focus()
    view.press("ArrowLeft")
    assert view.message == ""
    assert slider("n_query").input_value() == "5"
    view.click("causal", "checkbox")
    slider("n_query").focus()
    view.press("End")
    assert view.message == ""
    assert view.caption.startswith("80 of 80")


def test_the_code_builds_the_mask_that_is_shown(opened):
    names = {
        "causal_mask": causal_mask,
        "padding_mask": padding_mask,
        "sliding_window_mask": sliding_window_mask,
        "combine_masks": combine_masks,
        "tensor": torch.tensor,
    }
    for align, n_query in (("bottom-right", 3), ("top-left", 3), ("top-left", 8)):
        widget = MaskExplorer(
            n_query=n_query, n_key=5, align=align, window=2, padding=2, painted=[[0, 4, True]]
        )
        lines = opened(widget).root.locator(".call").inner_text().splitlines()
        scope = dict(names)
        exec("\n".join(lines[:-1]), scope)
        np.testing.assert_array_equal(widget.numbers()["allowed"], scope["mask"][0, 0])


@pytest.mark.parametrize("width", [380, 1000])
def test_the_height_stays_while_moving(opened, width):
    view = opened(MaskExplorer(window=3, padding=2, fill="-inf"), width=width)
    heights = set()
    view.root.locator("canvas").first.focus()
    for key in ["ArrowRight"] * 5 + ["ArrowDown"] * 5 + ["Enter"] * 2 + ["Home", "Enter"]:
        view.press(key)
        heights.add(view.root.evaluate("(root) => root.offsetHeight"))
    assert len(heights) == 1
    assert view.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
