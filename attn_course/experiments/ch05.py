"""Chapter 05: several questions at one position, what each head does, and how wide it must be."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from attn_course.attention import scaled_dot_product_attention
from attn_course.blocks import FeedForward
from attn_course.device import pick_device
from attn_course.experiments.devices import seeded
from attn_course.multihead import MultiHeadAttention, ablate_heads, projection
from attn_course.sentences import say, spoken
from attn_course.tasks import staircase_task
from attn_course.tasks.base import Batch, Task
from attn_course.training import History, fit
from attn_course.training.progress_bar import training_bar

NUM_ITEMS = 8
NUM_KEYS = 8
NUM_VALUES = 8


@dataclass(frozen=True)
class StaircaseSettings:
    """How many questions one position asks, what is to answer them, and the budget.

    With several layers, each one's output is added to the tokens; with one, only its output
    is read. d_ff: the width of a feed-forward network behind the last layer, 0 for none.
    """

    num_questions: int = 4
    num_heads: int = 1
    num_layers: int = 1
    d_ff: int = 0
    d_model: int = 48
    batch_size: int = 64
    steps: int = 400
    lr: float = 3e-3
    test_size: int = 1000


class StaircaseModel(nn.Module):
    """Tokens as sums of embeddings, attention, and one linear layer that reads all answers.

    Only the last position asks, so only it is a query in the last layer.
    """

    def __init__(self, task: Task, settings: StaircaseSettings) -> None:
        super().__init__()
        d_model = settings.d_model
        self.num_questions = settings.num_questions
        self.symbols = nn.Embedding(task.vocab_size, d_model, padding_idx=0)
        self.attentions = nn.ModuleList(
            MultiHeadAttention(d_model, settings.num_heads) for _ in range(settings.num_layers)
        )
        self.feed_forward = FeedForward(d_model, settings.d_ff) if settings.d_ff else None
        self.read_out = nn.Linear(d_model, settings.num_questions * task.num_classes)

    def forward(self, symbols: Int[Tensor, "b n slots"]) -> Float[Tensor, "b q value"]:
        """Return logits of the value behind each question."""
        x = self.symbols(symbols).sum(dim=2)
        alone = len(self.attentions) == 1
        for number, attention in enumerate(self.attentions, start=1):
            asking = x[:, -1:] if number == len(self.attentions) else x
            found, _ = attention(asking, x, x, need_weights=False)
            x = found if alone else asking + found
        if self.feed_forward is not None:
            x = x + self.feed_forward(x)
        return self.read_out(x[:, -1]).unflatten(-1, (self.num_questions, -1))

    def weights(self, symbols: Int[Tensor, "b n slots"]) -> Float[Tensor, "b h n"]:
        """Return what the last position attends to in the first layer."""
        x = self.symbols(symbols).sum(dim=2)
        return self.attentions[0](x[:, -1:], x, x)[1][:, :, 0]


class StaircaseRun(NamedTuple):
    """A trained model, its history, and the share of right answers to each question."""

    model: StaircaseModel
    history: History
    accuracy: Float[Tensor, " q"]

    @property
    def answered(self) -> float:
        """Return how many of the questions are answered rightly, on average."""
        return self.accuracy.sum().item()


def staircase(settings: StaircaseSettings, seed: int) -> Task:
    """Return the task that these settings speak of."""
    return staircase_task(
        settings.num_questions,
        num_items=NUM_ITEMS,
        num_keys=NUM_KEYS,
        num_values=NUM_VALUES,
        seed=seed,
    )


def train_staircase(settings: StaircaseSettings, *, seed: int) -> StaircaseRun:
    """Train one model; the same seed gives the same start and data."""
    task = staircase(settings, seed)
    test = task.test_set(settings.test_size, pick_device())
    model = seeded(seed, lambda: StaircaseModel(task, settings))
    history = fit(
        model,
        answers_loss,
        task.batches(settings.batch_size, pick_device()),
        steps=settings.steps,
        lr=settings.lr,
        warmup=20,
        label="",
    )
    return StaircaseRun(model, history, accuracy_by_question(model, test).cpu())


def staircase_runs(
    settings: StaircaseSettings, *, name: str = "", seeds: Iterable[int] = range(3)
) -> list[StaircaseRun]:
    """Train one model for each seed, with one bar for all of them."""
    seeds = list(seeds)
    runs = []
    with training_bar(name, settings.steps * len(seeds), None) as bar:
        for seed in seeds:
            runs.append(train_staircase(settings, seed=seed))
            bar.update(settings.steps)
    return runs


def answers_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean cross-entropy over all questions."""
    return F.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())


@torch.no_grad()
def accuracy_by_question(model: nn.Module, batch: Batch) -> Float[Tensor, " q"]:
    """Return the share of right answers to each question."""
    return (model(batch.inputs).argmax(dim=-1) == batch.targets).double().mean(dim=0)


# -- what each head does ----------------------------------------------------------------------


def asked_items(symbols: Int[Tensor, "b n slots"], num_questions: int) -> Int[Tensor, "b q"]:
    """Return the position of the item that each question asks for."""
    first = NUM_KEYS + NUM_VALUES + NUM_KEYS * torch.arange(num_questions, device=symbols.device)
    keys = symbols[:, -1, :num_questions] - first
    return (symbols[:, None, :-1, 0] == keys[:, :, None]).int().argmax(dim=-1)


@torch.no_grad()
def attention_to_questions(model: StaircaseModel, batch: Batch) -> Float[Tensor, "h q"]:
    """Return the mean weight that each head puts on the item that each question asks for."""
    weights = model.weights(batch.inputs)
    items = asked_items(batch.inputs, model.num_questions)
    at_items = weights.gather(-1, items[:, None].expand(-1, weights.shape[1], -1))
    return at_items.double().mean(dim=0)


def ablation_costs(model: StaircaseModel, batch: Batch) -> Float[Tensor, "h q"]:
    """Return by how much each question's accuracy falls when one head is silenced."""
    whole = cast(MultiHeadAttention, model.attentions[0])
    before, costs = accuracy_by_question(model, batch), []
    for head in range(whole.num_heads):
        model.attentions[0] = ablate_heads(whole, [head])
        costs.append(before - accuracy_by_question(model, batch))
    model.attentions[0] = whole
    return torch.stack(costs)


# -- how wide a head must be ------------------------------------------------------------------


@dataclass(frozen=True)
class KeySettings:
    """One look-up among 8 items whose keys are drawn from `num_keys`, by a head d_k wide."""

    num_keys: int
    d_k: int
    d_model: int = 64
    batch_size: int = 64
    steps: int = 400
    lr: float = 5e-3
    test_size: int = 1000


class KeyLookup(nn.Module):
    """One head whose queries and keys are d_k wide; its values are as wide as the model."""

    def __init__(self, task: Task, settings: KeySettings) -> None:
        super().__init__()
        d_model = settings.d_model
        self.symbols = nn.Embedding(task.vocab_size, d_model, padding_idx=0)
        self.W_q = projection(d_model, settings.d_k)
        self.W_k = projection(d_model, settings.d_k)
        self.W_v = projection(d_model, d_model)
        self.read_out = nn.Linear(d_model, task.num_classes)

    def forward(self, symbols: Int[Tensor, "b n slots"]) -> Float[Tensor, "b 1 value"]:
        """Return logits of the value behind the question at the last position."""
        x = self.symbols(symbols).sum(dim=2)
        output, _ = scaled_dot_product_attention(
            self.W_q(x[:, -1:]), self.W_k(x), self.W_v(x), need_weights=False
        )
        return self.read_out(output)


def train_key_lookup(settings: KeySettings, *, seed: int) -> float:
    """Return the held-out accuracy of one look-up, trained from this seed."""
    task = staircase_task(1, num_items=NUM_ITEMS, num_keys=settings.num_keys, seed=seed)
    test = task.test_set(settings.test_size, pick_device())
    model = seeded(seed, lambda: KeyLookup(task, settings))
    fit(
        model,
        answers_loss,
        task.batches(settings.batch_size, pick_device()),
        steps=settings.steps,
        lr=settings.lr,
        warmup=20,
        label="",
    )
    return accuracy_by_question(model, test).item()


def key_lookup_accuracy(
    num_keys: int, widths: Iterable[int], *, seeds: Iterable[int] = range(3), steps: int = 400
) -> Float[Tensor, "run width"]:
    """Return the accuracy for each width of a head, one row for each seed, with one bar."""
    widths, seeds = list(widths), list(seeds)
    found = torch.zeros(len(seeds), len(widths))
    label = spoken(say("{n} keys", n=num_keys))
    with training_bar(label, steps * found.numel(), None) as bar:
        for row, seed in enumerate(seeds):
            for column, d_k in enumerate(widths):
                settings = KeySettings(num_keys, d_k, steps=steps)
                found[row, column] = train_key_lookup(settings, seed=seed)
                bar.update(steps)
    return found
