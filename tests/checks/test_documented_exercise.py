"""The exercise that docs/authoring.md makes from nothing does what is said of it."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import attn_course.attention
from attn_course.checks import examine

TEXT = (Path(__file__).parents[2] / "docs" / "authoring.md").read_text(encoding="utf-8")
SECTION = TEXT.split("## A new exercise\n")[1].split("\n## ")[0]
FUNCTION, ENTRY, CELLS = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)


@pytest.fixture
def exercise(tmp_path, monkeypatch):
    for name, code in (("documented", _HEAD + FUNCTION), ("documented_entry", ENTRY)):
        path = tmp_path / f"{name}.py"
        path.write_text(code, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        if name == "documented":
            function = module.weights_at_temperature
            monkeypatch.setattr(attn_course.attention, function.__name__, function, raising=False)
    return module.EXERCISE


_HEAD = "from __future__ import annotations\n\nfrom torch import Tensor\n\n\n"


def test_each_of_its_five_mistakes_is_named(exercise):
    assert len(exercise.mistakes) == 5
    for seed in range(3):
        assert examine(exercise.reference, exercise, seed).passed
        for mistake in exercise.mistakes:
            for answer in exercise.versions(mistake):
                report = examine(answer, exercise, seed)
                assert report.mistake == mistake.id, report.message


def test_two_of_them_are_named_together(exercise):
    def twice_wrong(scores, temperature=1.0):
        if temperature <= 0:
            raise ValueError(f"temperature={temperature}")
        return (scores * temperature).softmax(dim=0)

    assert examine(twice_wrong, exercise).mistakes == ("multiplied", "first-axis")


def test_it_needs_no_more_than_three_files_and_250_lines():
    assert sum(len(block.splitlines()) for block in (FUNCTION, ENTRY, CELLS)) < 250
