"""Chapter 09: how much of a text repeats another, or itself."""

import numpy as np


def tail_split(test_share: float = 0.1) -> tuple[str, str]:
    """Return the course's prose as it is, its last part cut off: what `tasks.prose` does not do."""
    from pydoc_data.topics import topics

    if not 0 < test_share < 1:
        raise ValueError(f"test_share={test_share} must lie between 0 and 1")
    book = "\n\n".join(topics[name] for name in sorted(topics))
    cut = round(len(book) * (1 - test_share))
    return book[:cut], book[cut:]


def seen_before(train: str, test: str, run: int = 50) -> float:
    """Return the share of the test's characters that lie in runs which stand in the training text.

    Raises ValueError if a run is longer than the test.
    """
    if not 1 <= run <= len(test):
        raise ValueError(f"run={run} must lie between 1 and the {len(test)} characters of the test")
    known = {train[k : k + run] for k in range(len(train) - run + 1)}
    covered = np.zeros(len(test), dtype=bool)
    for k in range(len(test) - run + 1):
        if test[k : k + run] in known:
            covered[k : k + run] = True
    return float(covered.mean())


def echoed(text: str, run: int = 12) -> float:
    """Return the share of the runs of a text that have stood in it before; 0 if it has none."""
    seen: set[str] = set()
    starts = range(max(0, len(text) - run + 1))
    again = 0
    for k in starts:
        again += text[k : k + run] in seen
        seen.add(text[k : k + run])
    return again / max(1, len(starts))
