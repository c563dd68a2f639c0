"""The three notebooks of a chapter: what goes where, its ids, metadata, links and set-up."""

import sys
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from authoring_sample import CHAPTER, STEM, Chosen, make_course

from attn_course.authoring.assemble import Assembled, assemble
from attn_course.authoring.errors import BuildError
from attn_course.authoring.proof import prove

NAME = "scaled_dot_product_attention"
TASK = f'# %% [markdown] exercise="{NAME}"\n# Write equation 1.\n\n'
ADDRESS = "https://github.com/someone/attn-course"


def built(root: Path, text: str = CHAPTER, address: str = "", names: tuple = (NAME,)) -> Assembled:
    course = make_course(root, text, address)
    return assemble(course, course.root / "chapters" / f"{STEM}.py", Chosen(names))


def sources(one: Assembled, folder: str) -> dict[str, str]:
    return {cell.id: cell.source for cell in one.books[folder].notebook.cells}


def test_every_cell_goes_where_its_header_says(tmp_path: Path) -> None:
    one = built(tmp_path)
    lesson, exercises, solutions = (
        list(sources(one, folder)) for folder in ("notebooks", "exercises", "solutions")
    )
    named = ["prediction-largest-weight", "question-scale-purpose"]
    assert [cell for cell in lesson if cell.partition("-")[0] not in ("markdown", "code")] == [
        *("title", "install", "tools"),
        *named,
        "progress",
    ]
    task = [f"{part}-{NAME}" for part in ("exercise", "answer", "hint", "check")]
    imports, probe, last = exercises[3], exercises[4], exercises[-2]
    assert exercises == [*("title", "install", "tools"), imports, probe, *task, last, "progress"]
    assert solutions == [cell for cell in exercises if cell != f"hint-{NAME}"]
    assert imports in lesson
    assert probe not in lesson


def test_an_exercise_says_what_it_is_and_its_stub_holds_nothing_of_the_solution(
    tmp_path: Path,
) -> None:
    one = built(tmp_path)
    exercises, solutions = sources(one, "exercises"), sources(one, "solutions")
    heading, terms, prose = exercises[f"exercise-{NAME}"].split("\n\n")
    assert heading == f"## Exercise 3.2: {NAME}"
    assert terms.startswith("●●○ · about 20 minutes · 4 points · May use: ")
    assert prose == "Write equation 1."
    assert exercises[f"check-{NAME}"] == solutions[f"check-{NAME}"] == f"check({NAME})"
    for cells in (exercises, solutions):
        assert cells[f"answer-{NAME}"].startswith(f"# Exercise 3.2: {NAME}\n")
    assert "key.mT" in solutions[f"answer-{NAME}"]
    assert "key.mT" not in "".join(exercises.values())
    assert not any(mark in "".join(solutions.values()) for mark in ("BLANK", "###"))
    exec(exercises[f"hint-{NAME}"], {})  # a comment: Run All reveals nothing


def test_the_tools_that_a_notebook_uses_are_imported_for_it(tmp_path: Path) -> None:
    one = built(tmp_path)
    tools = {folder: sources(one, folder)["tools"] for folder in one.books}
    assert tools == {
        "notebooks": "from attn_course import show_progress, quiz, predict, reveal",
        "exercises": "from attn_course import check, hint, show_progress",
        "solutions": "from attn_course import check, show_progress",
    }


def test_cells_carry_what_nbgrader_jupyterlab_and_colab_read(tmp_path: Path) -> None:
    one = built(tmp_path)
    for folder, book in one.books.items():
        notebook = book.notebook
        nbformat.validate(notebook)
        assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
        assert set(notebook.metadata) == {"kernelspec", "language_info", "attn_course"}
        assert "version" not in notebook.metadata.language_info
        assert notebook.metadata.attn_course == {"chapter": "03", "folder": folder}
    cells = {cell.id: cell for cell in one.books["exercises"].notebook.cells}
    assert cells[f"answer-{NAME}"].metadata.nbgrader == {
        "grade": False,
        "grade_id": NAME,
        "locked": False,
        "schema_version": 3,
        "solution": True,
        "task": False,
    }
    assert cells[f"check-{NAME}"].metadata.nbgrader == {
        "grade": True,
        "grade_id": f"check-{NAME}",
        "locked": True,
        "points": 4,
        "schema_version": 3,
        "solution": False,
        "task": False,
    }
    assert cells[f"exercise-{NAME}"].metadata.id == f"exercise-{NAME}"
    lesson = one.books["notebooks"].notebook.cells
    folded = {cell.id for cell in lesson if cell.metadata.get("jupyter", {}).get("source_hidden")}
    html = next(cell.id for cell in lesson if cell.source.startswith("HTML("))
    assert folded == {"install", "prediction-largest-weight", "question-scale-purpose", html}


def test_ids_come_from_content_so_that_an_edit_elsewhere_changes_none(tmp_path: Path) -> None:
    twice = "\n# %%\nx = 1\n\n# %%\nx = 1\n"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    before = sources(built(tmp_path / "one", CHAPTER + twice), "notebooks")
    text = CHAPTER.replace("# ## Saturation", "# ## Saturating") + twice
    after = sources(built(tmp_path / "two", text), "notebooks")
    changed = set(before) ^ set(after)
    assert {(before | after)[cell].splitlines()[-1] for cell in changed} == {
        "## Saturation",
        "## Saturating",
    }
    first, second = (cell for cell in before if before[cell] == "x = 1")
    assert second == f"{first}-2"


def test_a_lesson_links_to_its_exercise(tmp_path: Path) -> None:
    one = built(tmp_path)
    link = (
        f"[→ Exercise 3.2: {NAME} (●●○, 20 min)](../exercises/{STEM}.ipynb#cell-id=exercise-{NAME})"
    )
    assert link in sources(one, "notebooks").values()
    assert f"exercise-{NAME}" in sources(one, "exercises")
    assert not any("colab.research" in text for text in sources(one, "notebooks").values())


def test_with_an_address_everything_opens_in_colab(tmp_path: Path) -> None:
    one = built(tmp_path, address=f"{ADDRESS}.git")
    colab = "https://colab.research.google.com/github/someone/attn-course/blob/main"
    for folder in one.books:
        first = one.books[folder].notebook.cells[0]
        assert first.source == (
            "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
            f"({colab}/{folder}/{STEM}.ipynb)"
        )
    lesson = "\n".join(sources(one, "notebooks").values())
    assert f"({colab}/exercises/{STEM}.ipynb#scrollTo=exercise-{NAME})" in lesson
    assert f"({colab}/solutions/{STEM}.ipynb)" in lesson


def test_an_address_that_colab_cannot_open_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="must look like https://github"):
        built(tmp_path, address="https://example.org/course")


class TestInstallCell:
    """The first code cell of every notebook."""

    def run(self, monkeypatch: pytest.MonkeyPatch, code: str, colab: bool, there: bool) -> list:
        """The commands that the cell runs, here or as if on Colab."""
        commands: list = []
        if colab:
            monkeypatch.setitem(sys.modules, "google.colab", ModuleType("google.colab"))
        spec = object() if there else None
        monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
        monkeypatch.setattr("subprocess.run", lambda command, check: commands.append(command))
        exec(code, {})
        return commands

    @pytest.mark.parametrize("address", ["", ADDRESS])
    def test_does_nothing_where_there_is_nothing_to_do(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
    ) -> None:
        one = built(tmp_path, address=address)
        codes = {
            next(c for c in book.notebook.cells if c.cell_type == "code").source
            for book in one.books.values()
        }
        assert len(codes) == 1
        for colab, there in ((False, False), (False, True), (True, True)):
            assert self.run(monkeypatch, codes.copy().pop(), colab, there) == []

    def test_installs_from_the_address_on_colab(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        code = sources(built(tmp_path, address=ADDRESS), "notebooks")["install"]
        (command,) = self.run(monkeypatch, code, colab=True, there=False)
        assert command == [sys.executable, "-m", "pip", "install", "-q", f"git+{ADDRESS}"]

    def test_says_what_to_install_on_colab_without_an_address(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        code = sources(built(tmp_path), "notebooks")["install"]
        with pytest.raises(ImportError, match=r"%pip install ./attn_course-\*\.whl"):
            self.run(monkeypatch, code, colab=True, there=False)


@pytest.mark.parametrize(
    ("addition", "told"),
    [
        ("\n# %%\nprint(weigths)\n", r"notebooks/03.*py:\d+\): undefined name 'weigths'"),
        (
            '\n# %% part="exercises"\ncausal_maks(3)\n',
            r"exercises/03.*undefined name 'causal_maks'",
        ),
        ("\n# %%\ndef f():\n    return sqrt(2)\n", r"notebooks/03.*undefined name 'sqrt'"),
        ("\n# %%\nx = = 1\n", r"chapters/03.*invalid syntax"),
        ('\n# %% part="exercises"\nx = = 1\n', r"exercises/03.*invalid syntax"),
        ("\n# %% [markdown]\n# {{exercise: softmax}}\n", "no exercise 'softmax' to link to"),
        ("\n# %% [markdown]\n# See {{exercise: softmax}}.\n", "alone on its line"),
    ],
)
def test_what_would_not_work_in_a_notebook_is_refused(
    tmp_path: Path, addition: str, told: str
) -> None:
    with pytest.raises(BuildError, match=f"(?s){told}"):
        built(tmp_path, CHAPTER + addition)


def test_magics_shapes_and_names_of_ipython_are_no_undefined_names(tmp_path: Path) -> None:
    addition = (
        "\n# %%\n# %matplotlib inline\nfrom jaxtyping import Float\nfrom torch import Tensor\n\n\n"
        'def f(x: Float[Tensor, "b i"], y: Float[Tensor, " i"]) -> Float[Tensor, "i"]:\n'
        "    display(x)\n    return y\n"
    )
    lesson = sources(built(tmp_path, CHAPTER + addition), "notebooks").values()
    assert any(text.startswith("%matplotlib inline\n") for text in lesson)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("# {{exercise: scaled_dot_product_attention}}", "# none", "links to"),
        ('[markdown] exercise="scaled', '[markdown] question="scaled', "must be a markdown cell"),
        ("    ### BEGIN SOLUTION\n", "", "pairs with nothing"),
        ("def scaled_dot_product_attention(", "def attention(", "must define"),
        ("query @ key.mT /", "query @ @ key.mT /", "invalid syntax"),
    ],
)
def test_an_exercise_that_is_not_complete_is_refused(
    tmp_path: Path, before: str, after: str, told: str
) -> None:
    with pytest.raises(BuildError, match=told):
        built(tmp_path, CHAPTER.replace(before, after))


def test_an_answer_with_nothing_taken_out_is_refused(tmp_path: Path) -> None:
    text = CHAPTER.replace("    ### BEGIN SOLUTION\n", "").replace("    ### END SOLUTION\n", "")
    with pytest.raises(BuildError, match="nothing is taken out of 'scaled_dot"):
        built(tmp_path, text.replace("  # BLANK: from scores to weights", ""))


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        (("attention_entropy", NAME), r"no task for what .*ch03/.* lists: attention_entropy$"),
        ((), rf"cells for what .*ch03/.* does not list: {NAME}$"),
        ((NAME, "attention_entropy"), rf"lists {NAME}, attention.*has attention_entropy, {NAME}$"),
    ],
)
def test_the_chapter_has_the_packages_exercises_in_their_order(
    tmp_path: Path, listed: tuple[str, ...], told: str
) -> None:
    other = '# %% [markdown] exercise="attention_entropy"\n# Measure it.\n\n'
    text = CHAPTER.replace(TASK, other + TASK) if listed[:1] == (NAME,) else CHAPTER
    with pytest.raises(BuildError, match=told):
        built(tmp_path, text, names=listed)


def test_a_task_stands_before_its_answer(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="the answer stands before its task"):
        built(tmp_path, CHAPTER.replace(TASK, "") + "\n" + TASK)


def test_the_packages_own_source_is_a_solution(tmp_path: Path) -> None:
    start = CHAPTER.index(f'# %% exercise="{NAME}"')
    stop = CHAPTER.index('# %% part="exercises"\nprint(')
    cell = f'# %% exercise="{NAME}" source="attn_course.attention"\n\n'
    extra = '# %% part="exercises"\nfrom attn_course.masks import causal_mask\n\n'
    one = built(tmp_path, CHAPTER[:start] + cell + extra + CHAPTER[stop:])
    exercises, solutions = sources(one, "exercises"), sources(one, "solutions")
    assert "F.scaled_dot_product_attention" in solutions[f"answer-{NAME}"]
    assert exercises[f"answer-{NAME}"].endswith(
        f'raise NotImplementedError("{NAME} is yours to write")'
    )
    assert '"""Return softmax(q kᵀ / √d_k) v' in exercises[f"answer-{NAME}"]


def test_another_language_changes_words_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for language in ("", "en-XA"):
        (tmp_path / f"in{language}").mkdir()
    english = built(tmp_path / "in")
    monkeypatch.setenv("ATTN_COURSE_LANGUAGE", "en-XA")
    pseudo = built(tmp_path / "inen-XA")
    for folder in english.books:
        one, other = (each.books[folder].notebook for each in (english, pseudo))
        assert one.metadata == other.metadata
        assert [(c.id, c.metadata) for c in one.cells] == [(c.id, c.metadata) for c in other.cells]
    exercises = sources(pseudo, "exercises")
    assert exercises[f"answer-{NAME}"].startswith(f"# Exercise 3.2: {NAME}\n")
    assert f"⟦{NAME} iiss yyoouurrss ttoo wwrriittee⟧" in exercises[f"answer-{NAME}"]
    for text in (exercises["title"], exercises["install"], exercises[f"hint-{NAME}"]):
        assert "⟦" in text
    heading, terms, _ = exercises[f"exercise-{NAME}"].split("\n\n")
    assert heading.startswith("## ⟦")
    assert all("⟦" in term for term in terms.split(" · ")[1:])
    for cell in pseudo.books["exercises"].notebook.cells:
        if cell.cell_type == "code":
            compile(cell.source, cell.id, "exec")


def test_the_example_of_the_documentation_is_a_chapter(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "authoring.md").read_text(encoding="utf-8")
    example = text.partition("```python\n")[2].partition("```")[0]
    one = built(tmp_path, example)
    lesson, exercises = sources(one, "notebooks"), sources(one, "exercises")
    assert {"prediction-where-the-mass-goes", "question-scale-keeps"} <= set(lesson)
    assert any("About 35 minutes to read" in text for text in list(lesson.values())[3:])
    assert "    scores = query @ key.mT  # something is missing here" in exercises[f"answer-{NAME}"]
    assert "from scores to weights" in exercises[f"answer-{NAME}"]
    assert prove(one.books["solutions"], one.answers, Chosen().check).keys() == {NAME}
