"""The student edition has what a chapter's answers rely on, and nothing of what it asks for."""

import ast
import subprocess
import sys

import pytest

from attn_course.checks import exercises, get
from attn_course.grading.sandbox.edition import asked_from, edition, source_of

CHAPTERS = sorted({get(name).chapter for name in exercises()})


def texts(folder):
    return {path: path.read_text() for path in folder.rglob("*.py")}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_nothing_that_is_asked_for_stands_on_the_disk(chapter):
    asked = {name for _, name in asked_from(chapter)}
    found = 0
    for path, text in texts(edition(chapter)).items():
        for node in ast.walk(ast.parse(text)):
            named = isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in asked
            # a method may have the name of somebody else's exercise
            if named and "inside" not in str(path) and node in ast.parse(text).body:
                assert "is not there while this chapter is graded" in ast.unparse(node)
                found += 1
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in asked:
                assert "is not there while this chapter is graded" in ast.unparse(node)
                found += 1
    assert found >= sum(get(name).chapter == chapter for name in exercises())


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_checks_no_solutions_no_grading(chapter):
    folder = edition(chapter)
    names = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    for gone in ("checks", "grading", "authoring", "experiments", "cli"):
        assert not any(name.startswith(f"attn_course/{gone}") for name in names)
    assert "attn_course/device/choice.py" in names


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_module_of_it_can_be_imported(chapter):
    folder = edition(chapter)
    modules = [
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in folder.rglob("*.py")
        if path.name not in ("launch.py", "__init__.py")
    ]
    code = "import sys, importlib\nsys.path.insert(0, sys.argv[1])\n" + "".join(
        f"assert importlib.import_module({name!r}).__file__.startswith(sys.argv[1])\n"
        for name in modules
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_rests_on_an_answer_is_not_there_but_what_comes_before_is():
    attention = (edition("03") / "attn_course" / "attention.py").read_text()
    assert "exponentials" in attention  # softmax: chapter 02
    assert "scaled_dot_product_attention is not there" in attention
    masks = (edition("03") / "attn_course" / "masks.py").read_text()
    assert "causal_mask is not there" in masks
    assert "def check_mask" in masks


def test_the_source_of_a_reference_runs_on_its_own():
    names: dict = {"__name__": "alone"}
    exec(source_of("attn_course.recurrent", "run_rnn"), names)
    assert callable(names["run_rnn"])
    assert "pack_padded" not in names["run_rnn"].__code__.co_names
    assert "RNN" not in names
