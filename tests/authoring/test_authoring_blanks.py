"""What is taken out of a solution, what stays, and marks that cannot be meant."""

import ast
from textwrap import dedent

import pytest

from attn_course.authoring.blanks import has_marks, solved, stubbed, without_body
from attn_course.authoring.errors import BuildError

FUNCTION = dedent(
    '''\
    from functools import cache


    @cache
    def scores(
        query: dict[str, "i d"],
        limit=lambda x: x,  # a comment: with a colon
    ) -> tuple[int, int]:
        """Say what comes back.

        Raises ValueError.
        """
        # divide first: the variance grows
        def inner(x):
            return x
        return inner(query)
    '''
)

CLASS = dedent(
    '''\
    class Layer(Base):
        """A layer."""

        size = 3

        def __init__(self, d):
            """Make it of width d."""
            super().__init__()
            self.d = d  # é before a column count

        @property
        def width(self): return self.d

        def forward(self, x):
            # multiply
            return x * self.d
    '''
)


def test_a_function_keeps_signature_and_docstring_only() -> None:
    stub = without_body(FUNCTION, "scores")
    assert stub == FUNCTION[: FUNCTION.index("    # divide")] + (
        '    raise NotImplementedError("scores is yours to write")'
    )


def test_a_class_loses_every_method_body_but_the_call_of_its_base() -> None:
    stub = without_body(CLASS, "Layer")
    assert stub == dedent(
        '''\
        class Layer(Base):
            """A layer."""

            size = 3

            def __init__(self, d):
                """Make it of width d."""
                super().__init__()
                raise NotImplementedError("Layer.__init__ is yours to write")

            @property
            def width(self):
                raise NotImplementedError("Layer.width is yours to write")

            def forward(self, x):
                raise NotImplementedError("Layer.forward is yours to write")'''
    )


def test_a_body_on_the_line_of_a_signature_with_wide_letters_goes_too() -> None:
    assert without_body("def f(π='é'): return π", "f") == (
        "def f(π='é'):\n    raise NotImplementedError(\"f is yours to write\")"
    )


def test_a_name_that_is_not_defined_is_refused() -> None:
    with pytest.raises(ValueError, match="no 'g'"):
        without_body(FUNCTION, "g")


def test_a_block_gives_way_to_an_error_and_its_marks_vanish_from_the_solution() -> None:
    code = dedent(
        """\
        def f(x):
            if x:
                ### BEGIN SOLUTION
                y = x + 1

                return y
                ### END SOLUTION
            return 0"""
    )
    assert stubbed(code, "f", "here") == dedent(
        """\
        def f(x):
            if x:
                raise NotImplementedError("f is yours to write")
            return 0"""
    )
    assert solved(code, "here") == dedent(
        """\
        def f(x):
            if x:
                y = x + 1

                return y
            return 0"""
    )


def test_the_chapter_may_hold_what_the_learner_starts_from() -> None:
    code = dedent(
        """\
        def f(x):
            ### BEGIN SOLUTION
            return x / 2
            ### STUB
            # if x:
            #     return x  # keeps its own comment
            ### END SOLUTION"""
    )
    assert solved(code, "here") == "def f(x):\n    return x / 2"
    assert stubbed(code, "f", "here") == (
        "def f(x):\n    if x:\n        return x  # keeps its own comment"
    )


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("y = x  # BLANK", "y = …"),
        ("y = x  # BLANK: a word", "y = …: a word"),
        ("y: int = (x  # BLANK: three lines\n        + 1\n    )", "y: int = …: three lines"),
        ("a, b = x, x # BLANK", "a, b = …"),
        ("x[0] += 1  # BLANK", "x[0] += …"),
        ('return f"{x} = # BLANK"  # BLANK', "return …"),
        ("print(  # BLANK: show it\n        x\n    )", "…: show it"),
    ],
)
def test_a_statement_gives_way_to_an_error_that_says_where_it_led(
    statement: str, error: str
) -> None:
    code = f"def f(x):\n    x = x\n    {statement}\n    return 1"
    stub = stubbed(code, "f", "here")
    assert stub == f'def f(x):\n    x = x\n    raise NotImplementedError("{error}")\n    return 1'
    solution = solved(code, "here")
    assert ast.dump(ast.parse(solution)) == ast.dump(ast.parse(code))
    assert not has_marks(solution)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("### BEGIN SOLUTION\n    pass", "BEGIN SOLUTION"),
        ("### END SOLUTION\n    pass", "END SOLUTION"),
        ("### STUB\n    pass\n    ### END SOLUTION", "### STUB"),
        ("### BEGIN SOLUTION\n    ### BEGIN SOLUTION\n    pass\n    ### END SOLUTION", "BEGIN"),
        ("if x:  # BLANK\n        pass", "one plain statement, not 'if x:"),
        ("return  # BLANK", "one plain statement"),
        ("# BLANK\n    pass", "one plain statement"),
        ("### BEGIN SOLUTION\n    x = 1  # BLANK\n    ### END SOLUTION", "twice"),
    ],
)
def test_marks_that_cannot_be_meant_are_refused_with_their_place(body: str, told: str) -> None:
    with pytest.raises(BuildError, match=r"^chapters/x\.py:7: ") as error:
        stubbed(f"def f(x):\n    {body}", "f", "chapters/x.py:7")
    assert told in str(error.value)


def test_words_that_look_like_marks_inside_strings_are_none() -> None:
    assert not has_marks('x = "# BLANK"')
    assert has_marks("x = 1  # BLANK")
