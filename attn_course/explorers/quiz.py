"""Quiz: a question with one right option, whose options explain themselves."""

from typing import Any

import traitlets

from attn_course.explorers.asked import NONE, Asked, block, inline, question_of
from attn_course.explorers.base import STATE
from attn_course.explorers.data import Whole
from attn_course.learner import progress
from attn_course.learner.questions import Question


class Quiz(Asked):
    """A question with one right option; every option explains itself once it is answered.

    Args:
        question: its id, or a Question of your own; None takes one of the course's.

    The trait `answer` is the index of the option answered with, -1 before. Each answer is
    kept in the progress file, from which `recall` asks again what was missed at first.
    """

    module = "quiz"

    options = traitlets.List().tag(**STATE)
    answer = Whole(NONE).tag(**STATE)

    def __init__(self, question: str | Question | None = None, **state: Any) -> None:
        """Ask `question`; raise ValueError if there is none of this id."""
        self.asked = question_of(question, "choice")
        options = [
            {"text": inline(option.text), "right": option.right, "why": block(option.why)}
            for option in self.asked.options
        ]
        prompt = block(self.asked.prompt)
        super().__init__(question=self.asked.id, prompt=prompt, options=options, **state)

    @traitlets.validate("choice", "answer")
    def _valid(self, proposal: Any) -> Any:
        return self._possible(proposal)

    @traitlets.observe("answer")
    def _keep(self, change: Any) -> None:
        if change["new"] != NONE:
            right = self.asked.options[change["new"]].right
            # the reasons have been read: another answer now says nothing of what is known
            again = {} if change["old"] == NONE else {"again": True}
            progress.record_answer(self.asked.id, answer=change["new"], right=right, **again)
