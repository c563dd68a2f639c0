"""A lesson comes to the exercises in the order of their numbers, and so does its notebook."""

import re

import pytest

from attn_course.authoring.layout import Course
from attn_course.authoring.source import ChapterSource, read_chapter
from attn_course.checks.catalogue import listed

CHAPTERS = [read_chapter(path) for path in Course.here().sources()]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.path.stem)
def test_lesson_and_notebook_follow_the_numbers(chapter: ChapterSource):
    own = [entry for entry in listed() if entry.home[2:4] == chapter.path.stem[:2]]
    assert [int(entry.number.split(".")[1]) for entry in own] == list(range(1, len(own) + 1))

    lesson = "\n".join(cell.text for cell in chapter.cells)
    assert re.findall(r"\{\{exercise: (\w+)\}\}", lesson) == [entry.name for entry in own]
    assert list(chapter.named("answer")) == [entry.name for entry in own]
