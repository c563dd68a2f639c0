"""Chapter 03: random scores and their softmax, and a look-up that is trained with any scale."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from attn_course.attention import attention_scores
from attn_course.device import pick_device
from attn_course.experiments.devices import seeded
from attn_course.sentences import say, spoken
from attn_course.tasks import Batch, Task, recall_task
from attn_course.training import History, fit
from attn_course.training.progress_bar import training_bar


def random_vectors(
    d_k: int, *, sets: int = 64, n: int = 16, seed: int = 0
) -> tuple[Float[Tensor, "sets n d_k"], Float[Tensor, "sets n d_k"]]:
    """Return queries and keys, n of each in every set, whose entries are standard normal."""
    generator = torch.Generator().manual_seed(seed)
    query, key = torch.randn(2, sets, n, d_k, generator=generator)
    return query, key


def query_gradient_sizes(
    weights: Float[Tensor, "*b i j"], key: Float[Tensor, "*b j d_k"], scale: float
) -> Float[Tensor, "*b i"]:
    """Return the Frobenius norm of ∂p/∂q for each query: how far its weights move with it.

    By the chain rule ∂p/∂q = scale · (∂p/∂s) key, and row i of (∂p/∂s) key is
    p_i (key_i − Σ_j p_j key_j): the key seen from the mean that the query reads.
    """
    mean = weights @ key
    distances = torch.cdist(mean, key).square()
    return scale * (weights.square() * distances).sum(dim=-1).sqrt()


# -- a look-up to be trained ------------------------------------------------------------------


@dataclass(frozen=True)
class LookUpSettings:
    """The task and the budget, the same for every scale.

    A sequence holds `num_pairs` pairs of a key symbol and a value symbol, then asks for the
    value of one of its keys.
    """

    num_pairs: int = 8
    num_keys: int = 16
    num_values: int = 8
    d_v: int = 16
    batch_size: int = 64
    steps: int = 200
    lr: float = 3e-2
    test_size: int = 1000

    def task(self, seed: int) -> Task:
        """Return the source of sequences; `seed` decides the order of training only."""
        sizes = {"num_keys": self.num_keys, "num_values": self.num_values}
        return recall_task(self.num_pairs, **sizes, seed=seed)


class LookUp(nn.Module):
    """One attention head and a linear read-out: a query, a key, a value vector for each symbol.

    There are no projections and no positions, so that `scale` and the entries' standard
    deviation at the start, `start_std`, are all that decides how large the first scores are:
    their variance is d_k · start_std⁴ · scale².
    """

    def __init__(
        self, d_k: int, scale: float, *, vocab_size: int, d_v: int, start_std: float = 1.0
    ) -> None:
        super().__init__()
        self.scale = scale
        self.query = nn.Embedding(vocab_size, d_k)
        self.key = nn.Embedding(vocab_size, d_k)
        self.value = nn.Embedding(vocab_size, d_v)
        self.read_out = nn.Linear(d_v, vocab_size)
        for table in (self.query, self.key):
            nn.init.normal_(table.weight, std=start_std)

    def forward(self, inputs: Int[Tensor, "b n"]) -> Float[Tensor, "b vocab_size"]:
        """Return the logits of the value that is asked for at the end of (key, value)*, key."""
        keys, values, asked = inputs[:, 0:-1:2], inputs[:, 1:-1:2], inputs[:, -1:]
        scores = self.scale * attention_scores(self.query(asked), self.key(keys))
        output = scores.softmax(dim=-1) @ self.value(values)
        return self.read_out(output[:, 0])

    @torch.no_grad()
    def choices(self, ids: Int[Tensor, " n"]) -> Float[Tensor, "n n"]:
        """Return the weights with which each of these symbols asks for each of them."""
        return (self.scale * attention_scores(self.query(ids), self.key(ids))).softmax(dim=-1)


class LookUpRun(NamedTuple):
    """A trained look-up, what was measured on the way, and its share of right answers."""

    model: LookUp
    history: History
    accuracy: float


def fresh_lookup(
    d_k: int,
    scale: float,
    *,
    seed: int,
    start_std: float = 1.0,
    settings: LookUpSettings | None = None,
) -> LookUp:
    """Return a look-up as it is before its first step; the seed alone decides its vectors."""
    settings = settings or LookUpSettings()
    vocab_size = settings.task(seed).vocab_size
    sizes = {"vocab_size": vocab_size, "d_v": settings.d_v}
    return seeded(seed, lambda: LookUp(d_k, scale, **sizes, start_std=start_std))


def train_lookup(
    d_k: int,
    scale: float,
    *,
    seed: int,
    start_std: float = 1.0,
    settings: LookUpSettings | None = None,
) -> LookUpRun:
    """Train one look-up with Adam; the same seed gives the same start and the same batches."""
    settings = settings or LookUpSettings()
    task = settings.task(seed)
    test = task.test_set(settings.test_size, pick_device())
    model = fresh_lookup(d_k, scale, seed=seed, start_std=start_std, settings=settings)
    history = fit(
        model,
        _loss,
        task.batches(settings.batch_size, pick_device()),
        steps=settings.steps,
        lr=settings.lr,
        weight_decay=0.0,  # it would shrink the scores, which is what the scale is there for
        evaluate=lambda model: {"accuracy": _accuracy(model, test)},
        label="",
    )
    return LookUpRun(model, history, history.metrics["accuracy"][-1])


def loss_gradients(model: LookUp, batch: Batch) -> dict[str, Tensor]:
    """Return the gradient of the loss on a batch, for each parameter by its name."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(_loss(model, batch), parameters), strict=True))


def lookup_accuracies(
    d_k: int,
    scale: float,
    *,
    start_std: float = 1.0,
    seeds: Iterable[int] = range(3),
    settings: LookUpSettings | None = None,
) -> list[float]:
    """Return the share of right answers on sequences never trained on, one for each seed."""
    settings, seeds = settings or LookUpSettings(), list(seeds)
    words = "d_k {d_k}, scale {scale:.3g}, {runs} × {each}"
    label = spoken(say(words, d_k=d_k, scale=scale, runs=len(seeds), each=settings.steps))
    with training_bar(label, settings.steps * len(seeds), None) as bar:
        accuracies = []
        for seed in seeds:
            run = train_lookup(d_k, scale, seed=seed, start_std=start_std, settings=settings)
            accuracies.append(run.accuracy)
            bar.update(settings.steps)
    return accuracies


def _loss(model: LookUp, batch: Batch) -> Tensor:
    return F.cross_entropy(model(batch.inputs), batch.targets[:, -1])


def _accuracy(model: nn.Module, test: Batch) -> float:
    return (model(test.inputs).argmax(dim=-1) == test.targets[:, -1]).double().mean().item()
