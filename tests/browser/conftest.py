"""JupyterLab as `attn-course lab` starts it, on a copy of the notebooks, in headless Chromium."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import driven_by_one_worker
from lab_driver import Lab
from lab_server import serving
from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
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
    with serving(course_copy, tmp_path_factory.mktemp("home")) as address:
        yield address


@pytest.fixture
def lab(browser: Browser, server: tuple[str, str]) -> Iterator[Lab]:
    """A fresh page of JupyterLab."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    yield Lab(page, *server)
    context.close()
