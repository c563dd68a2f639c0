"""What one graded notebook is to its process: a job file to read, results to write line by line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from attn_course.grading.rebuilt import Problem, Rebuilt, RebuiltCell
from attn_course.grading.settings import RunSettings
from attn_course.grading.verdict import Verdict

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
        rebuilt = data["rebuilt"]
        rebuilt["cells"] = tuple(RebuiltCell(**cell) for cell in rebuilt["cells"])
        rebuilt["problems"] = {k: Problem(**p) for k, p in rebuilt["problems"].items()}
        rebuilt["notes"] = tuple(rebuilt["notes"])
        return cls(
            Rebuilt(**rebuilt),
            RunSettings(**data["settings"]),
            Path(data["edition"]),
            Path(data["results"]),
        )

    def write(self, path: Path) -> None:
        """Write it down."""
        data = {
            "rebuilt": {**asdict(self.rebuilt), "problems": _plain(self.rebuilt.problems)},
            "settings": asdict(self.settings),
            "edition": str(self.edition),
            "results": str(self.results),
        }
        path.write_text(json.dumps(data), encoding="utf-8")


def _plain(problems: Any) -> dict[str, Any]:
    return {name: asdict(problem) for name, problem in problems.items()}


def without_kernel(rebuilt: Rebuilt, status: str, message: str, human: str = "") -> list[Verdict]:
    """Verdicts on exercises that nothing can be run for."""
    detail = {"human": [human]} if human else {}
    made = [
        Verdict(
            rebuilt.student,
            rebuilt.chapter,
            cell.exercise or "",
            0.0,
            cell.points,
            status,
            None,
            message,
            dict(detail),
        )
        for cell in rebuilt.checks
    ]
    problems = rebuilt.problems
    return [
        replace(v, status=p.status, message=p.message, detail={})
        if (p := problems.get(v.exercise))
        else v
        for v in made
    ]
