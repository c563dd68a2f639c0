"""A hand on a real JupyterLab: opens notebooks, runs and edits cells, reads what they show."""

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

# Loading takes 5 to 7 s on an idle machine; a test machine is not idle.
LOAD_MS = 120_000

_IDLE = """() => {
    const panel = window.jupyterapp?.shell?.currentWidget;
    return panel?.context?.path === %r
        && panel.sessionContext?.session?.kernel?.status === 'idle';
}"""
_ALL_IN_THE_PAGE = """() => {
    const content = window.jupyterapp.shell.currentWidget.content;
    content.notebookConfig = {...content.notebookConfig, windowingMode: 'none'};
}"""
_CELLS = """() => {
    const content = window.jupyterapp.shell.currentWidget.content;
    return content.model.sharedModel.cells.map(cell => cell.toJSON());
}"""
_SET_SOURCE = """([index, source]) => {
    const content = window.jupyterapp.shell.currentWidget.content;
    content.model.sharedModel.cells[index].setSource(source);
}"""
_RUN_CELL = """async (index) => {
    const content = window.jupyterapp.shell.currentWidget.content;
    content.deselectAll();
    content.activeCellIndex = index;
    return await window.jupyterapp.commands.execute('notebook:run-cell');
}"""


class Lab:
    """One page of JupyterLab, with one notebook in front."""

    def __init__(self, page: Page, address: str, token: str) -> None:
        self.page = page
        self._address = address
        self._token = token

    def open(self, path: str) -> None:
        """Show a notebook, and wait until its kernel is idle and all its cells are in the page."""
        self.page.goto(
            f"{self._address}/lab/tree/{path}?token={self._token}&reset", timeout=LOAD_MS
        )
        self.page.wait_for_function(_IDLE % path, timeout=LOAD_MS)
        self.page.evaluate(_ALL_IN_THE_PAGE)

    def run_all(self) -> None:
        """Run all cells; JupyterLab itself stops at the first error."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")

    def run(self, index: int) -> None:
        """Run one cell, and wait for its reply."""
        self.page.evaluate(_RUN_CELL, index)

    def set_source(self, index: int, source: str) -> None:
        """Replace what stands in a cell."""
        self.page.evaluate(_SET_SOURCE, [index, source])

    def cells(self) -> list[dict[str, Any]]:
        """The notebook's cells as they are now."""
        return self.page.evaluate(_CELLS)

    def index(self, pattern: str) -> int:
        """The number of the only cell whose source starts with the regular expression."""
        sources = ["".join(cell["source"]) for cell in self.cells()]
        (index,) = [i for i, source in enumerate(sources) if re.match(pattern, source)]
        return index

    def errors(self) -> list[str]:
        """What went wrong in cells that ran, and the cells that were never run."""
        wrong = []
        for number, cell in enumerate(self.cells()):
            if cell["cell_type"] != "code":
                continue
            for output in cell["outputs"]:
                if output["output_type"] == "error":
                    wrong.append(f"cell {number}: {output['ename']}: {output['evalue']}")
            if "".join(cell["source"]).strip() and not cell["execution_count"]:
                wrong.append(f"cell {number} was not run")
        return wrong

    def cell(self, index: int) -> Locator:
        """The cell as it stands in the page."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def output(self, index: int) -> str:
        """The text that the cell's outputs show."""
        return self.cell(index).locator(".jp-Cell-outputArea").inner_text()

    def first_view(self) -> tuple[Locator, Locator]:
        """The slider and the picture of the first explorer that has both."""
        view = self.page.locator(".attn-ex:has(input[type=range]):has(canvas)").first
        return view.locator("input[type=range]").first, view.locator("canvas").first

    def screenshot(self, path: Path) -> None:
        """A picture of the page, for a person."""
        self.page.screenshot(path=path)
