"""Explorers in headless Chromium, with no kernel behind them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from page_driver import Modules, View, both_refuse

from attn_course.explorers.base import Explorer

NO_PICTURE = b"the still is replaced at once, and takes longer to draw than all the rest"


@pytest.fixture(scope="session")
def modules(browser) -> Iterator[Modules]:
    """The browser's arithmetic."""
    page = browser.new_page()
    yield Modules(page)
    page.close()


@pytest.fixture
def computed(modules: Modules) -> Callable[[Explorer], dict[str, Any]]:
    """computed(widget): the browser's numbers at the widget's state, as nested lists."""
    return lambda widget: modules.of(widget, "compute", widget.state)


@pytest.fixture
def refusals(modules: Modules) -> Callable[..., tuple[str, str]]:
    """refusals(widget, d_k=3): what Python and what the browser say against the change."""
    return lambda widget, **changes: both_refuse(modules, widget, **changes)


@pytest.fixture
def opened(browser, tmp_path: Path) -> Iterator[Callable[..., View]]:
    """opened(widget, …, width=1000, dark=False): in a page; errors in it fail the test.

    place: the style of what stands around the views; sharp: pixels of the screen for one of CSS.
    """
    views: list[View] = []

    def open_page(
        *widgets: Explorer, width: int = 1000, dark: bool = False, place: str = "", sharp: int = 1
    ) -> View:
        path = tmp_path / f"{len(views)}.html"
        background = "#111" if dark else "#fff"
        path.write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>view</title>'
            f'<body style="background:{background}"><div id="place" style="{place}">'
            f"{''.join(widget.html(NO_PICTURE) for widget in widgets)}</div></body></html>",
            encoding="utf-8",
        )
        page = browser.new_page(viewport={"width": width, "height": 900}, device_scale_factor=sharp)
        views.append(View(page, path.as_uri()))
        return views[-1]

    yield open_page
    for view in views:
        view.page.close()
        assert view.errors == []
