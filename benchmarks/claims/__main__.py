"""Measure the claims of all chapters, or of one, and write their table."""

import importlib
import os
import pkgutil

import click
import torch
from tqdm import tqdm

import benchmarks.claims
from benchmarks.claims.table import PAGE, keep, kept, measured


@click.command()
@click.option("--chapter", default="", help="Only this chapter, as 05.")
def main(chapter: str) -> None:
    """Run every claim under three seeds; the other chapters' rows stay as they are."""
    os.environ["ATTN_COURSE_PROGRESS_BAR"] = "0"
    torch.set_num_threads(1)
    chosen = [name for name in chapters() if name.startswith(chapter)]
    for name in chosen:
        for claim in tqdm(importlib.import_module(f"benchmarks.claims.ch{name}").CLAIMS, desc=name):
            new = measured(name, claim)
            # read again each time: another run may have kept another chapter's rows meanwhile
            rows = [row for row in kept() if (row["chapter"], row["says"]) != (name, claim.says)]
            # after each: a long run that is stopped has not run for nothing
            keep(sorted([*rows, new], key=lambda row: row["chapter"]))
    click.echo(f"{PAGE}: {len(kept())} claims")


def chapters() -> list[str]:
    """The numbers of the chapters that have claims."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.claims.__path__)]
    return sorted(name[2:] for name in names if name.startswith("ch"))


if __name__ == "__main__":
    main()
