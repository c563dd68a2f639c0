"""Every explorer in a real JupyterLab: alive, in step with its kernel, and gone when re-run."""

from collections.abc import Iterator
from pathlib import Path

import nbformat
import numpy as np
import pytest
from chromium import FOCUS_FIRST, an_arrow_key_changes
from lab_driver import Lab
from nbconvert import HTMLExporter

import attn_course.explorers as explorers

pytestmark = pytest.mark.timeout(900)

NOTEBOOK = "notebooks/explorers.ipynb"
SET_UP = f"from attn_course.explorers import {', '.join(explorers.__all__)}"
# matplotlib takes longer than all the rest, and leaves nothing in the page
NO_PICTURES = """from attn_course.explorers.base import Explorer
Explorer._png = lambda self, numbers: b''"""
COUNT = "import ipywidgets; print('alive', len(ipywidgets.Widget.widgets))"

WITH_A_FIELD = """from attn_course.explorers import HeadsExplorer, Predict
from attn_course.learner.questions import Question
from IPython.display import display
question = Question("q", "00", "prediction-number", "How large?", high=2.0)
display(HeadsExplorer(), Predict(question))"""
SAVED = "() => !window.jupyterapp.shell.currentWidget.context.model.dirty"
RUN_AGAIN = """(count) => {
    const [cell] = window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells;
    return cell.execution_count > count;
}"""
VIEWS = "() => globalThis.attnCourseViews.size"


@pytest.fixture
def notebook(course_copy: Path) -> Path:
    """One cell for each explorer; as new, for JupyterLab may have saved an earlier run."""
    cells = [nbformat.v4.new_code_cell(SET_UP)]
    cells += [nbformat.v4.new_code_cell(f"view = {name}()\nview") for name in explorers.__all__]
    cells.append(nbformat.v4.new_code_cell(COUNT))
    path = course_copy / NOTEBOOK
    python = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=python), path)
    return path


@pytest.fixture
def watched(lab: Lab, notebook: Path) -> Iterator[Lab]:
    """The notebook, run; what its page asks for and complains of is held against it."""
    asked, complaints = [], []
    lab.page.on("request", lambda request: asked.append(request.url))
    lab.page.on("pageerror", lambda error: complaints.append(str(error)))
    lab.page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
    lab.open(NOTEBOOK)
    lab.run_all()
    lab.page.wait_for_function(
        f"() => globalThis.attnCourseViews?.size >= {len(explorers.__all__)}"
    )
    yield lab
    home = ("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:")
    assert [url for url in asked if not url.startswith(home)] == []
    assert complaints == []


def test_a_key_press_changes_each_of_them_and_not_its_height(watched: Lab):
    assert watched.errors() == []
    for number, name in enumerate(explorers.__all__, start=1):
        root = watched.cell(number).locator(".attn-ex")
        root.scroll_into_view_if_needed()
        height = root.bounding_box()["height"]
        assert an_arrow_key_changes(root), name
        assert root.bounding_box()["height"] == height, name
        assert root.evaluate("(root) => root.contains(document.activeElement)"), name


def test_the_kernel_follows_and_leads(watched: Lab):
    number = explorers.__all__.index("ScalingExplorer") + 1
    root = watched.cell(number).locator(".attn-ex")
    root.evaluate(FOCUS_FIRST)
    watched.page.keyboard.press("ArrowRight")
    last = len(explorers.__all__) + 1
    watched.set_source(number, "view = ScalingExplorer()\nview")
    watched.run(number)
    watched.set_source(last, "view.d_k = 4; print(view.d_k)")
    watched.run(last)
    assert watched.output(last).strip() == "4"
    root = watched.cell(number).locator(".attn-ex")
    watched.page.wait_for_function(
        "(root) => root.querySelector('output').textContent === '4'", arg=root.element_handle()
    )
    root.evaluate(FOCUS_FIRST)
    watched.page.keyboard.press("ArrowRight")
    watched.set_source(last, "print(view.d_k)")
    watched.run(last)
    assert watched.output(last).strip() == "8"


# kills: listeners, elements, models or views that outlive their cell's next run
def test_running_a_cell_ten_times_leaves_nothing_behind(watched: Lab):
    last = len(explorers.__all__) + 1
    devtools = watched.page.context.new_cdp_session(watched.page)
    devtools.send("Performance.enable")

    def counted() -> np.ndarray:
        devtools.send("HeapProfiler.collectGarbage")
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        values = {one["name"]: one["value"] for one in metrics}
        return np.array([values["JSEventListeners"], values["Nodes"]])

    watched.set_source(0, f"{SET_UP}\n{NO_PICTURES}")
    watched.run(0)
    watched.run(last)
    models = watched.output(last)
    for number, name in enumerate(explorers.__all__, start=1):
        # cell by cell: JupyterLab keeps the toolbar of every cell that was active, 810 listeners
        watched.run(number)
        counts = [counted()]
        for _ in range(2):
            for _ in range(5):
                watched.run(number)
            counts.append(counted())
        # what outlives its cell grows with every run; what JupyterLab sets up does so once
        grown = np.diff(counts, axis=0).min(axis=0) / 5
        # ipywidgets' own slider leaves 5 listeners and 13 elements at each run
        assert grown[0] < 8, name
        assert grown[1] < 20, name
    watched.run(last)
    assert watched.output(last) == models
    assert watched.page.evaluate(VIEWS) == len(explorers.__all__)


def test_the_exported_page_steps_without_a_kernel_or_a_network(
    watched: Lab, notebook: Path, browser, tmp_path: Path
):
    watched.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    watched.page.wait_for_timeout(1000)
    html, _ = HTMLExporter().from_filename(str(notebook))
    page_file = tmp_path / "exported.html"
    page_file.write_text(html, encoding="utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(page_file.as_uri(), wait_until="domcontentloaded")
    page.wait_for_function(
        f"document.querySelectorAll('.attn-ex').length === {len(explorers.__all__)}"
    )
    for root in page.locator(".attn-ex").all():
        assert an_arrow_key_changes(root), root.get_attribute("data-explorer")
    context.close()


# kills: cells that are cut or deleted by keys meant for a view; a notebook that cannot be saved
def test_keys_of_a_view_leave_the_cells_alone_and_commands_work(lab: Lab, course_copy: Path):
    cells = [nbformat.v4.new_code_cell(source) for source in (WITH_A_FIELD, "1 + 1", "2 + 2")]
    python = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(
        nbformat.v4.new_notebook(cells=cells, metadata=python), course_copy / "notebooks/keys.ipynb"
    )
    lab.open("notebooks/keys.ipynb")
    lab.run(0)
    field = lab.page.get_by_role("spinbutton").first
    slider = lab.page.locator(".attn-ex").get_by_role("slider").first
    own = ["d", "d", "x", "v", "z", "a", "b", "0", "0", "Delete", "Enter", "Escape", "ArrowDown"]
    editing = [f"Control+{key}" for key in "acxvz"]
    for control, keys in ((slider, own), (field, ["1", *editing, "Backspace"])):
        control.focus()
        for key in keys:
            lab.page.keyboard.press(key)
        assert ["".join(cell["source"]) for cell in lab.cells()] == [
            WITH_A_FIELD if cell == 0 else f"{cell} + {cell}" for cell in range(3)
        ]
        assert control.evaluate("(one) => one === document.activeElement")
    lab.set_source(2, "2 + 3")
    slider.focus()
    lab.page.keyboard.press("Control+s")
    lab.page.wait_for_function(SAVED)
    count = lab.cells()[0]["execution_count"]
    slider.focus()
    lab.page.keyboard.press("Control+Enter")
    lab.page.wait_for_function(RUN_AGAIN, arg=count)
