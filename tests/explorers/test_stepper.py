import numpy as np
import pytest
import torch
import traitlets
from axe_playwright_python.sync_playwright import Axe

from attn_course.explorers import AttentionStepper
from attn_course.masks import causal_mask

NAN, INF = float("nan"), float("inf")


def close(got: dict, expected: dict) -> None:
    assert got.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(got[name], values, atol=1e-5, err_msg=name)


def random_stepper(seed: int, n_query: int, n_key: int, d_k: int, d_v: int) -> AttentionStepper:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((n_query, d_k), (n_key, d_k), (n_key, d_v))
    query, key, value = (3 * torch.randn(shape, generator=generator) for shape in shapes)
    mask = torch.rand(n_query, n_key, generator=generator) < 0.6
    return AttentionStepper(query, key, value, mask)


# -- numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 5, 2, 4), (8, 8, 8, 8), (5, 1, 4, 2)])
def test_the_browser_computes_what_the_package_does(computed, sizes):
    for seed in range(5):
        widget = random_stepper(seed, *sizes)
        close(computed(widget), dict(widget.numbers()))


@pytest.mark.parametrize("strange", [NAN, INF, -INF, 1e30, -1e30])
@pytest.mark.parametrize("hidden", [False, True])
def test_strange_numbers_go_where_the_package_sends_them(computed, strange, hidden):
    query, value = torch.eye(3), torch.arange(6.0).reshape(3, 2)
    key = torch.eye(3)
    key[1, 1] = strange
    mask = torch.ones(3, 3, dtype=torch.bool)
    mask[:, 1] = not hidden
    widget = AttentionStepper(query, key, value, mask)
    close(computed(widget), dict(widget.numbers()))
    assert np.isfinite(widget.numbers()["weights"]).all() == (hidden or abs(strange) == 1e30)


def test_a_query_that_sees_nothing_gets_zeros(computed):
    widget = AttentionStepper(mask=torch.zeros(4, 4, dtype=torch.bool), stage="sum")
    close(computed(widget), dict(widget.numbers()))
    assert (widget.numbers()["output"] == 0).all()


def test_the_example_attends_where_it_says(computed):
    weights = computed(AttentionStepper())["weights"]
    np.testing.assert_allclose(np.triu(weights, 1), 0)
    assert np.argmax(weights[3]) == 1  # "it" looks for its noun
    assert weights[3][1] > 0.5


# -- what is refused --------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"stage": "norm"}, {"pace": "page"}, {"i": 4}, {"j": -1}, {"d": 2},
        {"query": [[1.0, 2.0]] * 4}, {"key": [[1.0] * 4] * 3}, {"value": [[1.0, 2.0]] * 5},
        {"mask": [[True] * 4] * 3}, {"tokens": ["a", "b"]}, {"query_tokens": ["a"]},
        {"value": [[1.0] * 9] * 4},
    ],
)  # fmt: skip
def test_both_sides_refuse_in_the_same_words(refusals, changes):
    python, browser = refusals(AttentionStepper(), **changes)
    assert python == browser != ""


@pytest.mark.parametrize("changes", [{"i": 3, "j": 3}, {"stage": "sum", "d": 1}, {"pace": "row"}])
def test_both_sides_take_what_is_possible(refusals, changes):
    assert refusals(AttentionStepper(), **changes) == ("", "")


ONES = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"query": ONES}, "all of query, key and value"),
        ({"query": ONES, "key": torch.ones(2, 4), "value": ONES}, r"key .*\(2, 3\), got \(2, 4\)"),
        ({"query": torch.ones(128, 64), "key": ONES, "value": ONES}, r"8 tokens.*\(128, 64\)"),
        ({"query": torch.ones(1, 2, 3), "key": ONES, "value": ONES}, r"2 axes.*\(1, 2, 3\)"),
        ({"query": 3, "key": ONES, "value": ONES}, "query must have 2 axes"),
        ({"query": "abc", "key": ONES, "value": ONES}, "query must"),
        ({"query": ONES, "key": ONES, "value": ONES, "mask": torch.ones(2, 2)}, "mask must be boo"),
        ({"mask": [[True], [True, False]]}, "equal rows"),
        ({"tokens": ["a"]}, "tokens must name 4 tokens, got 1"),
        ({"step": 3}, "no 'step'; it has d, i, j"),
    ],
)
def test_data_that_does_not_fit_is_refused_with_what_came(given, said):
    with pytest.raises(traitlets.TraitError, match=said):
        AttentionStepper(**given)


def test_tensors_and_masks_of_the_package_are_taken():
    widget = AttentionStepper(ONES.bfloat16(), ONES, ONES, causal_mask(2), ["a", "b"])
    assert widget.mask == [[True, False], [True, True]]
    widget.value = torch.zeros(2, 3)
    assert widget.value == [[0.0] * 3] * 2
    assert widget.query_tokens == ["a", "b"]


def test_numbers_in_words_round_as_the_browser_rounds(opened):
    for stage in ("dot", "scale", "mask", "softmax", "sum"):
        widget = AttentionStepper(stage=stage, i=3, j=2, d=1)
        assert opened(widget).caption in widget.alt()
    assert "0.13" in AttentionStepper(stage="scale").alt()  # 0.125: half away from zero
    assert "−0.13" in AttentionStepper(value=-ONES / 8, query=ONES, key=ONES, stage="sum").alt()


# -- the view ---------------------------------------------------------------------------


def lit(view, part: str) -> dict[str, list[str]]:
    """The cells of each matrix that are lit as taking part, or as the result."""
    return view.page.evaluate(
        """(part) => Object.fromEntries(Array.from(document.querySelectorAll("[role=grid]"),
            (grid) => [grid.getAttribute("aria-label"), Array.from(
                grid.querySelectorAll(`[data-part=${part}]`), (cell) => cell.textContent)],
        ).filter(([, cells]) => cells.length))""",
        part,
    )


def pressed(view) -> str:
    """The line of code that is lit."""
    return view.root.locator(".lines [aria-pressed=true]").inner_text()


def in_full(view) -> list[str]:
    return [line for line in view.root.locator(".in-full li").all_inner_texts() if line]


def test_one_key_is_one_number_and_the_panes_go_together(opened):
    view = opened(AttentionStepper(i=2, j=1))
    assert lit(view, "from") == {
        "query q": ["1.5", "0.5", "0", "−1"],
        "key k": ["2", "0", "1", "0"],
    }
    assert lit(view, "to") == {"scores": ["3.00"]}
    assert "i d, j d -> i j" in pressed(view)
    assert "d is summed over" in view.root.locator(".shapes").inner_text()
    assert in_full(view) == ["dot product: 1.5×2 + 0.5×0 + 0×1 + (−1)×0 = 3.00"]
    view.page.keyboard.press("Tab")
    view.press("ArrowRight")
    assert lit(view, "to") == {"scores": ["1.25"]}
    view.press("PageDown")
    assert lit(view, "to") == {"scaled scores": ["0.63"]}
    assert "sqrt" in pressed(view)
    assert view.page.locator(".formula .lit").evaluate("(term) => term.dataset.stage") == "scale"
    view.press("End")
    assert lit(view, "to") == {"output": ["0.95"]}
    view.press("ArrowRight")
    assert lit(view, "to") == {"output": ["0.95"]}


def test_each_key_press_takes_the_next_of_all_numbers(opened):
    view = opened(AttentionStepper(ONES, ONES, ONES))
    view.page.keyboard.press("Tab")
    seen = [view.caption]
    for _ in range(40):
        view.press("ArrowRight")
        seen.append(view.caption)
    expected = 4 * 2 * 2 + 2 * 3
    assert len(set(seen)) == expected
    assert len(set(seen[:expected])) == expected
    for _ in range(40):
        view.press("ArrowLeft")
    assert view.caption == seen[0]


@pytest.mark.parametrize(("pace", "steps", "cells"), [("row", 20, 4), ("stage", 5, 16)])
def test_a_step_may_be_a_row_or_a_stage(opened, pace, steps, cells):
    view = opened(AttentionStepper(pace=pace))
    assert len(lit(view, "to")["scores"]) == cells
    assert view.root.locator("output").inner_text() == f"1 of {steps}"
    view.click("Next")
    assert view.root.locator("output").inner_text() == f"2 of {steps}"
    view.click("Next")
    view.click("Back")
    view.click("Back")
    assert view.root.locator("output").inner_text() == f"1 of {steps}"
    assert len(lit(view, "to")["scores"]) == cells


def test_clicking_a_weight_unfolds_its_dot_product(opened):
    view = opened(AttentionStepper())
    view.root.get_by_role("grid", name="weights").get_by_role("gridcell").nth(3 * 4 + 1).click()
    view.settle()
    assert in_full(view) == [
        "dot product: 2×2 + 0.5×0 + 0×1 + (−1)×0 = 4.00",
        "scale: 4.00 / √4 = 2.00",
        "mask: may attend: 2.00 stays",
        "softmax: exp(2.00) / (exp(0.00) + exp(2.00) + exp(0.63) + exp(0.50)) "
        "= 7.39 / 11.91 = 0.62",
    ]
    view.press("Home", "ArrowUp", "ArrowRight", "ArrowRight", "ArrowRight", "Enter")
    assert in_full(view)[2:] == [
        "mask: hidden: −∞",
        "softmax: exp(−∞) / (exp(0.00) + exp(1.50) + exp(0.63) + exp(−∞)) = 0.00 / 7.35 = 0.00",
    ]


def test_large_scores_are_unfolded_less_their_largest(opened):
    view = opened(AttentionStepper(40 * ONES, 40 * ONES, ONES, stage="softmax"))
    assert "less their largest" in in_full(view)[-1]
    assert "exp(0.00) / (exp(0.00) + exp(0.00)) = 1.00 / 2.00 = 0.50" in in_full(view)[-1]


def grid_cell(view, grid: str, index: int):
    return view.root.get_by_role("grid", name=grid, exact=True).get_by_role("gridcell").nth(index)


def test_a_number_is_edited_where_it_stands_and_all_follow(opened):
    view = opened(AttentionStepper())
    grid_cell(view, "query q", 0).focus()
    view.press("Enter", "2", "Enter")
    assert "is 0.25" in view.caption  # 2 · 0 + 0.5 · 0.5: feature 0 of the key is 0
    view.press("End", "1", ",", "5", "Enter")
    assert "is 0.75" in view.caption
    assert grid_cell(view, "query q", 3).inner_text() == "1.5"
    assert view.page.evaluate("document.activeElement.tagName") == "TD"
    view.click("Put the numbers back")
    assert "is 0.25" in view.caption
    assert grid_cell(view, "query q", 0).inner_text() == "1"


def test_escape_leaves_an_edit_and_nonsense_is_refused(opened):
    view = opened(AttentionStepper())
    grid_cell(view, "key k", 2).focus()
    view.press("9", "Escape")
    assert grid_cell(view, "key k", 0).inner_text() == "0"
    view.press("Enter")
    view.page.keyboard.type("abc")
    view.press("Enter")
    assert view.message == "a number is needed, got “abc”"
    assert grid_cell(view, "key k", 0).inner_text() == "0"


def test_the_tab_key_leaves_an_edit_and_takes_it(opened):
    view = opened(AttentionStepper())
    grid_cell(view, "key k", 0).focus()
    view.press("7", "Tab")
    assert grid_cell(view, "key k", 0).inner_text() == "7"
    assert view.root.locator("td input").count() == 0
    assert view.page.evaluate("document.activeElement.closest('table').ariaLabel") != "key k"


def test_the_mask_is_changed_by_a_click_or_a_key(opened):
    view = opened(AttentionStepper(stage="mask", i=0, j=1))
    assert "is −∞" in view.caption
    grid_cell(view, "mask, ✓ may attend", 1).click()
    view.settle()
    assert "is 1.00" in view.caption
    view.press("Enter")
    assert "is −∞" in view.caption


def test_an_empty_row_changes_the_code_and_says_so(opened):
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[1] = False
    view = opened(AttentionStepper(mask=mask, stage="softmax", i=1))
    assert "masked_fill(~mask.any" in pressed(view)
    assert in_full(view)[-1] == "softmax: all keys are hidden: 0"


def test_predicting_hides_what_is_to_come_and_says_right_or_how_wrong(opened):
    view = opened(AttentionStepper(stage="softmax", i=3, j=0, predict=True))
    assert lit(view, "to") == {"weights": ["?"]}
    assert grid_cell(view, "weights", 14).inner_text() == "·"
    assert in_full(view)[-1].endswith("= ?")
    assert "0.62" not in view.root.inner_text()
    question = view.root.get_by_label("Next: weight of query “it” on key “cat”")
    question.fill("0.6")
    view.press("Enter")
    said = view.root.locator(".asked p").inner_text()
    assert said.startswith("Right: the weight of query “it” on key “cat” is 0.62. 1 of 1")
    view.page.keyboard.type("0.5")
    view.press("Enter")
    said = view.root.locator(".asked p").inner_text()
    assert said.startswith("Off by 0.34: the weight of query “it” on key “ate” is 0.16, you said")
    assert said.endswith("1 of 2 right so far.")


def test_infinity_can_be_predicted_and_words_are_refused(opened):
    view = opened(AttentionStepper(stage="mask", predict=True))
    view.root.locator(".asked input").focus()
    view.page.keyboard.type("-inf")
    view.press("Enter")
    assert "Right" in view.root.locator(".asked p").inner_text()
    view.press("Enter")
    assert view.message.startswith("a number is needed")
    view.page.keyboard.type("1")
    view.press("Enter")
    assert "Off by ∞" in view.root.locator(".asked p").inner_text()


def test_a_prediction_is_not_given_away_by_the_table(opened):
    widget = AttentionStepper(stage="softmax", i=3, j=3, predict=True)
    view = opened(widget)
    cells = [cell for row in view.table() for cell in row]
    assert cells.count("?") == 8  # the output
    assert f"{widget.numbers()['weights'][3, 1]:.5f}" in cells


def test_after_the_last_number_nothing_is_asked(opened):
    view = opened(AttentionStepper(stage="sum", i=3, d=1, predict=True))
    assert "That was the last number." in view.root.inner_text()
    assert view.root.locator(".asked input").is_disabled()


@pytest.mark.parametrize("width", [380, 1000, 1400])
def test_the_height_stays_while_stepping(opened, width):
    view = opened(AttentionStepper(), width=width)
    heights = set()
    view.page.keyboard.press("Tab")
    for _ in range(72):
        heights.add(view.root.evaluate("(root) => root.offsetHeight"))
        view.press("ArrowRight")
    assert len(heights) == 1
    assert view.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# kills: lines that need more room for eight numbers than the example's four
def test_the_height_stays_with_as_many_numbers_as_there_is_room_for(opened):
    generator = torch.Generator().manual_seed(1)
    rows = 30 * torch.randn(3, 8, 8, generator=generator)
    view = opened(AttentionStepper(*rows, pace="row"))
    heights = set()
    view.page.keyboard.press("Tab")
    for _ in range(40):
        heights.add(view.root.evaluate("(root) => root.offsetHeight"))
        view.press("ArrowRight")
    assert len(heights) == 1


# kills: a number that is rounded because somebody looked at its cell
def test_an_edit_that_changes_nothing_leaves_the_number_as_it_is(opened):
    view = opened(AttentionStepper([[0.123456]], [[1.0]], [[float("nan")]]))
    for name in ("query q", "value v"):
        view.root.get_by_role("grid", name=name).locator("td").last.click()
        view.press("Enter")
    assert view.page.evaluate("[...attnCourseViews][0].state.query[0][0]") == 0.123456
    assert view.message == ""


@pytest.mark.parametrize("width", [380, 1000])
def test_the_height_stays_while_predicting(opened, width):
    view = opened(AttentionStepper(stage="scale", predict=True), width=width)
    heights = set()
    view.root.locator(".asked input").focus()
    for _ in range(50):
        view.page.keyboard.type("-0.123")
        view.press("Enter")
        heights.add(view.root.evaluate("(root) => root.offsetHeight"))
    assert len(heights) == 1
    assert "of 50 right" in view.root.locator(".asked p").inner_text()


def test_a_term_of_the_formula_and_a_line_of_code_lead_to_their_stage(opened):
    view = opened(AttentionStepper(i=1, j=1))
    view.root.locator(".formula [data-stage=softmax]").click()
    view.settle()
    assert "softmax" in pressed(view)
    assert lit(view, "to") == {"weights": ["0.56"]}
    view.root.locator(".lines button").nth(1).focus()
    view.press("Enter")
    assert lit(view, "to") == {"scaled scores": ["0.75"]}


@pytest.mark.parametrize("dark", [False, True])
def test_predicting_and_editing_are_accessible(opened, dark):
    view = opened(AttentionStepper(stage="softmax", i=3, predict=True), dark=dark)
    view.root.locator(".asked input").fill("5")
    view.press("Enter")
    grid_cell(view, "key k", 0).focus()
    view.press("Enter")
    found = Axe().run(view.page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
    assert found.response["violations"] == []
