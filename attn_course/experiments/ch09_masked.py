"""Chapter 09: hidden characters, filled in by models that look both ways or to the left only."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from attn_course.device import pick_device
from attn_course.experiments.ch09 import CONFIG, ProseSettings
from attn_course.experiments.devices import seeded
from attn_course.models import DecoderLM, Encoder
from attn_course.tasks import IGNORE, Batch, Text, mask_tokens, prose
from attn_course.training import History, fit

WAYS = BOTH_WAYS, TO_THE_LEFT = ("both ways", "to the left")

FILLING = ProseSettings(steps=400, lr=5e-3)
SHARE = 0.15


class FillRun(NamedTuple):
    """A trained model, what was measured on the way, and the hidden test text."""

    model: Any
    history: History
    test: Batch

    @property
    def loss(self) -> float:
        """The loss at hidden characters of held-out topics, in nats."""
        return self.history.metrics["held-out loss"][-1]

    @property
    def accuracy(self) -> float:
        """The share of hidden characters that are guessed right."""
        return self.history.metrics["accuracy"][-1]


def make_filler(way: str, text: Text, *, seed: int = 0) -> nn.Module:
    """Return an untrained model that gives logits for each character, the hidden ones too.

    Both are the same stack; "to the left" has the causal mask and "both ways" none. The mask
    token is one more id, `text.vocab_size`. Raises ValueError for another way.
    """
    if way not in WAYS:
        raise ValueError(f"way={way!r} is none of {', '.join(WAYS)}")
    if way == BOTH_WAYS:
        return seeded(seed, lambda: Encoder(text.vocab_size + 1, CONFIG))
    return seeded(seed, lambda: DecoderLM(text.vocab_size + 1, CONFIG, tied=False))


def hidden_batches(
    text: Text, settings: ProseSettings, *, share: float = SHARE, seed: int = 0
) -> Callable[[int], Batch]:
    """Return `step -> windows with hidden characters`: each step hides others."""

    def batch(step: int) -> Batch:
        ids = text.train_batch(step, settings.batch_size, settings.n).inputs
        chance = torch.Generator().manual_seed(1_000_003 * (seed + 1) + step)
        hidden = mask_tokens(ids, text.vocab_size, text.vocab_size, share, chance)
        return hidden.to(pick_device())

    return batch


def hidden_test(text: Text, settings: ProseSettings, *, share: float = SHARE) -> Batch:
    """Return held-out windows with hidden characters, always the same; none stays or is replaced.

    In training some of the chosen stay or become others (`mask_tokens`). In the test what is
    asked for is what cannot be read, so all of them are hidden.
    """
    ids = text.test_set(settings.n, settings.test_windows).inputs
    chosen = torch.rand(ids.shape, generator=torch.Generator().manual_seed(9)) < share
    hidden = Batch(ids.masked_fill(chosen, text.vocab_size), ids.masked_fill(~chosen, IGNORE))
    return hidden.to(pick_device())


def fill_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean cross-entropy at the hidden characters, in nats."""
    logits = model(batch.inputs).flatten(0, 1)
    return F.cross_entropy(logits, batch.targets.flatten(), ignore_index=IGNORE)


def fill_figures(model: nn.Module, batch: Batch) -> dict[str, float]:
    """Return loss and accuracy at the hidden characters."""
    logits, hidden = model(batch.inputs), batch.targets != IGNORE
    wanted = batch.targets[hidden]
    right = logits[hidden].argmax(dim=-1) == wanted
    return {
        "held-out loss": F.cross_entropy(logits[hidden], wanted).item(),
        "accuracy": right.double().mean().item(),
    }


def train_filler(
    way: str = BOTH_WAYS,
    *,
    seed: int = 0,
    settings: ProseSettings = FILLING,
    label: str | None = None,
    checkpoint: str | None = None,
) -> FillRun:
    """Train a model to fill in hidden characters, and test it on held-out topics."""
    text = prose(seed=seed)
    model, test = make_filler(way, text, seed=seed), hidden_test(text, settings)
    history = fit(
        model,
        fill_loss,
        hidden_batches(text, settings, seed=seed),
        steps=settings.steps,
        lr=settings.lr,
        warmup=settings.warmup,
        clip=settings.clip,
        evaluate=lambda m: fill_figures(m, test),
        eval_every=max(1, settings.steps // 6),
        checkpoint=checkpoint,
        label=way if label is None else label,
    )
    return FillRun(model, history, test)


@torch.no_grad()
def left_context_loss(model: nn.Module, test: Batch) -> float:
    """Return a next-token model's loss at the hidden characters, which it reads as they were.

    It sees the whole text to the left, hidden by nothing, and predicts each from there. A
    window's first character has nothing to its left and is left out.
    """
    hidden = test.targets != IGNORE
    ids = torch.where(hidden, test.targets, test.inputs)
    logits = model.eval()(ids[:, :-1])
    return F.cross_entropy(logits[hidden[:, 1:]], ids[:, 1:][hidden[:, 1:]]).item()


def shown(text: Text, ids: Int[Tensor, " n"]) -> str:
    """Return ids as text: the mask token as ▁, places where nothing is asked as a dot."""
    known = {text.vocab_size: "▁", IGNORE: "·"}
    return "".join(known.get(int(i)) or text.decode(i[None]) for i in ids)


def most_prose(text: Text, windows: Int[Tensor, "b n"], count: int) -> list[int]:
    """Return the places of the `count` windows with the most letters: the book has tables, too."""
    letters = torch.tensor([sum(map(str.isalpha, shown(text, row))) for row in windows])
    return letters.argsort(descending=True, stable=True)[:count].tolist()


@torch.no_grad()
def filled(model: nn.Module, ids: Int[Tensor, " n"], mask_token: int) -> Int[Tensor, " n"]:
    """Return the ids with each mask token replaced by the model's most likely character."""
    best = model.eval()(ids[None])[0, :, :mask_token].argmax(dim=-1)
    return torch.where(ids == mask_token, best, ids)
