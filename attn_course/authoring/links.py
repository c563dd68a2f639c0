"""Links between the three notebooks of a chapter, for JupyterLab and for Colab.

Both go to a cell by its id. JupyterLab finds headings too, but not in a notebook that the
link itself has to open: it looks for them before they are drawn.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from attn_course.authoring import wording
from attn_course.authoring.errors import BuildError
from attn_course.checks.exercise import Exercise
from attn_course.sentences import spoken

_COLAB = "https://colab.research.google.com"
_BRANCH = "main"
_LINE = re.compile(r"^\{\{\s*(?P<what>exercise:\s*\w+|minutes)\s*\}\}$", re.MULTILINE)


@dataclass(frozen=True)
class Links:
    """Links of one chapter; `address` is the project's, None while it has no public home."""

    stem: str
    address: str | None

    def badge(self, folder: str) -> str | None:
        """The badge that opens a notebook in Colab; None without a public address."""
        if self.address is None:
            return None
        picture = f"{_COLAB}/assets/colab-badge.svg"
        return f"[![{spoken(wording.OPEN_IN_COLAB)}]({picture})]({self._in_colab(folder)})"

    def to(self, folder: str, text: str, cell_id: str = "") -> str:
        """A markdown link from one notebook of the chapter to another, or to a cell of it."""
        place, scroll = (f"#cell-id={cell_id}", f"#scrollTo={cell_id}") if cell_id else ("", "")
        local = f"[{text}](../{folder}/{self.stem}.ipynb{place})"
        if self.address is None:
            return local
        return f"{local} ([{spoken(wording.IN_COLAB)}]({self._in_colab(folder)}{scroll}))"

    def to_exercise(self, entry: Exercise) -> str:
        """The link that ends a lesson's section."""
        return self.to("exercises", wording.exercise_link(entry), exercise_id(entry.name))

    def _in_colab(self, folder: str) -> str:
        repository = (self.address or "").replace("https://github.com/", "github/")
        return f"{_COLAB}/{repository}/blob/{_BRANCH}/{folder}/{self.stem}.ipynb"


def exercise_id(name: str) -> str:
    """The id of the cell with an exercise's heading."""
    return f"exercise-{name}"


def exercises_linked(text: str) -> list[str]:
    """The exercises that a lesson's markdown links to."""
    marks = [match["what"] for match in _LINE.finditer(text)]
    return [mark.partition(":")[2].strip() for mark in marks if mark != "minutes"]


def fill_marks(text: str, fill: Callable[[str], str], where: str) -> str:
    """The text with its {{…}} lines filled in: `fill` gets "minutes" or an exercise's name.

    Raises BuildError for any other {{…}}, and for one that shares its line.
    """

    def filling(match: re.Match[str]) -> str:
        return fill(match["what"].partition(":")[2].strip() or "minutes")

    filled = _LINE.sub(filling, text)
    left = re.search(r"\{\{\s*(exercise|minutes)\b.*", filled)
    if left:
        raise BuildError(
            "{where}: {mark!r} must be {{{{exercise: name}}}} alone on its line",
            where=where,
            mark=left[0],
        )
    return filled
