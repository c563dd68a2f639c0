"""A family of mistakes: an exercise picks its own, in the family's words or in its own."""

import pytest

from attn_course.checks.catalogue.families.family import Family
from attn_course.checks.catalogue.families.gradient import detached
from attn_course.checks.catalogue.families.refusal import asserted
from attn_course.checks.edits import edited
from attn_course.checks.exercise import Mistake

FAMILY = Family(
    Mistake("doubled", "Twice.", {"n + 1": "n + 2"}, also=({"n + 1": "n + n"},)),
    Mistake("halved", "Half.", lambda n: n / 2),
)


def next_number(n):
    if n < 0:
        raise ValueError(f"{n} is below 0")
    return n + 1


def test_an_exercise_tells_a_mistake_in_its_own_words_and_adds_ways_to_make_it():
    told = FAMILY.told("twice", "Two for one.", like="doubled", also=({"n + 1": "2 * n"},))
    assert (told.id, told.message) == ("twice", "Two for one.")
    assert told.versions == ({"n + 1": "n + 2"}, {"n + 1": "n + n"}, {"n + 1": "2 * n"})
    assert FAMILY["doubled"].message == "Twice."


def test_an_exercise_takes_a_family_but_for_what_it_does_not_know():
    assert [mistake.id for mistake in FAMILY.without("halved")] == ["doubled"]
    assert [mistake.id for mistake in FAMILY] == ["doubled", "halved"]


def test_only_edits_can_be_put_together_with_others():
    assert FAMILY.edits("doubled") == {"n + 1": "n + 2"}
    with pytest.raises(TypeError, match="halved"):
        FAMILY.edits("halved")


def test_what_is_asserted_fails_as_an_assert_does():
    told = Family(asserted("Below 0 an assert fails."))
    wrong = edited(next_number, told.edits("asserted"))
    assert wrong(1) == 2
    with pytest.raises(AssertionError):
        wrong(-1)


def test_all_that_is_returned_is_cut_from_its_graph():
    assert detached("a", "b") == {"return a, b": "return a.detach(), b.detach()"}
