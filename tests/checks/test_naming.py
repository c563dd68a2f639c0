"""When a wrong answer gets a mistake's name, and when rather none: on a toy exercise, 2x."""

from dataclasses import replace

import torch
from torch import Tensor

from attn_course.checks import examine
from attn_course.checks.exercise import Exercise, Mistake, Output, Stage


def stage(name, *numbers):
    return Stage(
        name, lambda _: [(torch.tensor([float(n)]),) for n in numbers], f"{name} are wrong"
    )


def toy(*mistakes):
    return Exercise(
        number="0.0",
        reference=lambda x: 2 * x,
        alias="twice",
        outputs=(Output("twice"),),
        stages=(stage("ones", 1), stage("small", 3), stage("negative", -2), stage("large", 100)),
        mistakes=mistakes,
        hints=("",),
        difficulty=1,
        minutes=1,
        may_use="torch",
    )


def by_value(**wrong):
    """2x, but for the numbers given: another value there, or an error."""
    values = {"one": 1.0, "three": 3.0, "minus": -2.0, "hundred": 100.0}

    def answer(x):
        for name, value in wrong.items():
            if float(x) == values[name]:
                if isinstance(value, Exception):
                    raise value
                return torch.full_like(x, value)
        return 2 * x

    return answer


def named(answer, *mistakes):
    report = examine(answer, toy(*mistakes))
    assert not report.passed
    return report.mistake


SQUARED = Mistake("squared", "squared", by_value(one=1, three=9, hundred=1e4))
NOT_DOUBLED = Mistake("not-doubled", "not doubled", by_value(one=1, three=3, hundred=100))


def test_what_a_mistake_does_everywhere_has_its_name():
    answer = by_value(one=1, three=3, hundred=100)
    assert named(answer, SQUARED, NOT_DOUBLED) == "not-doubled"


def test_a_stage_that_several_mistakes_explain_names_none():
    assert named(by_value(one=1, three=7, hundred=7), SQUARED, NOT_DOUBLED) is None


def test_the_mistake_that_explains_one_stage_more_is_named():
    assert named(by_value(one=1, three=9, hundred=7), SQUARED, NOT_DOUBLED) == "squared"


def test_another_fault_besides_leaves_the_name_of_the_first():
    answer = by_value(one=1, three=3, hundred=100, minus=0)
    assert named(answer, SQUARED, NOT_DOUBLED) == "not-doubled"


def test_the_only_mistake_that_explains_the_first_stage_is_named():
    assert named(by_value(one=1, three=7, hundred=7), SQUARED) == "squared"


def test_a_mistake_that_would_be_wrong_where_the_answer_is_right_is_not_made():
    assert named(by_value(one=1), SQUARED) is None


def test_errors_of_one_kind_need_the_same_text():
    raising = Mistake("raises", "raises", by_value(one=RuntimeError("shape (2, 3)")))
    assert named(by_value(one=RuntimeError("shape (2, 3)")), raising) == "raises"
    assert named(by_value(one=RuntimeError("something else")), raising) is None


def test_with_a_wrong_value_as_well_the_kind_of_an_error_is_enough():
    raising = Mistake("raises", "raises", by_value(one=RuntimeError("a"), three=7))
    assert named(by_value(one=RuntimeError("b"), three=7), raising) == "raises"


# -- two mistakes in one answer -----------------------------------------------------------------


def doubled(x: Tensor) -> Tensor:
    size = x.abs()
    return size.sign() * 2 * x + 0


TRIPLED = Mistake("tripled", "Times three.", {"* 2": "* 3"})
SIGN_LOST = Mistake("sign-lost", "The sign is lost.", {"* x": "* size"})
ONE_MORE = Mistake("one-more", "One too much.", {"2 * x": "2 * x + 1"})
SHIFTED = Mistake("shifted", "One too much.", {"+ 0": "+ 1"})
BY_FUNCTION = Mistake("halved", "Halved.", lambda x: x / 2)


def two_named(answer, *mistakes):
    report = examine(answer, replace(toy(*mistakes), right=doubled))
    assert not report.passed
    return report


def test_two_edits_that_together_do_what_the_answer_does_are_both_named():
    report = two_named(lambda x: 3 * x.abs(), TRIPLED, SIGN_LOST, BY_FUNCTION)
    assert report.mistakes == ("tripled", "sign-lost")
    assert report.mistake == "tripled"
    assert report.message.startswith("Times three.\nThe sign is lost.\n")


def test_two_are_named_also_where_no_stage_shows_one_alone():
    report = two_named(lambda x: 3 * x + 1, BY_FUNCTION, TRIPLED, SHIFTED)
    assert report.mistakes == ("tripled", "shifted")


def test_two_are_found_among_many_that_do_no_harm_where_the_answer_first_goes_wrong():
    elsewhere = [Mistake(f"{k}", "Large.", {"+ 0": f"+ (x > 50) * {k}"}) for k in range(1, 61)]
    report = two_named(lambda x: 3 * x + 1, *elsewhere, TRIPLED, SHIFTED)
    assert report.mistakes == ("tripled", "shifted")


def test_one_mistake_that_explains_everything_is_preferred_to_two():
    report = two_named(lambda x: 3 * x, TRIPLED, SIGN_LOST)
    assert report.mistakes == ("tripled",)


def test_edits_that_meet_in_one_place_are_not_made_together():
    report = two_named(lambda x: 3 * x + 1, TRIPLED, ONE_MORE)
    assert report.mistakes == ()
