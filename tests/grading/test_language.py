"""In another language, grading finds the same and says it otherwise."""

import re

import pytest

from attn_course.grading.run import Request, Result, grade
from attn_course.grading.verdict import Verdict
from attn_course.sentences import PSEUDO, VARIABLE, as_data, say
from grading.notebooks import course, encoded, notebook, set_answer, solved

ATTENTION = "scaled_dot_product_attention"


def judge(rebuilt, settings) -> list[Verdict]:
    """Stands in for the kernel: right, but for what says `wrong`, with all parts of a verdict."""
    answers = {cell.exercise: cell.source for cell in rebuilt.cells if cell.kind == "answer"}
    return [
        Verdict(
            rebuilt.student,
            rebuilt.chapter,
            check.exercise or "",
            0.0 if "wrong" in answers.get(check.exercise, "") else check.points,
            check.points,
            "wrong" if "wrong" in answers.get(check.exercise, "") else "ok",
            cause="There is none.",
            problem=say("On inputs drawn for grading: {problem}{ending}", problem="1", ending="."),
            notes=("a note",),
            human=(say("the grader failed: {why}", why="2"),),
        )
        for check in rebuilt.checks
    ]


@pytest.fixture
def graded(tmp_path, monkeypatch):
    """Grades the same class in a language."""
    spoilt = set_answer(solved("03"), ATTENTION, f"{ATTENTION} = 'wrong'")
    files = {
        "ann/a.ipynb": encoded(spoilt),
        "ann/b.ipynb": b"{",
        "bob/a.ipynb": encoded(notebook("x = 1")),
        "bob/note.pdf": b"%PDF",
        "eve/a.ipynb": encoded(solved("03")),
        "eve/b (1).ipynb": encoded(solved("03")),
    }
    for name, content in files.items():
        (tmp_path / "class" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "class" / name).write_bytes(content)

    def run(language: str) -> Result:
        monkeypatch.setenv(VARIABLE, language)
        out = tmp_path / f"out-{language}"
        return grade(Request(tmp_path / "class", out, seed=1), judge, course=course())

    return run


def test_what_is_found_and_kept_does_not_depend_on_the_language(graded):
    english, other = graded(""), graded(PSEUDO)
    assert other.grades.data == english.grades.data
    assert as_data(other.grades.account)["fields"]["n"] == 6


def outside_sentences(page: str) -> str:
    """The text of a page without style, code and all that has gone through the door."""
    body = re.sub(r"<(style|pre)>.*?</\1>", "", page, flags=re.S)
    text, former = re.sub(r"<[^>]*>", " ", body.replace("<wbr>", "")), ""
    while text != former:  # sentences in sentences
        text, former = re.sub(r"⟦[^⟦⟧]*⟧", "", text), text
    return text


def test_no_sentence_of_the_pages_misses_the_door(graded, tmp_path):
    graded(PSEUDO)
    out = tmp_path / f"out-{PSEUDO}"
    names = {exercise.name for exercise in course()["03"].exercises}
    for page in (out / "report.html", out / "feedback" / "ann" / "03.html"):
        text = outside_sentences(page.read_text(encoding="utf-8"))
        left = set(re.findall(r"[A-Za-z_]{4,}", text))
        assert left <= {*names, "note", "ipynb"}  # names of files
