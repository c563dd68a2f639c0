"""The `attn-course` command."""

import click


@click.group()
def main() -> None:
    """Run, check and build the course."""
