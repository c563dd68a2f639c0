"""Chapter 09: language models of characters, a Transformer and a GRU on the same prose."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attn_course.device import pick_device
from attn_course.experiments.devices import seeded
from attn_course.models import Config, DecoderLM
from attn_course.ngrams import NGramModel
from attn_course.recurrent import RecurrentLM
from attn_course.tasks import Batch, Text, prose
from attn_course.training import History, StepInfo, fit

KINDS = ("Transformer", "GRU")


@dataclass(frozen=True)
class ProseSettings:
    """A budget and how it is spent: `steps` of `batch_size` windows of `n` characters."""

    steps: int
    lr: float
    warmup: int = 60
    clip: float = 1.0
    batch_size: int = 16
    n: int = 64
    test_windows: int = 300


BEST: Mapping[str, ProseSettings] = {
    "Transformer": ProseSettings(steps=400, lr=5e-3),
    "GRU": ProseSettings(steps=400, lr=1e-2, clip=0.25),
}
"""The settings that did best on the grid of `benchmarks/claims/ch09.py`."""

CONFIG = Config(d_model=96, num_heads=4, num_layers=3, max_len=64, position="rope")
GRU_WIDTH = 224  # one layer: about as many parameters as CONFIG, and better than two of 160


def scaled(kind: str, factor: float) -> ProseSettings:
    """Return the chapter's settings of one kind with so many times its steps."""
    return replace(BEST[kind], steps=max(1, round(factor * BEST[kind].steps)))


class LMRun(NamedTuple):
    """A trained language model, what was measured on the way, and copies from earlier moments.

    loss: on held-out topics, in nats per character, of the model as it is at the end, also
    where the run was interrupted.
    """

    model: Any
    history: History
    moments: dict[int, Any]
    loss: float


def make_lm(kind: str, text: Text, *, seed: int = 0) -> nn.Module:
    """Return an untrained language model of one of the two kinds.

    Raises ValueError for another kind.
    """
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is none of {', '.join(KINDS)}")
    if kind == "Transformer":
        return seeded(seed, lambda: DecoderLM(text.vocab_size, CONFIG))
    return seeded(seed, lambda: RecurrentLM(text.vocab_size, GRU_WIDTH, tied=True))


def ngram_losses(text: Text, orders: Sequence[int], settings: ProseSettings) -> dict[int, float]:
    """Return for each order the held-out loss of counting the whole training text, in nats."""
    ids, test = text.encode(text.train), text.test_set(settings.n, settings.test_windows)
    return {n: NGramModel(text.vocab_size, n).fit(ids).loss(*test) for n in orders}


@torch.no_grad()
def loss_by_position(model: nn.Module, test: Batch) -> Float[Tensor, " n"]:
    """Return the mean loss at each position of the test windows, in nats."""
    logits = model.eval()(test.inputs)
    return F.cross_entropy(logits.mT, test.targets, reduction="none").mean(dim=0)


def lm_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean cross-entropy of the next character at all positions, in nats."""
    return F.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())


@torch.no_grad()
def held_out_loss(model: nn.Module, test: Batch) -> float:
    """Return the mean loss on test windows in eval mode; the model's mode stays as it was."""
    training = model.training
    loss = lm_loss(model.eval(), test).item()
    model.train(training)
    return loss


def train_lm(
    kind: str | nn.Module = "Transformer",
    *,
    seed: int = 0,
    settings: ProseSettings | None = None,
    keep: tuple[int, ...] = (),
    watch: Any = None,
    label: str | None = None,
    checkpoint: str | None = None,
) -> LMRun:
    """Train one model on the course's prose, and test it on topics that training never shows.

    kind: one of `KINDS`, or an untrained model from ids (b, n) to logits (b, n, vocab).
    settings: the budget; by default that of `BEST`.
    keep: the steps after which a copy of the model is kept.
    watch: a further observer of the run, such as an `explorers.TrainingView`.
    checkpoint: a file from which an interrupted run goes on.
    """
    name = kind if isinstance(kind, str) else "Transformer"
    settings, text = settings or BEST[name], prose(seed=seed)
    model = make_lm(kind, text, seed=seed) if isinstance(kind, str) else kind.to(pick_device())
    test = text.test_set(settings.n, settings.test_windows, pick_device())
    moments: dict[int, nn.Module] = {}

    def on_step(info: StepInfo) -> None:
        if info.step in keep:
            moments[info.step] = deepcopy(model).eval()
        if watch is not None:
            watch(info)

    history = fit(
        model,
        lm_loss,
        text.batches(settings.batch_size, settings.n, pick_device()),
        steps=settings.steps,
        lr=settings.lr,
        warmup=settings.warmup,
        clip=settings.clip,
        evaluate=lambda m: {"held-out loss": lm_loss(m, test).item()},
        eval_every=max(1, settings.steps // 6),
        on_step=on_step,
        checkpoint=checkpoint,
        label=name if label is None else label,
    )
    if watch is not None:
        watch.finish(history)
    finished = history.stopped == "finished"
    loss = history.metrics["held-out loss"][-1] if finished else held_out_loss(model, test)
    return LMRun(model, history, moments, loss)
