"""Measure claims, and keep their table in docs/claims.md and docs/claims.json."""

import json
import time
from pathlib import Path
from statistics import mean

from benchmarks.claims import SEEDS, Claim

DOCS = Path(__file__).resolve().parents[2] / "docs"
RECORD = DOCS / "claims.json"
PAGE = DOCS / "claims.md"

INTRODUCTION = """# The figures that the chapters claim

Made by `python -m benchmarks.claims`, never by hand. Each figure is measured with seeds
{seeds} unless "holds" counts fewer, on one CPU thread: mean, smallest and largest. The last
digits differ between machines. CPU-seconds are for one seed. "Holds" counts the seeds that
bear the sentence out.
"""


def measured(chapter: str, claim: Claim) -> dict:
    """Run a claim under each of its seeds.

    Returns:
        Plain data: chapter, says, figures (name -> one value a seed), holds (how many
        seeds bear it out), seeds, cpu_seconds (of one seed, on average).
    """
    seeds = list(claim.seeds)
    started = time.process_time()
    runs = [claim.measure(seed) for seed in seeds]
    seconds = (time.process_time() - started) / len(seeds)
    return {
        "chapter": chapter,
        "says": claim.says,
        "figures": {name: [float(run[name]) for run in runs] for name in runs[0]},
        "holds": sum(bool(claim.holds(run)) for run in runs),
        "seeds": seeds,
        "cpu_seconds": round(seconds, 1),
    }


def kept() -> list[dict]:
    """The rows of the last run."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else []


def keep(rows: list[dict]) -> None:
    """Write the rows, and the page made from them."""
    RECORD.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(rows), encoding="utf-8")


def page(rows: list[dict]) -> str:
    """The table as Markdown, one section a chapter, one line a figure."""
    parts = [INTRODUCTION.format(seeds=", ".join(map(str, SEEDS)))]
    for chapter in sorted({row["chapter"] for row in rows}):
        parts.append(f"\n## Chapter {chapter}\n")
        parts.append("| claim | figure | mean | smallest … largest | holds | CPU-s |")
        parts.append("|---|---|---:|---:|---:|---:|")
        for row in rows:
            if row["chapter"] == chapter:
                parts += _lines(row)
    return "\n".join(parts) + "\n"


def _lines(row: dict) -> list[str]:
    lines = []
    for number, (name, values) in enumerate(row["figures"].items()):
        said, holds, seconds = "", "", ""
        if number == 0:
            said = row["says"]
            holds = f"{row['holds']} of {len(row['seeds'])}"
            seconds = f"{row['cpu_seconds']:g}"
        spread = f"{min(values):.3g} … {max(values):.3g}"
        cells = (said, name, f"{mean(values):.3g}", spread, holds, seconds)
        lines.append(f"| {' | '.join(cell.replace('|', '∣') for cell in cells)} |")
    return lines
