"""Shapes in the package's signatures are checked at run time, in every test."""

from collections.abc import Iterator
from typing import Any

import hypothesis
import jaxtyping
import pytest
from chromium import driven_by_one_worker, launched

SHAPED = (
    "attention blocks efficient generation losses masks models multihead norms positions primer"
    " recurrent"
)
jaxtyping.install_import_hook(
    [f"attn_course.{module}" for module in SHAPED.split()], "shape_checks.check"
)

# the same examples on every run, no opinion on how fast the machine is, and no search for
# simpler ones: they are small as drawn, and the known-wrong versions fail by the hundred
hypothesis.settings.register_profile(
    "course",
    derandomize=True,
    deadline=None,
    max_examples=30,
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
)
hypothesis.settings.load_profile("course")


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """What a learner meets: the package's own errors, with no checker in front of them."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """--store-pictures: keep what the explorers look like now as what they should look like."""
    parser.addoption("--store-pictures", action="store_true")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for the browser goes to the worker that has it."""
    driven_by_one_worker([item for item in items if "browser" in getattr(item, "fixturenames", ())])
    for item in items:
        exercise = getattr(getattr(item, "callspec", None), "params", {}).get("exercise")
        if hasattr(exercise, "mistakes"):
            # what its known mistakes do is asked once where all its tests are
            item.add_marker(pytest.mark.xdist_group(exercise.name))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium, one for all tests that look at a page."""
    with launched() as chromium:
        yield chromium
