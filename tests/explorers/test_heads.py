import numpy as np
import pytest
import torch
import traitlets
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from attn_course.explorers import HeadsExplorer
from attn_course.masks import causal_mask
from attn_course.models import count_parameters
from attn_course.multihead import MultiHeadAttention, ablate_heads
from attn_course.positions import RotaryPositions


class LearnersAttention(nn.Module):
    """No more than the explorer asks for."""

    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        super().__init__()
        self.num_heads = num_heads
        for name in ("W_q", "W_k", "W_v", "W_o"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=bias))


def drawn(d_model: int, num_heads: int, n: int, bias: bool = True):
    torch.manual_seed(n)
    module = MultiHeadAttention(d_model, num_heads, bias=bias)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module, torch.randn(n, d_model)


def close(got: dict, expected: dict) -> None:
    assert got.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(got[name], values, atol=1e-5, rtol=1e-5, err_msg=name)


# -- the numbers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"num_heads": 1, "off": [0]},
        {"num_heads": 24, "off": [3, 0, 23], "causal": True},
        {"num_heads": 5},
        {"d_model": 18, "num_heads": 6, "off": [5, 17]},
    ],
)
def test_the_browser_computes_the_same(computed, state):
    widget = HeadsExplorer(**state)
    close(computed(widget), dict(widget.numbers()))


@pytest.mark.parametrize(("d_model", "num_heads", "n"), [(1, 1, 1), (6, 3, 1), (32, 4, 128)])
def test_the_browser_computes_the_same_for_given_modules(computed, d_model, num_heads, n):
    widget = HeadsExplorer(*drawn(d_model, num_heads, n), off=[num_heads - 1], causal=True)
    close(computed(widget), dict(widget.numbers()))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinities_come_out_alike(computed, value):
    module, x = drawn(8, 2, 4)
    x[1, 3] = value
    widget = HeadsExplorer(module, x, off=[1])
    numbers = dict(widget.numbers())
    assert np.isnan(numbers["weights"]).any()
    close(computed(widget), numbers)


STEP = """async (changes) => {
    const [view] = attnCourseViews;
    for (const [name, value] of Object.entries(changes)) view.model.set(name, value);
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const plain = (rows) => Array.from(rows, (row) => Array.from(row));
    return { change: Array.from(view.numbers.change), output: plain(view.numbers.output) };
}"""
STEPS = [
    {"off": [0]}, {"off": [0, 2]}, {"off": [1, 1]}, {"num_heads": 6}, {"off": [0, 1, 2, 3, 5]},
    {"causal": True}, {"num_heads": 3}, {"off": [2]}, {"causal": False}, {"num_heads": 2},
    {"off": [0]}, {"off": [1]},
]  # fmt: skip


# kills: what was kept of another head count, another mask or other heads that were off
def test_the_numbers_are_right_after_any_steps(opened):
    widget = HeadsExplorer(*drawn(12, 3, 7))
    view = opened(widget)
    for step in STEPS:
        for name, value in step.items():
            setattr(widget, name, value)
        got, expected = view.page.evaluate(STEP, step), widget.numbers()
        close(got, {name: expected[name] for name in got})


@pytest.mark.parametrize("causal", [False, True])
def test_it_shows_what_the_module_does(causal):
    module, x = drawn(12, 3, 5)
    mask = causal_mask(5) if causal else None
    numbers = HeadsExplorer(module, x, causal=causal, off=[0, 2]).numbers()
    with torch.no_grad():
        output, _ = ablate_heads(module, [0, 2])(x[None], x[None], x[None], mask)
        everything, weights = module(x[None], x[None], x[None], mask)
    np.testing.assert_allclose(numbers["weights"], weights[0], atol=1e-6)
    np.testing.assert_allclose(numbers["output"], output[0], atol=1e-5)
    moved = (output - everything).norm(dim=-1) / everything.norm(dim=-1)
    np.testing.assert_allclose(numbers["change"], moved[0], atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("num_heads", [1, 2, 6])
def test_costs_are_those_that_pytorch_counts(num_heads, bias):
    module, x = drawn(12, num_heads, 5, bias)
    numbers = HeadsExplorer(module, x).numbers()
    assert numbers["parameters"] == count_parameters(module)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        _, weights = module(x[None], x[None], x[None])
    assert 2 * numbers["multiply_adds"] == counter.get_total_flops()
    assert numbers["weight_bytes"] == weights.nbytes


def test_four_heads_keep_apart_what_one_head_confuses():
    four = HeadsExplorer().numbers()["weights"]
    one = HeadsExplorer(num_heads=1).numbers()["weights"][0]
    before, after = four[0].argmax(-1), four[1].argmax(-1)
    np.testing.assert_array_equal(before[1:], np.arange(11))
    np.testing.assert_array_equal(after[:-1], np.arange(1, 12))
    assert (one.argmax(-1)[1:-1] != before[1:-1]).all()


def test_a_count_that_does_not_divide_says_what_is_lost():
    widget = HeadsExplorer(num_heads=5)
    assert "weights" not in widget.numbers()
    for said in ("24 / 5 = 4.8", "lose 4", "1, 2, 3, 4, 6, 8, 12, 24"):
        assert said in widget.alt()
    assert widget.png().startswith(b"\x89PNG")


# -- what is taken and what is refused --------------------------------------------------


def test_a_module_of_the_learners_own_or_its_tensors_or_its_vectors_are_taken():
    module, x = LearnersAttention(8, 2), torch.randn(3, 8, generator=torch.Generator())
    by_module = HeadsExplorer(module, x[None], ["a", "b", "c"])
    assert (by_module.num_heads, by_module.d_model) == (2, 8)
    assert by_module.tokens == ["a", "b", "c"]
    weights = {name: getattr(module, name).weight.mT for name in ("W_q", "W_k", "W_v", "W_o")}
    weights |= {f"b_{role}": getattr(module, f"W_{role}").bias for role in "qkvo"}
    by_tensors = HeadsExplorer(weights, x, num_heads=2)
    assert by_tensors.tensors == by_module.tensors
    assert HeadsExplorer(x=x).d_model == 8
    assert len(HeadsExplorer(module, tokens=["a", "b"]).numbers()["change"]) == 2


def test_a_module_is_not_altered_and_keeps_its_gradients_to_itself():
    module, x = drawn(8, 2, 3)
    x.requires_grad_()
    before = [parameter.clone() for parameter in module.parameters()]
    HeadsExplorer(module, x, off=[1]).numbers()
    assert all(map(torch.equal, before, module.parameters()))
    assert x.grad is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((nn.Linear(4, 4),), "Linear must have W_q.*lacks W_q, W_k, W_v, W_o"),
        ((MultiHeadAttention(8, 4, num_kv_heads=2),), r"W_k must be \(8, 8\).*\(8, 4\)"),
        ((MultiHeadAttention(8, 2, position=RotaryPositions()),), "puts positions"),
        (({"W_q": torch.eye(4)},), r"expected a module or .* got \['W_q'\]"),
        ((7,), "got int"),
        (({f"W_{role}": torch.ones(4, 4) for role in "qkvo"} | {"b_o": [1.0]},), r"b_o .*\(1,\)"),
        ((MultiHeadAttention(8, 2), torch.ones(3, 7)), r"\(n, 8\), got \(3, 7\)"),
        ((MultiHeadAttention(8, 2), torch.ones(2, 3, 8)), r"give x\[0\]"),
        ((MultiHeadAttention(8, 2), torch.ones(8)), "2 axes"),
        ((MultiHeadAttention(8, 2), torch.ones(129, 8)), "128 tokens, got 129"),
        ((MultiHeadAttention(8, 2), torch.ones(3, 8), ["a"]), "3 tokens, 1 words"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_came(given, said):
    with pytest.raises(traitlets.TraitError, match=said):
        HeadsExplorer(*given)


@pytest.mark.parametrize("d_model", [0, 2048, 2.5, -4])
def test_a_width_that_cannot_be_drawn_is_refused(d_model):
    with pytest.raises(traitlets.TraitError, match=f"1 … 1024, got {d_model}"):
        HeadsExplorer(d_model=d_model)


@pytest.mark.parametrize(
    "changes",
    [{"num_heads": 0}, {"num_heads": 25}, {"head": -1}, {"off": [1, 24]}, {"d_model": 12}],
)
def test_both_sides_refuse_the_same_in_the_same_words(refusals, changes):
    python, browser = refusals(HeadsExplorer(), **changes)
    assert python == browser != ""


@pytest.mark.parametrize("changes", [{"num_heads": 7}, {"head": 23}, {"off": [9, 23]}])
def test_both_sides_take_what_waits_for_more_heads(refusals, changes):
    assert refusals(HeadsExplorer(), **changes) == ("", "")


# -- in a page --------------------------------------------------------------------------


def test_the_slider_rewrites_the_shapes_and_stays_where_counts_do_not_divide(opened):
    view = opened(HeadsExplorer())
    path = view.root.get_by_role("listitem")
    assert "(b, h, n, d_k) = (1, 4, 12, 6)" in path.nth(1).inner_text()
    height = view.root.bounding_box()["height"]
    view.page.keyboard.press("Tab")
    view.press("ArrowRight")
    assert "d_k = 24 / 5 = 4.8" in path.nth(1).inner_text()
    assert "not reached" in path.nth(4).inner_text()
    assert "lose 4" in view.caption
    assert view.root.bounding_box()["height"] == height
    view.press("ArrowRight")
    assert "(b, h, n, n) = (1, 6, 12, 12)" in path.nth(2).inner_text()


def test_heads_are_chosen_and_switched_off_by_keyboard(opened):
    view = opened(HeadsExplorer())
    view.root.get_by_role("application").nth(1).focus()
    view.press("ArrowRight", "Enter")
    assert "Switched off: 1." in view.caption
    assert view.root.get_by_role("button", name="Switch head 1 on").is_visible()
    view.press("ArrowDown", " ")
    assert "Switched off: 1, 3." in view.caption
    view.press("Tab")
    assert view.focused == "Switch head 3 on"


def test_heads_are_chosen_by_pointer_and_all_come_back(opened):
    view = opened(HeadsExplorer(off=[1, 2]))
    view.root.get_by_role("application").nth(1).click(position={"x": 200, "y": 60})
    view.settle()
    view.click("Only head 1")
    assert "Switched off: 0, 2, 3." in view.caption
    view.click("All heads on")
    assert "Switched off" not in view.caption


def test_the_table_has_the_costs_the_chosen_map_and_the_output(opened):
    rows = opened(HeadsExplorer(num_heads=2, head=1)).table()
    assert ["parameters", "2400", "2400"] in rows
    assert ["attention weights in memory, bytes", "576", "1152"] in rows
    assert sum(row[0] == "animal" for row in rows) == 2


def test_figures_in_the_alternative_text_are_those_of_the_view(opened):
    widget = HeadsExplorer(off=[0, 1, 2, 3])
    assert "moves by 100 % of" in widget.alt()
    assert widget.alt() == f"{widget.t('title')}. {opened(widget).caption}"


# kills: an output that nbval finds changed wherever training went another way
def test_figures_of_a_given_module_stay_out_of_the_alternative_text():
    weights = {role: torch.eye(6) for role in ("W_q", "W_k", "W_v", "W_o")}
    moved = {role: 1.05 * matrix for role, matrix in weights.items()}
    first, second = (HeadsExplorer(one, num_heads=2, off=[1]).alt() for one in (weights, moved))
    assert first == second
    assert "2 heads of d_k = 3 make 6 features" in first
    assert "Switched off: 1." in first


# kills: a width refused for a number of heads that nobody asked for
@pytest.mark.parametrize(("d_model", "num_heads"), [(1, 1), (2, 2), (6, 3), (7, 1), (64, 4)])
def test_any_width_opens_with_a_count_that_divides_it(computed, d_model, num_heads):
    widget = HeadsExplorer(d_model=d_model, tokens=["a", "b"])
    assert widget.num_heads == num_heads
    close(computed(widget), dict(widget.numbers()))
