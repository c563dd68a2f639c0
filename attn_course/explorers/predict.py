"""Predict: a number or an option to commit to before the run that measures it."""

from collections.abc import Mapping
from typing import Any

import traitlets

from attn_course.explorers.asked import NONE, Asked, block, inline, question_of
from attn_course.explorers.base import STATE
from attn_course.explorers.data import Whole, show
from attn_course.learner import progress
from attn_course.learner.questions import CONFIDENCES, Question


class Predict(Asked):
    """A prediction with a confidence, kept as it was made once it is committed.

    Args:
        question: its id, or a Question of your own; None takes one of the course's.

    Traits: `value` (a number's question) or `choice` (an option's index), `confidence` in
    percent, and `committed`, which does not go back.
    """

    module = "predict"

    options = traitlets.List(traitlets.Unicode()).tag(**STATE)
    low = traitlets.Float().tag(**STATE)
    high = traitlets.Float(1.0).tag(**STATE)
    unit = traitlets.Unicode().tag(**STATE)
    value = traitlets.Float().tag(**STATE)
    confidence = Whole(70).tag(**STATE)
    confidences = traitlets.List(Whole(), list(CONFIDENCES)).tag(**STATE)
    committed = traitlets.Bool(False).tag(**STATE)
    early = traitlets.Bool(False).tag(**STATE)

    def __init__(self, question: str | Question | None = None, **state: Any) -> None:
        """Ask `question`, as it was committed if it was; raise ValueError for no such id."""
        self.asked = asked = question_of(question, "prediction")
        state.setdefault("value", (asked.low + asked.high) / 2)
        before = progress.answers(asked.id)
        if before and _fits(asked, before[-1]):
            field = "choice" if asked.options else "value"
            state |= {field: before[-1]["answer"], "confidence": before[-1]["confidence"]}
            state |= {"committed": True, "early": True}
        super().__init__(
            question=asked.id,
            prompt=block(asked.prompt),
            options=[inline(option.text) for option in asked.options],
            low=asked.low,
            high=asked.high,
            unit=asked.unit,
            **state,
        )

    @traitlets.validate("choice", "value", "confidence", "committed")
    def _valid(self, proposal: Any) -> Any:
        if (
            self._built
            and self.committed
            and proposal["value"] != self.state[proposal["trait"].name]
        ):
            raise traitlets.TraitError(self.t("closed"))
        return self._possible(proposal)

    def _check(self, state: Mapping[str, Any]) -> str | None:
        if not state["options"] and not state["low"] <= state["value"] <= state["high"]:
            words = {"low": state["low"], "high": state["high"], "got": state["value"]}
            return self.t("value_allowed", **{name: show(x, 6) for name, x in words.items()})
        if state["confidence"] not in CONFIDENCES:
            allowed = ", ".join(map(str, CONFIDENCES))
            return self.t("confidence_allowed", allowed=allowed, got=state["confidence"])
        if state["committed"] and state["options"] and state["choice"] == NONE:
            return self.t("choose")
        return super()._check(state)

    @traitlets.observe("committed")
    def _keep(self, change: Any) -> None:
        if change["new"] and not self.early:
            answer = self.choice if self.options else self.value
            progress.record_answer(self.asked.id, answer=answer, confidence=self.confidence)


def _fits(asked: Question, given: Any) -> bool:
    """Whether what the progress file has is an answer to the question as it is asked now."""
    if not isinstance(given, Mapping) or given.get("confidence") not in CONFIDENCES:
        return False
    answer = given.get("answer")
    if asked.options:
        return type(answer) is int and 0 <= answer < len(asked.options)
    return isinstance(answer, int | float) and asked.low <= answer <= asked.high
