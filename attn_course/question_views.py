"""The questions as ipywidgets: buttons and sliders that work by keyboard, answers kept.

Imported only when a question is shown, so that ipywidgets costs nothing before.
"""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets
from IPython.display import display
from markdown_it import MarkdownIt

from attn_course import progress
from attn_course.checks.report import in_notebook
from attn_course.questions import CONFIDENCES, WORDS, Option, Question

_WIDE = {"width": "auto", "max_width": "46em"}
_markdown = MarkdownIt("commonmark", {"html": False})


def choice_view(question: Question) -> widgets.Widget:
    """A question with one right option; the chosen option's explanation is shown."""
    choice = _radio(question.options)
    button = _button(WORDS["answer"], f"Answer: {_plain(question.prompt)}")
    feedback = _live_region()

    def on_click(_button: widgets.Button) -> None:
        if choice.index is None:
            feedback.value = WORDS["choose"]
            return
        option = question.options[choice.index]
        progress.record_answer(question.id, answer=choice.index, right=option.right)
        verdict = WORDS["right"] if option.right else WORDS["wrong"]
        mark = "✓" if option.right else "✗"
        feedback.value = f"<strong>{mark} {verdict}</strong> {inline_html(option.why)}"

    button.on_click(on_click)
    return _framed([_prompt(question), choice, button, feedback])


def prediction_view(question: Question) -> widgets.Widget:
    """A prediction with a confidence; committing closes it, for it is kept as it was made."""
    if question.options:
        answer: Any = _radio(question.options)
    else:
        middle, step = (question.low + question.high) / 2, (question.high - question.low) / 100
        answer = widgets.FloatSlider(
            value=middle,
            min=question.low,
            max=question.high,
            step=step,
            readout_format=".3g",
            description=question.unit,
            layout=widgets.Layout(width="24em"),
        )
    sure = widgets.SelectionSlider(
        options=[(f"{percent} %", percent) for percent in CONFIDENCES],
        value=70,
        description=WORDS["confidence"],
        style={"description_width": "initial"},
        layout=widgets.Layout(width="24em"),
    )
    button = _button(WORDS["commit"], f"Commit: {_plain(question.prompt)}")
    feedback = _live_region()

    def close(text: str) -> None:
        for control in (answer, sure, button):
            control.disabled = True
        feedback.value = text

    def on_click(_button: widgets.Button) -> None:
        chosen = answer.index if question.options else answer.value
        if chosen is None:
            feedback.value = WORDS["choose"]
            return
        progress.record_answer(question.id, answer=chosen, confidence=sure.value)
        close(WORDS["committed"])

    button.on_click(on_click)
    before = progress.answers(question.id)
    if before:
        _restore(question, answer, before[-1]["answer"])
        sure.value = before[-1]["confidence"]
        close(WORDS["before"])
    return _framed([_prompt(question), answer, sure, button, feedback])


def display_view(view: widgets.Widget, text: str, still: str) -> None:
    """Show a widget, with text and HTML for readers without a kernel; text in a terminal."""
    if not in_notebook():
        print(text)
        return
    bundle = {
        "application/vnd.jupyter.widget-view+json": {
            "version_major": 2,
            "version_minor": 0,
            "model_id": view.model_id,
        },
        "text/plain": text,
        "text/html": still,
    }
    display(bundle, raw=True)


def inline_html(markdown: str) -> str:
    """Markdown as HTML, raw HTML escaped."""
    return _markdown.render(markdown).strip()


def _restore(question: Question, answer: Any, value: float) -> None:
    if question.options:
        answer.index = int(value)
    else:
        answer.value = value


def _radio(options: tuple[Option, ...]) -> widgets.RadioButtons:
    return widgets.RadioButtons(
        options=[option.text for option in options], index=None, layout=widgets.Layout(**_WIDE)
    )


def _button(text: str, tooltip: str) -> widgets.Button:
    return widgets.Button(description=text, tooltip=tooltip, button_style="")


def _live_region() -> widgets.HTML:
    return widgets.HTML("", layout=widgets.Layout(**_WIDE))


def _prompt(question: Question) -> widgets.HTML:
    return widgets.HTML(inline_html(question.prompt), layout=widgets.Layout(**_WIDE))


def _framed(children: list[widgets.Widget]) -> widgets.VBox:
    frame = widgets.Layout(border="1px solid var(--jp-border-color1, #bbb)", padding="0 1em .5em")
    return widgets.VBox(children, layout=frame)


def _plain(markdown: str) -> str:
    return " ".join(markdown.split())[:80]
