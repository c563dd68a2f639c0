"""Chapter 06's length table: six ways to put order in, two tasks, sequences longer than trained."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attn_course.device import pick_device
from attn_course.experiments.devices import seeded
from attn_course.models import Config, DecoderLM, Position
from attn_course.tasks import Task, k_back_task, latest_write_task
from attn_course.tasks.base import IGNORE, Batch
from attn_course.training import fit
from attn_course.training.progress_bar import training_bar

POSITIONS: tuple[Position, ...] = get_args(Position)
"""All ways that a `Config` knows, "none" first."""

LATEST, THREE_BACK = "latest write", "three back"

TASKS: Mapping[str, Callable[[int, int], Task]] = {
    LATEST: lambda n, seed: latest_write_task(n, seed=seed),
    THREE_BACK: lambda n, seed: k_back_task(n, 3, seed=seed),
}
"""Name -> (length, seed) -> task. The first favours what is recent, the second asks for an exact
distance. Both have eight answers to choose from."""

Encode = Callable[[int, int], Float[Tensor, "n d_model"]]


@dataclass(frozen=True)
class LengthSettings:
    """The size, the budget and the lengths, the same for every kind of position.

    Attributes:
        n: the length of the sequences in training.
        factors: a model is tested on sequences of so many times n.
        window: only the last so many positions are judged: at twice the length and more, all of
            them lie where training never was.
        test_every: a model is tested after every so many steps, and at the end.
    """

    n: int = 32
    factors: tuple[int, ...] = (1, 2, 4, 8)
    window: int = 16
    d_model: int = 32
    num_heads: int = 4
    num_layers: int = 2
    d_ff: int = 64
    batch_size: int = 32
    steps: int = 800
    test_every: int = 200
    lr: float = 1e-2
    test_size: int = 60


def length_model(
    position: Position, vocab_size: int, settings: LengthSettings, encode: Encode | None = None
) -> DecoderLM:
    """Return an untrained model for the longest sequences.

    encode: takes the place of the sinusoids, with position="sinusoidal".
    """
    longest = settings.n * max(settings.factors)
    config = Config(
        d_model=settings.d_model,
        num_heads=settings.num_heads,
        num_layers=settings.num_layers,
        d_ff=settings.d_ff,
        max_len=longest,
        position=position,
    )
    model = DecoderLM(vocab_size, config, tied=False)
    if encode is not None:
        model.stack.embedding.sines = encode(longest, settings.d_model)
    return model


def answer_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean cross-entropy over the positions where an answer is asked for."""
    return F.cross_entropy(
        model(batch.inputs).flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORE
    )


@torch.no_grad()
def accuracy_at_the_end(model: nn.Module, batch: Batch, window: int) -> float:
    """Return the share of right answers among those asked at the last `window` positions."""
    targets = batch.targets[:, -window:]
    asked = targets != IGNORE
    found = model(batch.inputs)[:, -window:].argmax(dim=-1)
    return (found == targets)[asked].double().mean().item()


def trained(
    task_name: str,
    position: Position,
    *,
    seed: int,
    settings: LengthSettings | None = None,
    encode: Encode | None = None,
) -> tuple[DecoderLM, Float[Tensor, "test factor"]]:
    """Train one model on sequences of length `settings.n`, and test it on the way.

    The seed decides the start and the data.

    Returns:
        The model, and its accuracy after every `settings.test_every` steps at each length.
    """
    settings = settings or LengthSettings()
    task = TASKS[task_name](settings.n, seed)
    model = seeded(seed, lambda: length_model(position, task.vocab_size, settings, encode))
    history = fit(
        model,
        answer_loss,
        task.batches(settings.batch_size, pick_device()),
        steps=settings.steps,
        lr=settings.lr,
        warmup=20,
        evaluate=accuracy_by_length(task_name, seed, settings),
        eval_every=settings.test_every,
        label="",
    )
    return model.eval(), torch.tensor(list(history.metrics.values())).T


def accuracy_by_length(
    task_name: str, seed: int, settings: LengthSettings
) -> Callable[[nn.Module], dict[str, float]]:
    """Return a test of a model: its accuracy at the end of sequences of each length."""
    make, device = TASKS[task_name], pick_device()
    tests = {
        f"{factor}×": make(settings.n * factor, seed).test_set(settings.test_size, device)
        for factor in settings.factors
    }

    def tested(model: nn.Module) -> dict[str, float]:
        return {
            name: accuracy_at_the_end(model, test, settings.window) for name, test in tests.items()
        }

    return tested


def length_table(
    task_name: str,
    *,
    positions: Iterable[Position] = POSITIONS,
    seeds: Iterable[int] = (0,),
    settings: LengthSettings | None = None,
    encode: Encode | None = None,
) -> dict[Position, Float[Tensor, "run test factor"]]:
    """Return the accuracies of `trained` for each kind of position, with one bar for all runs.

    encode: takes the place of the sinusoids.
    """
    positions, seeds = list(positions), list(seeds)
    settings = settings or LengthSettings()
    table = {}
    with training_bar(task_name, len(positions) * len(seeds) * settings.steps, None) as bar:
        for position in positions:
            runs = []
            for seed in seeds:
                _, tests = trained(task_name, position, seed=seed, settings=settings, encode=encode)
                runs.append(tests)
                bar.update(settings.steps)
            table[position] = torch.stack(runs)
    return table
