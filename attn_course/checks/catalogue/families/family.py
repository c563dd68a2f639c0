"""A family of known mistakes, from which an exercise picks its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake, Version
from attn_course.sentences import Spoken


class Family:
    """Mistakes in the same lines of a right answer, by their ids and in order of precedence."""

    def __init__(self, *mistakes: Mistake) -> None:
        self._mistakes = {mistake.id: mistake for mistake in mistakes}

    def __iter__(self) -> Iterator[Mistake]:
        """All of them, in order."""
        return iter(self._mistakes.values())

    def __getitem__(self, known: str) -> Mistake:
        """The one with this id, in the family's words."""
        return self._mistakes[known]

    def without(self, *known: str) -> Iterator[Mistake]:
        """The family but for these, which an exercise does not know."""
        return (mistake for mistake in self if mistake.id not in known)

    def told(
        self, own_id: str, message: Spoken, *, like: str = "", also: tuple[Version, ...] = ()
    ) -> Mistake:
        """A mistake of the family as an exercise tells it: in its own words.

        Args:
            own_id: what the exercise calls it.
            message: what it says of it.
            like: what the family calls it, where that is another id.
            also: further ways to make it.
        """
        known = self[like or own_id]
        return replace(known, id=own_id, message=message, also=(*known.also, *also))

    def edits(self, known: str) -> Edits:
        """What is edited to make this mistake, to be put together with other edits."""
        answer = self[known].answer
        if not isinstance(answer, Mapping):
            raise TypeError(f"{known} is no edit")
        return answer
