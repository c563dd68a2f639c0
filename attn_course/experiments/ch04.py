"""Chapter 04: a hand-set bank, path lengths, and next tokens predicted with and without a mask."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attn_course.device import pick_device
from attn_course.experiments.ch02 import split_into_tokens
from attn_course.experiments.devices import seeded
from attn_course.self_attention import Layer, SelfAttention
from attn_course.tasks.base import Batch, Task
from attn_course.training import History, fit
from attn_course.training.progress_bar import training_bar

# -- a bank, set by hand ----------------------------------------------------------------------

LOAN = "The bank approved the loan."
RIVER = "The bank is near the river."
BOTH = "The bank near the river approved the loan."

FEATURES = ("money", "water", "asks")

HAND_SET: dict[str, tuple[float, float, float]] = {
    "bank": (1.0, 1.0, 1.0),
    "approved": (1.0, 0.0, 0.0),
    "loan": (3.0, 0.0, 0.0),
    "river": (0.0, 3.0, 0.0),
}
"""Money, water, and whether the word asks which of the two is meant; all others are zeros."""


def hand_set_tokens(sentence: str) -> tuple[list[str], Float[Tensor, "n 3"]]:
    """Return the sentence's tokens and the vectors that are set for them by hand."""
    tokens = split_into_tokens(sentence)
    return tokens, torch.tensor([HAND_SET.get(token, (0.0, 0.0, 0.0)) for token in tokens])


def hand_set_attention(strength: float = 1.0) -> SelfAttention:
    """Return a layer whose weights are set by hand: who asks looks for money or water.

    Keys and values are the money and the water of a token. The query of a token that asks is
    √2 · strength · (1, 1), so that the scores, divided by √2, are strength · (money + water).
    """
    layer = SelfAttention(len(FEATURES), 2)
    ask = sqrt(2) * strength
    topic = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    with torch.no_grad():
        layer.W_q.weight.copy_(torch.tensor([[0.0, 0.0, ask], [0.0, 0.0, ask]]))
        layer.W_k.weight.copy_(topic)
        layer.W_v.weight.copy_(topic)
    return layer.requires_grad_(False)


# -- how far it is from one position to another -----------------------------------------------


def neighbours_within(n: int, distance: int) -> Bool[Tensor, "n n"]:
    """Say which positions a convolution reads that looks `distance` to either side."""
    place = torch.arange(n)
    return (place[:, None] - place).abs() <= distance


def path_length(reads: Bool[Tensor, "n n"], target: int, source: int) -> int | None:
    """Return how many steps it takes until `source` can have an effect at `target`.

    reads[i, j]: in one step, position i reads from position j. The step is repeated: None if
    no number of steps is enough.
    """
    n = reads.shape[-1]
    reached = torch.zeros(n, dtype=torch.bool)
    reached[source] = True
    for steps in range(n):
        if reached[target]:
            return steps
        reached = reached | (reads & reached).any(dim=-1)
    return None


# -- the next token ---------------------------------------------------------------------------

NUM_SYMBOLS = 8
FLOOR = log(2)
"""The loss of whoever knows the source exactly: two symbols may follow, equally likely."""

MaskRule = Callable[[int], Bool[Tensor, "n n"] | None]


def may_follow() -> Bool[Tensor, "symbol next"]:
    """Say which symbols may follow which: s + 1 and s + 3, counted round."""
    symbols = torch.arange(NUM_SYMBOLS)
    step = (symbols - symbols[:, None]) % NUM_SYMBOLS
    return (step == 1) | (step == 3)


def two_way_task(n: int, *, seed: int = 0) -> Task:
    """Return the task of predicting the next of n symbols, of which two are equally likely.

    inputs (b, n) and targets (b, n), the inputs one place on. No model can know which of the
    two will come: the expected loss of a model that sees only the past is at least log 2.
    """

    def draw(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        start = rng.integers(NUM_SYMBOLS, size=(count, 1))
        steps = rng.choice([1, 3], size=(count, n))
        symbols = np.concatenate([start, start + steps.cumsum(axis=1)], axis=1) % NUM_SYMBOLS
        return symbols[:, :-1], symbols[:, 1:]

    num_examples = NUM_SYMBOLS * 2 ** (n - 1)
    return Task("two_way_task", NUM_SYMBOLS, NUM_SYMBOLS, num_examples, draw, seed=seed)


class OneLayerLM(nn.Module):
    """Symbols and places as vectors, one self-attention added to them, and logits.

    mask_rule: gives the mask (n, n) for a length n, or None for no mask.
    """

    def __init__(self, mask_rule: MaskRule, *, max_len: int, d_model: int = 32) -> None:
        super().__init__()
        self.mask_rule = mask_rule
        self.symbols = nn.Embedding(NUM_SYMBOLS, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.attention = SelfAttention(d_model, d_model)
        self.read_out = nn.Linear(d_model, NUM_SYMBOLS)

    def layer(self, x: Float[Tensor, "b n d_model"]) -> Float[Tensor, "b n d_model"]:
        """Add to each token what its attention brings."""
        mask = self.mask_rule(x.shape[1])
        return x + self.attention(x, None if mask is None else mask.to(x.device))[0]

    def forward(self, symbols: Int[Tensor, "b n"]) -> Float[Tensor, "b n symbol"]:
        """Return logits of the next symbol at every position."""
        n = symbols.shape[1]
        x = self.symbols(symbols) + self.places(torch.arange(n, device=symbols.device))
        return self.read_out(self.layer(x))

    @torch.no_grad()
    def generate(self, n: int, *, count: int = 500, seed: int = 0) -> Int[Tensor, "count n"]:
        """Write `count` sequences symbol by symbol, each drawn from what the model predicts."""
        generator = torch.Generator().manual_seed(seed)  # on the CPU: the same draws everywhere
        symbols = torch.randint(NUM_SYMBOLS, (count, 1), generator=generator)
        symbols = symbols.to(self.read_out.weight.device)
        while symbols.shape[1] < n:
            chances = self(symbols)[:, -1].softmax(dim=-1).cpu()
            drawn = torch.multinomial(chances, 1, generator=generator)
            symbols = torch.cat([symbols, drawn.to(symbols.device)], dim=1)
        return symbols


def legal_share(symbols: Int[Tensor, "b n"]) -> float:
    """Return the share of steps in these sequences that the source could have made."""
    allowed = may_follow().to(symbols.device)
    return allowed[symbols[:, :-1], symbols[:, 1:]].double().mean().item()


@dataclass(frozen=True)
class NextTokenSettings:
    """The length of the sequences and the budget, the same for every mask."""

    n: int = 12
    batch_size: int = 64
    steps: int = 300
    lr: float = 1e-2
    d_model: int = 32
    test_size: int = 500


class NextTokenRun(NamedTuple):
    """A trained model, what was measured on the way, its held-out loss and what it writes."""

    model: OneLayerLM
    history: History
    loss: float
    legal: float


def train_next_token(
    mask_rule: MaskRule, *, seed: int, settings: NextTokenSettings | None = None
) -> NextTokenRun:
    """Train one model to predict the next symbol; the same seed gives the same start and data."""
    settings = settings or NextTokenSettings()
    task = two_way_task(settings.n, seed=seed)
    test = task.test_set(settings.test_size, pick_device())
    sizes = {"max_len": settings.n, "d_model": settings.d_model}
    model = seeded(seed, lambda: OneLayerLM(mask_rule, **sizes))
    history = fit(
        model,
        next_token_loss,
        task.batches(settings.batch_size, pick_device()),
        steps=settings.steps,
        lr=settings.lr,
        warmup=20,
        evaluate=lambda model: {"loss": next_token_loss(model, test).item()},
        label="",
    )
    held_out = history.metrics["loss"][-1]
    return NextTokenRun(model, history, held_out, legal_share(model.generate(settings.n)))


def next_token_runs(
    mask_rule: MaskRule,
    *,
    name: str = "",
    seeds: Iterable[int] = range(3),
    settings: NextTokenSettings | None = None,
) -> list[NextTokenRun]:
    """Train one model for each seed, with one bar for all of them."""
    settings, seeds = settings or NextTokenSettings(), list(seeds)
    runs = []
    with training_bar(name, settings.steps * len(seeds), None) as bar:
        for seed in seeds:
            runs.append(train_next_token(mask_rule, seed=seed, settings=settings))
            bar.update(settings.steps)
    return runs


def next_token_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean cross-entropy over all positions."""
    return F.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())


@torch.no_grad()
def loss_by_position(model: nn.Module, batch: Batch) -> Float[Tensor, " n"]:
    """Return the mean cross-entropy at each position."""
    losses = F.cross_entropy(model(batch.inputs).mT, batch.targets, reduction="none")
    return losses.mean(dim=0)


def as_layer(attention: nn.Module, mask: Bool[Tensor, "n n"] | None = None) -> Layer:
    """Return the output alone of an attention that gives (output, weights)."""
    return lambda x: attention(x, mask)[0]
