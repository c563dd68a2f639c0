"""Every explorer in the old notebook front end with ipywidgets 7, which Colab has."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from chromium import FOCUS_FIRST, REQUIRED, an_arrow_key_changes
from filelock import FileLock
from playwright.sync_api import Browser, Locator, Page

import attn_course.explorers as explorers

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REQUIREMENTS = HERE / "classic-requirements.txt"
HOME = ROOT / "build" / "classic"
LOAD_MS = 120_000
# ipywidgets 7 asks a new kernel for its widgets, in three messages, and then draws every view
# anew: those shown meanwhile, its own sliders too, go and do not come back.
REPLIED = """() => new Promise((replied) => {
    Jupyter.notebook.kernel.execute("None", { shell: { reply: replied } });
})"""
# what commands of the notebook would change: the cells, the selected one, the mode, a dialogue
NOTEBOOK = """() => [
    Jupyter.notebook.get_cells().map((cell) => [cell.cell_type, cell.get_text()]),
    Jupyter.notebook.get_selected_index(),
    Jupyter.notebook.mode,
    document.querySelectorAll(".modal.in").length,
]"""
# as a click on the view does
SELECT = "(root) => Jupyter.notebook.select($(root.closest('.cell')).index())"
KEYS = ["ArrowDown", "ArrowUp", *"jkddxvzabmyrhsfop", "0", "0", "Delete", "Escape", "ArrowDown"]

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def classic_python() -> Path:
    """A Python with the old versions before this one's packages; made once, kept in build/."""
    HOME.parent.mkdir(exist_ok=True)
    with FileLock(HOME.with_suffix(".lock")):  # from one process at a time
        return _made()


def _made() -> Path:
    python = HOME / "bin" / "python"
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    made = HOME / "made-from.txt"
    if made.exists() and made.read_text(encoding="utf-8") == wanted:
        return python
    shutil.rmtree(HOME, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--no-input", "-r", REQUIREMENTS]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        told = f"the old notebook cannot be installed here: {done.stderr[-600:]}"
        pytest.fail(told) if os.environ.get(REQUIRED) else pytest.skip(told)
    # after its own packages, so that only what it lacks is taken from here
    own = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    here = f"{sysconfig.get_path('purelib')}\n{ROOT}\n"
    (Path(own) / "zz_course.pth").write_text(here, encoding="utf-8")
    made.write_text(wanted, encoding="utf-8")
    return python


@pytest.fixture(scope="module")
def address(classic_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A notebook with a cell for each explorer, served; its address."""
    folder = tmp_path_factory.mktemp("classic")
    sources = [f"from attn_course.explorers import {name}\n{name}()" for name in explorers.__all__]
    python = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(
        nbformat.v4.new_notebook(cells=cells, metadata=python), folder / "explorers.ipynb"
    )
    spec = folder / "data" / "kernels" / "python3"
    spec.mkdir(parents=True)
    argv = [str(classic_python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(kernel))
    with socket.socket() as free:  # asked for port 0, the old notebook prints port 0
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--no-browser", "--ip=127.0.0.1", f"--port={port}", "--allow-root"]
    options.append("--NotebookApp.token=x")
    environment = os.environ | {
        "ATTN_COURSE_PROGRESS": ":memory:",
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "PYTHONWARNINGS": "ignore",
    }
    log = folder / "log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [classic_python, "-m", "notebook", *options], cwd=folder, env=environment,
            stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            yield f"{_printed(log, server)}notebooks/explorers.ipynb?token=x"
        finally:
            server.terminate()
            server.wait(timeout=60)


def _printed(log: Path, server: subprocess.Popen) -> str:
    for _ in range(LOAD_MS // 200):
        found = re.search(r"http://127\.0\.0\.1:\d+/", log.read_text())
        if found:
            return found[0]
        try:
            server.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            continue
        break
    pytest.fail(f"the old notebook did not start:\n{log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def page(address: str, browser: Browser) -> Iterator[Page]:
    """The notebook with every explorer, run; nothing that it asks for leaves this machine."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.wait_for_function(
        "() => window.Jupyter?.notebook?.kernel?.is_connected()", timeout=LOAD_MS
    )
    for _ in range(3):
        page.evaluate(REPLIED)
    page.evaluate("() => Jupyter.notebook.execute_all_cells()")
    yield page
    page.close()
    home = ("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:")
    assert [url for url in asked if not url.startswith(home)] == []


@pytest.fixture(params=explorers.__all__)
def root(request, page: Page) -> Locator:
    """Each explorer of the notebook."""
    number = explorers.__all__.index(request.param)
    root = page.locator(".cell").nth(number).locator(".attn-ex")
    root.wait_for(timeout=LOAD_MS)
    return root


def test_each_explorer_is_shown_and_takes_keys(root: Locator):
    assert an_arrow_key_changes(root)


# kills: a view that loses the focus as it draws; the old notebook keeps its commands (leave a
# cell, cut, paste, split) back only while an element of the output has it
def test_keys_of_a_view_are_no_commands_of_the_notebook(root: Locator):
    root.evaluate(SELECT)
    root.evaluate(FOCUS_FIRST)
    before = root.page.evaluate(NOTEBOOK)
    for key in KEYS:
        root.page.keyboard.press(key)
        root.page.wait_for_timeout(30)
    assert root.page.evaluate(NOTEBOOK) == before
    assert root.evaluate("(root) => root.contains(document.activeElement)")
