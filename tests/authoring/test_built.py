"""What is stored in the notebook folders is what the chapters build."""

import pytest

from attn_course.authoring.compare import differences, outdated
from attn_course.authoring.layout import Course

COURSE = Course.here()


def test_there_is_something_to_build() -> None:
    assert COURSE.sources()


@pytest.mark.parametrize("stem", [source.stem for source in COURSE.sources()])
def test_the_notebooks_are_what_the_chapter_builds(stem: str) -> None:
    assert differences(COURSE, (stem,)) == []


@pytest.mark.parametrize("stem", [source.stem for source in COURSE.sources()])
def test_the_stored_outputs_are_those_of_the_code_as_it_is(stem: str) -> None:
    assert outdated(COURSE, (stem,)) == []


def test_nothing_else_is_stored() -> None:
    assert differences(COURSE) == []
