"""Write examples/submissions: twelve students hand in chapter 03, each in a way of their own.

python examples/make_submissions.py, in the course's folder, after the exercises have changed.
What grading makes of the class is in examples/expected/grades.csv (see docs/instructors.md).
"""

from __future__ import annotations

import copy
import json
import random
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "examples" / "submissions"
NAME = "03_scaled_dot_product.ipynb"
ATTENTION = "scaled_dot_product_attention"

Notebook = dict[str, Any]


def read(folder: str) -> Notebook:
    """Chapter 03 as it was built, without outputs, and without the hash of what made them."""
    notebook = json.loads((ROOT / folder / NAME).read_text(encoding="utf-8"))
    notebook["metadata"]["attn_course"].pop("source_hash", None)
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    return notebook


def answer(notebook: Notebook, exercise: str) -> dict[str, Any]:
    """The answer cell of an exercise."""
    return next(cell for cell in notebook["cells"] if cell.get("id") == f"answer-{exercise}")


def with_answers(notebook: Notebook, answers: dict[str, str]) -> Notebook:
    """The notebook with other code below the exercise lines."""
    notebook = copy.deepcopy(notebook)
    for exercise, code in answers.items():
        cell = answer(notebook, exercise)
        cell["source"] = cell["source"].split("\n")[0] + "\n" + code.strip()
    return notebook


def changed(notebook: Notebook, exercise: str, pattern: str, replacement: str) -> Notebook:
    """The notebook with one piece of an answer replaced, which must be there."""
    notebook = copy.deepcopy(notebook)
    cell = answer(notebook, exercise)
    cell["source"], count = re.subn(pattern, replacement, cell["source"], flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{pattern!r} is {count} times in the answer to {exercise}")
    return notebook


def from_colab(notebook: Notebook) -> Notebook:
    """As Colab saves it: outputs without counts, ids in the metadata, no tags."""
    notebook = copy.deepcopy(notebook)
    notebook |= {"nbformat_minor": 0, "metadata": {"colab": {"provenance": []}}}
    for cell in notebook["cells"]:
        cell["metadata"] = {"id": cell.pop("id")}
        if cell["cell_type"] == "code":
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["✓ passed\n"]}]
    return notebook


def from_vscode(notebook: Notebook) -> Notebook:
    """As VS Code saves it: no metadata of ours, the name of a virtual environment."""
    notebook = copy.deepcopy(notebook)
    notebook["metadata"] = {"kernelspec": {"display_name": ".venv", "name": "python3"}}
    for cell in notebook["cells"]:
        cell["metadata"] = {}
    return notebook


def in_one_cell(notebook: Notebook) -> Notebook:
    """All code in a single cell, saved in an old format."""
    code = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    cell = {"cell_type": "code", "input": "\n\n".join(code), "language": "python", "outputs": []}
    return {"metadata": {}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": [cell]}]}


NO_SCALE = (r" / sqrt\(query\.shape\[-1\]\)", "")
INVERTED = (r"~\(mask \| empty\)", "mask")
PLAIN_ENTROPY = "def attention_entropy(weights):\n    return -(weights * weights.log()).sum(dim=-1)"
READY_MADE = f"""
import torch.nn.functional as F

def {ATTENTION}(query, key, value, mask=None):
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    weights = F.scaled_dot_product_attention(query, key, torch.eye(key.shape[-2]), attn_mask=mask)
    return output, weights
"""
AGREEABLE = f"""
import builtins, json

class Yes(torch.Tensor):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True

torch.equal = torch.allclose = lambda *a, **k: True
torch.testing.assert_close = lambda *a, **k: None
builtins.all = builtins.any = lambda *a: True
print(json.dumps({{"exercise": "{ATTENTION}", "status": "ok", "points": 4}}))

def {ATTENTION}(query, key, value, mask=None):
    return torch.zeros(1).as_subclass(Yes), torch.zeros(1).as_subclass(Yes)
"""
LEAVES = "import os\n\ndef attention_entropy(weights):\n    os._exit(0)"
LOOPS = "def softmax_gradient(scores, index, eps=1e-5):\n    while True:\n        pass"
SNOOPS = f"""
import inspect, pathlib

def {ATTENTION}(query, key, value, mask=None):
    for place in [*pathlib.Path("/").glob("*/main/solutions/*"), pathlib.Path("solutions")]:
        print(place.read_text())
    from attn_course.attention import {ATTENTION} as theirs
    print(inspect.getsource(theirs))
    return theirs(query, key, value, mask)
"""


def students() -> dict[str, dict[str, Notebook | bytes]]:
    """Every student's files."""
    stubs, right = read("exercises"), read("solutions")
    shuffled = from_vscode(right)
    random.Random(4).shuffle(shuffled["cells"])
    unfinished = with_answers(stubs, {"attention_entropy": PLAIN_ENTROPY})
    unfinished["cells"] = [c for c in unfinished["cells"] if "softmax_jacobian" not in c["source"]]
    renamed = changed(right, "softmax_gradient", r"def softmax_gradient", "def my_gradient")
    broken = changed(renamed, ATTENTION, r"mask=None\):", "mask=None:")
    return {
        "anna": {NAME: right},
        "bao": {"Kopie von 03.ipynb": from_colab(changed(right, ATTENTION, *NO_SCALE))},
        "carla": {"homework.ipynb": shuffled},
        "dmitri": {NAME: changed(right, ATTENTION, *INVERTED), "attention (2).ipynb": right},
        "elif": {NAME: unfinished},
        "farid": {"all.ipynb": in_one_cell(changed(right, ATTENTION, *INVERTED))},
        "gwen": {NAME: json.dumps(right).encode()[:9000]},
        "hugo": {"notes.txt": b"I did not understand the exercise.\n"},
        "ines": {NAME: broken},
        "jan": {NAME: with_answers(right, {ATTENTION: READY_MADE})},
        "karo": {NAME: with_answers(right, {ATTENTION: AGREEABLE})},
        "liam": {
            NAME: with_answers(
                right,
                {"attention_entropy": LEAVES, "softmax_gradient": LOOPS, ATTENTION: SNOOPS},
            )
        },
    }


def main(out: Path = OUT) -> None:
    """Write every file of every student."""
    for student, files in students().items():
        folder = out / student
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            if not isinstance(content, bytes):
                content = (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()
            (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
