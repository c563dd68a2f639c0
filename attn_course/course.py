"""What the course consists of: its chapters, and where its folder is.

The one place that knows the chapters' numbers, names and titles, so that the
commands, the builder and the README speak of the same thirteen.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from attn_course.sentences import Sentence, joined, say

NO_CHAPTER = "there is no chapter {wanted!r}. The chapters are:\n{chapters}"


@dataclass(frozen=True)
class Chapter:
    """One chapter: its two-digit number, its name in file names, its title in prose."""

    number: str
    name: str
    title: str

    @property
    def stem(self) -> str:
        """The file name without its ending, in every folder: `03_scaled_dot_product`."""
        return f"{self.number}_{self.name}"

    def notebook(self, root: Path, folder: str = "notebooks") -> Path:
        """The chapter's notebook in one of the three built folders under `root`."""
        return root / folder / f"{self.stem}.ipynb"

    def source(self, root: Path) -> Path:
        """The chapter's hand-edited text under `root`."""
        return root / "chapters" / f"{self.stem}.py"


CHAPTERS = (
    Chapter("00", "start_here", "Start here"),
    Chapter("01", "rnn_bottleneck", "The RNN bottleneck"),
    Chapter("02", "query_key_value", "Query, key, value"),
    Chapter("03", "scaled_dot_product", "Scaled dot-product attention"),
    Chapter("04", "self_attention", "Self-attention"),
    Chapter("05", "multi_head", "Multi-head attention"),
    Chapter("06", "positional_encoding", "Positional encoding"),
    Chapter("07", "transformer_block", "The Transformer block"),
    Chapter("08", "encoder_decoder", "Encoder and decoder"),
    Chapter("09", "language_models", "Language models"),
    Chapter("10", "efficiency", "Efficiency"),
    Chapter("11", "when_training_goes_wrong", "When training goes wrong"),
    Chapter("12", "a_real_transformer", "A real Transformer"),
)


def find_chapter(wanted: str) -> Chapter:
    """The chapter meant by a number, a name, a title or a file name.

    `3`, `03`, `scaled_dot_product`, `Scaled dot-product attention` and
    `exercises/03_scaled_dot_product.ipynb` all mean chapter 03.

    Raises:
        ValueError: if no chapter is meant; the message lists those there are.
    """
    key = _plain(re.split(r"[/\\]", wanted)[-1])
    for chapter in CHAPTERS:
        names = (chapter.number, chapter.name, chapter.stem, chapter.title)
        if key in map(_plain, names) or key == str(int(chapter.number)):
            return chapter
    listing = joined((_listed(chapter) for chapter in CHAPTERS), "\n")
    raise ValueError(say(NO_CHAPTER, wanted=wanted, chapters=listing))


def project_root(start: Path | None = None) -> Path | None:
    """The course's folder: the one with its `pyproject.toml`, or None.

    Looks in `start` (the current folder by default) and upwards, then beside
    the package, where an editable install has it. An install without the
    folder, as on Colab, has none.
    """
    start = Path.cwd() if start is None else Path(start).resolve()
    candidates = [start, *start.parents, Path(__file__).resolve().parents[1]]
    return next((folder for folder in candidates if _is_root(folder)), None)


def _listed(chapter: Chapter) -> Sentence:
    return say("  {number}  {title}", number=chapter.number, title=say(chapter.title))


def _is_root(folder: Path) -> bool:
    try:
        with (folder / "pyproject.toml").open("rb") as file:
            project = tomllib.load(file).get("project")
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return False
    return isinstance(project, dict) and project.get("name") == "attn-course"


def _plain(text: str) -> str:
    """Lower case, words joined by one underscore, no file ending."""
    return re.sub(r"\.(ipynb|py)$|[^0-9a-z]+", "_", text.lower()).strip("_")
