"""What every view does for its reader: messages, announcements, tables, focus and theme."""

import re

import pytest
import torch

from attn_course.explorers import (
    AttentionStepper,
    AttentionViewer,
    HeadsExplorer,
    MaskExplorer,
    PositionExplorer,
    Predict,
    Quiz,
    ScalingExplorer,
)
from attn_course.explorers.base import browser_module
from attn_course.learner.questions import Question

SAID = "() => document.querySelector('.spoken[role=status]').textContent"
IMPORT = """const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const module = await import(address);"""
SET_BY_PYTHON = """([name, value]) => {
    const [view] = attnCourseViews;
    view.model.set(name, value);
}"""


# kills: a caption that takes the place of the cell in what a screen reader says
def test_the_cell_and_the_sentence_are_both_announced(opened):
    view = opened(MaskExplorer())
    view.root.locator("canvas").first.focus()
    view.press("ArrowDown", "ArrowRight")
    view.page.wait_for_function(f"({SAID})() !== ''")
    said = view.page.evaluate(SAID)
    assert "Row the, column ate: 1." in said
    assert "Query 3 sees" in said


# kills: a verdict and its reason that are read out as one word
def test_the_verdict_and_its_reason_are_announced_one_after_the_other(opened, monkeypatch):
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", ":memory:")
    view = opened(Quiz())
    view.root.get_by_role("radio").first.check()
    view.click("Answer")
    view.page.wait_for_function(f"({SAID})() !== ''")
    said = view.page.evaluate(SAID)
    assert re.match(r"[✓✗] [\w ]+\. \w+", said), said


# kills: an axis with a single number on it, by which nothing can be read off
@pytest.mark.parametrize("ends", [(0, 1), (0.006, 0.994), (1, 240), (0, 12), (-20, 0), (0, 47)])
def test_an_axis_has_numbers_enough_to_be_read(opened, ends):
    module = browser_module("scaling").replace("export {", "export { axis,")
    load = f"async (text) => {{ {IMPORT} return module.axis({{}}, {list(ends)}).ticks; }}"
    ticks = opened(ScalingExplorer()).page.evaluate(load, module)
    assert 2 <= len(ticks) <= 6
    assert ends[0] <= min(ticks) < max(ticks) <= ends[1]


# kills: a message that stays when what it speaks of has passed
def test_a_message_about_a_state_goes_with_the_state(opened):
    view = opened(ScalingExplorer())
    view.page.evaluate(SET_BY_PYTHON, ["d_k", 3])
    view.settle()
    assert "got 3" in view.message
    view.page.evaluate(SET_BY_PYTHON, ["d_k", 8])
    view.settle()
    assert (view.message, view.caption[:11]) == ("", "At d_k = 8 ")


# kills: a table that is built anew under the reader at each step
def test_the_frame_of_a_table_keeps_the_focus(opened):
    view = opened(ScalingExplorer(d_k=4))
    view.click("Table")
    view.page.locator(".tables .scroll").first.focus()
    view.page.evaluate(SET_BY_PYTHON, ["d_k", 8])
    view.settle()
    assert view.focused == "softmax of the first query, d_k = 8"


# kills: a table that takes seconds to open, and a file that lacks what the page leaves out
def test_of_a_long_table_the_page_shows_the_start_and_the_file_has_all(opened):
    view = opened(AttentionViewer(torch.eye(100)[None, None]))
    rows = view.table()
    titles = view.page.locator(".tables caption").all_inner_texts()
    assert titles[-1].endswith("layer 0, head 0: the first 24 of 100 rows, all are in the CSV")
    assert len(rows) == 2 + 101 + 101 + 25
    with view.page.expect_download() as download:
        view.root.get_by_role("button", name="Save as CSV").click()
    saved = download.value.path().read_text(encoding="utf-8-sig").splitlines()
    title = next(k for k, line in enumerate(saved) if line.endswith(': layer 0, head 0"'))
    assert saved[title + 101].startswith("“99” (99),0,0,")


# kills: keys that go to the notebook, as its commands, when a control switches itself off
def test_a_control_that_switches_itself_off_leaves_the_focus_in_the_view(opened):
    view = opened(MaskExplorer(painted=[[0, 1, True]]))
    view.root.get_by_role("button", name="Take the painting away").focus()
    view.press("Enter")
    assert view.focused == "Masks: who may attend to whom"
    view.press("Tab")
    assert view.root.get_attribute("tabindex") is None
    assert view.page.evaluate("Boolean(document.activeElement.closest('.attn-ex'))")


# kills: series that differ in colour and order alone
def test_bars_of_two_series_differ_without_colour(opened):
    view = opened(ScalingExplorer())
    filled = view.page.evaluate(
        """() => {
            const { series } = [...attnCourseViews][0].colours;
            const canvas = document.querySelector("canvas");
            // the samples of the legend, below the axis' name
            const { data, width } = canvas.getContext("2d").getImageData(0, 25, canvas.width, 14);
            return series.slice(0, 2).map((colour) => {
                const wanted = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
                const places = Array.from({ length: data.length / 4 }, (_, k) => k).filter((k) =>
                    wanted.every((part, c) => Math.abs(data[4 * k + c] - part) < 3));
                const xs = places.map((k) => k % width);
                return places.length / (14 * (Math.max(...xs) - Math.min(...xs) + 1));
            });
        }"""
    )
    assert filled[0] > 0.85
    assert 0.1 < filled[1] < 0.75


# kills: a loop that steps by less than the numbers can tell apart, and never ends
def test_values_that_hardly_differ_are_drawn(opened):
    table = [[1e16 + 2 * ((k + d) % 2) for d in range(4)] for k in range(8)]
    view = opened(PositionExplorer(table=table, tokens=["a", "b"]))
    assert "stands at position" in view.caption


# kills: numbers that are hard to read on the colours of the middle
def test_the_ink_of_a_cell_stands_out_on_every_colour(opened):
    module = browser_module("scaling").replace("export {", "export { luminance, colourAt,")
    least = opened(ScalingExplorer()).page.evaluate(
        f"async (text) => {{ {IMPORT}"
        """const { luminance, colourAt } = module;
            return Math.min(...Array.from({ length: 101 }, (_, k) => {
                const light = luminance(colourAt(k / 100));
                return light > 0.179 ? (light + 0.05) / 0.05 : 1.05 / (light + 0.05);
            }));
        }""",
        module,
    )
    assert 4.5 <= least < 5


# kills: a number that is taken although the hand took it back
def test_escape_leaves_a_number_as_it_was(opened, monkeypatch):
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", ":memory:")
    question = Question("q", "00", "prediction-number", "How large?", high=2.0)
    view = opened(Predict(question, value=1.0))
    field = view.root.get_by_role("spinbutton")
    field.focus()
    view.page.keyboard.type("9")
    view.press("Escape", "Tab")
    assert (field.input_value(), view.message) == ("1", "")


@pytest.mark.parametrize(("ink", "theme"), [("#ddd", "dark"), ("#222", "light")])
def test_where_no_background_tells_the_ink_does(opened, ink, theme):
    view = opened(ScalingExplorer())
    view.page.evaluate(f"document.body.style = 'background: none; color: {ink}'")
    view.settle()
    assert view.root.get_attribute("data-theme") == theme


LONG = ["internationalisation", "a", "Donaudampfschifffahrtsgesellschaft", "b", "c"]
THREE_LAYERS = torch.eye(5).expand(3, 2, 5, 5)


SQUEEZED = """() => {
    const { prototype } = CanvasRenderingContext2D;
    const write = prototype.fillText;
    globalThis.squeezed = [];
    prototype.fillText = function (text, x, y, room) {
        if (room < this.measureText(text).width / 2) squeezed.push([text, room]);
        return write.apply(this, arguments);
    };
}"""


# kills: names that are pressed into a smear below their bars, or lie over the numbers beside them
@pytest.mark.parametrize("kind", [AttentionViewer, HeadsExplorer, MaskExplorer, PositionExplorer])
def test_a_long_name_is_cut_and_not_squeezed(kind, opened):
    given = {"d_model": 24} if kind is HeadsExplorer else {}
    view = opened(
        kind(torch.eye(5)[None, None], LONG)
        if kind is AttentionViewer
        else kind(tokens=LONG, **given)
    )
    view.page.evaluate(SQUEEZED)
    view.page.evaluate("[...attnCourseViews][0].update()")
    assert view.page.evaluate("squeezed") == []


def test_a_long_name_keeps_to_its_cell(opened):
    view = opened(AttentionStepper(*torch.eye(5).expand(3, 5, 5), tokens=LONG))
    rows = (
        "Array.from(document.querySelectorAll('[role=grid] tbody tr'), (row) => row.offsetHeight)"
    )
    assert len(set(view.page.evaluate(rows))) == 1
    wide = """Array.from(document.querySelectorAll('[role=grid] th'),
        (cell) => cell.scrollWidth > cell.clientWidth && getComputedStyle(cell).overflow)"""
    assert set(view.page.evaluate(wide)) == {False, "hidden"}


# kills: sentences and lists whose length the example's short words do not show
@pytest.mark.parametrize("width", [380, 1000])
@pytest.mark.parametrize(
    "widget",
    [
        lambda: AttentionViewer(THREE_LAYERS, LONG, compare=(THREE_LAYERS, LONG)),
        lambda: MaskExplorer(tokens=3 * LONG),
        lambda: PositionExplorer(tokens=LONG),
        lambda: HeadsExplorer(d_model=24, tokens=LONG),
        lambda: AttentionStepper(*torch.eye(5).expand(3, 5, 5), tokens=LONG, pace="row"),
    ],
    ids=["viewer", "mask", "position", "heads", "stepper"],
)
def test_the_height_stays_with_words_of_any_length(opened, widget, width):
    view = opened(widget(), width=width)
    heights = set()
    view.page.keyboard.press("Tab")
    for key in 8 * ["ArrowRight"]:
        heights.add(view.root.evaluate("(root) => root.offsetHeight"))
        view.press(key)
    for map_ in view.root.get_by_role("application").all()[-1:]:
        map_.focus()
    for key in 8 * ["ArrowRight", "ArrowDown"]:
        heights.add(view.root.evaluate("(root) => root.offsetHeight"))
        view.press(key)
    assert len(heights) == 1
