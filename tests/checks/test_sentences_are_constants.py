"""What checks say is constants with fields: what is put together cannot be translated."""

import ast
from pathlib import Path

import pytest

import attn_course.checks

FOLDER = Path(attn_course.checks.__file__).parent
# a call, and which of its arguments are sentences
SENTENCES = {"Diagnosis": (0,), "Mistake": (1,), "Stage": (2,), "say": (0,), "counted": (0, 1)}


def put_together(tree: ast.AST) -> list[int]:
    """The lines of sentences that are f-strings or sums of texts."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            places = SENTENCES.get(node.func.id, ())
            told = [node.args[k] for k in places if k < len(node.args)]
            told += [word.value for word in node.keywords if word.arg == "message"]
            lines += [node.lineno for arg in told if isinstance(arg, ast.JoinedStr | ast.BinOp)]
    return lines


def test_a_sentence_that_is_put_together_is_found():
    assert put_together(ast.parse('Diagnosis(f"{x} is wrong", "id")\nsay("a" + b)')) == [1, 2]
    assert put_together(ast.parse('Mistake(f"{x}", "A constant.")')) == []


@pytest.mark.parametrize(
    "path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.relative_to(FOLDER).as_posix()
)
def test_sentences_of_checks_are_constants(path):
    assert put_together(ast.parse(path.read_text(encoding="utf-8"))) == []
