"""What one graded notebook is to its process: a job file to read, results to write line by line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from attn_course.grading.rebuilt import Rebuilt
from attn_course.grading.settings import RunSettings

NO_SANDBOX = 70
"""Exit code of a process that could start no sandbox: nothing can be said of the answers."""


@dataclass
class Job:
    """What is to be graded, as it stands in the job file."""

    rebuilt: Rebuilt
    settings: RunSettings
    edition: Path
    results: Path

    @classmethod
    def read(cls, path: Path) -> Job:
        """The job that `write` wrote."""
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            Rebuilt.from_data(data["rebuilt"]),
            RunSettings(**data["settings"]),
            Path(data["edition"]),
            Path(data["results"]),
        )

    def write(self, path: Path) -> None:
        """Write it down."""
        data = {
            "rebuilt": self.rebuilt.as_data(),
            "settings": asdict(self.settings),
            "edition": str(self.edition),
            "results": str(self.results),
        }
        path.write_text(json.dumps(data), encoding="utf-8")
