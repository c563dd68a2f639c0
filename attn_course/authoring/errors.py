"""The one error that the builder raises for what an author can fix."""

from typing import Any

from attn_course.sentences import say, spoken


class BuildError(ValueError):
    """A chapter that cannot be built; the message says where and why."""

    def __init__(self, words: str, /, **fields: Any) -> None:
        """Take constant words and the values of their {named} fields."""
        super().__init__(words)
        self.sentence = say(words, **fields)

    def __str__(self) -> str:
        """The message in the reader's language."""
        return spoken(self.sentence)
