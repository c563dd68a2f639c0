"""A newcomer's first hour, in the JupyterLab that `attn-course lab` starts."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from lab_driver import Lab

ROOT = Path(__file__).resolve().parents[2]
EXERCISE = r"# Exercise \d+\.\d+: scaled_dot_product_attention"
NO_SCALE = """import torch

def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = torch.nan_to_num(scores.softmax(dim=-1))
    return weights @ value, weights
"""

pytestmark = pytest.mark.timeout(900)


def wait_for_change(look, before: bytes, seconds: float = 20.0) -> bool:
    """Whether what `look` sees differs from `before`, at the latest after `seconds`."""
    until = time.monotonic() + seconds
    while look() == before:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_lesson_00_runs_from_top_to_bottom(lab: Lab):
    lab.open("notebooks/00_start_here.ipynb")
    lab.run_all()
    assert lab.errors() == []


def test_lesson_03_runs_and_its_slider_moves_the_picture_by_keyboard(lab: Lab):
    lab.open("notebooks/03_scaled_dot_product.ipynb")
    lab.run_all()
    assert lab.errors() == []
    slider, picture = lab.first_view()
    slider.scroll_into_view_if_needed()
    before = picture.screenshot()
    value = slider.get_attribute("aria-valuetext")
    slider.focus()
    lab.page.keyboard.press("ArrowRight")
    assert wait_for_change(picture.screenshot, before)
    assert slider.get_attribute("aria-valuetext") != value


def test_an_exercise_is_failed_then_mended_and_the_progress_is_shown(lab: Lab):
    lab.open("exercises/03_scaled_dot_product.ipynb")
    answer = lab.index(EXERCISE)
    check = lab.index(r"check\(scaled_dot_product_attention\)")
    progress = len(lab.cells()) - 1
    for index in imports_before(answer, lab):
        lab.run(index)
    stub = "".join(lab.cells()[answer]["source"])

    def verdict_on(source: str) -> str:
        lab.set_source(answer, source)
        lab.run(answer)
        lab.run(check)
        return lab.output(check)

    assert "not right yet" in verdict_on(stub)
    header = stub.splitlines()[0]
    assert "factor" in verdict_on(f"{header}\n{NO_SCALE}")
    lab.run(progress)
    assert "0 of" in lab.output(progress).splitlines()[-1]
    assert "passed" in verdict_on(solution())
    lab.run(progress)
    assert "1 of" in lab.output(progress).splitlines()[-1]


def imports_before(answer: int, lab: Lab) -> list[int]:
    """The cells that a learner runs first: code without an exercise of its own."""
    cells = list(enumerate(lab.cells()[:answer]))
    sources = [(i, "".join(cell["source"])) for i, cell in cells if cell["cell_type"] == "code"]
    return [i for i, source in sources if "import " in source and "# Exercise" not in source]


def solution() -> str:
    """The answer cell as the solved notebook has it."""
    solved = nbformat.read(ROOT / "solutions/03_scaled_dot_product.ipynb", as_version=4)
    (source,) = [cell.source for cell in solved.cells if re.match(EXERCISE, cell.source)]
    return source


@pytest.mark.parametrize(("required", "outcome"), [("", "skipped"), ("1", "error")])
def test_without_chromium_the_walk_is_skipped_unless_it_is_required(required, outcome):
    only = f"{Path(__file__).name}::test_lesson_00_runs_from_top_to_bottom"
    environment = os.environ | {"PATH": "", "ATTN_COURSE_REQUIRE_BROWSER": required}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", only],
        cwd=Path(__file__).parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"1 {outcome}" in done.stdout
    assert bool(done.returncode) is bool(required)
