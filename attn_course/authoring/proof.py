"""A stub must fail its check and a solution pass it, or the exercise teaches nothing."""

import contextlib
import io
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from attn_course.authoring.answers import Answer
from attn_course.authoring.environment import execution_environment
from attn_course.authoring.errors import BuildError
from attn_course.authoring.names import plain_python
from attn_course.authoring.notebooks import Book
from attn_course.checks.report import Report

Judge = Callable[[Any, str], Report]
_NOT_NEEDED = ("install", "progress", "check-")


def prove(solutions: Book, answers: dict[str, Answer], judge: Judge) -> dict[str, str]:
    """Run the solutions notebook's code here, and judge each answer as stub and as solution.

    A stub is tried beside the right answers of the exercises before it. Returns what is shown
    of each solution, by the exercise's name. Raises BuildError for a stub that passes, a
    solution that does not, and a cell that fails.
    """
    shown: dict[str, str] = {}
    namespace: dict[str, Any] = {"__name__": "__main__", "display": lambda *_, **__: None}
    with execution_environment(), warnings.catch_warnings(), _without_pictures():
        warnings.simplefilter("ignore")
        for cell in solutions.notebook.cells:
            if cell.cell_type != "code" or cell.id.startswith(_NOT_NEEDED):
                continue
            answer = answers.get(cell.id.removeprefix("answer-"))
            if answer is not None:
                _prove_stub(solutions.place(cell), answer, dict(namespace), judge)
            _run(cell.source, namespace, solutions.place(cell))
            if answer is not None:
                report = _proven(solutions.place(cell), answer, namespace, judge)
                shown[answer.entry.name] = f"{report.as_text()}\n{report.as_html()}"
    return shown


def _prove_stub(place: str, answer: Answer, namespace: dict[str, Any], judge: Judge) -> None:
    _run(answer.stub, namespace, f"{place}, as a stub")
    report = _judged(namespace, answer, judge)
    if report.passed:
        raise BuildError(
            "{place}: the stub passes its own check, so nothing is left to write", place=place
        )


def _proven(place: str, answer: Answer, namespace: dict[str, Any], judge: Judge) -> Report:
    report = _judged(namespace, answer, judge)
    if not report.passed:
        raise BuildError(
            "{place}: the solution does not pass its own check:\n{message}",
            place=place,
            message=report.message,
        )
    return report


def _judged(namespace: dict[str, Any], answer: Answer, judge: Judge) -> Report:
    name = answer.entry.name
    with contextlib.redirect_stdout(io.StringIO()):
        return judge(namespace[name], name)


def _run(code: str, namespace: dict[str, Any], place: str) -> None:
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(plain_python(code), f"<{place}>", "exec"), namespace)
    except Exception as error:
        told = "".join(traceback.format_exception(error)[2:])
        raise BuildError(
            "{place} fails:\n{code}\n\n{told}", place=place, code=code, told=told
        ) from None


@contextlib.contextmanager
def _without_pictures() -> Iterator[None]:
    """Draw into nothing: the pictures of these cells are made when the notebook is executed."""
    import matplotlib
    import matplotlib.pyplot as plt

    before = matplotlib.get_backend()
    plt.switch_backend("agg")
    try:
        yield
    finally:
        plt.close("all")
        matplotlib.use(before)
