"""Whole sequences in, whole sequences out: copy, reverse, sort; and bracket matching."""

import numpy as np

from attn_course.tasks.base import Task


def copy_task(n: int, num_symbols: int = 8, *, seed: int = 0, test_share: float = 0.1) -> Task:
    """Return the task of writing n random symbols (ids 1…num_symbols) down again."""
    return _rewriting("copy_task", n, num_symbols, lambda rows: rows, seed, test_share)


def reverse_task(n: int, num_symbols: int = 8, *, seed: int = 0, test_share: float = 0.1) -> Task:
    """Return the task of writing n random symbols (ids 1…num_symbols) down backwards."""
    return _rewriting("reverse_task", n, num_symbols, lambda rows: rows[:, ::-1], seed, test_share)


def sort_task(n: int, num_symbols: int = 8, *, seed: int = 0, test_share: float = 0.1) -> Task:
    """Return the task of writing n random symbols (ids 1…num_symbols) down in ascending order."""
    return _rewriting("sort_task", n, num_symbols, lambda rows: np.sort(rows), seed, test_share)


def _rewriting(name, n, num_symbols, rewrite, seed, test_share) -> Task:
    if n < 1 or num_symbols < 2:
        raise ValueError(f"{name}: n={n} must be at least 1, num_symbols={num_symbols} at least 2")

    def draw(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows = rng.integers(1, num_symbols + 1, size=(count, n))
        return rows, rewrite(rows)

    return Task(
        name=f"{name}(n={n}, num_symbols={num_symbols})",
        vocab_size=num_symbols + 1,
        num_classes=num_symbols + 1,
        num_inputs=float(num_symbols) ** n,
        draw=draw,
        seed=seed,
        test_share=test_share,
    )
