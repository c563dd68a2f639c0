"""Questions and predictions, compiled for the package, and slips in them."""

import json
from pathlib import Path

import pytest
from authoring_sample import CHAPTER, STEM

from attn_course.authoring.errors import BuildError
from attn_course.authoring.layout import Course
from attn_course.authoring.questions import as_json, compile_questions, merge_questions
from attn_course.authoring.source import read_chapter

HEADER = "\n".join(CHAPTER.splitlines()[:7]) + "\n"
CHOICE = "# %% [markdown] question='q'\n# Why?\n#\n"
GUESS = "# %% [markdown] prediction='p'\n# How much?\n#\n"
REVEAL = "\n# %%\nreveal('p', 1)\n"


def compiled(folder: Path, body: str) -> dict:
    path = folder / f"{STEM}.py"
    path.write_text(HEADER + body, encoding="utf-8")
    return compile_questions(read_chapter(path))


def test_a_choice_keeps_each_options_explanation(tmp_path: Path) -> None:
    body = "# %% [markdown] question='q'\n# Why $x$?\n#\n# - not this\n#\n"
    body += "# - [ ] One\n#   No, because\n#   of two lines.\n#\n# - [x] Two - or\n#   Yes.\n"
    assert compiled(tmp_path, body) == {
        "q": {
            "chapter": "03",
            "kind": "choice",
            "prompt": "Why $x$?\n\n- not this",
            "options": [
                {"text": "One", "right": False, "why": "No, because\nof two lines."},
                {"text": "Two - or", "right": True, "why": "Yes."},
            ],
        }
    }


def test_a_prediction_offers_options_without_a_right_one(tmp_path: Path) -> None:
    found = compiled(tmp_path, f"{GUESS}# - more\n# - less\n{REVEAL}")
    assert found == {
        "p": {
            "chapter": "03",
            "kind": "prediction-choice",
            "prompt": "How much?",
            "options": [{"text": "more"}, {"text": "less"}],
        }
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("number: 0 … 1, within 0.1", (0, 1, 0.1, "")),
        ("number: -2.5 ... 1e3, within 5e-1, nats per token", (-2.5, 1000, 0.5, "nats per token")),
        ("number: −3 … −1, within 1, bits", (-3, -1, 1, "bits")),
    ],
)
def test_a_prediction_of_a_number(tmp_path: Path, line: str, expected: tuple) -> None:
    found = compiled(tmp_path, f"{GUESS}# {line}\n{REVEAL}")["p"]
    assert found["kind"] == "prediction-number"
    assert (found["low"], found["high"], found["tolerance"], found["unit"]) == expected


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (CHOICE + "# - [x] One\n#   Yes.\n", "two different options"),
        (CHOICE + "# - [x] One\n#   Yes.\n# - [ ] One\n#   No.\n", "two different options"),
        (CHOICE + "# - [x] One\n#   Yes.\n# - [x] Two\n#   Yes.\n", "exactly one [x] (it has 2)"),
        (CHOICE + "# - [ ] One\n#   No.\n# - [ ] Two\n#   No.\n", "exactly one [x] (it has 0)"),
        (CHOICE + "# - [x] One\n#   Yes.\n# - [ ] Two\n", "without one: ['Two']"),
        (CHOICE + "# - [x] One\n#   Yes.\n# - Two\n", "'- Two' is no option"),
        (CHOICE, "its answers"),
        ("# %% [markdown] question='q'\n# - [x] One\n#   Yes.\n", "needs a question"),
        (GUESS + "# - [x] more\n# - [ ] less\n" + REVEAL, "its answers"),
        (GUESS + "# number: 0 … 1\n" + REVEAL, "not of the form"),
        (GUESS + "# number: 0 … 1, within 1\n" + REVEAL, "tells nothing"),
        (GUESS + "# number: 1 … 0, within 0.1\n" + REVEAL, "tells nothing"),
        (GUESS + "# number: 0 … 1, within 0.1\n# more\n" + REVEAL, "not of the form"),
        (GUESS + "# - more\n# - less\n", "never revealed"),
        (REVEAL + "\n" + GUESS + "# - more\n# - less\n", "no open prediction"),
        (GUESS + "# - more\n# - less\n" + REVEAL + REVEAL, "no open prediction"),
        (GUESS + "# - more\n# - less\n\n# %%\nreveal(name, 1)\n", "as a literal"),
        ("# %%\nx = (\n", "was never closed"),
    ],
)
def test_a_slip_is_told_with_its_line(tmp_path: Path, body: str, told: str) -> None:
    with pytest.raises(BuildError, match=rf"^chapters/{STEM}\.py:\d+: ") as error:
        compiled(tmp_path, body)
    assert told in str(error.value)


def entry(chapter: str) -> dict:
    return {"chapter": chapter, "kind": "choice", "prompt": "?", "options": []}


def course_with(root: Path, stored: dict) -> Course:
    course = Course(root)
    course.questions_file.parent.mkdir(parents=True)
    course.questions_file.write_text(as_json(stored), encoding="utf-8")
    return course


def test_one_chapters_questions_replace_its_own_and_no_others(tmp_path: Path) -> None:
    stored = {"a": entry("01"), "gone": entry("03"), "z": entry("04")}
    course = course_with(tmp_path, stored)
    merged = merge_questions(course, {"03": {"new": entry("03")}}, keep=True)
    assert list(merged) == ["a", "new", "z"]
    assert list(merge_questions(course, {"03": {}}, keep=True)) == ["a", "z"]
    assert list(merge_questions(course, {"03": {"new": entry("03")}}, keep=False)) == ["new"]


def test_an_id_of_another_chapter_is_refused(tmp_path: Path) -> None:
    course = course_with(tmp_path, {"same": entry("01")})
    with pytest.raises(BuildError, match="'same' stands in chapters 01 and 03"):
        merge_questions(course, {"03": {"same": entry("03")}}, keep=True)


def test_the_file_is_json_that_people_can_read() -> None:
    text = as_json({"q": {"prompt": "√d_k …"}})
    assert json.loads(text) == {"q": {"prompt": "√d_k …"}}
    assert "√d_k …" in text
