"""`check` survives whatever an answer does, and shows its verdict once."""

import math
import random
import subprocess
import sys
import threading
import time

import nbformat
import pytest
import torch
from nbclient import NotebookClient

from attn_course import checks
from attn_course.checks import WrongAnswer, check, examine, findings, get, runner
from attn_course.learner import progress
from attn_course.lesson.hints import hint
from attn_course.self_attention import SelfAttention

NAME = "scaled_dot_product_attention"


def right(query, key, value, mask=None):
    return get(NAME).reference(query, key, value, mask)


@pytest.fixture(autouse=True)
def _fresh_progress(monkeypatch):
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", progress.MEMORY)
    monkeypatch.setattr(progress, "_memory", {})


@pytest.fixture
def _short_limit(monkeypatch):
    monkeypatch.setattr(findings, "TIME_LIMIT", 0.3)


def raises(*_args):
    raise RuntimeError("my own words")


def leaves(*_args):
    sys.exit(3)


def recurses(*args):
    return recurses(*args)


def cyclic(*_args):
    value = []
    value.append(value)
    return value


class Liar(torch.Tensor):
    """A tensor that claims to equal everything."""

    @classmethod
    def __torch_function__(cls, *_args, **_kwargs):
        return torch.tensor(True)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (raises, ["RuntimeError", "my own words", 'raise RuntimeError("my own words")']),
        (leaves, ["SystemExit"]),
        (recurses, ["RecursionError"]),
        (cyclic, ["RecursionError"]),
        (lambda *_: None, ["(output, weights)", "None", "return"]),
        (lambda q, k, v, m=None: (right(q, k, v, m)[0], None), ["`weights` is missing", "None"]),
        (lambda *_: (1.0, 2.0), ["must be a tensor", "1.0"]),
        (lambda *_: (torch.zeros(1, 1), torch.zeros(1, 1)), ["shape (1, 1)", "(1, 2) = (i, d)"]),
        (lambda q, k, v, m=None: (right(q, k, v, m)[0].half(), v), ["torch.float16"]),
        (lambda q, k, v, m=None: (right(q, k, v, m)[0].long(), v), ["torch.int64"]),
        (lambda q, k, v, m=None: (right(q, k, v, m)[0].to("meta"), v), ["device meta"]),
        (lambda q, k, v, m=None: (right(q, k, v, m)[0] * math.nan, v), ["NaN"]),
        (lambda q, k, v, m=None: (right(q, k, v, m)[0].to_sparse() + 1, v), ["plus 1"]),
        (lambda *_: Liar(torch.zeros(1)), ["(output, weights)"]),
        (lambda query: query, ["TypeError", "positional argument"]),
        (int, ["TypeError"]),
    ],
)
def test_a_wrong_answer_gets_a_cause_and_never_raises(answer, words, capsys):
    report = check(answer, NAME)
    assert not report.passed
    assert report.exercise == NAME
    for word in words:
        assert word in report.message
    assert capsys.readouterr().out.count("not right yet") == 1


def test_values_only_shape_hint_names_the_axes():
    def expanded(query, key, value, mask=None):
        output, weights = right(query, key, value, mask)
        return output[None], weights

    assert "axes of size 1" in examine(expanded, get(NAME)).message


@pytest.mark.usefixtures("_short_limit")
def test_an_endless_loop_ends_in_the_main_thread_and_in_others():
    def endless(*_args):
        while True:
            pass

    reports = []
    thread = threading.Thread(target=lambda: reports.append(examine(endless, get(NAME))))
    thread.start()
    thread.join()
    reports.append(examine(endless, get(NAME)))
    for report in reports:
        assert "endless loop" in report.message
        assert report.mistake is None


@pytest.mark.usefixtures("_short_limit")
def test_no_alarm_is_left_behind():
    examine(lambda *_: time.sleep(5), get(NAME))
    time.sleep(0.8)  # a forgotten timer would raise here
    assert runner.run(lambda: 3, ()).value == 3


def test_an_interrupt_reaches_the_learner():
    def interrupted(*_args):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        examine(interrupted, get(NAME))


def test_an_answer_that_remembers_is_found_out():
    calls = []

    def remembers(query, key, value, mask=None):
        calls.append(1)
        output, weights = right(query, key, value, mask)
        return output + (len(calls) > len(get(NAME).cases())), weights

    assert "second time" in examine(remembers, get(NAME)).message


def test_random_numbers_of_the_learner_are_left_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    examine(right, get(NAME))
    assert torch.equal(torch.rand(3), expected)


def test_prints_are_shown_once_and_capped(capsys):
    def chatty(query, key, value, mask=None):
        print("x" * 50_000)
        return right(query, key, value, mask)

    check(chatty, NAME)
    printed = capsys.readouterr().out
    assert "first probe" in printed
    assert printed.count("x") <= runner.KEPT_OUTPUT + 10


def test_a_wider_dtype_passes_with_a_remark():
    report = examine(lambda *args: tuple(t.double() for t in right(*args)), get(NAME))
    assert report.passed
    assert "float64" in report.remarks[0]


# kills: inputs of which nothing is true, where whole numbers are all that goes in
def test_a_wider_dtype_from_whole_numbers_is_held_against_pytorchs_own():
    exercise = get("sinusoidal_encoding")
    report = examine(lambda n, d: exercise.reference(n, d).double(), exercise)
    assert report.passed
    assert "inputs" not in report.remarks[0]
    assert "torch.float64, wider than the torch.float32" in report.remarks[0]


def test_a_wider_dtype_is_remarked_wherever_it_comes_back():
    exercise = get("apply_rope")

    def left_wide(x, positions, base=10000.0):
        wide = x.float() if x.dtype == torch.bfloat16 else x
        return exercise.reference(wide, positions, base)

    report = examine(left_wide, exercise)
    assert report.passed
    assert "torch.bfloat16 and the result is torch.float32" in report.remarks[0]


def test_numbers_are_shown_only_where_they_are_few():
    exercise = get("relative_shift")
    small = examine(lambda shift, d_model: exercise.reference(shift, d_model).mT, exercise)
    assert "Expected: matrix = [[0.5403, -0.8415]" in small.message

    def wrong_when_wide(shift, d_model):
        return exercise.reference(shift, d_model) * (1 if d_model < 5 else 2)

    wide = examine(wrong_when_wide, exercise)
    assert not wide.passed
    assert "Expected" not in wide.message


def test_half_precision_costs_no_marks():
    def late_scale(query, key, value, mask=None):
        if query.dtype != torch.float16:
            return right(query, key, value, mask)
        weights = ((query @ key.mT) / 8).softmax(-1)
        return weights @ value, weights

    report = examine(late_scale, get(NAME))
    assert report.passed
    assert "float16" in report.remarks[0]


def test_strict_raises_with_the_report():
    with pytest.raises(WrongAnswer, match="my own words") as caught:
        check(raises, NAME, strict=True)
    assert caught.value.report.exercise == NAME
    assert check(right, NAME, strict=True).passed


def test_passing_is_recorded_and_stays():
    check(raises, NAME)
    assert progress.passed() == set()
    check(right, NAME)
    check(raises, NAME)
    assert progress.passed() == {NAME}


def test_names_and_numbers_find_the_exercise():
    number = get(NAME).number
    assert check(right, number).exercise == NAME
    right.__name__ = "scaled_dot_product_atention"
    with pytest.raises(ValueError, match="did you mean scaled_dot_product_attention"):
        check(right)
    with pytest.raises(ValueError, match="no exercise is called '99'"):
        check(right, "99")


def test_what_is_no_function_gets_a_plain_sentence():
    for value in (torch.zeros(3), None, 3.5, "softmax"):
        assert "without calling it" in check(value).message
        assert "without calling it" in check(value, NAME).message


def test_answer_and_exercise_may_come_in_either_order_and_a_number_without_quotes(capsys):
    assert check("3.2", right).exercise == NAME
    assert check(right, 3.2).exercise == NAME
    hint(3.2)
    assert get(NAME).hints[0] in capsys.readouterr().out


def test_an_object_in_place_of_its_class_is_told_so(capsys):
    made = SelfAttention(3, 2)
    for report in (check(made), check(made, "SelfAttention")):
        assert not report.passed
        assert "check takes the class itself: check(SelfAttention)" in report.message
    assert "no exercise is called" not in capsys.readouterr().out


def test_hints_come_one_by_one_and_the_last_stays(capsys):
    hints = get(NAME).hints
    for _ in range(len(hints) + 1):
        hint(NAME)
    shown = capsys.readouterr().out
    positions = [shown.index(text) for text in hints]
    assert positions == sorted(positions)
    assert shown.count(hints[-1]) == 2
    with pytest.raises(ValueError, match="no exercise"):
        hint("77.7")


def test_partial_credit_follows_the_stages():
    def mean_of_values(query, key, value, mask=None):
        weights = torch.full((*query.shape[:-1], key.shape[-2]), 1 / key.shape[-2])
        return weights @ value, weights

    stages = dict(examine(mean_of_values, get(NAME)).stages)
    assert stages["values"]
    assert not stages["scale"]
    assert all(dict(examine(right, get(NAME)).stages).values())


def test_a_notebook_shows_the_verdict_once_and_escapes_it():
    source = (
        "from attn_course import check\n"
        "def wrong(*args): raise ValueError('<script>alert(1)</script>')\n"
        f"check(wrong, {NAME!r})"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    NotebookClient(notebook, timeout=120).execute()
    (output,) = notebook.cells[0].outputs
    assert set(output.data) == {"text/plain", "text/html"}
    assert "<script>" not in output.data["text/html"]
    assert "&lt;script&gt;" in output.data["text/html"]


def test_all_names_are_listed_in_course_order():
    numbers = [[int(part) for part in get(name).number.split(".")] for name in checks.exercises()]
    assert numbers == sorted(numbers)
    assert len(numbers) > 0


class Hostile:
    """Raises whatever is asked of it."""

    def __getattribute__(self, name):
        raise ZeroDivisionError(name)

    def __eq__(self, other):
        raise ZeroDivisionError

    __hash__ = None


class Endless(list):
    def __iter__(self):
        while True:
            yield 1


@pytest.mark.parametrize(
    "make",
    [
        Hostile,
        lambda: (Hostile(), Hostile()),
        lambda: 10**400,
        lambda: torch.zeros(2, dtype=torch.complex64),
        lambda: torch.zeros(1).expand(10**12),
        lambda: torch.zeros((), device="meta"),
        lambda: torch.eye(2).to_sparse(),
    ],
)
@pytest.mark.parametrize("exercise", ["dot_products", "cross_entropy", "training_step", "lookup"])
def test_no_result_can_make_the_check_raise(exercise, make):
    report = examine(lambda *_args: make(), get(exercise))
    assert not report.passed
    assert report.message


def test_a_result_without_end_and_a_loop_that_swallows_come_to_an_end(monkeypatch):
    monkeypatch.setattr(findings, "TIME_LIMIT", 0.2)

    def swallow(*_args):
        while True:
            try:
                while True:
                    pass
            except:  # noqa: E722
                pass

    for answer in (swallow, lambda *_args: Endless()):
        assert "time limit" in examine(answer, get("lookup")).message


def test_many_slow_calls_are_told_from_an_endless_one(monkeypatch):
    monkeypatch.setattr(findings, "TOTAL_LIMIT", 0.3)

    def slow(*args):
        time.sleep(0.1)
        return get("lookup").reference(*args)

    message = examine(slow, get("lookup")).message
    assert "0.3 s for all probes together" in message
    assert "very slow" in message


def test_settings_of_the_whole_process_are_put_back():
    def meddles(*_args):
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_grad_enabled(False)
        torch.use_deterministic_algorithms(True)
        random.seed(0)
        sys.stdout.close()

    before = random.getstate()
    assert "return" in examine(meddles, get("lookup")).message
    assert torch.get_default_dtype() == torch.float32
    assert torch.get_default_device() == torch.device("cpu")
    assert torch.is_grad_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
    assert random.getstate() == before


def test_a_wrong_dtype_is_not_told_as_wrong_numbers():
    message = examine(lambda a, b: (a @ b.T).half(), get("dot_products")).message
    assert message.startswith("With a = ")
    assert "coarser" in message


# kills: an import of some seconds within a probe's time limit, which cuts it off in the middle
def test_what_the_first_optimizer_imports_is_there_before_the_clock_runs():
    code = (
        "import sys; from attn_course.checks import get; get('training_step');"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
