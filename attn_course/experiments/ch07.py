"""Chapter 07: deep stacks of blocks at their start and in training, on sequences to be reversed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from attn_course.blocks import EncoderBlock, LayerNorm, Order, Residual
from attn_course.device import pick_device
from attn_course.experiments.ch05_costs import multiply_adds
from attn_course.experiments.devices import seeded
from attn_course.multihead import projection
from attn_course.sentences import say, spoken
from attn_course.tasks import Task, reverse_task
from attn_course.tasks.base import Batch
from attn_course.training import History, StepInfo, fit
from attn_course.training.progress_bar import training_bar

NUM_SYMBOLS = 8


@dataclass(frozen=True)
class StackSettings:
    """A stack of blocks, how it starts, and how it is trained.

    Attributes:
        norm: "post" or "pre".
        residual: False lets each sublayer replace x instead of adding to it.
        start: the blocks' matrices are this many times what Xavier's rule draws.
        warmup: steps over which the learning rate rises to lr; then it falls as a cosine.
        n: length of the sequences.
    """

    num_layers: int = 6
    norm: Order = "post"
    residual: bool = True
    start: float = 1.0
    lr: float = 8e-3
    warmup: int = 0
    steps: int = 300
    n: int = 8
    d_model: int = 32
    num_heads: int = 4
    d_ff: int = 64
    batch_size: int = 32
    test_size: int = 500


class WithoutResidual(Residual):
    """What stands round a sublayer if its output replaces x: the norm alone."""

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Run the sublayer, with the norm on the side where the residual has it."""
        return sublayer(self.norm(x)) if self.order == "pre" else self.norm(sublayer(x))


class Stack(nn.Module):
    """Symbols and positions, learned, a stack of encoder blocks, and logits for each position."""

    def __init__(self, settings: StackSettings) -> None:
        super().__init__()
        d_model = settings.d_model
        self.symbols = nn.Embedding(NUM_SYMBOLS + 1, d_model)
        self.positions = nn.Embedding(settings.n, d_model)
        self.blocks = nn.ModuleList(_block(settings) for _ in range(settings.num_layers))
        self.final_norm = LayerNorm(d_model) if settings.norm == "pre" else nn.Identity()
        self.head = projection(d_model, NUM_SYMBOLS + 1)

    def forward(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n symbol"]:
        """Return logits of the symbol to be written at each position."""
        return self.head(self.final_norm(self.features(ids)[-1]))

    def features(self, ids: Int[Tensor, "b n"]) -> list[Float[Tensor, "b n d_model"]]:
        """Return the tokens' features before the first block and after each."""
        found = [self.symbols(ids) + self.positions.weight[: ids.shape[1]]]
        for block in self.blocks:
            found.append(block(found[-1]))
        return found


def _block(settings: StackSettings) -> EncoderBlock:
    block = EncoderBlock(settings.d_model, settings.num_heads, settings.d_ff, norm=settings.norm)
    if not settings.residual:
        for name in ("around_self", "around_feed_forward"):
            around: Residual = getattr(block, name)
            setattr(block, name, WithoutResidual(around.norm, settings.norm))
    with torch.no_grad():
        for parameter in block.parameters():
            if parameter.ndim > 1:
                parameter.mul_(settings.start)
    return block


def untrained_stack(settings: StackSettings, seed: int) -> Stack:
    """Return a stack as it starts from this seed."""
    return seeded(seed, lambda: Stack(settings))


def task_of(settings: StackSettings, seed: int) -> Task:
    """Return the task of writing a sequence down backwards."""
    return reverse_task(settings.n, NUM_SYMBOLS, seed=seed)


def reversal_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the mean cross-entropy over all positions."""
    return F.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())


# -- at the start -----------------------------------------------------------------------------


def similarity(x: Float[Tensor, "b n d"]) -> float:
    """Return the mean cosine between different positions of the same sequence."""
    unit = F.normalize(x.double(), dim=-1)
    cosines = unit @ unit.mT
    n = x.shape[1]
    return ((cosines.sum() - n * x.shape[0]) / (x.shape[0] * n * (n - 1))).item()


class Start(NamedTuple):
    """An untrained stack: how alike the positions are, and the gradients of the first batch.

    Attributes:
        alike: `similarity` before the first block and after each, of what the head would read:
            with "pre" after a norm.
        size: root mean square of the features, before the first block and after each.
        gradients: norm of the gradient of each block's parameters.
        through: norm of the gradient of x, before the first block and after each.
    """

    alike: list[float]
    size: list[float]
    gradients: list[float]
    through: list[float]


def at_the_start(settings: StackSettings, *, seed: int) -> Start:
    """Look at an untrained stack: its features, and the gradients of its first loss."""
    model = untrained_stack(settings, seed)
    batch = task_of(settings, seed).train_batch(0, 2 * settings.batch_size, pick_device())
    features = model.features(batch.inputs)
    for x in features:
        x.retain_grad()
    logits = model.head(model.final_norm(features[-1]))
    F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten()).backward()
    return Start(
        [_alike_when_read(x) for x in features],
        [x.detach().square().mean().sqrt().item() for x in features],
        [_norm(p.grad for p in block.parameters()) for block in model.blocks],
        [_norm([x.grad]) for x in features],
    )


def _alike_when_read(x: Float[Tensor, "b n d"]) -> float:
    return similarity(F.layer_norm(x.detach(), x.shape[-1:]))


def _norm(gradients: Iterable[Tensor | None]) -> float:
    squares = [g.double().square().sum() for g in gradients if g is not None]
    return torch.stack(squares).sum().sqrt().item()


def linear_sizes(factor: float, depth: int, *, d: int = 64, seed: int = 0) -> list[float]:
    """Return the root mean square of features through `depth` matrices, without any norm.

    Their entries have variance factor² / d, which is Xavier's 2 / (d_in + d_out) for factor 1.
    """
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(256, d, generator=rng)
    sizes = [x.square().mean().sqrt().item()]
    for _ in range(depth):
        x = x @ (factor * torch.randn(d, d, generator=rng) / d**0.5)
        sizes.append(x.square().mean().sqrt().item())
    return sizes


def block_multiply_adds(d_model: int, n: int) -> int:
    """Return the multiply-adds of a block with d_ff = 4 · d_model on n tokens, as PyTorch counts.

    Attention runs as separate matrix products: the counter does not look into a fused kernel.
    """
    block = EncoderBlock(d_model, 4, 4 * d_model)
    with sdpa_kernel(SDPBackend.MATH):
        return multiply_adds(block, torch.zeros(1, n, d_model))


# -- in training ------------------------------------------------------------------------------


class StackRun(NamedTuple):
    """A trained stack, its history, and the share of symbols that it writes rightly."""

    model: Stack
    history: History
    accuracy: float


def train_stack(
    settings: StackSettings,
    *,
    seed: int,
    on_step: Callable[[StepInfo], bool | None] | None = None,
    checkpoint: str | Path | None = None,
) -> StackRun:
    """Train one stack; the same seed gives the same start and data.

    on_step, checkpoint: those of `fit`; interrupted, the same call goes on from the checkpoint.
        An observer is also told the accuracy on a small part of the test set, as it grows.
    """
    task, model = task_of(settings, seed), untrained_stack(settings, seed)
    device = pick_device()
    few = task.test_set(min(100, settings.test_size), device)
    history = fit(
        model,
        reversal_loss,
        task.batches(settings.batch_size, device),
        steps=settings.steps,
        lr=settings.lr,
        warmup=settings.warmup,
        weight_decay=0.0,
        clip=None,
        evaluate=(lambda model: {"accuracy": written_rightly(model, few)}) if on_step else None,
        eval_every=20 if on_step else None,
        on_step=on_step,
        checkpoint=checkpoint,
        label=spoken("a long run") if checkpoint else "",
    )
    test = task.test_set(settings.test_size, device)
    return StackRun(model, history, written_rightly(model, test))


@torch.no_grad()
def alike_after(run: StackRun, settings: StackSettings, *, seed: int) -> float:
    """Return the `similarity` of the positions at the end of a trained stack, on its test set."""
    inputs = task_of(settings, seed).test_set(settings.test_size, pick_device()).inputs
    return _alike_when_read(run.model.features(inputs)[-1])


@torch.no_grad()
def written_rightly(model: Callable[[Tensor], Tensor], batch: Batch) -> float:
    """Return the share of positions with the right symbol."""
    return (model(batch.inputs).argmax(dim=-1) == batch.targets).double().mean().item()


def stack_runs(
    ways: dict[str, StackSettings], *, seeds: Sequence[int] = range(3)
) -> dict[str, list[StackRun]]:
    """Train every kind of stack from every seed, with one bar for all of them."""
    total = sum(settings.steps for settings in ways.values())
    found: dict[str, list[StackRun]] = {name: [] for name in ways}
    label = spoken(say("{n} stacks", n=len(ways) * len(seeds)))
    with training_bar(label, total * len(seeds), None) as bar:
        for name, settings in ways.items():
            for seed in seeds:
                found[name].append(train_stack(settings, seed=seed))
                bar.update(settings.steps)
    return found
