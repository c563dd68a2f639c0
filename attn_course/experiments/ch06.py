"""Chapter 06: bags of words, order from a causal mask, what a shift does, and faulty encodings."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attn_course.attention import scaled_dot_product_attention
from attn_course.device import pick_device
from attn_course.experiments.devices import seeded
from attn_course.masks import causal_mask
from attn_course.models import Config, Encoder, Position
from attn_course.tasks.base import Batch, Task
from attn_course.training import fit

# -- who bites whom ---------------------------------------------------------------------------

BITES = 0
"""The id of the one verb; ids from 1 on are names."""


def who_bites_task(num_names: int = 20, *, seed: int = 0) -> Task:
    """Return the task of naming the biter in "a bites b", two different names.

    inputs (b, 3): name, BITES, name. targets (b, 1): the class of the first name, counted from
    0. A sentence may be held out for the test while its reverse is trained on.
    """

    def draw(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        first = rng.integers(num_names, size=count)
        second = (first + rng.integers(1, num_names, size=count)) % num_names
        verb = np.full(count, BITES)
        return np.stack([first + 1, verb, second + 1], axis=1), first[:, None]

    num_examples = num_names * (num_names - 1)
    return Task(
        "who_bites_task", num_names + 1, num_names, num_examples, draw, seed=seed, test_share=0.2
    )


class BiterRun(NamedTuple):
    """What a trained encoder makes of sentences that it has not seen.

    found: the share of right answers. same: the share of sentences to which, and to their
    reverse, it gives one and the same answer.
    """

    found: float
    same: float


def biter_runs(
    position: Position, *, seeds: Iterable[int] = range(3), steps: int = 150
) -> list[BiterRun]:
    """Train an encoder without a mask to name the biter, once for each seed.

    One block, the mean over the tokens, a linear layer: nothing but `position` knows the order.
    """
    return [_biter_run(position, seed, steps) for seed in seeds]


def _biter_run(position: Position, seed: int, steps: int) -> BiterRun:
    task = who_bites_task(seed=seed)
    test = task.test_set(50, pick_device())
    config = Config(d_model=32, num_heads=4, num_layers=1, max_len=3, position=position)
    model = seeded(seed, lambda: Encoder(task.vocab_size, config, num_classes=task.num_classes))

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        return F.cross_entropy(model(batch.inputs), batch.targets[:, 0])

    batches = task.batches(64, pick_device())
    fit(model, loss, batches, steps=steps, lr=1e-2, warmup=10, label="")
    with torch.no_grad():
        answers, reverse = (
            model.eval()(ids).argmax(dim=-1) for ids in (test.inputs, test.inputs.flip(1))
        )
    found = (answers == test.targets[:, 0]).double().mean().item()
    return BiterRun(found, (answers == reverse).double().mean().item())


# -- what a causal mask gives away ------------------------------------------------------------


def first_token_share(n: int) -> Float[Tensor, " n"]:
    """Return what each of n positions reads of the first token, all scores being equal.

    Under a causal mask position i spreads its weight evenly over i + 1 tokens. The value of the
    first token is 1, that of all others 0.
    """
    same = torch.zeros(n, 1)
    value = torch.zeros(n, 1)
    value[0] = 1
    return scaled_dot_product_attention(same, same, value, causal_mask(n))[0][:, 0]


# -- scores by position and by distance -------------------------------------------------------


def spread_at_one_distance(scores: Float[Tensor, "i j"]) -> float:
    """Return how far the scores of equal distance differ, against how far all scores differ.

    The mean standard deviation along the diagonals (of four entries at least), divided by that
    of the whole: 0 if the distance alone decides, near 1 if it says nothing.
    """
    n = len(scores)
    spreads = [scores.diagonal(offset).std() for offset in range(4 - n, n - 3)]
    return (torch.stack(spreads).mean() / scores.std()).item()


# -- faulty encodings -------------------------------------------------------------------------


def encoding_of(
    rate: Callable[[Tensor, int], Tensor],
) -> Callable[[int, int], Float[Tensor, "n d_model"]]:
    """Return an encoding whose pairs turn by rate(2i, d_model) at each position."""

    def encode(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
        angles = torch.arange(n)[:, None] * rate(torch.arange(0, d_model, 2), d_model)
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[:, :d_model]

    return encode


doubled_exponent = encoding_of(lambda even, d_model: 10000.0 ** (-2 * even / d_model))
"""`arange(0, d_model, 2)` taken for i, though it is 2i already."""

base_of_a_thousand = encoding_of(lambda even, d_model: 1000.0 ** (-even / d_model))
"""One zero lost."""


def add_by_batch(
    x: Float[Tensor, "b n d_model"], table: Float[Tensor, "max_len d_model"]
) -> Float[Tensor, "b n d_model"]:
    """Add a row for each sequence, where one for each position is meant."""
    return x + table[: x.shape[0], None]


def idle_features(
    encode: Callable[[int, int], Tensor], n: int = 100, d_model: int = 64, least: float = 0.1
) -> int:
    """Return how many of the features vary by less than `least` over n positions."""
    table = encode(n, d_model)
    return int((table.amax(dim=0) - table.amin(dim=0) < least).sum())


def longest_wave(table: Float[Tensor, "n d_model"]) -> float:
    """Return the length of the slowest pair's wave, in positions, read from rows 0 and 1."""
    sine, cosine = table[1, -2:].double()
    return (2 * torch.pi / torch.atan2(sine, cosine)).item()
