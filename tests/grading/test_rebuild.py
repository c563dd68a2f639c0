"""The graded notebook: what students do to theirs must not cost them, and only code survives."""

import ast
import copy

import pytest

from attn_course.grading.intake.answers import recognise
from attn_course.grading.intake.notebook import read_notebook
from attn_course.grading.intake.rebuild import rebuild
from attn_course.grading.intake.scaffold import read_scaffold
from attn_course.grading.rebuilt import Rebuilt
from attn_course.grading.student_code import defines
from attn_course.sentences import spoken
from grading.notebooks import (
    ATTENTION,
    FORMS,
    answer_cell,
    code_of,
    course,
    encoded,
    handed_out,
    notebook,
    solved,
)

CHAPTERS = list(course())
SCAFFOLD = course()["03"]
LINE = f"# Exercise 3.2: {ATTENTION}\n"


def rebuilt(nb: dict, chapter: str = "03") -> Rebuilt:
    return rebuild("ann", read_notebook(encoded(nb)), course()[chapter])


def answers(of: Rebuilt) -> dict[str | None, str]:
    return {cell.exercise: cell.source for cell in of.cells if cell.kind == "answer"}


def statements(source: str) -> list[str]:
    return [ast.dump(statement) for statement in ast.parse(source).body]


def code(*answer: str) -> Rebuilt:
    return rebuilt(notebook(*answer))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_scaffold_has_every_exercise_and_only_what_answers_rely_on(chapter):
    scaffold = course()[chapter]
    assert all(task.points > 0 and defines(task.stub, task.name) for task in scaffold.exercises)
    setup = "\n".join(source for sources in scaffold.setup.values() for source in sources)
    assert "torch" in setup
    for unwanted in ("experiments", "show_progress", "view", "google", "check"):
        assert unwanted not in setup


def test_an_exercise_without_a_check_is_refused():
    nb = handed_out("03")
    nb["cells"] = [cell for cell in nb["cells"] if cell["id"] != f"check-{ATTENTION}"]
    with pytest.raises(ValueError, match=f"{ATTENTION}.*check cell"):
        read_scaffold("03", nb)


def test_what_is_optional_does_not_count_among_the_chapter_s_points():
    assert SCAFFOLD.by_name["softmax_jacobian"].optional
    assert SCAFFOLD.points == sum(t.points for t in SCAFFOLD.exercises) - 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_form_of_a_solved_notebook_gives_the_same_answers(chapter, form):
    nb = solved(chapter)
    given = read_notebook(encoded(FORMS[form](nb)))
    assert recognise(given, course()) == chapter
    found = rebuild("ann", given, course()[chapter])
    assert not found.settled
    for task in course()[chapter].exercises:
        expected = statements("".join(answer_cell(nb, task.name)["source"]))
        # a merged cell may end in what stood below it
        assert statements(answers(found)[task.name])[: len(expected)] == expected


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_notebook_as_it_was_handed_out_is_missing_altogether(chapter):
    found = rebuilt(handed_out(chapter), chapter)
    assert {problem.status for problem in found.settled.values()} == {"missing"}
    assert len(found.settled) == len(course()[chapter].exercises)
    assert not answers(found)


def test_a_stub_with_other_comments_and_docstring_is_still_the_stub():
    stub = SCAFFOLD.by_name[ATTENTION].stub
    changed = stub.replace('"""Return', '"""TODO: Return').replace("raise", "# later\n    raise")
    assert code(changed).settled[ATTENTION].cause == "The cell is as it was handed out."


def test_the_lesson_is_no_submission():
    lesson = notebook("def scaled_dot_product_attention(q, k, v):\n    return q")
    assert recognise(read_notebook(encoded(lesson)), course()) is None


def test_the_chapter_is_that_of_most_lines_whatever_the_metadata_says():
    nb = solved("04")
    nb["metadata"]["attn_course"]["chapter"] = "03"
    nb["cells"].insert(0, answer_cell(solved("03"), ATTENTION))
    assert recognise(read_notebook(encoded(nb)), course()) == "04"


def test_an_answer_pasted_from_another_chapter_is_a_helper():
    nb = solved("04")
    nb["cells"].insert(0, answer_cell(solved("03"), ATTENTION))
    found = rebuilt(nb, "04")
    assert not found.settled
    assert next(c.kind for c in found.cells if ATTENTION in c.source) == "helper"
    assert "another chapter: Exercise 3.2" in " ".join(map(spoken, found.notes))


def test_cells_stand_in_the_course_s_order_each_answer_before_its_check():
    found = rebuilt(FORMS["shuffled"](solved("03")))
    kinds = [(c.kind, c.exercise) for c in found.cells if c.exercise]
    assert kinds == [(k, t.name) for t in SCAFFOLD.exercises for k in ("answer", "check")]
    assert "the exercises are not in their order" in map(spoken, found.notes)


def test_nothing_but_code_survives():
    nb = solved("03")
    for cell in nb["cells"]:
        cell["metadata"]["tags"] = ["nbval-skip"]
        if cell["cell_type"] == "code":
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "SPAM"}]
            cell["source"] = "# NBVAL_SKIP\n" + "".join(cell["source"])
    found = rebuilt(nb)
    assert not found.settled
    for cell in found.cells:
        assert "NBVAL" not in cell.source
        assert "SPAM" not in cell.source


def test_check_cells_are_the_course_s_own():
    nb = solved("03")
    for cell in nb["cells"]:
        if "".join(cell["source"]).startswith("check("):
            cell["source"] = "def check(f):\n    return 'passed'"
    found = rebuilt(nb)
    assert [c.source for c in found.cells if c.kind == "check"] == [
        t.check for t in SCAFFOLD.exercises
    ]


def test_calls_of_check_in_an_answer_s_cell_are_dropped():
    found = code(f"{LINE}def {ATTENTION}(q, k, v, mask=None):\n    return q, k\ncheck({ATTENTION})")
    assert "check(" not in answers(found)[ATTENTION]


def test_handed_out_cells_are_not_taken_for_the_student_s():
    found = rebuilt(solved("03"))
    assert not [cell for cell in found.cells if cell.kind == "helper"]
    assert not [cell for cell in found.cells if "own_attention_view" in cell.source]


def test_a_helper_cell_stays_before_the_answer_that_it_stood_before():
    nb = solved("03")
    at = nb["cells"].index(answer_cell(nb, ATTENTION))
    nb["cells"].insert(at, copy.deepcopy(notebook("def scale(x):\n    return x")["cells"][0]))
    cells = rebuilt(nb).cells
    k = next(k for k, cell in enumerate(cells) if cell.kind == "helper")
    assert cells[k + 1].exercise == ATTENTION


def test_a_helper_below_the_answer_that_needs_it_moves_up_with_what_it_needs():
    found = code(
        f"{LINE}def {ATTENTION}(q, k, v, mask=None):\n    return scale(q), k",
        "unrelated = 1",
        "def scale(x):\n    return x / ROOT",
        "ROOT = 2",
    )
    helpers = [cell.source for cell in found.cells if cell.kind == "helper"]
    assert helpers == ["def scale(x):\n    return x / ROOT", "ROOT = 2"]
    kinds = [cell.kind for cell in found.cells]
    assert kinds.index("helper") < kinds.index("answer")


def test_a_long_chain_of_helpers_below_moves_up_whole():
    # asking all of them again at each link takes minutes, before anything is graded
    chain = [f"def f{k}():\n    return f{k + 1}()" for k in range(900)]
    answer = f"{LINE}def {ATTENTION}():\n    return f0()"
    cells = rebuild("ann", read_notebook(encoded(notebook(answer, *chain))), SCAFFOLD).cells
    sources = [cell.source for cell in cells]
    assert [source for source in sources if source in chain] == chain
    assert sources.index(chain[-1]) < sources.index(answer)


def test_of_several_answers_the_last_that_defines_something_counts():
    first, second = (f"{LINE}def {ATTENTION}(q, k, v, mask=None):\n    return {n}" for n in (1, 2))
    found = code(first, second, f"{LINE}{ATTENTION}_result = 3", SCAFFOLD.by_name[ATTENTION].stub)
    assert answers(found)[ATTENTION].endswith("return 2")
    assert "cells answer exercise 3.2; the last one counts" in " ".join(map(spoken, found.notes))


def test_an_answer_below_the_untouched_stub_is_found_by_its_name():
    stub = SCAFFOLD.by_name[ATTENTION].stub
    found = code(stub, f"def {ATTENTION}(q, k, v, mask=None):\n    return 1")
    assert ATTENTION not in found.settled
    assert "has lost its exercise line" in " ".join(map(spoken, found.notes))


def test_an_answer_under_another_name_is_unmatched_and_says_what_is_there():
    problem = code(f"{LINE}def my_attention(q, k, v):\n    return 1").settled[ATTENTION]
    assert problem.status == "unmatched"
    assert "does not define `scaled_dot_product_attention`: it defines `my_attention`" in (
        spoken(problem.cause)
    )


def test_a_line_whose_number_and_name_differ_goes_by_what_the_cell_defines():
    found = code("# Exercise 3.2: attention_entropy\ndef attention_entropy(w):\n    return w")
    assert set(answers(found)) == {"attention_entropy"}
    assert "an exercise line says 3.2, its cell answers 3.1" in map(spoken, found.notes)


def test_code_that_python_cannot_read_is_left_for_the_kernel():
    found = code(f"{LINE}def {ATTENTION}(q, k, v:\n    return")
    assert ATTENTION in answers(found)
    assert ATTENTION not in found.settled


def test_an_answer_in_a_cell_that_is_no_code_is_missing_with_the_reason():
    nb = notebook("x = 1", LINE)
    nb["cells"][1]["cell_type"] = "markdown"
    assert "no code cell" in rebuilt(nb).settled[ATTENTION].cause


def test_two_parts_of_one_exercise_in_one_cell_stay_together():
    found = code(f"{LINE}half = 1\n{LINE}def {ATTENTION}(q, k, v, mask=None):\n    return half")
    assert "half = 1" in answers(found)[ATTENTION]


def test_code_above_the_line_in_its_cell_runs_before_the_answer():
    above = "import math"
    found = code(f"{above}\n{LINE}def {ATTENTION}(q, k, v, mask=None):\n    return math.pi")
    assert [cell.source for cell in found.cells if cell.kind == "helper"] == [above]
    assert (
        code(f"{above}\n{SCAFFOLD.by_name[ATTENTION].stub}").settled[ATTENTION].status == "missing"
    )


def test_helpers_after_the_last_answer_do_not_run():
    found = code(f"{LINE}def {ATTENTION}(q, k, v, mask=None):\n    return 1", "while True: pass")
    assert not [cell for cell in found.cells if "while" in cell.source]


def test_a_student_s_own_change_to_the_set_up_is_kept():
    nb = solved("03")
    cell = next(c for c in nb["cells"] if "from math import" in "".join(c["source"]))
    cell["source"] = "".join(cell["source"]) + "\nimport itertools"
    helpers = [cell.source for cell in rebuilt(nb).cells if cell.kind == "helper"]
    assert len(helpers) == 1
    assert "itertools" in helpers[0]


def test_all_code_of_a_solution_is_in_the_rebuilt_notebook():
    nb = solved("02")
    kept = "\n".join(cell.source for cell in rebuilt(nb, "02").cells)
    for source in code_of(nb):
        if source.startswith("# Exercise"):
            assert source in kept
