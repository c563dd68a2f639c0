"""Reading code that nobody runs."""

import time

import pytest

from attn_course.grading.student_code import (
    defined_names,
    imports,
    marks,
    needed_names,
    normal_form,
    parse,
    shape,
    without_imports,
    without_tools,
)


@pytest.mark.parametrize(
    "line",
    [
        "# Exercise 3.2: attention",
        "#Exercise 3.2:attention",
        "#@title Exercise 3.2: attention",
        "## exercise 3.02 - attention",
        "# Exercise 3.2 attention (my second try)",
        "#\tExercise 3.2: attention\r",
    ],
)
def test_an_exercise_line_survives_what_editors_make_of_it(line):
    (mark,) = marks(f"import torch\n{line}\ndef attention():\n    pass\n")
    assert (mark.line, mark.number, mark.name) == (1, "3.2", "attention")


@pytest.mark.parametrize(
    "source",
    [
        'text = """\n# Exercise 3.2: attention\n"""',
        "print('# Exercise 3.2: attention')",
        "x = 1  # Exercise 3.2: attention",
        "# Exercises 3 and 2",
    ],
)
def test_what_only_looks_like_an_exercise_line(source):
    assert marks(source) == ()


def test_an_exercise_line_is_found_in_code_that_python_cannot_read():
    (mark,) = marks("# Exercise 3.2: attention\ndef attention(:\n  '''")
    assert mark.number == "3.2"


def test_an_indented_line_counts_only_where_none_stands_at_the_margin():
    both = "# Exercise 3.2: a\ndef a():\n    # Exercise 3.1: b\n    pass"
    assert [mark.number for mark in marks(both)] == ["3.2"]
    assert [mark.number for mark in marks("  # Exercise 3.1: b")] == ["3.1"]


def test_names_that_a_cell_makes_and_needs():
    source = "from math import sqrt\nk = 2\ndef f(x, y=k):\n    return g(x) * sqrt(y) + len(z)"
    assert defined_names(source) == {"sqrt", "k", "f"}
    assert needed_names(source) == {"g", "z", "len"}


def test_names_are_read_past_magics():
    assert defined_names("%matplotlib inline\n!ls\ndef f():\n    pass") >= {"f"}


def test_calls_of_the_course_s_tools_go_and_lines_keep_their_numbers():
    source = (
        "from attn_course import check, hint\nx = 1\ncheck(\n    f\n)\ny = f.check(2)\nhint('3.2')"
    )
    cleaned = without_tools(source)
    assert cleaned.split("\n") == ["#", "x = 1", "#", "#", "#", "y = f.check(2)", "#"]


def test_a_call_that_shares_its_line_stays():
    assert without_tools("x = 1; check(f)") == "x = 1; check(f)"


@pytest.mark.parametrize(
    "marker", ["# NBVAL_SKIP", "#NBVAL_IGNORE_OUTPUT", "  # NBVAL_RAISES_EXCEPTION"]
)
def test_nbval_s_markers_go(marker):
    assert "NBVAL" not in without_tools(f"{marker}\nx = 1\ny = '''\n{marker}\n'''")


def test_normal_form_ignores_comments_docstrings_and_layout():
    one = 'def f(x):\n    """Say."""\n    return x+1  # add'
    assert normal_form(one) == normal_form("def f( x ):\n  return x + 1")
    assert normal_form(one) != normal_form("def f(x):\n    return x + 2")


def test_shape_also_ignores_the_names_of_variables_but_not_what_is_called():
    one = "def f(query: Tensor) -> Tensor:\n    s = query.sum()\n    return s / 2"
    assert shape(one) == shape("def f(q):\n    total = q.sum()\n    return total / 2")
    assert shape(one) != shape("def f(q):\n    total = q.mean()\n    return total / 2")


@pytest.mark.parametrize(
    "source",
    [
        "\0",
        "(" * 100_000,
        "-" * 100_000 + "1",
        "+".join("a" * 200_000),
        "a" + ".b" * 90_000,
        "if a: pass\n" + "elif a: pass\n" * 10_000,
        "f'" + "{" * 1000,
        "%time\n" * 5_000,
        "%time x = 1\n" * 1_000 + "y = (",
        "x = " + "9" * 100_000,
        "\ud800",
        "# Exercise 3.2: " + "é" * 10_000,
        "'\\N{x}'",
    ],
    ids=lambda source: ascii(source[:12]),
)
def test_hostile_code_is_read_without_harm(source):
    started = time.process_time()
    for read in (marks, parse, defined_names, needed_names, without_tools, normal_form, shape):
        read(source)
    # a minute would be a way to stop the whole run
    assert time.process_time() - started < 60


def test_imports_that_are_given_go_and_lines_keep_their_numbers():
    given = imports("import torch\nfrom attn_course.blocks import DecoderBlock, LayerNorm as Norm")
    source = (
        "import torch\nfrom attn_course.blocks import (\n    LayerNorm as Norm,\n)\n"
        "from attn_course.blocks import DecoderBlock, EncoderBlock\nx = 1"
    )
    assert without_imports(source, given) == (
        "#\n#\n#\n#\nfrom attn_course.blocks import DecoderBlock, EncoderBlock\nx = 1"
    )
