"""Print the table of ratios and write it to build/bench.json."""

import json
import sys
from pathlib import Path

import click
import torch
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from benchmarks import explorers, grading, imports, scaling, utilisation
from benchmarks.measure import compare
from benchmarks.rows import ROWS, Row

TARGET = Path("build") / "bench.json"


@click.command()
@click.option("--rounds", default=7, show_default=True, help="Paired runs of each row.")
@click.option("--only", default="", help="Only rows whose name contains this text.")
def main(rounds: int, only: str) -> None:
    """Measure every row: ours over a peer's, medians of paired runs."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtypes = [torch.float32] if device.type == "cpu" else [torch.bfloat16, torch.float16]
    results = []
    for dtype in dtypes:
        chosen = [row for row in ROWS if only in row.name]
        for row in tqdm(chosen, desc=f"{device} {dtype}", disable=None):
            results.append(measured(row, device, dtype, rounds))
        if only in "slope":
            results += scaling.slopes(device, dtype, max(3, rounds // 2))
        if device.type == "cuda" and only in "utilisation":
            results += utilisation.rows(device, dtype, rounds)
    if only in "import attn_course":
        results += imports.rows(rounds)
    if only in "explorer":
        results += explorers.rows(rounds)
    if only in "attn-course grade":
        results += grading.rows(rounds)
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8")
    show(results, device)


def measured(row: Row, device: torch.device, dtype: torch.dtype, rounds: int) -> dict:
    """The row's ratios, and whether they reach what it demands."""
    torch.manual_seed(0)
    ours, peer = row.pair(device, dtype)
    ratios = compare(ours, peer, rounds=rounds, memory=True, device=device)
    assert ratios.memory is not None
    reached = ratios.time <= row.time and (row.memory is None or ratios.memory <= row.memory)
    return {
        "row": row.name,
        "peer": row.peer,
        "dtype": str(dtype),
        "time_ratio": round(ratios.time, 3),
        "memory_ratio": round(ratios.memory, 3),
        "ours_seconds": ratios.ours_seconds,
        "peer_seconds": ratios.peer_seconds,
        "reach": row.reach,
        "reached": reached,
        "note": row.note,
    }


def show(results: list[dict], device: torch.device) -> None:
    """The table, with what falls short marked in words."""
    title = f"ours / peer, on {device} with {torch.get_num_threads()} threads"
    table = Table(title=title, caption=f"also in {TARGET}")
    for name in ("row", "peer", "time", "memory", "reach", "reached"):
        table.add_column(name, justify="right" if name in ("time", "memory") else "left")
    for result in results:
        memory = result["memory_ratio"]
        ratio = result["time_ratio"]
        time = "" if ratio is None else f"{ratio:.3f}"
        time = f"slope {result['slope']}" if "slope" in result else time
        reached = {True: "yes", False: "NO", None: ""}[result.get("reached")]
        table.add_row(
            result["row"],
            result["peer"],
            time,
            "" if memory is None else f"{memory:.3f}",
            result["reach"],
            reached,
        )
    # in a file or a log nothing is cut to a terminal's width
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)
    for result in results:
        if result.get("note"):
            console.print(f"{result['row']}: {result['note']}")


if __name__ == "__main__":
    main()
