"""Questions keep answers, ask again what was missed, and hold predictions against runs."""

import pytest
import traitlets

from attn_course.explorers import Predict, Quiz
from attn_course.learner import progress, questions
from attn_course.learner.questions import parse
from attn_course.lesson import asking

COMPILED = {
    f"q{chapter}{k}": {
        "chapter": f"{chapter:02d}",
        "kind": "choice",
        "prompt": f"What is *{k}*?",
        "options": [
            {"text": "one", "right": k % 2 == 0, "why": "because <b>one</b>"},
            {"text": "two", "right": k % 2 == 1, "why": "because two"},
        ],
    }
    for chapter in (0, 1, 2)
    for k in range(3)
} | {
    "p-number": {
        "chapter": "02",
        "kind": "prediction-number",
        "prompt": "How large?",
        "low": 0.0,
        "high": 2.0,
        "tolerance": 0.1,
        "unit": "nats",
    },
    "p-choice": {
        "chapter": "02",
        "kind": "prediction-choice",
        "prompt": "Which?",
        "options": [{"text": "shrinks", "why": ""}, {"text": "grows", "why": ""}],
    },
}


@pytest.fixture(autouse=True)
def _course(monkeypatch):
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", progress.MEMORY)
    monkeypatch.setattr(progress, "_memory", {})
    compiled = {name: parse(name, entry) for name, entry in COMPILED.items()}
    monkeypatch.setattr(questions, "all_questions", lambda: compiled)


def answer(name, index):
    view = Quiz(name)
    view.answer = index
    return view


def test_an_answer_is_kept():
    assert not answer("q01", 0).options[0]["right"]
    assert answer("q01", 1).options[1]["right"]
    assert [given["right"] for given in progress.answers("q01")] == [False, True]


def test_html_in_a_text_is_escaped():
    assert "&lt;b&gt;" in Quiz("q00").options[0]["why"]


def test_choosing_is_not_yet_answering():
    Quiz("q00").choice = 1
    assert progress.answers("q00") == []


# kills: an index taken from the end; an index past the options
@pytest.mark.parametrize("index", [-2, 2])
def test_an_option_that_is_not_there_is_refused_and_not_kept(index):
    view = Quiz("q00")
    with pytest.raises(traitlets.TraitError, match=f"below 2, got {index}"):
        view.answer = index
    assert progress.answers("q00") == []


def test_recall_asks_missed_questions_first_and_known_ones_last():
    before = [question.id for question in asking.to_recall("02")]
    assert len(before) == 3
    assert all(questions.get(name).chapter < "02" for name in before)
    others = [name for name in COMPILED if name < "q2" and name not in before]
    for name in before:
        answer(name, questions.get(name).right)
    missed = others[0]
    answer(missed, 1 - questions.get(missed).right)
    again = [question.id for question in asking.to_recall("02")]
    assert again[0] == missed
    assert not set(again) & set(before)
    answer(missed, questions.get(missed).right)
    assert asking.to_recall("02")[0].id != missed


# kills: a miss that is forgotten because the right option was tried after its reason was read
def test_a_second_try_in_the_same_view_does_not_make_a_miss_good():
    for chapter in (0, 1):
        for k in range(3):
            answer(f"q{chapter}{k}", questions.get(f"q{chapter}{k}").right)
    right = questions.get("q02").right
    answer("q02", 1 - right).answer = right
    assert asking.to_recall("02")[0].id == "q02"


def test_the_first_chapter_has_nothing_to_recall(capsys):
    asking.recall("00")
    assert asking.NOTHING in capsys.readouterr().out


def commit(name, value, percent):
    view = Predict(name, confidence=percent)
    setattr(view, "choice" if view.options else "value", value)
    view.committed = True
    return view


def test_a_prediction_is_closed_once_committed():
    view = commit("p-number", 0.5, 90)
    for name, value in (("value", 0.6), ("confidence", 50), ("committed", False)):
        with pytest.raises(traitlets.TraitError, match="stays as it was made"):
            setattr(view, name, value)
    again = Predict("p-number")
    assert (again.value, again.confidence, again.committed) == (0.5, 90, True)
    assert len(progress.answers("p-number")) == 1


# kills: a lesson that cannot be run because its question changed since it was answered
@pytest.mark.parametrize(
    ("name", "answer", "confidence"),
    [("p-number", 3.5, 90), ("p-number", "1", 90), ("p-number", 1.0, 55), ("p-choice", 2, 90)],
)
def test_an_answer_that_no_longer_fits_is_asked_for_anew(name, answer, confidence):
    progress.record_answer(name, answer=answer, confidence=confidence)
    assert not Predict(name).committed
    progress.record_answer(name, answer=1, confidence=90)
    assert Predict(name).committed


# kills: a tolerance that is not told, or told of a choice
def test_a_number_is_asked_for_with_how_near_counts_as_right():
    assert Predict("p-number").asked.prompt == (
        "How large?\n\nA number within 0.1 of the measured one is right."
    )
    assert "within 0.1" in Predict("p-number").prompt
    assert Predict("p-choice").asked.prompt == "Which?"


def test_a_prediction_outside_its_range_is_refused():
    view = Predict("p-number")
    for name, value, told in (
        ("value", 2.5, "between 0 and 2, got 2.5"),
        ("confidence", 55, "50, 60, 70, 80, 90, 100 percent, got 55"),
    ):
        with pytest.raises(traitlets.TraitError, match=told):
            setattr(view, name, value)
    with pytest.raises(traitlets.TraitError, match="Choose an option"):
        Predict("p-choice").committed = True
    assert progress.answers("p-choice") == []


@pytest.mark.parametrize(("measured", "right"), [(0.58, True), (0.42, True), (0.7, False)])
def test_a_number_is_right_within_its_tolerance(measured, right, capsys):
    commit("p-number", 0.5, 60)
    asking.reveal("p-number", measured)
    assert progress.answers("p-number")[-1]["right"] is right
    assert f"measured: {measured:.3g} nats" in capsys.readouterr().out


def test_a_choice_is_revealed_by_index_or_text(capsys):
    commit("p-choice", 1, 80)
    asking.reveal("p-choice", "grows")
    assert progress.answers("p-choice")[-1]["right"]
    asking.reveal("p-choice", 0)
    assert not progress.answers("p-choice")[-1]["right"]
    for wrong in (2, -1, "falls"):
        with pytest.raises(ValueError, match="index below 2"):
            asking.reveal("p-choice", wrong)


def test_without_a_commitment_the_measurement_is_shown_alone(capsys):
    asking.reveal("p-number", 1.0)
    assert "You had not committed to a prediction." in capsys.readouterr().out
    with pytest.raises(ValueError, match="finite"):
        asking.reveal("p-number", float("nan"))


def test_calibration_counts_by_confidence(capsys):
    assert asking.calibration() == []
    commit("p-number", 0.5, 60)
    commit("p-choice", 1, 100)
    asking.reveal("p-number", 0.5)
    asking.reveal("p-choice", 0)
    assert asking.calibration() == [(60, 1, 1), (100, 0, 1)]
    assert "60 % sure: right 1 of 1" in capsys.readouterr().out


def test_an_unknown_question_is_an_error():
    with pytest.raises(ValueError, match="'nope'"):
        asking.quiz("nope")
    with pytest.raises(ValueError, match="'p-number' is a prediction-number, not a choice"):
        asking.quiz("p-number")


def test_without_a_kernel_the_question_reads_as_text():
    html = Quiz("q00").html()
    assert "What is <em>0</em>?" in html
    assert "<li>one</li>" in html
    assert "right" not in html.split("<script>")[0].split("<p>")[1]


def test_without_a_notebook_the_question_is_text(capsys):
    asking.quiz("q00")
    assert "○ one" in capsys.readouterr().out


def test_what_is_told_of_answers_is_said_in_the_readers_language(monkeypatch, capsys):
    monkeypatch.setenv("ATTN_COURSE_LANGUAGE", "en-XA")
    asking.recall("00")
    asking.reveal("p-number", 1.0)
    commit("p-number", 0.5, 60)
    asking.reveal("p-number", 0.5)
    asking.calibration()
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 4
    assert all(line.startswith("⟦") and line.endswith("⟧") for line in told)
