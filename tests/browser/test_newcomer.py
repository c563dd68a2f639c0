"""A newcomer's first hour, in the JupyterLab that `attn-course lab` starts."""

import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from lab_driver import Lab

ROOT = Path(__file__).resolve().parents[2]
EXERCISE = "# Exercise 3.3: scaled_dot_product_attention"
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
    slider = lab.first_slider()
    slider.scroll_into_view_if_needed()
    before = lab.picture_beside(slider)
    value = slider.get_attribute("aria-valuenow")
    slider.focus()
    lab.page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuenow") != value
    assert wait_for_change(lambda: lab.picture_beside(slider), before)


def test_an_exercise_is_failed_then_mended_and_the_progress_is_shown(lab: Lab):
    lab.open("exercises/03_scaled_dot_product.ipynb")
    answer = lab.index(EXERCISE)
    check = lab.index("check(scaled_dot_product_attention)")
    setup = [i for i, cell in enumerate(lab.cells()[:answer]) if cell["cell_type"] == "code"]
    for index in setup[:2]:
        lab.run(index)

    lab.run(answer)
    lab.run(check)
    assert "not right yet" in lab.output(check)

    lab.set_source(answer, f"{EXERCISE}\n{NO_SCALE}")
    lab.run(answer)
    lab.run(check)
    assert "√d_k" in lab.output(check)

    lab.set_source(answer, _solution(EXERCISE))
    lab.run(answer)
    lab.run(check)
    assert "passed" in lab.output(check)

    last = len(lab.cells()) - 1
    lab.run(last)
    assert "1 of" in lab.output(last)


def _solution(exercise: str) -> str:
    solved = nbformat.read(ROOT / "solutions/03_scaled_dot_product.ipynb", as_version=4)
    (source,) = [cell.source for cell in solved.cells if cell.source.startswith(exercise)]
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
