"""An exercise in its chapter's list: what is known of it before its module is imported."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Listed:
    """An exercise's number, the name of what the learner writes, and its module in the room."""

    number: str
    name: str
    module: str = ""

    @property
    def home(self) -> str:
        """The module with the exercise, by its name within the catalogue."""
        return f"ch{int(self.number.split('.')[0]):02d}.{self.module or self.name}"
