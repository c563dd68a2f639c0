"""Chapter 08: dates of many languages to ISO, by a Transformer and by two GRUs."""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor, nn

from attn_course.device import pick_device
from attn_course.experiments.devices import seeded
from attn_course.generation import greedy_decode
from attn_course.losses import masked_cross_entropy
from attn_course.models import Config, Seq2Seq
from attn_course.recurrent import RecurrentSeq2Seq
from attn_course.sentences import spoken
from attn_course.tasks import START, Batch, DateTask, date_task, shift_right
from attn_course.training import History, StepInfo, fit
from attn_course.training.progress_bar import training_bar

ISO_LENGTH = 10

# -- a batch, and what its padding costs ------------------------------------------------------


def trimmed(batch: Batch) -> Batch:
    """Return the batch without the columns in which every source is padding."""
    return Batch(batch.inputs[:, : int(lengths_of(batch.inputs).max())], batch.targets)


def lengths_of(source: Int[Tensor, "b n"]) -> Int[Tensor, " b"]:
    """Return how many tokens each source has; padding stands behind them."""
    return (source != START).sum(dim=1)


def padding_only_loss(lengths: Int[Tensor, " b"], width: int, vocab: int) -> tuple[float, float]:
    """Return the loss of a model that knows padding and nothing else: over all, over tokens.

    At padding it is certain, at tokens it guesses among `vocab`. Padded to `width`, in nats.
    """
    padding = torch.arange(width) < lengths[:, None]
    logits = torch.zeros(*padding.shape, vocab + 1)
    logits[..., 0] = torch.where(padding, -100.0, 100.0)  # class 0 is the padding
    targets = padding.long()
    everywhere = F.cross_entropy(logits.mT, targets).item()
    return everywhere, masked_cross_entropy(logits, targets, padding).item()


# -- models and how they are trained ----------------------------------------------------------


Writer = Callable[[nn.Module, Int[Tensor, "b n"]], Int[Tensor, "b n_target"]]
"""Writes ISO dates for sources, reading back what it has written."""


@dataclass(frozen=True)
class DateSettings:
    """A budget and how it is spent."""

    steps: int
    lr: float
    warmup: int = 60
    clip: float = 1.0
    batch_size: int = 64
    test_size: int = 1000


KINDS = ("Transformer", "GRU with attention", "GRU without")

BEST: Mapping[str, DateSettings] = {
    "Transformer": DateSettings(steps=750, lr=5e-3),
    "GRU with attention": DateSettings(steps=600, lr=5e-3),
    "GRU without": DateSettings(steps=1000, lr=5e-3),
}
"""The settings that did best on the grid of `benchmarks/claims/ch08.py`."""

CONFIG = Config(d_model=64, num_heads=4, num_layers=2, max_len=64)
GRU_WIDTHS = {"GRU with attention": 96, "GRU without": 128}


class DateRun(NamedTuple):
    """A trained model, what was measured on the way, and what it writes at the end.

    exact: the share of test dates that come out right in all ten characters; by_language: the
    same for each language. Of an interrupted run both are those of the model as it was left.
    """

    model: Any
    history: History
    by_language: dict[str, float]
    early: Any
    exact: float


def make_model(kind: str, task: DateTask, *, seed: int = 0) -> nn.Module:
    """Return an untrained model of one of the three kinds.

    Raises ValueError for another kind.
    """
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is none of {', '.join(KINDS)}")
    sizes = (task.vocab_size, task.num_classes)
    if kind == "Transformer":
        return seeded(seed, lambda: Seq2Seq(*sizes, CONFIG))
    width, attention = GRU_WIDTHS[kind], kind == "GRU with attention"
    return seeded(seed, lambda: RecurrentSeq2Seq(*sizes, width, attention=attention, kind="gru"))


def date_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean cross-entropy per character, under teacher forcing, in nats."""
    target_in = shift_right(batch.targets)
    if isinstance(model, RecurrentSeq2Seq):
        logits, _ = model(batch.inputs, target_in, lengths_of(batch.inputs))
    else:
        logits = model(batch.inputs, target_in, batch.inputs != START)
    return masked_cross_entropy(logits, batch.targets, batch.targets != START)


def write(model: nn.Module, source: Int[Tensor, "b n"]) -> Int[Tensor, "b n_target"]:
    """Write an ISO date for each source, greedily; ValueError for a model of another kind."""
    if isinstance(model, RecurrentSeq2Seq):
        return model.generate(source, ISO_LENGTH, START, lengths_of(source))[0]
    if isinstance(model, Seq2Seq):
        return greedy_decode(model, source, START, ISO_LENGTH, source != START)
    raise ValueError(f"how a {type(model).__name__} writes is not known here: give a writer")


def exact_match(written: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]) -> Bool[Tensor, " b"]:
    """Return which rows are right in every character."""
    return (written == targets).all(dim=1)


def train_dates(
    kind: str | nn.Module = "Transformer",
    *,
    seed: int = 0,
    settings: DateSettings | None = None,
    writer: Writer = write,
    early_step: int | None = None,
    label: str | None = None,
    checkpoint: str | None = None,
) -> DateRun:
    """Train one model on dates, and test it on dates that training never shows.

    kind: one of `KINDS`, or an untrained model that is called as `models.Seq2Seq` is.
    settings: the budget; by default that of `BEST`.
    writer: how it writes, for a model of your own.
    early_step: keep a copy of the model as it was after so many steps.
    checkpoint: a file from which an interrupted run goes on.
    """
    name = kind if isinstance(kind, str) else "Transformer"
    settings, task = settings or BEST[name], date_task(seed=seed)
    model = make_model(kind, task, seed=seed) if isinstance(kind, str) else kind.to(pick_device())
    test = trimmed(task.test_set(settings.test_size, pick_device()))
    batches, early = task.batches(settings.batch_size, pick_device()), []

    def keep(info: StepInfo) -> None:
        if info.step == early_step:
            early.append(deepcopy(model).eval())

    history = fit(
        model,
        date_loss,
        lambda step: trimmed(batches(step)),
        steps=settings.steps,
        lr=settings.lr,
        warmup=settings.warmup,
        clip=settings.clip,
        evaluate=lambda m: {
            "exact": exact_match(writer(m, test.inputs), test.targets).double().mean().item()
        },
        eval_every=max(1, settings.steps // 6),
        on_step=keep,
        checkpoint=checkpoint,
        label=name if label is None else label,
    )
    written = writer(model, test.inputs)
    shares, exact = by_language(task, test, written), exact_match(written, test.targets)
    found = exact.double().mean().item()
    return DateRun(model, history, shares, early[0] if early else None, found)


def by_language(task: DateTask, test: Batch, written: Int[Tensor, "b n"]) -> dict[str, float]:
    """Return the share of exact matches for each language, in the order of their ids."""
    right = exact_match(written, test.targets)
    languages = test.inputs[:, 0]
    return {
        language: right[languages == number].double().mean().item()
        for number, language in enumerate(task.languages, start=1)
    }


@dataclass(frozen=True)
class ShiftRun:
    """What a small model reaches: its last loss, and its exact match when it writes alone."""

    loss: float
    exact: float


def train_small(*, shifted: bool, seed: int, steps: int = 150) -> ShiftRun:
    """Train a one-layer model that reads the targets shifted, as it should, or as they are."""
    task = date_task(seed=seed)
    sizes = Config(d_model=32, num_heads=2, num_layers=1, max_len=64)
    model = seeded(seed, lambda: Seq2Seq(task.vocab_size, task.num_classes, sizes))

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        target_in = shift_right(batch.targets) if shifted else batch.targets
        logits = model(batch.inputs, target_in, batch.inputs != START)
        return masked_cross_entropy(logits, batch.targets, batch.targets != START)

    batches = task.batches(32, pick_device())
    history = fit(model, loss, lambda k: trimmed(batches(k)), steps=steps, lr=1e-2, label="")
    test = trimmed(task.test_set(200, pick_device()))
    right = exact_match(write(model, test.inputs), test.targets)
    return ShiftRun(sum(history.loss[-10:]) / 10, right.double().mean().item())


def shift_runs(*, seeds: Iterable[int] = range(3), steps: int = 150) -> dict[bool, list[ShiftRun]]:
    """Train small models with the shift (True) and without it, with one bar for all of them."""
    seeds, runs = list(seeds), {True: [], False: []}
    with training_bar(spoken("small models"), 2 * len(seeds) * steps, None) as bar:
        for shifted, of_kind in runs.items():
            for seed in seeds:
                of_kind.append(train_small(shifted=shifted, seed=seed, steps=steps))
                bar.update(steps)
    return runs
