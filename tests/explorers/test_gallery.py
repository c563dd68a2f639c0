"""docs/explorers.html: every explorer on one page, without a kernel or a network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import an_arrow_key_changes
from click.testing import CliRunner
from playwright.sync_api import Page

import attn_course.explorers as explorers
from attn_course import cli


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """The page as the command writes it, in a folder that it has to make."""
    path = tmp_path_factory.mktemp("course") / "docs" / "explorers.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTN_COURSE_PROGRESS", ":memory:")
        done = CliRunner().invoke(cli.main, ["explorers", str(path)])
    assert (done.exit_code, done.exception) == (0, None)
    assert f"{len(explorers.__all__)} explorers" in done.output
    return path


@pytest.fixture
def page(written: Path, browser) -> Iterator[Page]:
    """The page, opened with no network; it asks for nothing and complains of nothing."""
    context = browser.new_context(offline=True, viewport={"width": 1000, "height": 900})
    page = context.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(written.as_uri())
    page.wait_for_function(
        f"document.querySelectorAll('.attn-ex').length === {len(explorers.__all__)}"
    )
    yield page
    context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert complaints == []


def test_each_explorer_is_alive_on_it(page: Page):
    for name in explorers.__all__:
        assert an_arrow_key_changes(page.locator(f".attn-ex[data-explorer={name}]")), name


def test_its_links_lead_to_the_explorers(page: Page):
    places = page.locator("nav a").evaluate_all("(all) => all.map((one) => one.hash.slice(1))")
    assert places == explorers.__all__
    below = """([place, name]) => {
        const heading = document.getElementById(place);
        return heading.parentElement.querySelector(`#${place} ~ div`).dataset.explorer === name;
    }"""
    assert all(page.evaluate(below, [place, place]) for place in places)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_cuts_nothing_off_and_axe_finds_nothing(page: Page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 380, "height": 900})
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in found] == []
