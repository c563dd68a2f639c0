"""What Quiz and Predict share: a question, and how it reads without a kernel."""

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import traitlets
from markdown_it import MarkdownIt
from matplotlib.figure import Figure

from attn_course.explorers.base import STATE, Explorer
from attn_course.explorers.data import Whole
from attn_course.learner.questions import Question, example, get
from attn_course.plots.fonts import family_for
from attn_course.sentences import joined, say, spoken

NONE = -1
"""The index of no option."""
NEAR = "A number within {tolerance} of the measured one is right."
_PARTS = ("question", "prompt", "options", "low", "high", "unit", "confidences", "early")
_markdown = MarkdownIt("commonmark", {"html": False})


class Asked(Explorer):
    """A question, shown without a kernel as the text that it is.

    Attributes:
        asked: the question.
    """

    size = (7.0, 2.4)

    question = traitlets.Unicode().tag(**STATE)
    prompt = traitlets.Unicode().tag(**STATE)
    choice = Whole(NONE).tag(**STATE)

    asked: Question
    _built = False

    def __init__(self, **state: Any) -> None:
        """Take the question's parts, which no one changes afterwards, and an answer."""
        super().__init__(**state)
        self._built = True

    @traitlets.validate(*_PARTS)
    def _unchanged(self, proposal: Any) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        if self._built and value != getattr(self, name):
            raise traitlets.TraitError(self.t("fixed", name=name))
        return value

    def numbers(self) -> Mapping[str, np.ndarray]:
        """A question has no numbers to compare."""
        return {}

    def _check(self, state: Mapping[str, Any]) -> str | None:
        count = len(state["options"])
        for name in ("choice", "answer"):
            if not NONE <= state.get(name, NONE) < max(count, 0):
                return self.t("option_allowed", count=count, got=state[name])
        return None

    def _describe(self, numbers: Mapping[str, np.ndarray]) -> str:
        return self._text()

    def _text(self) -> str:
        """The question and its options, a line each."""
        return "\n".join(
            [self.asked.prompt, *(f"  ○ {option.text}" for option in self.asked.options)]
        )

    def _alt(self, numbers: Mapping[str, np.ndarray]) -> str:
        return self._text()

    def _still(self, png: bytes, alt: str) -> str:
        items = "".join(f"<li>{inline(option.text)}</li>" for option in self.asked.options)
        return f"{block(self.asked.prompt)}{f'<ul>{items}</ul>' if items else ''}"

    def _draw(self, figure: Figure, numbers: Mapping[str, np.ndarray]) -> None:
        lines = [textwrap.fill(line, 84) for line in self._text().split("\n")]
        text = "\n".join(lines)
        figure.set_dpi(72)  # words: the HTML beside it is what is read
        figure.set_size_inches(self.size[0], 0.3 + 0.22 * (1 + text.count("\n")))
        figure.text(0.02, 0.5, text, va="center", family=family_for([text]), parse_math=False)


def block(markdown: str) -> str:
    """Markdown as HTML, raw HTML escaped."""
    return _markdown.render(markdown).strip()


def inline(markdown: str) -> str:
    """Markdown of one line as HTML without a paragraph around it."""
    return _markdown.renderInline(markdown)


def question_of(question: str | Question | None, kind: str) -> Question:
    """The question of this id, or a good example, in the reader's language.

    Raises ValueError for a question of another kind.
    """
    if question is None:
        question = example(kind)
    asked = get(question) if isinstance(question, str) else question
    if not asked.kind.startswith(kind):
        raise ValueError(f"question {asked.id!r} is a {asked.kind}, not a {kind}")
    options = tuple(
        replace(option, text=spoken(option.text), why=spoken(option.why))
        for option in asked.options
    )
    return replace(asked, prompt=_prompt(asked), options=options, unit=spoken(asked.unit))


def _prompt(asked: Question) -> str:
    """What is asked, and for a number how near counts as right."""
    if asked.kind != "prediction-number":
        return spoken(asked.prompt)
    near = say(NEAR, tolerance=f"{asked.tolerance:g}")
    return spoken(joined([asked.prompt, near], between="\n\n"))
