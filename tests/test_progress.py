"""Progress is never lost: written whole, locked while written, set aside when unreadable."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attn_course.checks import exercises
from attn_course.learner import progress
from attn_course.lesson import overview


@pytest.fixture
def file(tmp_path, monkeypatch):
    where = tmp_path / "kept" / "progress.json"
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", str(where))
    return where


def test_it_is_kept_between_processes(file):
    progress.record_attempt("softmax", False)
    progress.record_attempt("softmax", True)
    code = "from attn_course.learner import progress; print(sorted(progress.passed()))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "['softmax']"
    assert json.loads(file.read_text())["exercises"]["softmax"]["attempts"] == 2


def test_writers_at_once_lose_nothing(file):
    code = (
        "from attn_course.learner import progress\n"
        "for _ in range(20): progress.record_attempt('softmax', False)"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert progress.load()["exercises"]["softmax"]["attempts"] == 60


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"version": 1}', '{"version": 99, "exercises": {}}', "\x00\xff"],
)
def test_an_unreadable_file_is_set_aside(file, text):
    file.parent.mkdir()
    file.write_text(text, encoding="latin-1")
    with pytest.warns(UserWarning, match="kept as progress.json.unreadable"):
        progress.record_attempt("softmax", True)
    assert progress.passed() == {"softmax"}
    (aside,) = file.parent.glob("*.unreadable-*")
    assert aside.read_text(encoding="latin-1") == text


def test_a_folder_in_its_place_is_left_alone(file):
    file.mkdir(parents=True)
    with pytest.warns(UserWarning, match=r"not saved|no file"):
        progress.record_attempt("softmax", True)
    assert file.is_dir()


def test_a_place_that_cannot_be_written_keeps_the_session_going(monkeypatch):
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", "/proc/nowhere/progress.json")
    with pytest.warns(UserWarning, match="not saved"):
        assert progress.next_hint("softmax", 3) == 1


def test_a_crash_while_writing_leaves_the_old_file(file, monkeypatch):
    progress.record_attempt("softmax", True)
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.warns(UserWarning, match="disk full"):
        progress.record_attempt("embed", True)
    monkeypatch.undo()
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", str(file))
    assert progress.passed() == {"softmax"}
    assert list(file.parent.glob("*.tmp")) == []


def test_it_lives_in_the_project_root_else_beside_the_notebook(monkeypatch, tmp_path):
    monkeypatch.delenv("ATTN_COURSE_PROGRESS")
    root = Path(__file__).parents[1]
    monkeypatch.chdir(root / "tests")
    assert progress.path() == root / progress.FILE_NAME
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "project_root", lambda: None)
    assert progress.path() == tmp_path / progress.FILE_NAME


def test_hints_are_counted_up_to_the_last(file):
    assert [progress.next_hint("softmax", 3) for _ in range(5)] == [1, 2, 3, 3, 3]


def test_answers_are_kept_in_order_and_amended(file):
    progress.record_answer("q", answer=1, confidence=70)
    progress.record_answer("q", answer=2, confidence=90)
    progress.amend_answer("q", right=True)
    progress.amend_answer("never asked", right=True)
    assert progress.answers("q") == [
        {"answer": 1, "confidence": 70},
        {"answer": 2, "confidence": 90, "right": True},
    ]
    assert progress.answers("never asked") == []


def test_the_bars_count_what_has_passed(file, capsys):
    first = exercises()[0]
    progress.record_attempt(first, True)
    overview.show_progress()
    text = capsys.readouterr().out
    assert text.splitlines()[-1].startswith("1 of ")
    row = next(line for line in text.splitlines() if "█" in line)
    total = int(row.split(" of ")[1])
    assert row.count("█") == overview.BAR_CELLS // total


def test_the_bars_speak_the_readers_language(file, capsys, monkeypatch):
    monkeypatch.setenv("ATTN_COURSE_LANGUAGE", "en-XA")
    overview.show_progress()
    *rows, summary = capsys.readouterr().out.splitlines()
    assert all(row.endswith("⟧") and "⟦" in row for row in rows)
    assert summary.startswith("⟦")
    assert len({row.index("░") for row in rows}) == 1
