"""`attn-course grade` as an instructor meets it, above all when something is wrong."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

from attn_course import cli
from attn_course.grading import command, state
from attn_course.grading.sandbox.available import SandboxError
from grading.notebooks import encoded, solved, stub


@pytest.fixture(autouse=True)
def _stub_in_place_of_the_kernel(monkeypatch):
    execute = ModuleType("attn_course.grading.judging.execute")
    execute.execute = stub  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "attn_course.grading.judging.execute", execute)
    monkeypatch.setattr(command, "probe", lambda kind: None)
    monkeypatch.setattr(state, "package_digest", lambda: "settled")


@pytest.fixture
def submissions(tmp_path) -> Path:
    folder = tmp_path / "submissions"
    for student in ("ann", "bob"):
        (folder / student).mkdir(parents=True)
        (folder / student / "a.ipynb").write_bytes(encoded(solved("03")))
    (folder / "bob" / "b.pdf").write_bytes(b"%PDF")
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, ["grade", *map(str, arguments)])


def test_grading_ends_with_an_account_of_every_file(submissions, tmp_path):
    result = run(submissions, "--out", tmp_path / "out", "--chapter", "3", "--jobs", 2)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[-1] == "3 files went in: 2 graded, 1 ignored."
    assert str(tmp_path / "out" / "report.html") in lines[-2]
    assert "Submissions graded: 2, known from before: 0." in lines[-2]
    assert "2/2" in result.stderr
    assert "known from before: 2." in run(submissions, "--out", tmp_path / "out").stdout


def test_options_reach_the_run(submissions, tmp_path, monkeypatch):
    seen = []

    def executor(rebuilt, settings):
        seen.append(settings)
        return stub(rebuilt, settings)

    monkeypatch.setattr(sys.modules["attn_course.grading.judging.execute"], "execute", executor)
    options = [
        "--timeout",
        "5",
        "--total-timeout",
        "50",
        "--memory",
        "1000",
        "--sandbox",
        "none",
        "--seed",
        "9",
    ]
    assert run(submissions, "--out", tmp_path / "out", *options).exit_code == 0
    (settings,) = set(seen)
    assert (settings.timeout, settings.total_timeout, settings.memory_mb) == (5, 50, 1000)
    assert (settings.sandbox, settings.seed) == ("none", 9)


def test_no_sandbox_is_said_aloud(submissions, tmp_path):
    assert (
        "WITHOUT a sandbox"
        in run(submissions, "--out", tmp_path / "out", "--sandbox", "none").stderr
    )


def test_a_sandbox_that_does_not_work_is_said_before_anything_runs(
    submissions, tmp_path, monkeypatch
):
    def probe(kind):
        raise SandboxError(f"{kind} is not installed. Install it.")

    monkeypatch.setattr(command, "probe", probe)
    result = run(submissions, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "bubblewrap is not installed. Install it." in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere", "--out", "x"], "does not exist"),
        (["."], "Missing option '--out'"),
        ([".", "--out", "x", "--chapter", "99"], "there is no chapter '99'"),
        ([".", "--out", "x", "--jobs", "0"], "0 is not in the range"),
        ([".", "--out", "x", "--sandbox", "hope"], "'hope' is not one of"),
        ([".", "--out", "x", "--scheduler", "tcp://127.0.0.1:x"], "no Dask scheduler answers"),
    ],
)
def test_wrong_arguments_are_named(arguments, told, submissions, monkeypatch):
    monkeypatch.chdir(submissions)
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert told in result.output
    assert "Traceback" not in result.output


def test_a_full_disk_tells_what_to_do(submissions, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("attn_course.grading.reports.write.os.replace", full)
    result = run(submissions, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "No space left on device" in result.output
    assert "make room and run the same command again" in result.output


def test_ctrl_c_tells_how_to_go_on(submissions, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "grade", interrupted)
    result = run(submissions, "--out", tmp_path / "out")
    assert result.exit_code == 130
    assert "run the same command to go on" in result.stderr


def test_a_fault_of_the_grader_is_no_success(submissions, tmp_path, monkeypatch):
    def broken(rebuilt, settings):
        raise RuntimeError("out of order")

    monkeypatch.setattr(sys.modules["attn_course.grading.judging.execute"], "execute", broken)
    result = run(submissions, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "the grader itself failed on 2 submissions" in result.output
    assert "out of order" in (tmp_path / "out" / "report.html").read_text()
