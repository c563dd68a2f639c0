"""Notebooks as students hand them in: made from the course's own, in every form we have met."""

import copy
import json
import random
from functools import cache
from pathlib import Path

from attn_course.course import find_chapter
from attn_course.grading.intake.scaffold import Scaffold, scaffolds
from attn_course.grading.rebuilt import Rebuilt
from attn_course.grading.settings import RunSettings
from attn_course.grading.verdict import Verdict
from attn_course.sentences import say

ROOT = Path(__file__).resolve().parents[2]
ATTENTION = "scaled_dot_product_attention"
"""Exercise 3.2, which most tests look at."""


@cache
def course() -> dict[str, Scaffold]:
    return scaffolds(ROOT)


def handed_out(chapter: str) -> dict:
    return _read("exercises", chapter)


def solved(chapter: str) -> dict:
    return _read("solutions", chapter)


def _read(folder: str, chapter: str) -> dict:
    path = find_chapter(chapter).notebook(ROOT, folder)
    return json.loads(path.read_text(encoding="utf-8"))


def notebook(*sources: str) -> dict:
    """A notebook of these code cells."""
    cells = [
        {
            "cell_type": "code",
            "id": f"c{k}",
            "metadata": {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        for k, source in enumerate(sources)
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def encoded(nb: dict) -> bytes:
    return json.dumps(nb, ensure_ascii=False).encode()


def answer_cell(nb: dict, exercise: str) -> dict:
    """The cell with an exercise's line."""
    return next(
        cell
        for cell in nb["cells"]
        if cell["cell_type"] == "code"
        and "".join(cell["source"]).startswith("# Exercise")
        and "".join(cell["source"]).split("\n")[0].endswith(f": {exercise}")
    )


def set_answer(nb: dict, exercise: str, source: str) -> dict:
    """The notebook with another answer to one exercise."""
    nb = copy.deepcopy(nb)
    answer_cell(nb, exercise)["source"] = source
    return nb


def code_of(nb: dict) -> list[str]:
    return ["".join(cell["source"]) for cell in nb["cells"] if cell["cell_type"] == "code"]


# the forms that editors and students make of a notebook


def from_colab(nb: dict) -> dict:
    """As Colab saves it: no ids, its own metadata, outputs without execution counts."""
    nb = copy.deepcopy(nb)
    nb["nbformat_minor"] = 0
    nb["metadata"] = {
        "colab": {"provenance": []},
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "widgets": {"application/vnd.jupyter.widget-state+json": {}},
    }
    for cell in nb["cells"]:
        cell["metadata"] = {"id": cell.pop("id")}
        if cell["cell_type"] == "code":
            cell["execution_count"] = None
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["42\n"]}]
    return nb


def from_vscode(nb: dict) -> dict:
    nb = copy.deepcopy(nb)
    nb["metadata"] = {
        "kernelspec": {"display_name": ".venv (3.12.4)", "language": "python", "name": "venv"},
        "language_info": {"name": "python", "version": "3.12.4"},
    }
    for cell in nb["cells"]:
        cell["metadata"] = {"vscode": {"languageId": "python"}}
        cell["source"] = "".join(cell["source"]).splitlines(keepends=True)
    return nb


def in_format_3(nb: dict) -> dict:
    cells = []
    for cell in nb["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            cells.append({"cell_type": "code", "input": source, "language": "python"})
        else:
            cells.append({"cell_type": "markdown", "source": cell["source"]})
    return {"metadata": {"name": ""}, "nbformat": 3, "worksheets": [{"cells": cells}]}


def in_format_4_0(nb: dict) -> dict:
    nb = copy.deepcopy(nb)
    nb["nbformat_minor"] = 0
    for cell in nb["cells"]:
        del cell["id"]
        cell["metadata"] = {}
    return nb


def shuffled(nb: dict, seed: int = 0) -> dict:
    nb = copy.deepcopy(nb)
    random.Random(seed).shuffle(nb["cells"])
    return nb


def split_in_lines(nb: dict) -> dict:
    """Every answer in two cells: its exercise line and imports, and the rest."""
    cells = []
    for cell in nb["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and source.startswith("# Exercise"):
            at = min(k for k in (source.find("\ndef "), source.find("\nclass ")) if k >= 0)
            cells += [{**cell, "source": source[:at]}, {**cell, "source": source[at + 1 :]}]
        else:
            cells.append(cell)
    return {**nb, "cells": cells}


def merged(nb: dict) -> dict:
    """All code in one cell."""
    return notebook("\n\n".join(code_of(nb)))


FORMS = {
    "colab": from_colab,
    "vscode": from_vscode,
    "nbformat 3": in_format_3,
    "nbformat 4.0": in_format_4_0,
    "shuffled": shuffled,
    "split": split_in_lines,
    "merged": merged,
}


def stub(rebuilt: Rebuilt, settings: RunSettings) -> list[Verdict]:
    """Stands in for the kernel: an answer is right if it does not say `wrong`."""
    answers = {cell.exercise: cell.source for cell in rebuilt.cells if cell.kind == "answer"}
    verdicts = []
    for check in rebuilt.checks:
        right = "wrong" not in answers.get(check.exercise, "wrong")
        verdicts.append(
            Verdict(
                rebuilt.student,
                rebuilt.chapter,
                check.exercise or "",
                check.points if right else 0.0,
                check.points,
                "ok" if right else "wrong",
                None if right else "no-scale",
                say("seen with seed {seed}", seed=settings.seed),
            )
        )
    return verdicts
