"""What somebody has written into a built notebook is never overwritten."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from authoring_sample import STEM, Chosen, edit, make_course

from attn_course.authoring import build as building
from attn_course.authoring.build import build
from attn_course.authoring.compare import differences, outdated
from attn_course.authoring.layout import Course
from attn_course.authoring.notebooks import Book

ANSWER = "answer-scaled_dot_product_attention"
Notebook = dict[str, Any]


def counted(book: Book, *_: object) -> None:
    """Stands in for execution."""
    for number, cell in enumerate(c for c in book.notebook.cells if c.cell_type == "code"):
        cell.execution_count = number + 1


@pytest.fixture(autouse=True)
def _executed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "execute", counted)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Course:
    course = make_course(tmp_path_factory.mktemp("course"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "execute", counted)
        build(course, catalogue=Chosen())
    return course


@pytest.fixture
def course(built: Course, tmp_path: Path) -> Course:
    root = tmp_path / "course"
    shutil.copytree(built.root, root, symlinks=True)
    return Course(root)


def change(path: Path, *by: Callable[[Notebook], object]) -> str:
    """Change a notebook as a front end would; the text that is then stored."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for step in by:
        step(notebook)
    text = json.dumps(notebook, indent=2)
    path.write_text(text, encoding="utf-8")
    return text


def build_again(course: Course) -> list[str]:
    lines: list[str] = []
    build(course, catalogue=Chosen(), tell=lines.append)
    return lines


def answer(notebook: Notebook) -> None:
    cell = next(cell for cell in notebook["cells"] if ANSWER in (cell.get("id"), _colab_id(cell)))
    cell["source"] = ["# Exercise 3.2\n", "def scaled_dot_product_attention(q, k, v): return q"]


def _colab_id(cell: Notebook) -> str:
    return cell["metadata"].get("id", "")


def note(notebook: Notebook) -> None:
    notebook["cells"].insert(4, {"cell_type": "markdown", "metadata": {}, "source": "My note."})


def run(notebook: Notebook) -> None:
    for number, cell in enumerate(c for c in notebook["cells"] if c["cell_type"] == "code"):
        cell["execution_count"] = number + 7
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "ran\n"}]


def save_elsewhere(notebook: Notebook) -> None:
    """Metadata, an empty last cell, another split of lines: what editors do on their own."""
    notebook["metadata"]["vscode"] = {"interpreter": {"hash": "1"}}
    notebook["metadata"]["language_info"]["version"] = "3.12.1"
    empty = {"cell_type": "code", "metadata": {}, "source": "", "outputs": []}
    notebook["cells"].append(empty | {"execution_count": None})
    for cell in notebook["cells"]:
        cell["metadata"]["collapsed"] = False
        cell["source"] = "".join(cell["source"]) + "\n"


def save_in_colab(notebook: Notebook) -> None:
    """No ids, but some in the metadata; nothing of other programs'."""
    notebook["nbformat_minor"] = 0
    notebook["metadata"]["colab"] = {"provenance": []}
    for cell in notebook["cells"]:
        cell["metadata"] = {"id": cell.pop("id", "x")}


def forget_the_stamp(notebook: Notebook) -> None:
    notebook["metadata"] = {"kernelspec": notebook["metadata"]["kernelspec"]}


@pytest.mark.parametrize("folder", ["notebooks", "exercises", "solutions"])
@pytest.mark.parametrize("saved", [save_elsewhere, save_in_colab, forget_the_stamp, run])
def test_a_notebook_that_was_only_run_or_saved_gives_way(
    course: Course, folder: str, saved: Callable[[Notebook], object]
) -> None:
    path = course.notebook(folder, STEM)
    before = path.read_bytes()
    change(path, saved)
    lines = build_again(course)
    assert len(lines) == 3
    assert path.read_bytes() == before
    assert not list(course.root.glob("*/*.mine*"))


@pytest.mark.parametrize(
    ("folder", "by"), [("exercises", answer), ("exercises", note), ("notebooks", note)]
)
@pytest.mark.parametrize("saved", [run, save_elsewhere, save_in_colab, forget_the_stamp])
def test_what_somebody_wrote_is_kept_beside_and_told(
    course: Course,
    folder: str,
    by: Callable[[Notebook], object],
    saved: Callable[[Notebook], object],
) -> None:
    path = course.notebook(folder, STEM)
    before = path.read_bytes()
    theirs = change(path, saved, by)
    beside = path.with_name(f"{STEM}.mine.ipynb")
    place = f"{folder}/{STEM}.mine.ipynb"
    assert any(place in line for line in outdated(course, catalogue=Chosen()))
    (told,) = [line for line in build_again(course) if "mine" in line]
    assert f"somebody had written into it: that is kept in {place}. Go on there, or" in told
    assert beside.read_text(encoding="utf-8") == theirs
    assert path.read_bytes() == before


def test_nothing_that_was_kept_is_overwritten_later(course: Course) -> None:
    path = course.notebook("exercises", STEM)
    first = change(path, answer)
    build_again(course)
    second = change(path, answer, note)
    build_again(course)
    assert path.with_name(f"{STEM}.mine.ipynb").read_text(encoding="utf-8") == first
    assert path.with_name(f"{STEM}.mine-2.ipynb").read_text(encoding="utf-8") == second
    assert differences(course, catalogue=Chosen()) == []
    assert outdated(course, catalogue=Chosen()) == []


def test_a_file_that_cannot_be_read_is_kept(course: Course) -> None:
    path = course.notebook("exercises", STEM)
    path.write_text('{"cells": [', encoding="utf-8")
    build_again(course)
    assert path.with_name(f"{STEM}.mine.ipynb").read_text(encoding="utf-8") == '{"cells": ['


def test_what_a_former_build_wrote_gives_way_to_a_new_one(course: Course) -> None:
    edit(course, "Write equation 1.", "Write the equation.")
    change(course.notebook("exercises", STEM), run)
    assert "03 exercises: written" in build_again(course)
    assert not list(course.root.glob("*/*.mine*"))
    assert "Write the equation." in course.notebook("exercises", STEM).read_text(encoding="utf-8")


def test_what_somebody_wrote_into_a_former_build_is_kept(course: Course) -> None:
    theirs = change(course.notebook("exercises", STEM), answer)
    edit(course, "Write equation 1.", "Write the equation.")
    build_again(course)
    beside = course.root / "exercises" / f"{STEM}.mine.ipynb"
    assert beside.read_text(encoding="utf-8") == theirs


def test_a_build_that_fails_moves_nothing(course: Course) -> None:
    path = course.notebook("exercises", STEM)
    theirs = change(path, answer)
    edit(course, "weights = torch.zeros(2)", "weights = = torch.zeros(2)")
    with pytest.raises(ValueError, match="invalid syntax"):
        build_again(course)
    assert path.read_text(encoding="utf-8") == theirs
