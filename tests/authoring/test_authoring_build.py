"""Building from end to end: execution, what is stored, what is kept, what is refused."""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import nbformat
import pytest
from authoring_sample import CHAPTER, STEM, Chosen, edit, make_course
from click.testing import CliRunner

from attn_course.authoring import build as building
from attn_course.authoring.build import build
from attn_course.authoring.command import build as command
from attn_course.authoring.compare import differences
from attn_course.authoring.environment import EXECUTION_ENV
from attn_course.authoring.errors import BuildError
from attn_course.authoring.execute import execute
from attn_course.authoring.layout import FOLDERS, Course
from attn_course.authoring.notebooks import Book
from attn_course.authoring.plan import Options
from attn_course.authoring.stamp import without_stamp
from attn_course.checks.report import Report

REPOSITORY = Path(__file__).resolve().parents[2]
DRAFT = Options(draft=True)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    """The sample chapter, built in a checkout with the repository's own pytest settings."""
    made = make_course(tmp_path_factory.mktemp("course"))
    (made.root / "pyproject.toml").write_text((REPOSITORY / "pyproject.toml").read_text())
    (made.root / "tests").mkdir()
    shutil.copy(REPOSITORY / "conftest.py", made.root)
    shutil.copy(REPOSITORY / "tests/nbval_sanitize.cfg", made.root / "tests")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(made.root))  # the questions that were compiled there
        build(made, catalogue=Chosen())
        yield made


@pytest.fixture
def copied(course: Course, tmp_path: Path) -> Course:
    """A copy of the built sample, to be changed."""
    root = tmp_path / "course"
    shutil.copytree(course.root, root, symlinks=True)
    return Course(root)


def contents(course: Course) -> dict[str, bytes]:
    paths = [course.notebook(folder, STEM) for folder in FOLDERS]
    return {path.parent.name: path.read_bytes() for path in [*paths, course.questions_file]}


def stored(course: Course, folder: str) -> nbformat.NotebookNode:
    return nbformat.read(course.notebook(folder, STEM), as_version=4)


@dataclass
class Executed:
    """Stands in for execution: counts, and leaves a trace as output."""

    labels: list[str]

    def __call__(self, book: Book, *_: object) -> None:
        self.labels.append(book.label)
        for number, cell in enumerate(c for c in book.notebook.cells if c.cell_type == "code"):
            cell.execution_count = number + 1


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names the notebooks that a build would execute, without the minutes that this takes."""
    stand_in = Executed([])
    monkeypatch.setattr(building, "execute", stand_in)
    return stand_in.labels


def test_lessons_and_solutions_store_outputs_and_exercises_none(course: Course) -> None:
    for folder in FOLDERS:
        cells = [cell for cell in stored(course, folder).cells if cell.cell_type == "code"]
        counts = [cell.execution_count for cell in cells]
        assert counts == (
            [None] * len(cells) if folder == "exercises" else [*range(1, len(cells) + 1)]
        )
        assert all(not cell.outputs for cell in cells) == (folder == "exercises")


def test_what_is_stored_says_nothing_of_the_session_that_made_it(course: Course) -> None:
    for folder in FOLDERS:
        notebook = stored(course, folder)
        nbformat.validate(notebook)
        assert "widgets" not in notebook.metadata
        assert set(notebook.metadata.language_info) == {
            *("name", "file_extension", "mimetype", "pygments_lexer")
        }
        for cell in notebook.cells:
            assert "execution" not in cell.metadata
        text = course.notebook(folder, STEM).read_text(encoding="utf-8")
        assert "widget-view" not in text


def test_outputs_of_all_kinds_are_there(course: Course) -> None:
    outputs = [o for c in stored(course, "notebooks").cells for o in c.get("outputs", [])]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"text/plain", "text/html", "image/png"} <= kinds
    plain = [output.data.get("text/plain", "") for output in outputs if "data" in output]
    assert "IntSlider(value=3, description='d_k')" in plain
    assert "largest weight 0.50\n" in [output.get("text") for output in outputs]
    (verdict,) = next(
        c for c in stored(course, "solutions").cells if c.id.startswith("check-")
    ).outputs
    assert "passed" in verdict.data["text/plain"]


def nbval(course: Course, *options: str) -> subprocess.CompletedProcess[str]:
    """Plain `pytest --nbval notebooks solutions`, as a maintainer types it."""
    env = {name: value for name, value in os.environ.items() if name not in EXECUTION_ENV}
    env["PYTHONPATH"] = str(course.root)
    typed = ["pytest", "--nbval", *options, "notebooks", "solutions"]
    return subprocess.run(
        [sys.executable, "-m", *typed], cwd=course.root, env=env, capture_output=True, text=True
    )


def test_strict_nbval_passes_twice_in_a_row_alone_and_spread_by_file(course: Course) -> None:
    before = contents(course)
    kept = course.root / "notebooks" / f"{STEM}.mine.ipynb"
    kept.write_text("what somebody has written is no business of nbval's")
    for options in ([], ["-n", "2", "--dist", "loadfile"]):
        result = nbval(course, *options)
        assert result.returncode == 0, result.stdout
        assert "20 passed" in result.stdout
    kept.unlink()
    assert contents(course) == before
    assert not list(course.root.glob(".attn_course_progress*"))


def test_strict_nbval_fails_where_an_output_is_another(copied: Course) -> None:
    path = copied.notebook("notebooks", STEM)
    shutil.rmtree(copied.root / "solutions")
    (copied.root / "solutions").mkdir()
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("largest weight 0.50", "largest weight 0.51"), encoding="utf-8")
    result = nbval(copied)
    assert result.returncode == 1
    assert "largest weight 0.51" in result.stdout
    assert "1 failed, 11 passed" in result.stdout


def test_a_second_build_changes_no_byte_and_executes_nothing(
    copied: Course, executed: list[str]
) -> None:
    before = contents(copied)
    told: list[str] = []
    build(copied, catalogue=Chosen(), tell=told.append)
    assert contents(copied) == before
    assert executed == []
    assert told == [f"03 {name}: unchanged" for name in ("lesson", "exercises", "solutions")]


def test_a_build_from_nothing_gives_the_same_cells_ids_and_metadata(copied: Course) -> None:
    again = Course(copied.root.parent / "again")
    again.root.mkdir()
    make_course(again.root)
    build(again, options=DRAFT, catalogue=Chosen())
    for folder in FOLDERS:
        first, second = stored(copied, folder), stored(again, folder)
        assert without_stamp(first.metadata) == without_stamp(second.metadata)
        for one, two in zip(first.cells, second.cells, strict=True):
            assert (one.id, one.metadata, one.source) == (two.id, two.metadata, two.source)


def test_prose_is_changed_without_executing(copied: Course, executed: list[str]) -> None:
    edit(copied, "## Saturation", "## What saturates")
    build(copied, catalogue=Chosen())
    assert executed == []
    cells = stored(copied, "notebooks").cells
    assert any("## What saturates" in cell.source for cell in cells)
    assert any(cell.get("outputs") for cell in cells)
    assert differences(copied, catalogue=Chosen()) == []


@pytest.mark.parametrize(
    ("before", "after", "stale"),
    [
        ("torch.zeros(2)", "torch.zeros(3)", ["notebooks"]),
        ("probe = torch.eye(3)", "probe = torch.ones(3, 3)", ["solutions"]),
        ("import torch\n", "import torch\nimport math\n", ["notebooks", "solutions"]),
        # a stub has no outputs; questions are shown by what is executed
        ("# BLANK: from scores to weights", "# BLANK: normalise", []),
        ("The values are not touched", "The values are untouched", ["notebooks"]),
    ],
)
def test_only_what_an_edit_reaches_is_executed_again(
    copied: Course, executed: list[str], before: str, after: str, stale: list[str]
) -> None:
    edit(copied, before, after)
    build(copied, catalogue=Chosen())
    assert executed == [f"{folder}/{STEM}.ipynb" for folder in stale]


def test_force_executes_what_has_not_changed(copied: Course, executed: list[str]) -> None:
    build(copied, options=Options(force=True), catalogue=Chosen())
    assert executed == [f"notebooks/{STEM}.ipynb", f"solutions/{STEM}.ipynb"]


def test_a_draft_is_not_executed_and_does_not_count_as_built(
    copied: Course, executed: list[str]
) -> None:
    edit(copied, "torch.zeros(2)", "torch.zeros(3)")
    build(copied, options=DRAFT, catalogue=Chosen())
    assert executed == []
    (told,) = differences(copied, catalogue=Chosen())
    assert told.startswith(f"notebooks/{STEM}.ipynb: cell 1 (install) was never executed")
    build(copied, catalogue=Chosen())
    assert executed == [f"notebooks/{STEM}.ipynb"]


def change(course: Course, folder: str, by: Callable[[dict], object]) -> None:
    path = course.notebook(folder, STEM)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    by(notebook)
    path.write_text(json.dumps(notebook), encoding="utf-8")


class TestCheck:
    """`--check`: what is stored against what the sources build."""

    def test_accepts_what_was_built(self, course: Course) -> None:
        assert differences(course, catalogue=Chosen()) == []

    @pytest.mark.parametrize(
        ("by", "told"),
        [
            (lambda nb: nb["cells"][4].update(source="import os"), "cell 4 (code-"),
            (lambda nb: nb["cells"][4].update(id="other"), "differs in its id"),
            (lambda nb: nb["cells"][4]["metadata"].update(tags=["x"]), "in its metadata"),
            (lambda nb: nb["cells"][4].update(cell_type="raw"), "in its cell_type"),
            (lambda nb: nb["cells"].pop(), "instead of"),
            (lambda nb: nb["metadata"].update(widgets={}), "its metadata differs"),
            (lambda nb: nb.update(cells=3), "missing or no notebook"),
        ],
    )
    def test_names_the_file_and_the_cell(
        self, copied: Course, by: Callable[[dict], object], told: str
    ) -> None:
        change(copied, "solutions", by)
        (found,) = differences(copied, catalogue=Chosen())
        assert found.startswith(f"solutions/{STEM}.ipynb: ")
        assert told in found

    def test_shows_the_lines_that_differ(self, copied: Course) -> None:
        edit(copied, "torch.zeros(2)", "torch.zeros(3)")
        (found,) = differences(copied, catalogue=Chosen())
        assert f"built from chapters/{STEM}.py:" in found
        assert "-weights = torch.zeros(2).softmax(dim=-1)" in found
        assert "+weights = torch.zeros(3).softmax(dim=-1)" in found

    def test_wants_exercises_without_outputs(self, copied: Course) -> None:
        change(copied, "exercises", lambda nb: nb["cells"][1].update(execution_count=1))
        (found,) = differences(copied, catalogue=Chosen())
        assert "handed out without outputs" in found

    def test_notices_missing_files_strays_and_stale_questions(self, copied: Course) -> None:
        copied.notebook("exercises", STEM).rename(copied.root / "exercises" / "99_stray.ipynb")
        copied.questions_file.write_text("{}\n")
        missing, questions, stray = differences(copied, catalogue=Chosen())
        assert missing == f"exercises/{STEM}.ipynb: it is missing or no notebook"
        assert questions.startswith("attn_course/data/questions.json differs")
        assert stray == "exercises/99_stray.ipynb: no chapter builds it"


def judge(passes: Callable[[object], bool]) -> Chosen:
    """The catalogue with another judge."""

    @dataclass(frozen=True)
    class Judged(Chosen):
        def check(self, answer: object, exercise: str) -> Report:
            return Report(exercise, passes(answer), None, "the scale is missing")

    return Judged()


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (True, "the stub passes its own check"),
        (False, "the solution does not pass its own check:\nthe scale is missing"),
    ],
)
def test_an_exercise_must_fail_as_a_stub_and_pass_as_a_solution(
    copied: Course, executed: list[str], verdict: bool, told: str
) -> None:
    before = contents(copied)
    with pytest.raises(BuildError, match=told) as error:
        build(copied, options=Options(force=True), catalogue=judge(lambda _: verdict))
    assert f"solutions/{STEM}.ipynb, cell answer-scaled_dot_product_attention" in str(error.value)
    assert contents(copied) == before
    assert executed == []


def test_a_blank_that_does_not_matter_is_found_by_the_real_check(
    copied: Course, executed: list[str]
) -> None:
    start, end = "    ### BEGIN SOLUTION\n", "    ### END SOLUTION\n"
    edit(copied, start, "")
    edit(copied, end, "")
    edit(copied, "    weights = scores.softmax(dim=-1)  # BLANK: from scores to weights\n", "")
    edit(copied, "weights.nan_to_num()", "scores.softmax(dim=-1).nan_to_num()")
    edit(copied, "    return weights @", f"{start}    weights = weights\n{end}    return weights @")
    edit(copied, f"weights = weights\n{end}", f"weights = weights\n    ### STUB\n    # pass\n{end}")
    with pytest.raises(BuildError, match="the stub passes its own check"):
        build(copied, catalogue=Chosen())


def test_a_cell_that_fails_is_shown_and_leaves_the_former_notebooks(copied: Course) -> None:
    before = contents(copied)
    edit(copied, "weights = torch.zeros(2)", "weights = 1 / 0\nweights = torch.zeros(2)")
    with pytest.raises(BuildError, match="ZeroDivisionError: division by zero") as error:
        build(copied, catalogue=Chosen())
    told = str(error.value)
    assert told.startswith(f"notebooks/{STEM}.ipynb, cell code-")
    assert f"(chapters/{STEM}.py:{CHAPTER.splitlines().index('# %%') + 1}) failed" in told
    assert "weights = 1 / 0" in told
    assert "\x1b" not in told
    assert contents(copied) == before
    assert not list((copied.root / "notebooks").glob(".*"))


def run_cells(folder: Path, *codes: str, timeout: int = 60, tags: tuple = ()) -> Book:
    notebook = nbformat.v4.new_notebook(metadata={"language_info": {"name": "python"}})
    for number, code in enumerate(codes):
        metadata = {"tags": list(tags)}
        notebook.cells.append(nbformat.v4.new_code_cell(code, id=f"c{number}", metadata=metadata))
    book = Book("notebooks/x.ipynb", "notebooks", notebook)
    execute(book, folder / "notebooks", timeout)
    return book


@pytest.mark.parametrize(
    ("code", "tags", "told"),
    [
        ("while True: pass", (), r"cell c1 ran longer than 2 s:\nwhile True: pass"),
        ("import os; os._exit(1)", (), "cell c1 ended its kernel"),
        ("import warnings; warnings.warn('old')", (), "cell c1 writes to stderr.*old"),
        ("1 / 0", ("raises-exception",), "cell c1 stores an error"),
    ],
)
def test_what_must_not_be_stored_is_refused(
    tmp_path: Path, code: str, tags: tuple, told: str
) -> None:
    with pytest.raises(BuildError, match=f"(?s)^notebooks/x.ipynb, {told}"):
        run_cells(tmp_path, "1", code, timeout=2, tags=tags)


def test_cells_run_in_the_notebooks_folder_under_the_stated_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = [*EXECUTION_ENV, "MPLBACKEND"]
    code = f"import os, sys\n[os.getcwd(), sys.executable, *map(os.environ.get, {names})]"
    (output,) = run_cells(tmp_path, code).notebook.cells[0].outputs
    folder = str((tmp_path / "notebooks").resolve())
    seen = ast.literal_eval(output.data["text/plain"])
    assert seen[:-1] == [folder, sys.executable, *EXECUTION_ENV.values()]
    assert "inline" in seen[-1]
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_output_is_stored_as_nbval_will_see_it(tmp_path: Path) -> None:
    code = (
        "import ipywidgets, sys\nout = ipywidgets.Output()\nwith out:\n    print('inside')\n"
        "print('a'); sys.stdout.flush(); print('b')\nprint('stderr', file=sys.stderr)\nout"
    )
    book = run_cells(tmp_path, code, "object()\nNone", tags=("nbval-ignore-output",))
    outputs = book.notebook.cells[0].outputs
    texts = {output.name: output.text for output in outputs if output.output_type == "stream"}
    assert texts == {"stdout": "inside\na\nb\n", "stderr": "stderr\n"}
    (widget,) = [output for output in outputs if output.output_type == "execute_result"]
    assert list(widget.data) == ["text/plain"]
    assert book.notebook.metadata == {"language_info": {"name": "python"}}


class TestCommand:
    """`attn-course build`, typed well and badly."""

    def call(self, course: Course, monkeypatch: pytest.MonkeyPatch, *words: str):
        monkeypatch.chdir(course.root)
        return CliRunner().invoke(command, words)

    def test_check_exits_with_1_and_names_what_differs(
        self, copied: Course, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        chosen = partial(differences, catalogue=Chosen())
        monkeypatch.setattr("attn_course.authoring.command.differences", chosen)
        monkeypatch.setattr("attn_course.authoring.command.outdated", lambda *_: [])
        assert self.call(copied, monkeypatch, "--check", "03").exit_code == 0
        edit(copied, "torch.zeros(2)", "torch.zeros(3)")
        result = self.call(copied, monkeypatch, "--check")
        assert result.exit_code == 1
        assert f"notebooks/{STEM}.ipynb: cell 6 (code-" in result.output
        assert "files that differ from what their sources build: 1. Run" in result.output

    def test_what_cannot_be_built_is_an_error_without_a_traceback(
        self, copied: Course, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        edit(copied, "# {{exercise:", "# {{exercises:")
        result = self.call(copied, monkeypatch, "scaled_dot_product", "--draft")
        assert result.exit_code == 1
        assert result.output.startswith("Error: 03_scaled_dot_product")

    def test_an_unknown_chapter_lists_the_chapters(
        self, copied: Course, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        result = self.call(copied, monkeypatch, "13")
        assert result.exit_code == 1
        assert "there is no chapter '13'" in result.output
        assert "03  Scaled dot-product attention" in result.output

    def test_a_chapter_that_is_not_written_is_told(
        self, copied: Course, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        result = self.call(copied, monkeypatch, "04", "--draft")
        assert result.exit_code == 1
        assert "chapters/04_self_attention.py is not written yet" in result.output

    def test_a_file_that_is_no_chapter_is_told(
        self, copied: Course, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (copied.root / "chapters" / "notes.py").touch()
        result = self.call(copied, monkeypatch, "--check")
        assert result.exit_code == 1
        assert "no chapter of the course: ['notes.py']" in result.output

    @pytest.mark.parametrize(
        "words", [("--check", "--force"), ("--check", "--draft"), ("--force", "--draft")]
    )
    def test_options_that_contradict_each_other_are_refused(
        self, copied: Course, monkeypatch: pytest.MonkeyPatch, words: tuple
    ) -> None:
        result = self.call(copied, monkeypatch, *words)
        assert result.exit_code == 2
        assert words[0] in result.output

    def test_an_installed_package_says_that_it_has_no_chapters(
        self, copied: Course, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("attn_course.authoring.layout.project_root", lambda: None)
        result = self.call(copied, monkeypatch, "--check")
        assert result.exit_code == 1
        assert "an installed attn_course has none" in result.output
        assert "clone" in result.output
