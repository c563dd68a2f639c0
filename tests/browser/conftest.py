"""JupyterLab as `attn-course lab` starts it, on a copy of the notebooks, in headless Chromium."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

import pytest
from chromium import driven_by_one_worker
from lab_driver import LOAD_MS, Lab
from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/lab\S*\?token=(\w+)")

LAB_OPTIONS = [
    "--no-browser",
    "--ip=127.0.0.1",
    "--port=0",
    "--LabApp.expose_app_in_browser=True",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that is here goes to the worker with the browser, which also starts JupyterLab."""
    here = Path(__file__).parent
    driven_by_one_worker([item for item in items if here in item.path.parents])


@pytest.fixture(scope="session")
def course_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course folder in which the tests may run and edit the notebooks."""
    copy = tmp_path_factory.mktemp("course folder")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for folder in ("notebooks", "exercises"):
        shutil.copytree(ROOT / folder, copy / folder, dirs_exist_ok=True)
    return copy


@pytest.fixture(scope="session")
def server(
    course_copy: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The address and the token of a JupyterLab on the copy, which keeps its progress there."""
    home = tmp_path_factory.mktemp("home")
    # JupyterLab's question about news would lie over the notebook.
    answer = home / "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    answer.parent.mkdir(parents=True)
    answer.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    environment = os.environ | {
        "ATTN_COURSE_PROGRESS": str(course_copy / "progress.json"),
        # Neither the settings nor the open tabs of the person who runs the tests.
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
    }
    command = [sys.executable, "-m", "attn_course", "lab", *LAB_OPTIONS]
    with subprocess.Popen(
        command,
        cwd=course_copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield _printed_address(process)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture
def lab(browser: Browser, server: tuple[str, str]) -> Iterator[Lab]:
    """A fresh page of JupyterLab."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    yield Lab(page, *server)
    context.close()


def _printed_address(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait for JupyterLab's address; its output is read to the end, so that it never blocks."""
    lines: Queue[str | None] = Queue()
    assert process.stdout is not None
    Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
    seen = []
    while True:
        try:
            line = lines.get(timeout=LOAD_MS / 1000)
        except Empty:
            line = None
        if line is None:
            pytest.fail("JupyterLab printed no address:\n" + "".join(seen))
        seen.append(line)
        found = ADDRESS.search(line)
        if found:
            return found[1], found[2]


def _read(stream, lines: Queue) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)
