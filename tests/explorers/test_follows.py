"""What Python sets while a view is open is seen in it, and the keys that a view leaves alone."""

import pytest
import torch

from attn_course.explorers import (
    AttentionStepper,
    AttentionViewer,
    HeadsExplorer,
    Predict,
    ScalingExplorer,
    TrainingView,
)
from attn_course.explorers.base import Explorer
from attn_course.learner.questions import Question

SET_BY_PYTHON = """(changes) => {
    const [view] = attnCourseViews;
    for (const [name, value] of Object.entries(changes)) view.model.set(name, value);
}"""
OPTIONS = """(label) => Array.from(document.querySelectorAll(".attn-ex label"))
    .filter((one) => !one.hidden && one.innerText.startsWith(label))
    .flatMap((one) => Array.from(one.querySelectorAll("option"), (option) => option.text))"""


def given(view, before: Explorer, after: Explorer) -> None:
    """Set, as Python does, all that differs between the states of two widgets."""
    changes = {name: value for name, value in after.state.items() if before.state[name] != value}
    view.page.evaluate(SET_BY_PYTHON, changes)
    view.settle()


def uniform(layers: int, heads: int, n: int) -> torch.Tensor:
    return torch.ones(layers, heads, n, n) / n


# kills: lists that keep the names that there were when the view was built
def test_the_viewers_lists_follow_its_sentences(opened):
    one = AttentionViewer(uniform(1, 2, 3), ["a", "b", "c"])
    view = opened(one)
    assert view.page.evaluate(OPTIONS, "sentence") == []
    two = AttentionViewer(
        uniform(8, 1, 2), ["x", "y"], compare=(uniform(8, 1, 2), ["p", "q"]), beside=None
    )
    height = view.root.evaluate("(root) => root.querySelector('canvas').offsetHeight")
    given(view, one, two)
    assert view.page.evaluate(OPTIONS, "sentence") == ["0: x y", "1: p q"]
    assert view.page.evaluate(OPTIONS, "beside it") == ["nothing", "0: x y", "1: p q"]
    assert "“x” (0)" in view.caption
    # eight layers take more room than one
    assert view.root.evaluate("(root) => root.querySelector('canvas').offsetHeight") > height


# kills: a slider with the counts of other weights, and a sentence about them
def test_the_head_counts_follow_the_tensors(opened):
    by_hand, drawn = HeadsExplorer(), HeadsExplorer(d_model=64, num_heads=2)
    view = opened(by_hand)
    given(view, by_hand, drawn)
    assert "drawn at random" in view.root.inner_text()
    assert "the first 48 features" not in view.caption
    slider = view.root.get_by_role("slider").first
    slider.focus()
    view.press("End")
    assert slider.get_attribute("aria-valuetext") == "64"


# kills: a button that puts back numbers which have no room any more
def test_the_stepper_puts_back_what_was_given_last(opened):
    first = AttentionStepper()
    second = AttentionStepper(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2))
    view = opened(first)
    restore = view.root.get_by_role("button", name="Put the numbers back")
    assert restore.is_disabled()
    given(view, first, second)
    view.root.get_by_role("grid", name="query q").get_by_role("gridcell").first.click()
    view.page.keyboard.type("7")
    view.press("Enter")
    cell = "(view) => [...attnCourseViews][0].model.get('query')[0][0]"
    assert view.page.evaluate(cell) == 7
    restore.click()
    view.settle()
    assert (view.page.evaluate(cell), view.message) == (1, "")


def test_other_words_are_shown_at_once_and_the_state_stays(opened):
    widget = ScalingExplorer()
    view = opened(widget)
    view.root.get_by_role("slider").focus()
    view.press("ArrowRight")
    view.page.evaluate(SET_BY_PYTHON, {"words": widget.words | {"redraw": "Andere Schlüssel"}})
    view.settle()
    assert view.root.get_by_role("button", name="Andere Schlüssel").count() == 1
    assert view.caption.startswith("At d_k = 128 ")
    assert view.page.evaluate("attnCourseViews.size") == 1


# kills: a run's list that keeps to the metrics of the run before
def test_the_metrics_of_a_run_can_be_chosen_as_they_come(opened):
    view = opened(TrainingView(watch=torch.ones(1, 1), metric="b"))
    curve = {"steps": [1, 2], "values": [0.5, 0.25]}
    view.page.evaluate(SET_BY_PYTHON, {"metrics": {"a": curve, "b": curve}, "step": 2})
    view.settle()
    assert view.page.evaluate(OPTIONS, "metric") == ["a", "b"]
    assert view.root.get_by_label("metric").input_value() == '"b"'


# -- keys -------------------------------------------------------------------------------

LISTEN = """() => {
    const note = ({ key, ctrlKey, shiftKey, altKey }) =>
        reached.push([ctrlKey && "Ctrl", altKey && "Alt", shiftKey && "Shift", key]
            .filter(Boolean).join("+"));
    if (!globalThis.reached) document.addEventListener("keydown", note);
    globalThis.reached = [];
}"""
OWN = ["ArrowRight", "Home", "Enter", "Escape", "d", "0", "Delete", " ", "Shift+ArrowRight"]
COMMANDS = ["Control+s", "Control+Enter", "Shift+Enter", "Alt+Enter", "Control+Shift+c"]


def reached(view, *keys: str) -> list[str]:
    view.page.evaluate(LISTEN)
    for key in keys:
        view.page.keyboard.press(key)
    return [one for one in view.page.evaluate("reached") if one.split("+")[-1] not in MODIFIERS]


MODIFIERS = ("Control", "Shift", "Alt")


# kills: cells that vanish while a view has the focus; a notebook that cannot be saved from there
@pytest.mark.parametrize("control", ["slider", "application"])
def test_keys_end_in_the_view_and_commands_pass(opened, control):
    view = opened(HeadsExplorer())
    view.root.get_by_role(control).first.focus()
    assert reached(view, *OWN) == []
    assert len(reached(view, *COMMANDS)) == len(COMMANDS)
    assert view.page.evaluate("[...attnCourseViews][0].model.get('off')") in ([], [0])


# kills: a head that is switched off by the keys that run the cell
def test_a_command_is_not_taken_for_a_key_of_the_view(opened):
    view = opened(HeadsExplorer())
    view.root.get_by_role("application").last.focus()
    before = view.page.evaluate("[...attnCourseViews][0].state")
    view.press("Shift+Enter", "Control+Enter", "Alt+ArrowDown", "Control+ArrowRight")
    assert view.page.evaluate("[...attnCourseViews][0].state") == before


# kills: a cell that is cut, copied or restored in place of the digits in a field
def test_a_field_keeps_copy_paste_and_undo(opened, monkeypatch):
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", ":memory:")
    view = opened(Predict(Question("q", "00", "prediction-number", "How large?", high=2.0)))
    view.root.get_by_role("spinbutton").focus()
    editing = [f"Control+{key}" for key in ("a", "c", "x", "v", "z", "ArrowLeft", "Backspace")]
    assert reached(view, *editing, "5", "Delete") == []
    assert reached(view, "Control+s", "Shift+Enter") == ["Ctrl+s", "Shift+Enter"]
