"""Reading a chapter: what each header makes of its cell, and slips told with their line."""

from pathlib import Path

import pytest
from authoring_sample import CHAPTER, STEM

from attn_course.authoring.errors import BuildError
from attn_course.authoring.source import ChapterSource, read_chapter

HEADER = "\n".join(CHAPTER.splitlines()[:7]) + "\n"


def read(folder: Path, text: str) -> ChapterSource:
    path = folder / f"{STEM}.py"
    path.write_text(text, encoding="utf-8")
    return read_chapter(path)


def test_cells_know_their_role_their_part_and_their_line(tmp_path: Path) -> None:
    chapter = read(tmp_path, CHAPTER)
    assert (chapter.number, chapter.title) == ("03", "Scaled dot-product attention")
    assert (chapter.reading_minutes, chapter.exercise_minutes) == (35, 60)
    assert [cell.role for cell in chapter.cells if cell.name] == [
        "prediction",
        "question",
        "task",
        "answer",
    ]
    assert [cell.part for cell in chapter.cells].count("exercises") == 2
    imports = chapter.cells[1]
    assert (imports.kind, imports.part) == ("code", "both")
    line = CHAPTER.splitlines().index('# %% part="both"') + 1
    assert imports.where == f"chapters/{STEM}.py:{line}"
    assert [cell.text for cell in chapter.cells if cell.hidden] == ['HTML("<p>two weights</p>")']
    assert [cell.tags for cell in chapter.cells if cell.tags] == [("nbval-ignore-output",)]


def test_markdown_loses_its_comment_marks_and_magics_are_code(tmp_path: Path) -> None:
    body = "# %% [markdown]\n# Read $x_i$.\n#\n# - one\n\n# %%\n# %matplotlib inline\n"
    first, second = read(tmp_path, HEADER + body).cells
    assert first.text == "Read $x_i$.\n\n- one"
    assert second.text == "%matplotlib inline"


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ('# %% excercise="softmax"\n', "excercise='softmax'"),
        ("# %% part=exercises\nx = 1\n", "incorrectly_encoded_metadata"),
        ('# %% part="exercise"\nx = 1\n', "part='exercise'"),
        ('# %% [markdown] part="both" question="q"\n# Why?\n', "part='both'"),
        ('# %% [markdown] exercise="a" question="b"\n# Why?\n', "exercise or question"),
        ('# %% question="q"\nx = 1\n', "must be a markdown cell"),
        ('# %% [markdown] question="Why Not"\n# Why?\n', "'Why Not'"),
        ('# %% exercise="softmax" source="attn_course.attention"\nx = 1\n', "no body"),
        ('# %% source="attn_course.attention"\n', "belongs on an exercise's code cell"),
        ('# %% [markdown] hide="input"\n# Text\n', 'hide="input"'),
        ("# %% [raw]\n# text\n", "a raw cell"),
        ("# %% [markdown]\n# # A title\n", "begin with ##"),
        ('# %% [markdown] tags="one"\n# Text\n', "array"),
    ],
)
def test_a_slip_is_told_with_its_place(tmp_path: Path, cell: str, told: str) -> None:
    with pytest.raises(BuildError) as error:
        read(tmp_path, f"{HEADER}# %%\n1\n\n{cell}")
    assert told in str(error.value)
    assert f"chapters/{STEM}.py" in str(error.value)


def test_a_comment_in_a_code_fence_is_no_title(tmp_path: Path) -> None:
    body = "# %% [markdown]\n# ```python\n# # a comment\n# ```\n"
    assert read(tmp_path, HEADER + body).cells[0].text.count("# a comment") == 1


def test_an_id_is_used_once_for_questions_and_predictions_together(tmp_path: Path) -> None:
    body = '# %% [markdown] question="q"\n# A?\n\n# %% [markdown] prediction="q"\n# B?\n'
    with pytest.raises(BuildError, match=r"'q' is also at chapters/03.*py:8"):
        read(tmp_path, HEADER + body)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("reading_minutes: 35", "reading: 35", "needs reading_minutes"),
        ("reading_minutes: 35", 'reading_minutes: "35"', "a whole number"),
        ("exercise_minutes: 60", "exercise_minutes: -1", "it has -1"),
        ("reading_minutes: 35", "reading_minutes: 35\n#     titel: x", "unknown keys"),
        ("reading_minutes: 35", "reading_minutes: 35\n#     title: Scaled", "course.py"),
        ("attn_course:", "attn_course: [", "py:percent"),
    ],
)
def test_the_header_is_checked(tmp_path: Path, before: str, after: str, told: str) -> None:
    with pytest.raises(BuildError, match=rf"chapters/03.*{told}"):
        read(tmp_path, CHAPTER.replace(before, after, 1))


@pytest.mark.parametrize("body", ["x = 1\n", '# %%\nx = """\n# %% not a cell\n"""\n'])
def test_code_outside_cells_and_marks_in_strings_are_refused(tmp_path: Path, body: str) -> None:
    with pytest.raises(BuildError, match=f"chapters/{STEM}.py"):
        read(tmp_path, HEADER + body)


def test_blank_lines_below_the_header_are_no_cell(tmp_path: Path) -> None:
    assert len(read(tmp_path, HEADER + "\n\n\n# %%\nx = 1\n").cells) == 1
