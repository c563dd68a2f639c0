"""Exercise 7.5, count_parameters: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Generator, nn

from attn_course.blocks import EncoderBlock
from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage
from attn_course.models import count_parameters

# -- what is counted --------------------------------------------------------------------------


class Scaled(nn.Module):
    """Parameters of its own, one of them a single number, beside a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.table = nn.Parameter(torch.zeros(2, 3, 4))
        self.layer = nn.Linear(3, 5)


class Tied(nn.Module):
    """An embedding whose matrix is the output projection too, and a layer used in two places."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7)
        self.head.weight = self.embedding.weight
        self.first = nn.Linear(4, 4)
        self.second = self.first


def frozen() -> nn.Module:
    """A first layer that is not trained, and a second of which the bias is not."""
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4))
    model[0].requires_grad_(False)
    model[1].bias.requires_grad_(False)
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {
    "nn.Linear(3, 2)": lambda: nn.Linear(3, 2),
    "nn.Linear(5, 4, bias=False)": lambda: nn.Linear(5, 4, bias=False),
    "nn.Embedding(10, 6)": lambda: nn.Embedding(10, 6),
    "nn.ReLU()": nn.ReLU,
    "nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))": lambda: nn.Sequential(
        nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)
    ),
    "EncoderBlock(8, 2, 20)": lambda: EncoderBlock(8, 2, 20),
    "two blocks EncoderBlock(4, 2, 8) in a row": lambda: nn.Sequential(
        EncoderBlock(4, 2, 8), EncoderBlock(4, 2, 8)
    ),
    "a model with parameters of its own: a single number, (2, 3, 4), and nn.Linear(3, 5)": Scaled,
    "nn.Linear(2, 3), not trained, then nn.Linear(3, 4) with a bias that is not": frozen,
    "nn.BatchNorm1d(6), whose running means are no parameters": lambda: nn.BatchNorm1d(6),
    "nn.Embedding(7, 4), nn.Linear(4, 7) with its matrix, nn.Linear(4, 4) in two places": Tied,
}
SIMPLE, WHOLE, FROZEN, BUFFERS, SHARED = (
    list(MODELS)[slice(*ends)] for ends in ((0, 4), (4, 8), (8, 9), (9, 10), (10, 11))
)


def count(answer: Answer, model: str) -> Any:
    """What the answer says of the model with this description."""
    return answer(MODELS[model]())


def draw(names: list[str]) -> Callable[[Generator], Iterator[tuple]]:
    """The models with these descriptions."""

    def probes(rng: Generator) -> Iterator[tuple]:
        for name in names:
            yield (name,)

    return probes


# -- known-wrong versions ---------------------------------------------------------------------


def total(
    wanted: Callable[[nn.Parameter], bool], size: Callable[[Any], Any] | None = None
) -> Answer:
    """The sum of some size over some of the parameters."""
    measure = size or (lambda p: p.numel())
    return lambda model: sum(measure(p) for p in model.parameters() if wanted(p))


def trained(parameter: nn.Parameter) -> bool:
    """Whether a parameter is trained."""
    return parameter.requires_grad


def direct(model: nn.Module) -> int:
    """Only what hangs on the model itself."""
    return sum(p.numel() for p in model.parameters(recurse=False) if p.requires_grad)


def children(model: nn.Module) -> int:
    """Only what hangs on its children."""
    found = [p for child in model.children() for p in child.parameters(recurse=False)]
    return sum(p.numel() for p in found if p.requires_grad)


def module_by_module(model: nn.Module) -> int:
    """Module by module, so that what is shared comes up several times."""
    return sum(
        parameter.numel()
        for _, module in model.named_modules(remove_duplicate=False)
        for parameter in module.parameters(recurse=False)
        if parameter.requires_grad
    )


def through_all_levels(model: nn.Module) -> int:
    """All parameters of every module, so that each counts once for each level above it."""
    found = [p for module in model.modules() for p in module.parameters()]
    return sum(p.numel() for p in found if p.requires_grad)


def state(model: nn.Module) -> int:
    """All that is saved."""
    return sum(tensor.numel() for tensor in model.state_dict().values())


def with_buffers(model: nn.Module) -> int:
    """Parameters and buffers."""
    return count_parameters(model) + sum(buffer.numel() for buffer in model.buffers())


def linears_only(model: nn.Module) -> int:
    """The projections, and nothing else."""
    # not by its class: where answers are graded, a module stands in for another process's
    found = [m for m in model.modules() if hasattr(m, "in_features")]
    weights = {id(p): p for m in found for p in m.parameters() if p.requires_grad}
    return sum(p.numel() for p in weights.values())


def level_by_level(model: nn.Module) -> int:
    """Each module's own, module by module: its matrix in another place counts again."""
    own = [p for module in model.modules() for p in module.parameters(recurse=False)]
    return sum(p.numel() for p in own if p.requires_grad)


def by_value(model: nn.Module) -> int:
    """What has the same shape counts once."""
    return sum(torch.Size(shape).numel() for shape in {p.shape for p in model.parameters()})


MISTAKES = (
    Mistake(
        "tensors-counted",
        "The parameter tensors are counted. Asked for are the numbers in them.",
        total(trained, lambda p: 1),
        also=(lambda model: len(list(model.parameters())), lambda model: len(model.state_dict())),
    ),
    Mistake(
        "first-axis",
        "Of each tensor only one axis is counted: len() is the size of the first.",
        total(trained, lambda p: p.shape[0] if p.ndim else 1),
        also=(
            total(trained, len),
            total(trained, lambda p: p.shape[-1] if p.ndim else 1),
            total(trained, lambda p: p.shape[-1]),
        ),
    ),
    Mistake(
        "sizes-added",
        "The sizes of the axes are added. A matrix (3, 2) has 3 · 2 numbers.",
        total(trained, lambda p: sum(p.shape)),
    ),
    Mistake(
        "two-axes",
        "The first two axes are multiplied, whatever there are: a bias has one, others three.",
        total(trained, lambda p: p.shape[0] * p.shape[1]),
        also=(total(trained, lambda p: p.shape[0] * p.shape[1] if p.ndim > 1 else p.shape[0]),),
    ),
    Mistake(
        "bytes",
        "The unit is another one: bytes, thousands or millions. Asked for is how many numbers "
        "there are.",
        total(trained, lambda p: p.numel() * p.element_size()),
        also=(
            lambda model: count_parameters(model) / 1e6,
            lambda model: count_parameters(model) / 1e3,
        ),
    ),
    Mistake(
        "values-added",
        "The values of the parameters are added, not how many there are.",
        total(trained, lambda p: float(p.detach().sum())),
    ),
    Mistake(
        "without-biases",
        "Only matrices are counted. Biases, gains and single numbers are trained as well.",
        total(lambda p: trained(p) and p.ndim > 1),
        also=(
            lambda model: sum(
                p.numel()
                for name, p in model.named_parameters()
                if name.endswith("weight") and p.requires_grad
            ),
            lambda model: sum(
                p.numel()
                for name, p in model.named_parameters()
                if not name.endswith("bias") and p.requires_grad
            ),
        ),
    ),
    Mistake(
        "linears-only",
        "Only nn.Linear is counted. Embeddings, norms and parameters of a module's own are "
        "trained as well.",
        linears_only,
    ),
    Mistake(
        "not-nested",
        "Parts within parts are missed. A model's parameters are its own and those of all modules "
        "below it, however deep.",
        direct,
        also=(children,),
    ),
    Mistake(
        "once-for-each-level",
        "Parts within parts are counted several times: once for each module above them.",
        through_all_levels,
    ),
    Mistake(
        "same-shape-once",
        "Tensors of the same shape are counted once. Only the same tensor is the same parameter.",
        by_value,
    ),
    Mistake(
        "frozen-counted",
        "Parameters that are not trained are counted too. They have requires_grad = False.",
        total(lambda p: True),
    ),
    Mistake(
        "with-a-gradient-now",
        "Counted is what holds a gradient at the moment, in p.grad. Before the first backward pass "
        "that is nothing. Whether a parameter is trained stands in requires_grad.",
        total(lambda p: p.grad is not None),
    ),
    Mistake(
        "frozen-only",
        "Counted is what is not trained.",
        total(lambda p: not p.requires_grad),
    ),
    Mistake(
        "buffers-counted",
        "Buffers are counted, such as the running means of batch norm. They are saved with the "
        "model, and not trained.",
        with_buffers,
    ),
    Mistake(
        "state-dict",
        "Counted is all that is saved. A state_dict also has buffers and what is not trained, and "
        "what is shared stands in it under each of its names.",
        state,
    ),
    Mistake(
        "shared-twice",
        "A parameter that stands in several places is counted in each. It is one matrix, trained "
        "once.",
        module_by_module,
        also=(
            level_by_level,
            lambda model: sum(
                p.numel()
                for _, p in model.named_parameters(remove_duplicate=False)
                if p.requires_grad
            ),
        ),
    ),
)

EXERCISE = Exercise(
    number="7.5",
    reference=count_parameters,
    wire="callable",
    outputs=(Output("number of parameters"),),
    difficulty=1,
    minutes=10,
    points=1,
    may_use="torch",
    stages=(
        Stage("one layer", draw(SIMPLE), "The number is wrong for a single layer.", call=count),
        Stage(
            "several layers",
            draw(WHOLE),
            "A single layer is right, a model of several is not.",
            call=count,
        ),
        Stage(
            "not trained",
            draw(FROZEN),
            "A parameter that is not trained, with requires_grad = False, does not count.",
            call=count,
        ),
        Stage(
            "buffers",
            draw(BUFFERS),
            "What is saved with a model but not trained does not count.",
            call=count,
        ),
        Stage(
            "shared",
            draw(SHARED),
            "A parameter that stands in several places counts once.",
            call=count,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "nn.Module can list its parameters, its own and those of all parts, each once. What do you "
        "need to know of each?",
        "model.parameters() gives tensors; numel() says how many numbers one has, requires_grad "
        "whether it is trained.",
        "It is one sum, of p.numel() over the parameters p that are trained.",
    ),
)

EXERCISES = (EXERCISE,)
