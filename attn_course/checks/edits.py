"""A known mistake as what it nearly always is: one or two small edits to a right answer.

`{"cos - odd * sin": "cos + odd * sin"}` reads at once as what the learner wrote. The right answer
is real, typed Python in the catalogue; the edit is made in its source, docstrings left out, and
the result compiled where the answer stands.
"""

from __future__ import annotations

import ast
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from einops import einsum, rearrange
from torch import nn

Edits = Mapping[str, str]
"""Pieces of a right answer's source, each of which stands there once, and what replaces them."""

Answer = Callable[..., Any]

IMPORTED: dict[str, Any] = {
    "F": F,
    "einsum": einsum,
    "math": math,
    "nn": nn,
    "rearrange": rearrange,
    "torch": torch,
}
"""What learners import, so that a replacement may use it where the right answer does not."""


def edited(right: Answer, edits: Edits) -> Answer:
    """The function or class `right` with pieces of its source replaced.

    All pieces are looked for in the source as it stands, so their order does not matter.

    Args:
        right: a function or class at the top of its module.
        edits: what is replaced by what.

    Raises:
        ValueError: if a piece does not stand in the source exactly once, or two overlap.
    """
    text = source(right)
    module = sys.modules[right.__module__]
    namespace = IMPORTED | vars(module)
    # lines keep their numbers, so that a traceback leads to the right answer's own
    code = "\n" * _lines_before(right) + _replaced(text, edits, right.__name__)
    future = sys.modules["__future__"].annotations.compiler_flag
    exec(compile(code, str(module.__file__), "exec", flags=future), namespace)
    return namespace[right.__name__]


def composed(right: Answer, one: Edits, other: Edits) -> Edits | None:
    """Both edits in one answer; None where they meet in the same piece of it."""
    both = {**one, **other}
    if len(both) < len(one) + len(other):
        return None
    try:
        _spans(source(right), both, right.__name__)
    except ValueError:
        return None
    return both


@cache
def source(right: Answer) -> str:
    """The source of a function or class, without decorators, indentation and docstrings."""
    if "." in right.__qualname__:
        raise ValueError(f"{right.__qualname__} does not stand at the top of its module")
    text = textwrap.dedent(inspect.getsource(inspect.unwrap(right)))
    text = text[text.index("class " if isinstance(right, type) else "def ") :]
    return _without_docstrings(text)


def _without_docstrings(code: str) -> str:
    """Blank lines in the place of docstrings, which may quote what is edited."""
    lines = code.split("\n")
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            told = node.body[0]
            for k in range(told.lineno - 1, told.end_lineno or told.lineno):
                lines[k] = ""
    return "\n".join(lines)


@cache
def _lines_before(right: Answer) -> int:
    return inspect.getsourcelines(inspect.unwrap(right))[1] - 1


def _replaced(text: str, edits: Edits, name: str) -> str:
    for start, end, replacement in reversed(_spans(text, edits, name)):
        text = text[:start] + replacement + text[end:]
    return text


def _spans(text: str, edits: Edits, name: str) -> list[tuple[int, int, str]]:
    """Where each piece stands, in order, and what replaces it."""
    for piece in edits:
        if (times := text.count(piece)) != 1:
            raise ValueError(f"{piece!r} stands {times} times in {name}, expected once:\n{text}")
    starts = {piece: text.index(piece) for piece in edits}
    spans = sorted((at, at + len(piece), edits[piece]) for piece, at in starts.items())
    for (_, end, _), (start, _, _) in pairwise(spans):
        if start < end:
            raise ValueError(f"edits of {name} overlap: {[text[a:b] for a, b, _ in spans]}")
    return spans
