"""Look-ups in what was read: recall by key, the latest write, several questions at once."""

from math import perm

import numpy as np

from attn_course.tasks.base import IGNORE, Arrays, Task, require_at_least


def recall_task(
    num_pairs: int,
    *,
    distance: int | None = None,
    num_keys: int = 16,
    num_values: int = 8,
    seed: int = 0,
    test_share: float = 0.1,
) -> Task:
    """Return the task of naming the value that stood after a key.

    inputs (b, 2·num_pairs + 1): key, value, key, value, …, then one of the keys
    again. targets: IGNORE but for the last position, whose target is that key's
    value. Ids 1…num_keys are keys, the next num_values are values; the keys of
    a sequence differ. `distance` is how many pairs lie between the asked pair
    and the question (None: any).

    Raises:
        ValueError: if there are more pairs than keys, or distance is not below num_pairs.
    """
    require_at_least("recall_task", num_pairs=num_pairs, num_values=num_values)
    require_at_least("recall_task", minimum=num_pairs, num_keys=num_keys)
    if distance is not None and not 0 <= distance < num_pairs:
        raise ValueError(f"recall_task: distance={distance} is not in 0…{num_pairs - 1}")

    def draw(count: int, rng: np.random.Generator) -> Arrays:
        keys, values = _pairs(count, num_pairs, num_keys, num_values, rng)
        if distance is None:
            asked = rng.integers(num_pairs, size=(count, 1))
        else:
            asked = np.full((count, 1), num_pairs - 1 - distance)
        pairs = np.stack([keys, values + num_keys], axis=2).reshape(count, 2 * num_pairs)
        inputs = np.hstack([pairs, np.take_along_axis(keys, asked, axis=1)])
        targets = np.full_like(inputs, IGNORE)
        targets[:, -1:] = np.take_along_axis(values, asked, axis=1) + num_keys
        return inputs, targets

    return Task(
        name=f"recall_task (num_pairs={num_pairs}, distance={distance})",
        vocab_size=num_keys + num_values + 1,
        num_classes=num_keys + num_values + 1,
        num_examples=_count_pairs(num_pairs, num_keys, num_values)
        * (num_pairs if distance is None else 1),
        draw=draw,
        seed=seed,
        test_share=test_share,
    )


def latest_write_task(
    n: int,
    *,
    num_keys: int = 4,
    num_values: int = 8,
    seed: int = 0,
    test_share: float = 0.1,
) -> Task:
    """Return the task of naming the value that was last written under a key.

    inputs (b, n): each token either writes a value under a key (id
    1 + key·num_values + value) or reads a key (the num_keys ids after those).
    A key is written when it first comes and read about every second time from
    then on. targets (b, n): at a read the class 0…num_values−1 of the value
    last written under that key, elsewhere IGNORE. It is to be answered from
    what stands before, hence under a causal mask.

    Raises:
        ValueError: for a size that is too small.
    """
    require_at_least("latest_write_task", minimum=2, n=n, num_values=num_values)
    require_at_least("latest_write_task", num_keys=num_keys)

    def draw(count: int, rng: np.random.Generator) -> Arrays:
        keys = rng.integers(num_keys, size=(count, n))
        values = rng.integers(num_values, size=(count, n))
        reads = rng.random((count, n)) < 0.5
        targets = np.full((count, n), IGNORE)
        for key in range(num_keys):
            here = keys == key
            reads &= ~(here & (np.cumsum(here, axis=1) == 1))
            written = np.where(here & ~reads, np.arange(n), -1)
            latest = np.maximum.accumulate(written, axis=1)
            asked = here & reads
            targets[asked] = np.take_along_axis(values, latest, axis=1)[asked]
        writes = 1 + keys * num_values + values
        return np.where(reads, 1 + num_keys * num_values + keys, writes), targets

    return Task(
        name=f"latest_write_task (n={n}, num_keys={num_keys}, num_values={num_values})",
        vocab_size=1 + num_keys * num_values + num_keys,
        num_classes=num_values,
        num_examples=(num_keys * num_values) ** n,
        draw=draw,
        seed=seed,
        test_share=test_share,
    )


def staircase_task(
    num_questions: int,
    *,
    num_items: int = 8,
    num_keys: int = 8,
    num_values: int = 8,
    seed: int = 0,
    test_share: float = 0.1,
) -> Task:
    """Return the task of answering several look-ups at one position.

    inputs (b, num_items + 1, slots) with slots = max(2, num_questions): a
    position's vector is the sum of the embeddings of its slots' ids (id 0 is
    nothing). Each of the first num_items positions holds a key (1…num_keys)
    and a value (the next num_values ids); the last one asks for num_questions
    different keys, the question in slot s for key k with the id
    num_keys + num_values + s·num_keys + k. targets (b, num_questions): the
    classes 0…num_values−1 of the values asked for.

    Raises:
        ValueError: if there are more items than keys, or more questions than items.
    """
    require_at_least("staircase_task", num_questions=num_questions, num_values=num_values)
    require_at_least("staircase_task", minimum=num_questions, num_items=num_items)
    require_at_least("staircase_task", minimum=num_items, num_keys=num_keys)
    slots = max(2, num_questions)

    def draw(count: int, rng: np.random.Generator) -> Arrays:
        keys, values = _pairs(count, num_items, num_keys, num_values, rng)
        items = np.tile(np.arange(num_items), (count, 1))
        asked = rng.permuted(items, axis=1)[:, :num_questions]
        inputs = np.zeros((count, num_items + 1, slots), dtype=np.int64)
        inputs[:, :-1, 0] = keys
        inputs[:, :-1, 1] = values + num_keys
        first = num_keys + num_values + num_keys * np.arange(num_questions)
        inputs[:, -1, :num_questions] = first + np.take_along_axis(keys, asked, axis=1)
        return inputs, np.take_along_axis(values, asked, axis=1) - 1

    return Task(
        name=f"staircase_task (num_questions={num_questions}, num_items={num_items})",
        vocab_size=1 + num_keys + num_values + num_questions * num_keys,
        num_classes=num_values,
        num_examples=_count_pairs(num_items, num_keys, num_values) * perm(num_items, num_questions),
        draw=draw,
        seed=seed,
        test_share=test_share,
    )


def _pairs(
    count: int, num_pairs: int, num_keys: int, num_values: int, rng: np.random.Generator
) -> Arrays:
    """Return different keys 1…num_keys and any values 1…num_values, (count, num_pairs) each."""
    keys = rng.permuted(np.tile(np.arange(1, num_keys + 1), (count, 1)), axis=1)[:, :num_pairs]
    return keys, rng.integers(1, num_values + 1, size=(count, num_pairs))


def _count_pairs(num_pairs: int, num_keys: int, num_values: int) -> int:
    return perm(num_keys, num_pairs) * num_values**num_pairs
