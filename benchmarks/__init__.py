"""Ours beside a peer on the same work in the same run: `python -m benchmarks`."""
