"""Asking a learner: quizzes whose wrong options explain themselves, and predictions.

Answers are kept in the progress file. `recall` asks again what was missed; `calibration` shows
how often the learner was right at what confidence.
"""

from __future__ import annotations

import html
import random
from collections.abc import Iterable, Mapping
from typing import Any

from attn_course.explorers import Predict, Quiz
from attn_course.learner import progress, questions
from attn_course.learner.questions import Question
from attn_course.notebook.display import display_bundle
from attn_course.notebook.shell import in_notebook
from attn_course.sentences import Spoken, constant, joined, say, spoken

RECALLED = 3
"""How many questions on earlier chapters open a chapter."""

NOTHING = "There is nothing to ask again yet."
UNCOMMITTED = "Measured: {measured}. You had not committed to a prediction."
RIGHT = "Right. You predicted {predicted} with {confidence} % confidence; measured: {measured}."
WRONG = "Not quite. You predicted {predicted} with {confidence} % confidence; measured: {measured}."
UNMEASURED = "No prediction has been measured yet."
CALIBRATED = "{confidence} % sure: right {right} of {asked} times"
"""What is told about answers; the words on the questions are the explorers'."""


def quiz(question: str) -> None:
    """Show a multiple-choice question; every option explains itself once chosen."""
    _show(Quiz(question))


def predict(question: str) -> None:
    """Ask for a prediction and how sure the learner is of it, before the run that measures it."""
    _show(Predict(question))


def recall(chapter: str) -> None:
    """Ask three questions on earlier chapters: first those that were missed, then new ones."""
    chosen = to_recall(chapter)
    if not chosen:
        _tell(NOTHING)
    for question in chosen:
        quiz(question.id)


def to_recall(chapter: str) -> list[Question]:
    """The three questions that open `chapter` for this learner."""
    return opening(chapter, questions.all_questions().values(), progress.load()["answers"])


def opening(
    chapter: str, asked: Iterable[Question], given: Mapping[str, list[dict[str, Any]]]
) -> list[Question]:
    """The three questions that open `chapter`: missed, then unasked, then known ones.

    Within each group the order is shuffled by the chapter's number, so that every chapter
    opens with others and the same learner sees the same ones when it is run again.

    Args:
        chapter: two digits.
        asked: the questions of the whole course, in its order.
        given: the learner's answers, by the question's id.
    """
    earlier = [q for q in asked if q.kind == "choice" and q.chapter < chapter]
    random.Random(chapter).shuffle(earlier)

    def rank(question: Question) -> int:
        own = [one for one in given.get(question.id, []) if "right" in one and "again" not in one]
        return 1 if not own else (2 if own[-1]["right"] else 0)

    return sorted(earlier, key=rank)[:RECALLED]


def reveal(question: str, measured: float | int | str) -> None:
    """Hold what was measured against what the learner predicted.

    Args:
        question: the prediction's id.
        measured: a number, or for a choice the option's index or its text.

    Raises:
        ValueError: if `measured` is no option of a choice, or no finite number.
    """
    asked = questions.get(question)
    answer = _measured_answer(asked, measured)
    given = progress.answers(question)
    if not given:
        _tell(say(UNCOMMITTED, measured=_shown(asked, answer)))
        return
    predicted, confidence = given[-1]["answer"], given[-1]["confidence"]
    right = is_right(asked, predicted, answer)
    progress.amend_answer(question, right=right, measured=answer)
    _tell(
        say(
            RIGHT if right else WRONG,
            predicted=_shown(asked, predicted),
            confidence=confidence,
            measured=_shown(asked, answer),
        )
    )


def is_right(question: Question, predicted: float, measured: float) -> bool:
    """Whether a prediction holds: the same option, or within the question's tolerance."""
    if question.kind == "prediction-choice":
        return int(predicted) == int(measured)
    return abs(predicted - measured) <= question.tolerance


def calibration() -> list[tuple[int, int, int]]:
    """Show, in words and as a picture, how often the learner was right at each confidence.

    Returns:
        (confidence in percent, right, asked) for each confidence that was used.
    """
    rows = _calibration_rows()
    if not rows:
        _tell(UNMEASURED)
        return rows
    lines = [say(CALIBRATED, confidence=c, right=right, asked=asked) for c, right, asked in rows]
    _tell(joined(lines, "\n"))
    if in_notebook():
        from IPython.display import display

        from attn_course.plots import calibration_plot

        display(calibration_plot(rows))
    return rows


def _calibration_rows() -> list[tuple[int, int, int]]:
    counts: dict[int, list[int]] = {}
    for given in progress.load()["answers"].values():
        for answer in given[:1]:  # a second try is no prediction any more
            if "confidence" in answer and "right" in answer:
                entry = counts.setdefault(int(answer["confidence"]), [0, 0])
                entry[0] += bool(answer["right"])
                entry[1] += 1
    return [(confidence, right, asked) for confidence, (right, asked) in sorted(counts.items())]


def _measured_answer(question: Question, measured: float | int | str) -> float:
    if question.kind != "prediction-choice":
        value = float(measured)
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"reveal({question.id!r}) needs a finite number, got {measured!r}")
        return value
    texts = [option.text for option in question.options]
    if isinstance(measured, str) and measured in texts:
        return texts.index(measured)
    if isinstance(measured, int) and 0 <= measured < len(texts):
        return measured
    raise ValueError(
        f"reveal({question.id!r}) needs an index below {len(texts)} or one of {texts}, "
        f"got {measured!r}"
    )


def _shown(question: Question, answer: float) -> Spoken:
    """An answer as it is told: an option in quotation marks, a number with its unit."""
    if question.kind == "prediction-choice":
        return say("“{option}”", option=constant(question.options[int(answer)].text))
    if not question.unit:
        return say("{number:.3g}", number=answer)
    return say("{number:.3g} {unit}", number=answer, unit=constant(question.unit))


def _show(view: Any) -> None:
    """The view in a notebook, its text in a terminal."""
    if in_notebook():
        from IPython.display import display

        display(view)
    else:
        print(view)


def _tell(sentence: Spoken) -> None:
    text = spoken(sentence)
    display_bundle(text, f"<p>{html.escape(text).replace(chr(10), '<br>')}</p>")
