"""Sequences written down again: copied, reversed, sorted; and brackets to be closed."""

from collections.abc import Callable
from math import comb

import numpy as np

from attn_course.tasks.base import IGNORE, START, Arrays, Task, require_at_least


def copy_task(n: int, num_symbols: int = 8, *, seed: int = 0, test_share: float = 0.1) -> Task:
    """Return the task of writing n random symbols (ids 1…num_symbols) down again.

    inputs (b, n), targets (b, n).
    """
    return _rewriting("copy_task", n, num_symbols, np.copy, seed, test_share)


def reverse_task(n: int, num_symbols: int = 8, *, seed: int = 0, test_share: float = 0.1) -> Task:
    """Return the task of writing n random symbols (ids 1…num_symbols) down backwards.

    inputs (b, n), targets (b, n).
    """
    return _rewriting("reverse_task", n, num_symbols, np.fliplr, seed, test_share)


def sort_task(n: int, num_symbols: int = 8, *, seed: int = 0, test_share: float = 0.1) -> Task:
    """Return the task of writing n random symbols (ids 1…num_symbols) down in ascending order.

    inputs (b, n), targets (b, n).
    """
    return _rewriting("sort_task", n, num_symbols, np.sort, seed, test_share)


def k_back_task(
    n: int, k: int, num_symbols: int = 8, *, seed: int = 0, test_share: float = 0.1
) -> Task:
    """Return the task of naming, at each of n positions, the symbol k positions before.

    inputs (b, n), targets (b, n), IGNORE at the first k positions.
    """
    require_at_least("k_back_task", k=k)
    require_at_least("k_back_task", minimum=k + 1, n=n)

    def shifted(rows: np.ndarray) -> np.ndarray:
        return np.pad(rows[:, :-k], ((0, 0), (k, 0)), constant_values=IGNORE)

    return _rewriting(f"k_back_task, k={k}", n, num_symbols, shifted, seed, test_share)


def bracket_task(n: int, kinds: int = 2, *, seed: int = 0, test_share: float = 0.1) -> Task:
    """Return the task of saying, after each bracket read, which closing bracket fits next.

    Sequences of n brackets, all closed at the end, uniform among all such. Ids
    1…kinds open and kinds+1…2·kinds close. inputs (b, n), targets (b, n): the
    closing bracket of the innermost one still open, START where none is. It is
    to be answered from what stands before, hence under a causal mask.

    Raises:
        ValueError: if n is odd, or a size is below 1.
    """
    require_at_least("bracket_task", n=n, kinds=kinds)
    if n % 2:
        raise ValueError(f"bracket_task: n={n} is odd, so that the brackets cannot all be closed")

    def draw(count: int, rng: np.random.Generator) -> Arrays:
        opens = _balanced(count, n, rng)
        return _match(opens, rng.integers(1, kinds + 1, size=(count, n)), kinds)

    pairs = n // 2
    return Task(
        name=f"bracket_task (n={n}, kinds={kinds})",
        vocab_size=2 * kinds + 1,
        num_classes=2 * kinds + 1,
        num_examples=comb(n, pairs) // (pairs + 1) * kinds**pairs,
        draw=draw,
        seed=seed,
        test_share=test_share,
    )


def _rewriting(
    name: str,
    n: int,
    num_symbols: int,
    rewrite: Callable[[np.ndarray], np.ndarray],
    seed: int,
    test_share: float,
) -> Task:
    require_at_least(name, n=n)
    require_at_least(name, minimum=2, num_symbols=num_symbols)

    def draw(count: int, rng: np.random.Generator) -> Arrays:
        rows = rng.integers(1, num_symbols + 1, size=(count, n))
        return rows, rewrite(rows)

    return Task(
        name=f"{name} (n={n}, num_symbols={num_symbols})",
        vocab_size=num_symbols + 1,
        num_classes=num_symbols + 1,
        num_examples=num_symbols**n,
        draw=draw,
        seed=seed,
        test_share=test_share,
    )


def _balanced(count: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return which of n brackets open, (count, n), uniform over all balanced sequences.

    With m brackets to go and h open, the share of continuations that open one
    more is (h + 2)(m − h) / (2m(h + 1)), by the ballot theorem.
    """
    opens = np.zeros((count, n), dtype=bool)
    h = np.zeros(count, dtype=np.int64)
    for position in range(n):
        m = n - position
        opens[:, position] = rng.random(count) < (h + 2) * (m - h) / (2 * m * (h + 1))
        h += np.where(opens[:, position], 1, -1)
    return opens


def _match(opens: np.ndarray, kind: np.ndarray, kinds: int) -> Arrays:
    """Turn opens (b, n) and the kinds to open with into brackets and the closing ones wanted."""
    count, n = opens.shape
    rows = np.arange(count)
    stack = np.full((count, n // 2 + 1), START)  # the wanted bracket at each depth; 0: none
    depth = np.zeros(count, dtype=np.int64)
    inputs, targets = np.empty((2, count, n), dtype=np.int64)
    for position in range(n):
        opening = opens[:, position]
        inputs[:, position] = np.where(opening, kind[:, position], stack[rows, depth])
        depth += np.where(opening, 1, -1)
        stack[rows[opening], depth[opening]] = kind[opening, position] + kinds
        targets[:, position] = stack[rows, depth]
    return inputs, targets
