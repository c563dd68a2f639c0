"""Probes of exercise 0.3, training_step.

Each builds a model from given weights and an optimizer, calls the answer, and gives what is
left to be judged: the loss that came back, the parameters, what happened in which order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from attn_course.checks.exercise import Answer, Diagnosis, Seen, normal, tenths
from attn_course.sentences import say

STEPS = 3
"""How often a probe calls the answer: what is left over from one call shows in the next but one."""

# The first optimizer imports half of torch. Within a probe's time limit that could be cut off in
# the middle, and would then fail for as long as the kernel lives.
SGD([nn.Parameter(torch.zeros(1))], lr=1.0)

Layers = tuple[tuple[Tensor, Tensor], ...]

OPTIMIZERS: dict[str, Callable[[list[nn.Parameter]], Optimizer]] = {
    "SGD": lambda weights: SGD(weights, lr=0.5),
    "SGD with momentum": lambda weights: SGD(weights, lr=0.3, momentum=0.9),
    "SGD with weight decay": lambda weights: SGD(weights, lr=0.3, weight_decay=0.5),
    "Adam": lambda weights: Adam(weights, lr=0.1),
    "two rates": lambda weights: SGD(
        [{"params": weights[:1], "lr": 0.5}, {"params": weights[1:], "lr": 0.05}]
    ),
}


class Watched(nn.Module):
    """Linear layers (ReLU between them) with given weights, which notes when it is called.

    Whole numbers are taken for ids: the first layer's weights are then a table of vectors,
    averaged over the positions. Other inputs are flattened.
    """

    def __init__(self, layers: Layers, events: list[str] | None = None) -> None:
        super().__init__()
        self.weights = nn.ParameterList(tensor.clone() for layer in layers for tensor in layer)
        self.events = [] if events is None else events

    def forward(self, inputs: Tensor) -> Tensor:
        """Give the logits (n, classes)."""
        self.events.append("forward" if self.training else "forward in eval mode")
        weights = list(self.weights)
        if inputs.is_floating_point():
            x = inputs.flatten(start_dim=1)
        else:
            x, weights = weights[0][inputs].mean(dim=1) + weights[1], weights[2:]
        for number, (weight, bias) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
            x = F.linear(x.relu() if number else x, weight, bias)
        return x

    @property
    def state(self) -> Tensor:
        """All parameters in one row."""
        return torch.cat([weight.detach().flatten() for weight in self.weights])


# -- how an answer is called ------------------------------------------------------------------


def one_step(answer: Answer, weight: Tensor, inputs: Tensor, targets: Tensor, lr: float) -> tuple:
    """One call with plain SGD on one layer without bias: (the loss, the weight afterwards)."""
    model = nn.Linear(*weight.T.shape, bias=False, dtype=weight.dtype)
    model.weight = nn.Parameter(weight.clone())
    loss = answer(model, SGD(model.parameters(), lr=lr), inputs, targets)
    if isinstance(loss, Tensor) and loss.numel() == 1:
        loss = loss.item()  # the stage "result" speaks of it
    return loss, model.weight.detach()


def some_steps(
    answer: Answer, layers: Layers, inputs: Tensor, targets: Tensor, optimizer: str
) -> tuple:
    """Several calls with the same model and optimizer: (the losses, all parameters)."""
    model = Watched(layers)
    chosen = OPTIMIZERS[optimizer](list(model.parameters()))
    losses = [answer(model, chosen, inputs, targets) for _ in range(STEPS)]
    return torch.stack([torch.as_tensor(loss) for loss in losses]).flatten(), model.state


def order_of_events(
    answer: Answer, layers: Layers, inputs: Tensor, targets: Tensor, mode: str
) -> tuple:
    """What one call does in which order, and the mode in which it leaves the model."""
    events: list[str] = []
    model = Watched(layers, events).train(mode == "train")
    weight = next(model.parameters())
    weight.register_hook(lambda _: events.append("backward"))
    optimizer = SGD(model.parameters(), lr=0.1)

    def before_the_step(*_: Any) -> None:
        # torch.func differentiates copies of the weights, which have no hook
        if weight.grad is not None and "backward" not in events:
            events.append("backward")

    optimizer.register_step_pre_hook(before_the_step)
    # after the step: an answer may hand forward and backward to it as a closure
    optimizer.register_step_post_hook(lambda *_: events.append("step"))
    answer(model, optimizer, inputs, targets)
    return ", ".join(events), "train" if model.training else "eval"


def kind_of_result(answer: Answer, layers: Layers, inputs: Tensor, targets: Tensor) -> str:
    """Whether what comes back still holds on to the graph."""
    model = Watched(layers)
    loss = answer(model, SGD(model.parameters(), lr=0.1), inputs, targets)
    bound = isinstance(loss, Tensor) and loss.requires_grad
    return "a tensor that holds the graph" if bound else "a number"


def after_somebody_else(answer: Answer, layers: Layers, inputs: Tensor, targets: Tensor) -> Tensor:
    """One call on a model whose gradients are still there from before."""
    model = Watched(layers)
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    answer(model, SGD(model.parameters(), lr=0.1), inputs, targets)
    return model.state


# -- probes -----------------------------------------------------------------------------------


def draw_small(rng: Generator) -> Iterator[tuple]:
    """A model of a few weights, at rates that tell a rate of one's own from the given one."""
    for lr in (1.0, 0.5, 0.2):
        yield tenths(rng, 2, 1), tenths(rng, 3, 1), torch.tensor([0, 1, 1]), lr
    yield normal(rng, 4, 3), normal(rng, 6, 3), torch.tensor([3, 0, 2, 1, 1, 0]), 1.0


def draw_layers(rng: Generator, *widths: int) -> Layers:
    """Weights (out, in) and biases, none of them zero, for layers of these widths."""
    return tuple((normal(rng, d_out, d_in), normal(rng, d_out)) for d_in, d_out in pairwise(widths))


def draw_repeated(rng: Generator) -> Iterator[tuple]:
    """One small model, called again and again."""
    layers = ((tenths(rng, 2, 1), tenths(rng, 2)),)
    yield layers, tenths(rng, 3, 1), torch.tensor([0, 1, 1]), "SGD"


def draw_optimizers(rng: Generator) -> Iterator[tuple]:
    """Optimizers with a memory, a pull of their own, several rates."""
    for name in list(OPTIMIZERS)[1:]:
        yield draw_layers(rng, 3, 4), normal(rng, 5, 3), torch.tensor([3, 0, 2, 1, 1]), name


def draw_models(rng: Generator) -> Iterator[tuple]:
    """Two layers; as many rows as classes; one row; inputs with more axes; ids for inputs."""
    yield draw_layers(rng, 3, 5, 4), normal(rng, 6, 3), torch.tensor([3, 0, 2, 1, 1, 0]), "SGD"
    yield draw_layers(rng, 2, 3), normal(rng, 3, 2), torch.tensor([2, 0, 2]), "SGD"
    yield draw_layers(rng, 2, 4, 3), normal(rng, 1, 2), torch.tensor([1]), "SGD"
    yield draw_layers(rng, 6, 4), normal(rng, 5, 2, 3), torch.tensor([3, 0, 2, 1, 1]), "SGD"
    table = (normal(rng, 7, 3), normal(rng, 3))
    ids = torch.randint(0, 7, (4, 5), generator=rng)
    yield (table, *draw_layers(rng, 3, 4)), ids, torch.tensor([3, 0, 1, 1]), "SGD"


def draw_one(rng: Generator) -> Iterator[tuple]:
    """A model of one layer and a batch for it."""
    yield draw_layers(rng, 2, 3), normal(rng, 4, 2), torch.tensor([2, 0, 1, 1])


def draw_modes(rng: Generator) -> Iterator[tuple]:
    """The model in train mode, as usual, and in eval mode, as for a frozen batch norm."""
    for mode in ("train", "eval"):
        yield draw_layers(rng, 2, 3), normal(rng, 4, 2), torch.tensor([2, 0, 1, 1]), mode


def read_update(seen: Sequence[Seen]) -> Diagnosis | None:
    """Which rate, or which other optimizer, moved the weights."""
    rates, even = [], []
    for weight, _, _, lr, (loss, after), (right_loss, right_after) in (
        (*probe.args, probe.actual, probe.expected) for probe in seen
    ):
        moved, wanted = (after - weight).double(), right_after - weight
        if abs(float(loss) - right_loss) > 1e-3 or not bool(moved.any()):
            return None
        share = (moved * wanted).sum() / (wanted * wanted).sum()
        parallel = bool((moved - share * wanted).norm() < 0.02 * moved.norm())
        rates.append(share.item() * lr if parallel else math.nan)
        even.append(bool(moved.abs().max() < 1.02 * moved.abs().min()))
    if len(rates) > 1 and 0 < max(rates) < 1.02 * min(rates):
        words = (
            "The weights move at a learning rate of {rate} whatever the optimizer's is: let the "
            "optimizer that was handed in take the step."
        )
        return Diagnosis(say(words, rate=f"{rates[0]:.3g}"), "own-rate")
    if len(even) > 1 and all(even):
        return Diagnosis(
            "Every weight moves by the same amount, as with an Adam at its first step, but the "
            "optimizer that was handed in is plain SGD: let that one take the step.",
            "own-adam",
        )
    return None
