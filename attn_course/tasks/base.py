"""What every task has: batches drawn from a seed, and a test set that training never sees."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

START = 0
"""The id with which a decoder starts and with which short rows are padded; no symbol has it."""

IGNORE = -100
"""The target where nothing is asked, as `torch.nn.functional.cross_entropy` leaves it out."""

Device = torch.device | str
Draw = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]

_SHARE_STEPS = 1000  # the test share is a multiple of 1/1000


class Batch(NamedTuple):
    """Examples side by side: inputs (b, n) and targets (b, n_target), token ids both."""

    inputs: Int[Tensor, "b n"]
    targets: Int[Tensor, "b n_target"]

    def to(self, device: Device) -> "Batch":
        """Return the batch on `device`."""
        return Batch(self.inputs.to(device), self.targets.to(device))


@dataclass(frozen=True)
class Task:
    """A source of examples, each of which belongs either to training or to the test for ever.

    The side is read from the input itself (a hash of its tokens), neither from
    the seed nor from the order of drawing: two tasks with different seeds, a
    restarted notebook and an endless training stream all agree on it.

    `vocab_size` bounds the input ids and `num_classes` the targets,
    `num_inputs` says how many different inputs there are, `draw(count, rng)`
    makes `count` examples as two integer arrays.
    """

    name: str
    vocab_size: int
    num_classes: int
    num_inputs: float
    draw: Draw
    seed: int = 0
    test_share: float = 0.1

    def __post_init__(self) -> None:
        """Refuse a split that would leave one side empty."""
        if not 0 < self.test_share < 1:
            raise ValueError(f"test_share={self.test_share} must lie between 0 and 1")
        if self.num_inputs * min(self.test_share, 1 - self.test_share) < 1:
            raise ValueError(
                f"{self.name} has only {self.num_inputs:.0f} different inputs: too few to keep "
                f"{self.test_share:.0%} of them for the test; make it longer or add symbols"
            )

    def train_batch(self, step: int, batch_size: int, device: Device = "cpu") -> Batch:
        """Return the training batch of this step: the same for the same seed, whatever ran before.

        Raises:
            ValueError: if batch_size < 1, step < 0, or no training input turns up.
        """
        if step < 0 or batch_size < 1:
            raise ValueError(f"step={step} must be at least 0, batch_size={batch_size} at least 1")
        rng = np.random.default_rng((self.seed, step + 1))
        return self._collect(batch_size, rng, test=False, distinct=False).to(device)

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
        if count > self.num_inputs:
            raise ValueError(
                f"{count} different test examples asked, but {self.name} has only "
                f"{self.num_inputs:.0f} different inputs, training included"
            )
        rng = np.random.default_rng((self.seed, 0))
        return self._collect(count, rng, test=True, distinct=True).to(device)

    def _collect(
        self, count: int, rng: np.random.Generator, *, test: bool, distinct: bool
    ) -> Batch:
        share = self.test_share if test else 1 - self.test_share
        chunk = math.ceil(1.2 * count / share) + 8
        inputs, targets = self._draw_side(chunk, rng, test)
        fruitless = 0
        while len(inputs) < count and fruitless < 50:
            more_inputs, more_targets = self._draw_side(chunk, rng, test)
            before = len(inputs)
            inputs = np.concatenate([inputs, more_inputs])
            targets = np.concatenate([targets, more_targets])
            if distinct:
                inputs, targets = _first_of_each(inputs, targets)
            fruitless = fruitless + 1 if len(inputs) == before else 0
        if len(inputs) < count:
            raise ValueError(
                f"{count} {'different test' if test else 'training'} examples of {self.name} "
                f"asked, but only {len(inputs)} exist"
            )
        return Batch(torch.from_numpy(inputs[:count]), torch.from_numpy(targets[:count]))

    def _draw_side(self, count: int, rng: np.random.Generator, test: bool):
        inputs, targets = self.draw(count, rng)
        wanted = is_test(inputs, self.test_share) == test
        inputs, targets = inputs[wanted].astype(np.int64), targets[wanted].astype(np.int64)
        return _first_of_each(inputs, targets) if test else (inputs, targets)


def shift_right(targets: Int[Tensor, "b n"], start_token: int = START) -> Int[Tensor, "b n"]:
    """Return a decoder's input for `targets`: the start token, then all but the last target."""
    start = torch.full_like(targets[:, :1], start_token)
    return torch.cat([start, targets[:, :-1]], dim=1)


def is_test(inputs: np.ndarray, test_share: float) -> np.ndarray:
    """Return for each row of token ids (b, n) whether it belongs to the test."""
    hashed = np.full(len(inputs), 0xCBF29CE484222325, dtype=np.uint64)
    for column in np.ascontiguousarray(inputs.T).astype(np.uint64):
        hashed = (hashed ^ column) * np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(29)
    return hashed % np.uint64(_SHARE_STEPS) < np.uint64(round(test_share * _SHARE_STEPS))


def _first_of_each(inputs: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = np.sort(np.unique(inputs, axis=0, return_index=True)[1])
    return inputs[first], targets[first]
