"""Questions of the lessons: quizzes whose wrong options explain themselves, and predictions.

The texts come from the chapters; the build compiles them into `data/questions.json`. Answers
are kept in the progress file. `recall` asks again what was missed; `calibration` shows how
often the learner was right at what confidence.
"""

from __future__ import annotations

import html
import json
import random
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from attn_course.learner import progress
from attn_course.notebook.display import display_bundle
from attn_course.notebook.shell import in_notebook

CONFIDENCES = (50, 60, 70, 80, 90, 100)
"""What a learner can state, in percent: 50 is a coin's toss between right and wrong."""

RECALLED = 3
"""How many questions on earlier chapters open a chapter."""

WORDS = {
    "right": "Right.",
    "wrong": "Not quite.",
    "nothing": "There is nothing to ask again yet.",
    "no_commitment": "You had not committed to a prediction.",
    "unmeasured": "No prediction has been measured yet.",
}
"""What is told about answers; the words on the questions are the explorers'."""


@dataclass(frozen=True)
class Option:
    """One option of a choice: its text, whether it is right, and why or why not."""

    text: str
    right: bool = False
    why: str = ""


@dataclass(frozen=True)
class Question:
    """A question of a chapter.

    Attributes:
        id: unique over the course.
        chapter: two digits.
        kind: "choice", "prediction-choice" or "prediction-number".
        prompt: the question, in Markdown.
        options: for the two kinds of choice.
        low, high, tolerance, unit: for a number: its range, and how near counts as right.
    """

    id: str
    chapter: str
    kind: str
    prompt: str
    options: tuple[Option, ...] = ()
    low: float = 0.0
    high: float = 1.0
    tolerance: float = 0.1
    unit: str = ""

    @property
    def right(self) -> int:
        """The index of the right option of a choice."""
        return next(k for k, option in enumerate(self.options) if option.right)


def get(question: str) -> Question:
    """The question with this id.

    Raises:
        ValueError: if there is none.
    """
    if question not in _questions():
        raise ValueError(f"no question is called {question!r}; it is built from the chapters")
    return _questions()[question]


def example(kind: str) -> Question:
    """The course's first question whose kind starts with `kind`: "choice" or "prediction".

    Raises:
        ValueError: if there is none yet.
    """
    for question in _questions().values():
        if question.kind.startswith(kind):
            return question
    raise ValueError(f"the course has no question of kind {kind!r} yet")


def quiz(question: str) -> None:
    """Show a multiple-choice question; every option explains itself once chosen."""
    from attn_course.explorers import Quiz

    _show(Quiz(question))


def predict(question: str) -> None:
    """Ask for a prediction and how sure the learner is of it, before the run that measures it."""
    from attn_course.explorers import Predict

    _show(Predict(question))


def recall(chapter: str) -> None:
    """Ask three questions on earlier chapters: first those that were missed, then new ones."""
    chosen = to_recall(chapter)
    if not chosen:
        display_bundle(WORDS["nothing"], f"<p>{WORDS['nothing']}</p>")
    for question in chosen:
        quiz(question.id)


def to_recall(chapter: str) -> list[Question]:
    """The three questions that open `chapter`: missed, then unasked, then known ones.

    Within each group the order is shuffled by the chapter's number, so that every chapter
    opens with others and the same learner sees the same ones when it is run again.
    """
    earlier = [q for q in _questions().values() if q.kind == "choice" and q.chapter < chapter]
    random.Random(chapter).shuffle(earlier)
    given = progress.load()["answers"]

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
    asked = get(question)
    answer = _measured_answer(asked, measured)
    given = progress.answers(question)
    if not given:
        _tell(f"Measured: {_shown(asked, answer)}. {WORDS['no_commitment']}")
        return
    right = is_right(asked, given[-1]["answer"], answer)
    progress.amend_answer(question, right=right, measured=answer)
    _tell(
        f"{WORDS['right'] if right else WORDS['wrong']} You predicted "
        f"{_shown(asked, given[-1]['answer'])} with {given[-1]['confidence']} % confidence; "
        f"measured: {_shown(asked, answer)}."
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
    counts: dict[int, list[int]] = {}
    for given in progress.load()["answers"].values():
        for answer in given[:1]:  # a second try is no prediction any more
            if "confidence" in answer and "right" in answer:
                entry = counts.setdefault(int(answer["confidence"]), [0, 0])
                entry[0] += bool(answer["right"])
                entry[1] += 1
    rows = [(confidence, right, asked) for confidence, (right, asked) in sorted(counts.items())]
    _tell(
        "\n".join(f"{c} % sure: right {right} of {asked} times" for c, right, asked in rows)
        or WORDS["unmeasured"]
    )
    if rows and in_notebook():
        from IPython.display import display

        from attn_course.plots import calibration_plot

        display(calibration_plot(rows))
    return rows


@cache
def _questions() -> dict[str, Question]:
    """All questions by id, in course order."""
    source = files("attn_course") / "data" / "questions.json"
    raw = json.loads(source.read_text(encoding="utf-8")) if source.is_file() else {}
    return {name: parse(name, entry) for name, entry in raw.items()}


def parse(name: str, entry: dict[str, Any]) -> Question:
    """A question from its compiled form."""
    options = tuple(Option(**option) for option in entry.get("options", ()))
    numbers = {key: entry[key] for key in ("low", "high", "tolerance", "unit") if key in entry}
    return Question(name, entry["chapter"], entry["kind"], entry["prompt"], options, **numbers)


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


def _shown(question: Question, answer: float) -> str:
    if question.kind == "prediction-choice":
        return f"“{question.options[int(answer)].text}”"
    return f"{answer:.3g}{' ' + question.unit if question.unit else ''}"


def _show(view: Any) -> None:
    """The view in a notebook, its text in a terminal."""
    if in_notebook():
        from IPython.display import display

        display(view)
    else:
        print(view)


def _tell(text: str) -> None:
    display_bundle(text, f"<p>{html.escape(text).replace(chr(10), '<br>')}</p>")
