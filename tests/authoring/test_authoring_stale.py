"""What makes a notebook stale, what does not, and what a build says of it."""

import ast
import inspect
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import nbformat
import pytest
from authoring_sample import STEM, Chosen, edit, make_course

import attn_course
from attn_course import checks
from attn_course.authoring import build as building
from attn_course.authoring import modules
from attn_course.authoring import sources as naming
from attn_course.authoring.assemble import assemble
from attn_course.authoring.build import build
from attn_course.authoring.compare import outdated
from attn_course.authoring.layout import Course
from attn_course.authoring.notebooks import Book
from attn_course.authoring.plan import Options
from attn_course.authoring.reach import mentioned, reached
from attn_course.authoring.sources import BY_NAME, CHECK, TELLING, lesson_sources
from attn_course.authoring.stamp import stamp_of
from attn_course.checks.exercise import Exercise
from attn_course.explorers import words

PACKAGE = Path(attn_course.__file__).parent
NAME = "scaled_dot_product_attention"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The sample course, built; what executes it is a stand-in."""
    course = make_course(tmp_path_factory.mktemp("course"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "execute", counted)
        build(course, catalogue=Chosen())
    return course


@pytest.fixture
def course(built: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A copy of the sample, to be changed."""
    monkeypatch.setattr(building, "execute", counted)
    root = tmp_path / "course"
    shutil.copytree(built.root, root, symlinks=True)
    return Course(root)


def counted(book: Book, *_: object) -> None:
    """Stands in for execution: only the order of the cells is stored."""
    for number, cell in enumerate(c for c in book.notebook.cells if c.cell_type == "code"):
        cell.execution_count = number + 1


def told(course: Course, catalogue: Chosen | None = None, **options: bool) -> list[str]:
    """What a build says, and `--check` has said the same before."""
    catalogue = catalogue or Chosen()
    before = outdated(course, catalogue=catalogue)
    lines: list[str] = []
    build(course, options=Options(**options), catalogue=catalogue, tell=lines.append)
    if not options:
        executed = [line.replace("executed in 0 s", "would be executed again") for line in lines]
        assert before == [line for line in executed if "would be" in line]
    return lines


UNCHANGED = ["03 lesson: unchanged", "03 exercises: unchanged", "03 solutions: unchanged"]


def test_nothing_is_done_twice(course: Course) -> None:
    assert told(course) == UNCHANGED
    assert outdated(course, catalogue=Chosen()) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("## Saturation", "## What saturates"),
        ("weights = torch.zeros(2)", "# two of them\nweights = torch.zeros( 2 )"),
        ('"""Return softmax(q kᵀ / √d_k) v and its weights."""', '"""Return both."""'),
        ("# BLANK: from scores to weights", "# BLANK: normalise"),
        ("Write equation 1.", "Write the equation."),
    ],
)
def test_what_changes_no_output_is_written_and_not_executed(
    course: Course, before: str, after: str
) -> None:
    edit(course, before, after)
    lines = told(course)
    assert any(line.endswith(": written") for line in lines)
    assert not any("executed" in line for line in lines)
    assert told(course) == UNCHANGED


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (
            "torch.zeros(2)",
            "torch.zeros(3)",
            ["03 lesson: executed in 0 s (changed: its own code)", *UNCHANGED[1:]],
        ),
        (
            'description="d_k")',
            'description="d_k");',
            ["03 lesson: executed in 0 s (changed: its own code)", *UNCHANGED[1:]],
        ),
        (
            "The values are not touched",
            "The values are untouched",
            ["03 lesson: executed in 0 s (changed: its questions)", *UNCHANGED[1:]],
        ),
        (
            "probe = torch.eye(3)",
            "probe = torch.ones(3, 3)",
            [
                UNCHANGED[0],
                "03 exercises: written",
                "03 solutions: executed in 0 s (changed: its own code)",
            ],
        ),
    ],
)
def test_what_may_change_an_output_is_executed_and_named(
    course: Course, before: str, after: str, lines: list[str]
) -> None:
    edit(course, before, after)
    assert told(course) == lines
    assert told(course) == UNCHANGED


@dataclass(frozen=True)
class Changed(Chosen):
    """The catalogue with a change in its exercise."""

    by: Callable[[Exercise], Exercise] = lambda exercise: exercise

    def get(self, name: str) -> Exercise:
        return self.by(checks.get(name))

    def check(self, answer: object, exercise: str) -> checks.Report:
        return checks.examine(answer, self.get(exercise))


def other_messages(exercise: Exercise) -> Exercise:
    mistakes = tuple(replace(mistake, message="Other words.") for mistake in exercise.mistakes)
    stages = tuple(s if s.remark else replace(s, message="Other words.") for s in exercise.stages)
    return replace(exercise, mistakes=mistakes, stages=stages, hints=("Another hint.",))


def other_remark(exercise: Exercise) -> Exercise:
    """The sample's solution divides late, of which a remark is shown."""
    stages = tuple(replace(s, message="Other words.") if s.remark else s for s in exercise.stages)
    return replace(exercise, stages=stages)


def another_stage(exercise: Exercise) -> Exercise:
    first, *others = exercise.stages
    return replace(exercise, stages=(replace(first, name="first of all"), *others))


def one_probe_less(exercise: Exercise) -> Exercise:
    *others, last = exercise.stages
    fewer = replace(last, draw=lambda rng: [*last.draw(rng)][1:])
    return replace(exercise, stages=(*others, fewer))


def other_points(exercise: Exercise) -> Exercise:
    return replace(exercise, points=17)


def test_messages_and_hints_that_no_notebook_shows_concern_none(course: Course) -> None:
    assert told(course, Changed(by=other_messages)) == UNCHANGED


def test_points_are_written_into_the_exercises_and_execute_nothing(course: Course) -> None:
    lines = told(course, Changed(by=other_points))
    assert lines == [UNCHANGED[0], "03 exercises: written", "03 solutions: written"]


@pytest.mark.parametrize("by", [another_stage, one_probe_less, other_remark])
def test_a_verdict_that_reads_otherwise_makes_its_solutions_stale(
    course: Course, by: Callable[[Exercise], Exercise]
) -> None:
    verdict = f"03 solutions: executed in 0 s (changed: the verdict on {NAME})"
    assert told(course, Changed(by=by)) == [*UNCHANGED[:2], verdict]


def test_another_language_changes_what_is_shown(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTN_COURSE_LANGUAGE", "en-XA")
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", ":memory:")
    lines: list[str] = []
    build(course, catalogue=Chosen(), tell=lines.append)
    assert all("⟦" in line for line in lines)
    assert "sseettttiinnggss" in lines[0]


def test_outputs_that_no_build_has_stored_are_not_kept(course: Course) -> None:
    path = course.notebook("notebooks", STEM)
    notebook = nbformat.read(path, as_version=4)
    output = nbformat.v4.new_output("stream", text="run by somebody\n")
    next(c for c in notebook.cells if c.id == "progress").outputs.append(output)
    nbformat.write(notebook, path)
    expected = "03 lesson: executed in 0 s (changed: its stored outputs)"
    assert told(course) == [expected, *UNCHANGED[1:]]


def test_a_build_says_why_without_a_change_too(course: Course) -> None:
    assert told(course, force=True)[0] == "03 lesson: executed in 0 s (as asked)"
    course.notebook("notebooks", STEM).unlink()
    assert told(course)[0] == "03 lesson: executed in 0 s (it was not there)"
    edit(course, "torch.zeros(2)", "torch.zeros(3)")
    draft = "03 lesson: written, not executed (changed: its own code)"
    assert told(course, draft=True) == [draft, *UNCHANGED[1:]]
    assert told(course)[0] == "03 lesson: executed in 0 s (a draft was not executed)"
    path = course.notebook("notebooks", STEM)
    path.write_text(path.read_text(encoding="utf-8").replace('"sources"', '"of another version"'))
    unknown = "03 lesson: executed in 0 s (nothing says what its outputs were made from)"
    assert told(course)[0] == unknown


def test_the_stamp_is_small_sorted_and_in_one_place(course: Course) -> None:
    stored = nbformat.read(course.notebook("notebooks", STEM), as_version=4)
    stamp = stamp_of(stored)
    assert stamp is not None
    assert list(stamp.sources) == sorted(stamp.sources)
    assert {"code", "questions", "settings", "view Predict", "view Quiz"} <= set(stamp.sources)
    assert {len(value) for value in [stamp.cells, stamp.outputs, *stamp.sources.values()]} == {8}
    assert set(stored.metadata.attn_course) == {"chapter", "folder", "built"}
    exercises = nbformat.read(course.notebook("exercises", STEM), as_version=4)
    assert set(exercises.metadata.attn_course.built) == {"cells"}


class TestLesson:
    """What the sources of a lesson are, with the real package behind it."""

    @pytest.fixture
    def package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A copy of the package's sources, for reading only."""
        copy = tmp_path / "attn_course"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "grading"))
        monkeypatch.setattr(modules, "PACKAGE", copy)
        return copy

    def sources(self, tmp_path: Path, code: str) -> dict[str, str]:
        text = "# %% [markdown]\n# Text\n\n# %%\n" + code
        header = "# ---\n# jupyter:\n#   attn_course:\n#     reading_minutes: 1\n"
        root = tmp_path / "one"
        if not root.is_dir():
            root.mkdir()
            make_course(root)
        source = root / "chapters" / f"{STEM}.py"
        source.write_text(f"{header}#     exercise_minutes: 1\n# ---\n\n{text}\n")
        book = assemble(Course(root), source, Chosen(())).books["notebooks"]
        return lesson_sources(book, {})

    def test_no_lesson_depends_on_checks_that_it_does_not_make(self, tmp_path: Path) -> None:
        names = self.sources(tmp_path, "from attn_course.masks import causal_mask\ncausal_mask(3)")
        assert "file masks.py" in names
        assert not any("checks" in name for name in names)

    def test_a_lesson_that_checks_depends_on_the_exercises_that_it_names(
        self, tmp_path: Path, package: Path
    ) -> None:
        code = "check(print, 'softmax_jacobian')"
        before = self.sources(tmp_path, code)
        name = "checks/catalogue/ch03/softmax_jacobian.py"
        text = (package / name).read_text(encoding="utf-8")
        (package / name).write_text(text.replace("moving all ", "moving "), encoding="utf-8")
        after = self.sources(tmp_path, code)
        assert {k for k in before if before[k] != after[k]} == {f"file {name}"}
        assert f"file {name}" not in self.sources(tmp_path, "check(print, 'softmax')")

    def test_a_view_is_stale_by_its_own_words_and_files(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        code = "from attn_course.explorers import MaskExplorer\nMaskExplorer()"
        before = self.sources(tmp_path, code)
        assert "view ScalingExplorer" not in before
        monkeypatch.setitem(words.WORDS["ScalingExplorer"], "title", "Another title")
        assert self.sources(tmp_path, code) == before
        monkeypatch.setitem(words.WORDS["MaskExplorer"], "title", "Another title")
        after = self.sources(tmp_path, code)
        assert {k for k in before if before[k] != after[k]} == {"view MaskExplorer"}

    def test_a_changed_translation_is_a_changed_setting(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(naming, "LOCALE", tmp_path)
        monkeypatch.setenv("ATTN_COURSE_LANGUAGE", "xx")
        before = self.sources(tmp_path, "1")
        file = tmp_path / "xx" / "LC_MESSAGES" / "attn_course.mo"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"another word")
        after = self.sources(tmp_path, "1")
        assert {k for k in before if before[k] != after[k]} == {"settings"}


def test_what_is_known_by_name_is_there() -> None:
    for module, name in [*BY_NAME, CHECK, *TELLING]:
        tree = ast.parse(modules.file_of(module).read_text(encoding="utf-8"))
        stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
        assert name in stored | defined, f"{module} has no {name} any more"


SHOWING = """
from attn_course.attention import scaled_dot_product_attention
from attn_course.explorers import MaskExplorer
from attn_course.plots import heat_map, line_plot
from attn_course.self_attention import SelfAttention
from attn_course.tasks import copy_task
import torch
weights = scaled_dot_product_attention(*torch.randn(3, 4, 8))[1]
line = line_plot([1, 2], {"a": [1, 2]}, x_label="x", y_label="y")
for shown in (MaskExplorer(causal=True), heat_map(weights), line):
    shown._repr_mimebundle_()
SelfAttention(8, 8)(torch.randn(1, 4, 8))
copy_task(4).test_set(2)
"""


def test_whatever_code_calls_in_the_package_is_found_to_be_reached() -> None:
    called: set[tuple[str, str]] = set()

    def note(frame: FrameType, *_: object) -> None:
        code = frame.f_code
        outermost = code.co_qualname.partition(".")[0]
        # a function of the package: the body of a class runs on import, whoever uses it
        if code.co_filename.startswith(str(PACKAGE)) and code.co_flags & inspect.CO_OPTIMIZED:
            called.add((frame.f_globals["__name__"], outermost))

    before = sys.gettrace()
    sys.settrace(note)
    try:
        exec(SHOWING, {"__name__": "__main__"})
    finally:
        sys.settrace(before)
    found = reached(mentioned([SHOWING]))
    assert len(called) > 50
    assert {name for _, name in called - found.keys()} <= {"__getattr__", "<lambda>"}
