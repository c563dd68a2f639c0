"""An explorer among other widgets of a real JupyterLab: laid out, hidden, linked, observed."""

from pathlib import Path

import nbformat
import pytest
from lab_driver import Lab
from playwright.sync_api import Locator

pytestmark = pytest.mark.timeout(900)

NOTEBOOK = "notebooks/among_widgets.ipynb"
SET_UP = """import ipywidgets as widgets
import traitlets
from attn_course.explorers import HeadsExplorer, MaskExplorer, ScalingExplorer"""
PLACES = [
    "widgets.HBox([MaskExplorer(), HeadsExplorer()])",
    "widgets.VBox([MaskExplorer(), widgets.IntSlider()])",
    "widgets.Tab([widgets.Label('first'), MaskExplorer()])",
    "widgets.Accordion([widgets.Label('first'), MaskExplorer()])",
    "view = MaskExplorer(i=0); view",
    "",
]
BESIDE, BELOW, TAB, ACCORDION, FOLDED, LAST = range(1, 7)

THROUGH_THE_KERNEL = """view = ScalingExplorer(d_k=4)
slider = widgets.SelectionSlider(options=[1, 2, 4, 8], value=1)
link = traitlets.link((view, "d_k"), (slider, "value"))
label = widgets.Label()
view.observe(lambda change: setattr(label, "value", f"now {change.new}"), "d_k")
widgets.VBox([slider, label, view])"""
IN_THE_PAGE = """view, slider = HeadsExplorer(), widgets.IntSlider(4, 1, 16)
link = widgets.jslink((view, "num_heads"), (slider, "value"))
label = widgets.Label()
view.observe(lambda change: setattr(label, "value", f"now {change.new}"), "num_heads")
widgets.VBox([slider, label, view])"""

# how wide each canvas of a view stands and whether its pixels are those of that width, not blank
DRAWN = """(root) => Array.from(root.querySelectorAll("canvas"), (canvas) => {
    const { width, height, clientWidth } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    const pixels = new Uint32Array(data.buffer);
    return clientWidth > 200 && width === clientWidth && pixels.some((one) => one !== pixels[0]);
})"""


@pytest.fixture
def opened(lab: Lab, course_copy: Path):
    """opened(cell, …): a notebook of these cells behind the imports, all run."""

    def run_all(*cells: str) -> Lab:
        sources = [nbformat.v4.new_code_cell(source) for source in (SET_UP, *cells)]
        python = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = nbformat.v4.new_notebook(cells=sources, metadata={"kernelspec": python})
        nbformat.write(notebook, course_copy / NOTEBOOK)
        lab.open(NOTEBOOK)
        for number in range(len(sources)):
            lab.run(number)
        return lab

    return run_all


def view_in(lab: Lab, cell: int, kind: str) -> Locator:
    return lab.cell(cell).locator(f'.attn-ex[data-explorer="{kind}"]')


def is_drawn(view: Locator) -> bool:
    view.wait_for()
    view.page.wait_for_timeout(100)  # the frame after the one in which it appears
    return all(view.evaluate(DRAWN))


# kills: views that fall together to a line in a row; blank canvases in a tab that is opened later
def test_a_view_stands_whole_in_boxes_tabs_and_folded_outputs(opened):
    lab = opened(*PLACES)
    for cell, kind in (
        (BESIDE, "MaskExplorer"),
        (BESIDE, "HeadsExplorer"),
        (BELOW, "MaskExplorer"),
    ):
        assert is_drawn(view_in(lab, cell, kind)), (cell, kind)
    row = [view_in(lab, BESIDE, kind).bounding_box() for kind in ("MaskExplorer", "HeadsExplorer")]
    assert row[0]["x"] + row[0]["width"] <= row[1]["x"]
    for cell, opener in ((TAB, ".lm-TabBar-tab"), (ACCORDION, ".jupyter-widget-Collapse-header")):
        hidden = view_in(lab, cell, "MaskExplorer")
        assert not hidden.is_visible()
        lab.cell(cell).locator(opener).nth(1).click()
        assert is_drawn(hidden), cell
    view = view_in(lab, FOLDED, "MaskExplorer")
    fold(lab, FOLDED, True)
    view.wait_for(state="hidden")
    lab.set_source(LAST, "view.i = 3")
    lab.run(LAST)
    fold(lab, FOLDED, False)
    assert is_drawn(view)
    assert "Query 3 sees" in view.locator(".caption").inner_text()


def fold(lab: Lab, cell: int, hidden: bool) -> None:
    lab.page.evaluate(
        """([cell, hidden]) => {
            const { content } = window.jupyterapp.shell.currentWidget;
            content.widgets[cell].outputHidden = hidden;
        }""",
        [cell, hidden],
    )


# kills: a trait that only one of the two sides can move; a change that nobody is told of
@pytest.mark.parametrize(
    ("cell", "at_four", "one_up", "then"),
    [
        (THROUGH_THE_KERNEL, "At d_k = 4 ", "At d_k = 8 ", "8"),
        (IN_THE_PAGE, "4 heads of d_k = 6 ", "5 heads of 4 would use 20 ", "5"),
    ],
    ids=["link", "jslink"],
)
def test_a_trait_is_linked_with_a_slider_both_ways(opened, cell, at_four, one_up, then):
    output = opened(cell).cell(1)
    said, readout = output.locator(".caption"), output.locator(".widget-readout")
    wait_for_text(said, at_four)
    wait_for_text(readout, "4")
    output.locator(".attn-ex").get_by_role("slider").first.press("ArrowRight")
    wait_for_text(readout, then)
    wait_for_text(said, one_up)
    wait_for_text(output.locator(".widget-label"), f"now {then}")
    output.locator(".noUi-handle").press("ArrowLeft")
    wait_for_text(said, at_four)
    wait_for_text(output.locator(".widget-label"), "now 4")


def wait_for_text(element: Locator, text: str) -> None:
    element.filter(has_text=text).wait_for()
