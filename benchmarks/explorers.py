"""How soon an explorer shows a step, in a real JupyterLab, beside `ipywidgets.interact`.

The time runs from the key press as the page sees it to the first frame with other pixels.
The peer draws the same curves with a new matplotlib figure for each step.
"""

import shutil
import sys
import tempfile
from itertools import cycle
from pathlib import Path
from statistics import median

import nbformat

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "browser")]  # the tests' hand on a browser

DRAGGED_MS = 3000
MOST_STOPS = 20  # of the pointer, on a slider that is dragged from end to end
HALF_A_THUMB = 8  # pixels at either end of a slider that have no value of their own

PEER_VALUES = 11
PEER = """import ipywidgets, matplotlib.pyplot as plt, torch
%matplotlib inline
from attn_course.attention import softmax
def draw(power=6):
    query, key = torch.randn(2, 16, 2**power)
    figure, panels = plt.subplots(1, 4, figsize=(9, 2.5))
    for panel, scale in zip(panels, (1, 2**(-power / 2), 1, 2**(-power / 2))):
        panel.imshow(softmax(query @ key.T * scale), vmin=0, vmax=1)
    plt.show()
ipywidgets.interact(draw, power=(0, 10));"""

LARGE = """import torch
from attn_course.explorers import AttentionViewer
maps = torch.randn(12, 12, 128, 128, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)"""
OPENED = "AttentionViewer(maps)"
PEER_OPENED = """figure, panels = plt.subplots(12, 12, figsize=(9, 9))
for panel, weights in zip(panels.flat, maps.flatten(end_dim=1)):
    panel.imshow(weights, vmin=0, vmax=1)
plt.show()"""

# Runs a cell, and tells after how long its picture stands in the page.
OPEN = """(index) => new Promise((done) => {
    const { content } = window.jupyterapp.shell.currentWidget;
    content.deselectAll();
    content.activeCellIndex = index;
    const { node } = content.widgets[index];
    const drawn = (canvas) => {
        const { width, height } = canvas;
        const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
        const pixels = new Uint32Array(data.buffer);
        return pixels.some((pixel) => pixel !== pixels[0]);
    };
    const before = new Set(node.querySelectorAll("img, canvas")); // of an earlier run
    const start = performance.now();
    const look = () => {
        const pictures = Array.from(node.querySelectorAll(".jp-OutputArea :is(img, canvas)"));
        const shown = pictures.filter((one) => one.offsetParent && !before.has(one));
        const stands = (one) => (one.tagName === "IMG" ? one.complete : drawn(one));
        if (shown.length && shown.every(stands)) done(performance.now() - start);
        else requestAnimationFrame(look);
    };
    window.jupyterapp.commands.execute("notebook:run-cell");
    requestAnimationFrame(look);
})"""

# Watches an output until its canvases or its picture differ from what they were at the key.
ARM = """(root) => {
    // a view without a canvas draws with elements
    const drawn = root.querySelector("canvas, img") ? "canvas, img" : ".attn-ex";
    const look = () => Array.from(root.querySelectorAll(drawn), (one) => {
        if (drawn === ".attn-ex") return one.innerHTML;
        if (one.tagName === "IMG") return one.complete ? one.src : "";
        if (!one.width) return "";
        const { data } = one.getContext("2d").getImageData(0, 0, one.width, one.height);
        let sum = 0;
        for (let k = 0; k < data.length; k += 37) sum = (sum * 31 + data[k]) >>> 0;
        return String(sum);
    }).join();
    const probe = (globalThis.probe = { times: [], look });
    root.addEventListener("keydown", () => {
        cancelAnimationFrame(probe.frame); // at the end of a slider a key changes nothing
        const before = look();
        const start = performance.now(); // reading megabytes of pixels is the probe's own time
        const wait = () => {
            const at = performance.now();
            const now = look();
            if (now && now !== before) probe.times.push(at - start);
            else probe.frame = requestAnimationFrame(wait);
        };
        probe.frame = requestAnimationFrame(wait);
    }, { capture: true });
}"""
# Counts the frames with new pixels, from now on, while the pointer moves.
DRAG = """(milliseconds) => {
    const { look } = globalThis.probe;
    let [last, changes, looking] = [look(), 0, 0];
    const start = performance.now();
    globalThis.rate = null;
    const frame = () => {
        const at = performance.now();
        const now = look();
        looking += performance.now() - at;
        if (now && now !== last) changes += 1;
        last = now || last;
        const passed = performance.now() - start;
        if (passed < milliseconds) requestAnimationFrame(frame);
        else globalThis.rate = (1000 * changes) / (passed - looking);
    };
    requestAnimationFrame(frame);
}"""


def rows(rounds: int) -> list[dict]:
    """A row for the median step of each explorer, and for updates while its slider is dragged."""
    from chromium import installed

    if not installed():
        return []
    import attn_course.explorers as explorers

    names = [name for name in explorers.__all__ if name not in ("Quiz", "Predict")]
    steps, rates, opening = _measured(names, rounds)
    found = []
    for name in names:
        ratio = steps[name] / steps["interact"]
        found.append(
            _row(
                f"{name}: key to new pixels",
                ratio,
                f"≤ 50 ms: {1000 * steps[name]:.0f} ms",
                steps[name] <= 0.05,
                steps[name],
                steps["interact"],
            )
        )
    for name in names:
        rate = rates[name]
        found.append(
            _row(
                f"{name}: time an update while dragging",
                rates["interact"] / rate,
                f"≥ 20 a second: {rate:.0f}",
                rate >= 20,
                1 / rate,
                1 / rates["interact"],
            )
        )
    ours, peer = opening
    found.append(
        _row(
            "AttentionViewer: opening 12 × 12 maps of 128 tokens",
            ours / peer,
            f"≤ 1 s: {ours:.2f} s",
            ours <= 1,
            ours,
            peer,
            "a figure of as many imshow",
        )
    )
    return found


def _row(
    name: str,
    ratio: float,
    reach: str,
    reached: bool,
    ours: float,
    peer_seconds: float,
    peer: str = "interact, a new figure a step",
) -> dict:
    return {
        "row": name,
        "peer": peer,
        "time_ratio": round(ratio, 3),
        "memory_ratio": None,
        "ours_seconds": ours,
        "peer_seconds": peer_seconds,
        "reach": reach,
        "reached": reached,
    }


def _measured(
    names: list[str], rounds: int
) -> tuple[dict[str, float], dict[str, float], tuple[float, float]]:
    """Seconds from a key to new pixels, updates a second in a drag; what opening takes.

    The first two by name, the last for the viewer of a large model and for its peer.
    """
    from chromium import launched
    from lab_driver import Lab
    from lab_server import serving

    sources = {name: f"from attn_course.explorers import {name}\n{name}()" for name in names}
    sources["interact"] = PEER
    steps, rates = {}, {}
    with tempfile.TemporaryDirectory() as scratch, launched() as browser:
        cells = [*sources.values(), LARGE, OPENED, PEER_OPENED]
        folder = _course(Path(scratch) / "course", cells)
        with serving(folder, Path(scratch) / "home") as address:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            lab = Lab(page, *address)
            lab.open("notebooks/bench.ipynb")
            for number, name in enumerate(sources):
                lab.run(number)
                root = lab.cell(number).locator(".jp-OutputArea").first
                steps[name] = _step(page, root, max(8, 3 * rounds))
                rates[name] = _drag(page, root)
            lab.run(len(sources))
            opening = [
                median(page.evaluate(OPEN, len(sources) + place) for _ in range(3)) / 1000
                for place in (1, 2)
            ]
    return steps, rates, (opening[0], opening[1])


def _course(folder: Path, sources: list[str]) -> Path:
    (folder / "notebooks").mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copy(ROOT / "notebooks" / "00_start_here.ipynb", folder / "notebooks")
    python = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=python)
    nbformat.write(notebook, folder / "notebooks" / "bench.ipynb")
    return folder


def _step(page, root, presses: int) -> float:
    control = root.locator("input, [role=slider], [tabindex='0'], select").first
    control.wait_for()
    root.locator("canvas, img, td").first.wait_for()
    page.wait_for_timeout(1000)
    root.evaluate(ARM)
    control.focus()
    for press in range(presses):
        page.keyboard.press("ArrowRight" if press // 4 % 2 == 0 else "ArrowLeft")
        page.wait_for_timeout(400)
    times = page.evaluate("probe.times")
    if not times:
        shown = root.locator(".attn-ex, .widget-interact").first.get_attribute("class")
        raise RuntimeError(f"no key press changed a pixel: {shown}, {root.inner_text()[:200]}")
    return median(times) / 1000


def _drag(page, root) -> float:
    """Pixels' changes a second while the pointer drags the slider, or crosses the large map."""
    slider = root.locator("input[type=range], .noUi-base")
    across = slider.first if slider.count() else root.locator("canvas").nth(_largest(root))
    across.scroll_into_view_if_needed()
    to_and_fro = cycle(_places(across))
    handle = root.locator(".noUi-handle")  # the peer's; the browser's own takes any press
    grip = handle.bounding_box() if handle.count() else None
    page.mouse.move(*_centre(grip) if grip else next(to_and_fro))
    page.mouse.down()
    page.evaluate(DRAG, DRAGGED_MS)
    for _ in range(DRAGGED_MS // 16):
        page.mouse.move(*next(to_and_fro))
        page.wait_for_timeout(8)
    page.mouse.up()
    page.wait_for_function("globalThis.rate !== null")
    return max(page.evaluate("globalThis.rate"), 1000 / DRAGGED_MS)  # none at all: at most one


def _places(element) -> list[tuple[float, float]]:
    """Where the pointer goes, there and back, so that each move of it is another value."""
    box = element.bounding_box()
    values = element.evaluate("(one) => one.max && (one.max - one.min) / one.step + 1")
    last = int(min(values or PEER_VALUES, MOST_STOPS)) - 1
    length = box["width"] - 2 * HALF_A_THUMB
    there = [box["x"] + HALF_A_THUMB + length * k / last for k in range(last + 1)]
    return [(x, _centre(box)[1]) for x in there + there[-2:0:-1]]


def _largest(root) -> int:
    """Which canvas is the highest; of several the last, as thumbnails come before their map."""
    heights = root.locator("canvas").evaluate_all("(all) => all.map((one) => one.clientHeight)")
    return max(range(len(heights)), key=lambda k: (heights[k], k))


def _centre(box: dict) -> tuple[float, float]:
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
