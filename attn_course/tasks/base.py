"""What every task has: batches drawn from a seed, and a test set that training never sees."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

START = 0
"""The id with which a decoder starts and with which short rows are padded; no symbol has it."""

IGNORE = -100
"""The target where nothing is asked, as `torch.nn.functional.cross_entropy` leaves it out."""

Device = torch.device | str
Arrays = tuple[np.ndarray, np.ndarray]
Draw = Callable[[int, np.random.Generator], Arrays]

_SHARE_STEPS = 1000  # the test share is a multiple of 1/1000
_FRUITLESS_DRAWS = 12  # each draws more than there would be examples, were there enough


class Batch(NamedTuple):
    """Examples side by side: inputs (b, n) and targets (b, n_target), token ids both."""

    inputs: Int[Tensor, "b n *slots"]
    targets: Int[Tensor, "b n_target"]

    def to(self, device: Device) -> "Batch":
        """Return the batch on `device`."""
        return Batch(self.inputs.to(device), self.targets.to(device))


@dataclass(frozen=True)
class Task:
    """A source of examples, each of which belongs either to training or to the test for ever.

    The side is read from the example itself (a hash of its tokens), neither
    from the seed nor from the order of drawing: two tasks with different seeds,
    a restarted notebook and an endless training stream all agree on it.

    `vocab_size` bounds the input ids and `num_classes` the targets, `draw(count,
    rng)` makes `count` examples as two integer arrays. `split_on` says whose
    tokens decide the side, and `num_examples` how many different ones of those
    there are.
    """

    name: str
    vocab_size: int
    num_classes: int
    num_examples: int = field(repr=False)  # often a number of hundreds of digits
    draw: Draw = field(repr=False)
    seed: int = 0
    test_share: float = 0.1
    split_on: Literal["inputs", "targets"] = "inputs"

    def __post_init__(self) -> None:
        """Refuse a split that would leave one side empty."""
        if not 0 < self.test_share < 1:
            raise ValueError(f"test_share={self.test_share} must lie between 0 and 1")
        enough = min(self.num_examples, 10**9)  # an int may be too large for a float
        if enough * min(self.test_share, 1 - self.test_share) < 1:
            raise ValueError(
                f"{self.name} has only {self.num_examples} different examples: too few to "
                f"keep {self.test_share:.0%} of them for the test; make it longer or larger"
            )

    def train_batch(self, step: int, batch_size: int, device: Device = "cpu") -> Batch:
        """Return the training batch of this step: the same for the same seed, whatever ran before.

        Raises:
            ValueError: if batch_size < 1, step < 0, or no training example turns up.
        """
        if step < 0 or batch_size < 1:
            raise ValueError(f"step={step} must be at least 0, batch_size={batch_size} at least 1")
        rng = np.random.default_rng((self.seed, step + 1))
        return self._collect(batch_size, rng, test=False).to(device)

    def batches(self, batch_size: int, device: Device = "cpu") -> Callable[[int], Batch]:
        """Return `step -> training batch`, as `training.fit` takes it."""
        return lambda step: self.train_batch(step, batch_size, device)

    def test_set(self, count: int, device: Device = "cpu") -> Batch:
        """Return `count` different test examples, none of which training ever draws.

        Raises:
            ValueError: if there are not that many.
        """
        if count < 1:
            raise ValueError(f"count={count} must be at least 1")
        rng = np.random.default_rng((self.seed, 0))
        return self._collect(count, rng, test=True).to(device)

    def _collect(self, count: int, rng: np.random.Generator, *, test: bool) -> Batch:
        share = self.test_share if test else 1 - self.test_share
        chunk = ceil(1.2 * count / share) + 8
        inputs, targets = self._draw_side(chunk, rng, test)
        fruitless = 0
        while len(inputs) < count and fruitless < _FRUITLESS_DRAWS:
            before = len(inputs)
            more_inputs, more_targets = self._draw_side(chunk, rng, test)
            inputs = np.concatenate([inputs, more_inputs])
            targets = np.concatenate([targets, more_targets])
            if test:
                inputs, targets = _first_of_each(inputs, targets)
            fruitless = fruitless + 1 if len(inputs) == before else 0
        if len(inputs) < count:
            side = "different test" if test else "training"
            raise ValueError(
                f"{count} {side} examples of {self.name} asked, but only {len(inputs)} turn up"
            )
        return Batch(torch.from_numpy(inputs[:count]), torch.from_numpy(targets[:count]))

    def _draw_side(self, count: int, rng: np.random.Generator, test: bool) -> Arrays:
        inputs, targets = self.draw(count, rng)
        decisive = inputs if self.split_on == "inputs" else targets
        wanted = is_test(decisive, self.test_share) == test
        inputs, targets = inputs[wanted].astype(np.int64), targets[wanted].astype(np.int64)
        return _first_of_each(inputs, targets) if test else (inputs, targets)


def shift_right(targets: Int[Tensor, "b n"], start_token: int = START) -> Int[Tensor, "b n"]:
    """Return a decoder's input for `targets`: the start token, then all but the last target."""
    start = torch.full_like(targets[:, :1], start_token)
    return torch.cat([start, targets[:, :-1]], dim=1)


def is_test(rows: np.ndarray, test_share: float) -> np.ndarray:
    """Return for each row of token ids (b, …) whether it belongs to the test."""
    flat = np.ascontiguousarray(rows.reshape(len(rows), -1).T).astype(np.uint64)
    hashed = np.full(len(rows), 0xCBF29CE484222325, dtype=np.uint64)
    for column in flat:
        hashed = (hashed ^ column) * np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(29)
    return hashed % np.uint64(_SHARE_STEPS) < np.uint64(round(test_share * _SHARE_STEPS))


def require_at_least(task: str, minimum: int = 1, **sizes: int) -> None:
    """Raise ValueError naming the first size that is below `minimum`."""
    for name, size in sizes.items():
        if size < minimum:
            raise ValueError(f"{task}: {name}={size} must be at least {minimum}")


def _first_of_each(inputs: np.ndarray, targets: np.ndarray) -> Arrays:
    first = np.sort(np.unique(inputs, axis=0, return_index=True)[1])
    return inputs[first], targets[first]
