"""Headless Chromium for the tests that look at a page."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = "ATTN_COURSE_REQUIRE_BROWSER"

# Chromium as root has no sandbox of its own; the rest keeps it from calling home.
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def installed() -> str | None:
    """Where the browser's program is, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def launched() -> Iterator[Any]:
    """Start the browser; without one the test is skipped, or fails where it must run."""
    program = installed()
    if program is None:
        reason = f"there is no Chromium (none of {', '.join(BROWSERS)} on PATH)"
        if os.environ.get(REQUIRED):
            pytest.fail(f"{reason}, and {REQUIRED} is set")
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright  # only where there is a page to look at

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        yield chromium
        chromium.close()


FOCUS_FIRST = """(root) => {
    const able = root.querySelectorAll(':is(input, select, button, [tabindex="0"])');
    Array.from(able).find((one) => !one.disabled && one.offsetParent).focus();
}"""


def an_arrow_key_changes(root: Any) -> bool:
    """Whether some arrow key on the first control of a view changes its pixels."""
    root.evaluate(FOCUS_FIRST)
    before = root.screenshot()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        root.page.keyboard.press(key)
        root.page.wait_for_timeout(100)
        if root.screenshot() != before:
            return True
    return False


def driven_by_one_worker(items: list[pytest.Item]) -> None:
    """Mark tests in a browser: one worker drives it, the others have no need to start it too."""
    for item in items:
        item.add_marker(pytest.mark.browser)
        item.add_marker(pytest.mark.xdist_group("browser"))
