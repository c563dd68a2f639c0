"""Where the course keeps its chapters and what is built from them."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from attn_course.authoring.errors import BuildError
from attn_course.course import CHAPTERS, find_chapter, project_root

FOLDERS = ("notebooks", "exercises", "solutions")
_GITHUB = re.compile(r"https://github\.com/(?P<name>[\w.-]+/[\w.-]+?)(\.git)?/?")


@dataclass(frozen=True)
class Course:
    """A checkout of the course: its folders and its public address."""

    root: Path

    @classmethod
    def here(cls) -> "Course":
        """The checkout around the current folder, else the one that the package lives in.

        Raises BuildError where there is none, as with an installed package.
        """
        root = project_root()
        if root is None or not (root / "chapters").is_dir():
            raise BuildError(
                "the chapter sources are not here: an installed attn_course has none. "
                "Run this in a clone of the course, installed with `pip install -e '.[dev]'`."
            )
        return cls(root)

    @property
    def questions_file(self) -> Path:
        """The compiled questions, which the package reads."""
        return self.root / "attn_course" / "data" / "questions.json"

    def notebook(self, folder: str, stem: str) -> Path:
        """The notebook that is built for one chapter in one of the three folders."""
        return self.root / folder / f"{stem}.ipynb"

    def sources(self) -> list[Path]:
        """The sources of all chapters that are written, in order.

        Raises BuildError for a file that belongs to no chapter of the course.
        """
        files = sorted((self.root / "chapters").glob("*.py"))
        known = {chapter.stem for chapter in CHAPTERS}
        strays = [file.name for file in files if file.stem not in known]
        if strays:
            raise BuildError(
                "chapters/ holds what is no chapter of the course: {strays}", strays=strays
            )
        return files

    def find(self, names: tuple[str, ...]) -> list[Path]:
        """The sources of the named chapters, in order; of all chapters without a name.

        Raises BuildError, with the list of chapters, for a name that means none.
        """
        try:
            wanted = {find_chapter(name).source(self.root) for name in names}
        except ValueError as error:
            raise BuildError("{problem}", problem=error) from None
        files = self.sources()
        for missing in sorted(wanted - set(files)):
            raise BuildError("chapters/{file} is not written yet", file=missing.name)
        return [file for file in files if not names or file in wanted]

    def address(self) -> str | None:
        """The project's public address from pyproject.toml, None while it has none.

        Raises BuildError for an address that Colab could not open.
        """
        project = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))
        address = project["project"].get("urls", {}).get("Repository", "").strip()
        if not address:
            return None
        match = _GITHUB.fullmatch(address)
        if match is None:
            raise BuildError(
                "pyproject.toml: project.urls.Repository must look like "
                "https://github.com/OWNER/NAME, which Colab can open; it is {address!r}",
                address=address,
            )
        return f"https://github.com/{match['name']}"
