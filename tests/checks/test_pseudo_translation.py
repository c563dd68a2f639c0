"""Checks in the pseudo-language: the same verdicts, and no sentence that missed the door."""

import re

import pytest

from attn_course import sentences
from attn_course.checks import examine, exercises, get
from tests.test_pseudo_translation import assert_all_marked

# what an answer returned, or an error's own text; no apostrophe
_VALUE = re.compile(r"(?<![A-Za-z])'[^'\n]*'(?![A-Za-z])")
_RAISED = re.compile(r"rraaiisseedd [^⟧]*")


def some_answers(exercise):
    """The reference, wrong answers of several kinds, and what is no answer at all."""

    def unwritten(*_):
        raise NotImplementedError

    versions = [v for m in exercise.mistakes for v in exercise.versions(m)[:1]]
    return [exercise.reference, *versions[:: max(1, len(versions) // 4)], unwritten, lambda *_: 3]


@pytest.mark.parametrize("name", exercises())
def test_verdicts_are_the_same_and_say_no_plain_word(name, monkeypatch):
    exercise = get(name)
    answers = some_answers(exercise)
    plain = [examine(answer, exercise) for answer in answers]
    monkeypatch.setenv(sentences.VARIABLE, sentences.PSEUDO)
    for before, answer in zip(plain, answers, strict=True):
        report = examine(answer, exercise)
        assert (report.passed, report.mistakes) == (before.passed, before.mistakes)
        assert report.stages == before.stages
        text = _RAISED.sub("", _VALUE.sub("", report.as_text()))
        assert_all_marked(text, known=name)


@pytest.mark.parametrize("name", exercises())
def test_what_the_catalogue_says_is_a_constant_that_is_marked_once(name, monkeypatch):
    monkeypatch.setenv(sentences.VARIABLE, sentences.PSEUDO)
    exercise = get(name)
    told = [mistake.message for mistake in exercise.mistakes]
    told += [stage.message for stage in exercise.stages]
    for sentence in (*told, *exercise.hints, exercise.may_use):
        assert_all_marked(sentences.spoken(sentence))
