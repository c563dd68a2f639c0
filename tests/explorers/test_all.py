"""What holds for every explorer, in a page without a kernel."""

import re
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import FOCUS_FIRST, an_arrow_key_changes
from PIL import Image

import attn_course.explorers as explorers
from attn_course.explorers import base
from attn_course.explorers.words import WORDS, words_of

NAMES = explorers.__all__
HOME = Path(base.__file__).parent
REFERENCES = Path(__file__).parent / "references"
LIMIT = 30_000  # bytes of one file

PAGES = [(1400, False), (1400, True), (380, False), (380, True)]
# of every frame until two seconds are over: how many colours each canvas shows, and the height
WATCH = """() => {
    const seen = [];
    const watch = () => {
        const root = document.querySelector(".attn-ex");
        const blank = Array.from(root.querySelectorAll("canvas")).some((canvas) => {
            if (!canvas.width || !canvas.offsetParent) return false;
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            const pixels = new Uint32Array(data.buffer);
            return pixels.every((pixel) => pixel === pixels[0]);
        });
        seen.push([blank, root.offsetHeight]);
        globalThis.watching = requestAnimationFrame(watch);
    };
    globalThis.seen = seen;
    watch();
}"""
CUT_OFF = """() => {
    const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    const edge = document.querySelector(".attn-ex").getBoundingClientRect().right;
    const out = Array.from(document.querySelectorAll(".attn-ex *")).filter((one) =>
        !one.closest(".scroll, .spoken, [hidden]") && one.offsetParent &&
        one.getBoundingClientRect().right > edge + 1);
    return [wide, out.map((one) => one.outerHTML.slice(0, 80))];
}"""


@pytest.fixture(params=NAMES)
def widget(request, monkeypatch):
    """Each explorer, as it opens without arguments."""
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", ":memory:")
    return getattr(explorers, request.param)()


def test_a_file_stays_small():
    files = [*HOME.glob("*.mjs"), *(HOME / f"{mjs.stem}.py" for mjs in HOME.glob("*.mjs"))]
    sizes = {file.name: file.stat().st_size for file in files if file.exists()}
    assert {name: size for name, size in sizes.items() if size > LIMIT} == {}


def test_every_word_that_is_used_stands_in_the_table(widget):
    used = set()
    shared = ["core.mjs", "charts.mjs", "base.py"]
    for file in [*shared, f"{widget.module}.mjs", f"{widget.module}.py"]:
        text = (HOME / file).read_text(encoding="utf-8")
        used |= set(re.findall(r"""\bt\(\s*["'](\w+)["']""", text))
        used |= set(re.findall(r"""words\[["'](\w+)["']\]""", text))
    assert used - words_of(type(widget).__name__).keys() == set()


def test_a_translation_replaces_every_word(widget, opened):
    widget.words = {key: _shouted(value) for key, value in widget.words.items()}
    view = opened(widget)
    shown = view.page.evaluate("() => document.querySelector('.attn-ex').innerText")
    for table in (WORDS["shared"], WORDS[type(widget).__name__]):
        for text in table.values():
            plain = max(re.split(r"\{[^}]+\}", text), key=len)
            # whole phrases only: symbols and names of the field are no words
            assert not (len(re.findall(r"[^\W\d]+", plain)) > 1 and plain.strip() in shown), plain


def _shouted(text: str) -> str:
    return re.sub(r"(\{[^}]+\})|([^{]+)", lambda part: part[1] or part[2].upper(), text)


# what axe judges hangs on the width or on the theme, not on both together
@pytest.mark.parametrize(("width", "dark"), [(1400, True), (380, False)])
def test_axe_finds_nothing(widget, opened, width, dark):
    view = opened(widget, width=width, dark=dark)
    button = view.root.locator(".numbers > button").first
    if button.is_visible():
        button.click()
        view.settle()
    found = Axe().run(view.page, options={"rules": {"region": {"enabled": False}}})
    said = [
        (one["id"], one["help"], [node["html"][:120] for node in one["nodes"]])
        for one in found.response["violations"]
        # the page around the view is the test's own
        if one["id"] not in ("landmark-one-main", "page-has-heading-one")
    ]
    assert said == []


def test_the_first_control_answers_an_arrow_key_at_once(widget, opened):
    view = opened(widget)
    # a picture of a view that is higher than the window lays the page out anew
    view.page.set_viewport_size({"width": 1000, "height": 3000})
    view.settle()
    view.page.evaluate(WATCH)
    assert an_arrow_key_changes(view.root)
    frames = view.page.evaluate("() => { cancelAnimationFrame(watching); return seen; }")
    assert not any(blank for blank, _ in frames)
    assert len({height for _, height in frames}) == 1


FOCUSED = """() => {
    const at = document.activeElement;
    const { outlineStyle, outlineWidth } = getComputedStyle(at);
    const seen = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
    return [at.id, !at.closest(".attn-ex") || seen, at.outerHTML.slice(0, 80)];
}"""


# kills: a control that keeps the Tab key; a view without a way out; a focus that cannot be seen
def test_the_tab_key_goes_through_and_out(widget, opened):
    view = opened(widget)
    view.page.evaluate(
        "document.body.append(Object.assign(document.createElement('button'), {id: 'after'}))"
    )
    visited = 0
    while True:
        view.press("Tab")
        place, visible, what = view.page.evaluate(FOCUSED)
        if place == "after":
            break
        assert visible, what
        visited += 1
        assert visited < 400
    assert visited > 0


@pytest.mark.parametrize(("width", "size"), [(380, "100%"), (1400, "200%"), (760, "200%")])
def test_nothing_is_cut_off(widget, opened, width, size):
    view = opened(widget, width=width)
    view.page.evaluate(f"document.documentElement.style.fontSize = '{size}'")
    view.settle()
    assert view.page.evaluate(CUT_OFF) == [0, []]


SIZES = """() => Array.from(document.querySelectorAll(".attn-ex *"))
    .filter((one) => one.matches("input, select, button, canvas"))
    .filter((one) => one.offsetParent)
    .map((one) => [one.outerHTML.slice(0, 60), one.offsetHeight])"""


# kills: boxes, radio buttons and sliders that stay small beside large text
def test_controls_and_pictures_grow_with_the_text(widget, opened):
    view = opened(widget, width=2400)
    small = view.page.evaluate(SIZES)
    view.page.evaluate("document.documentElement.style.fontSize = '200%'")
    view.settle()
    for (what, before), (_, after) in zip(small, view.page.evaluate(SIZES), strict=True):
        assert after > 1.7 * before, what


def test_no_request_leaves_the_page(widget, browser, tmp_path):
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    (tmp_path / "page.html").write_text(widget.html(), encoding="utf-8")
    page.goto((tmp_path / "page.html").as_uri())
    page.locator(".attn-ex").wait_for()
    page.close()
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []


def test_all_of_them_stand_on_one_page(opened, monkeypatch):
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", ":memory:")
    view = opened(*(getattr(explorers, name)() for name in NAMES))
    view.page.wait_for_function(f"document.querySelectorAll('.attn-ex').length === {len(NAMES)}")
    found = view.page.evaluate(
        "Array.from(document.querySelectorAll('.attn-ex'), (one) => one.dataset.explorer)"
    )
    assert found == NAMES


MOVING = """@keyframes wander { to { opacity: .5; } }
    * , ::before { transition: all 3s; animation: wander 3s infinite; }"""
ANIMATIONS = """() => Array.from(document.querySelectorAll(".attn-ex"),
    (root) => root.getAnimations({ subtree: true }).length)"""


# kills: a view that moves by itself, or with what the page around it says of all elements
def test_nothing_moves_where_no_motion_is_wanted(opened, monkeypatch):
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", ":memory:")
    view = opened(*(getattr(explorers, name)() for name in NAMES))
    view.page.wait_for_function(f"document.querySelectorAll('.attn-ex').length === {len(NAMES)}")
    for root in view.page.locator(".attn-ex").all():
        root.evaluate(FOCUS_FIRST)
        view.page.keyboard.press("ArrowRight")
        view.settle()
        assert set(view.page.evaluate(ANIMATIONS)) == {0}
    view.page.add_style_tag(content=MOVING)
    assert 0 not in view.page.evaluate(ANIMATIONS)
    view.page.emulate_media(reduced_motion="reduce")
    assert set(view.page.evaluate(ANIMATIONS)) == {0}


def test_the_repr_says_what_is_shown_and_stays(widget):
    assert repr(widget) == repr(widget)
    assert "0x" not in repr(widget)
    bundle = widget._repr_mimebundle_()
    assert set(bundle) == {
        "text/plain",
        "text/html",
        "image/png",
        "application/vnd.jupyter.widget-view+json",
    }


@pytest.mark.parametrize(("width", "dark"), PAGES)
def test_it_looks_like_the_stored_picture(widget, opened, tmp_path, width, dark, request):
    view = opened(widget, width=width, dark=dark)
    view.page.emulate_media(reduced_motion="reduce")
    path = tmp_path / "now.png"
    view.root.screenshot(path=path)
    name = f"{type(widget).__name__}-{width}-{'dark' if dark else 'light'}.png"
    now = _small(path)
    if request.config.getoption("--store-pictures"):
        REFERENCES.mkdir(exist_ok=True)
        now.save(REFERENCES / name, optimize=True)
    stored = Image.open(REFERENCES / name).convert("L")
    # fonts differ between machines: size within a tenth, and shades on average
    assert abs(now.height - stored.height) <= 0.1 * stored.height
    both = (np.asarray(image.resize(stored.size), dtype=float) for image in (now, stored))
    first, second = both
    assert np.abs(first - second).mean() < 12


def _small(path: Path) -> Image.Image:
    picture = Image.open(path).convert("L")
    return picture.resize((160, max(1, round(160 * picture.height / picture.width))))
