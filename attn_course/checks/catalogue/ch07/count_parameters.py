"""Exercise 7.5, count_parameters: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Generator, nn

from attn_course.blocks import EncoderBlock
from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage, whole
from attn_course.models import count_parameters
from attn_course.sentences import say

# -- what is counted --------------------------------------------------------------------------


class Described(str):
    """A model in words, as a message names it, and what makes it."""

    build: Callable[[], nn.Module]


@dataclass(frozen=True)
class Kind:
    """Models that differ in their sizes.

    Attributes:
        words: what such a model is called, with places for its sizes.
        build: makes one from its sizes.
        example: sizes that can be counted on paper.
        multiples: whether other sizes have to be multiples of these to fit one another.
    """

    words: str
    build: Callable[..., nn.Module]
    example: tuple[int, ...]
    multiples: bool = False

    def of(self, sizes: tuple[int, ...]) -> Described:
        """The model with these sizes."""
        model = Described(self.words.format(*sizes))
        model.build = lambda: self.build(*sizes)
        return model

    def drawn(self, rng: Generator) -> Described:
        """One whose sizes no table of results foresees."""
        if self.multiples:
            times = whole(rng, 2, 5)
            return self.of(tuple(times * size for size in self.example))
        return self.of(tuple(whole(rng, 2, 12) for _ in self.example))


class Scaled(nn.Module):
    """Parameters of its own, one of them a single number, beside a layer."""

    def __init__(self, i: int, j: int, k: int, d_in: int, d_out: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.table = nn.Parameter(torch.zeros(i, j, k))
        self.layer = nn.Linear(d_in, d_out)


class Tied(nn.Module):
    """An embedding whose matrix is the output projection too, and a layer used in two places."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.head = nn.Linear(d_model, vocab_size)
        self.head.weight = self.embedding.weight
        self.first = nn.Linear(d_model, d_model)
        self.second = self.first


def in_a_row(d_in: int, hidden: int, d_out: int) -> nn.Module:
    """Two layers with a ReLU between them."""
    return nn.Sequential(nn.Linear(d_in, hidden), nn.ReLU(), nn.Linear(hidden, d_out))


def frozen(d_in: int, hidden: int, d_out: int) -> nn.Module:
    """A first layer that is not trained, and a second of which the bias is not."""
    model = nn.Sequential(nn.Linear(d_in, hidden), nn.Linear(hidden, d_out))
    model[0].requires_grad_(False)
    model[1].bias.requires_grad_(False)
    return model


SIMPLE = (
    Kind("nn.Linear({}, {})", nn.Linear, (3, 2)),
    Kind("nn.Linear({}, {}, bias=False)", partial(nn.Linear, bias=False), (5, 4)),
    Kind("nn.Embedding({}, {})", nn.Embedding, (10, 6)),
    Kind("nn.ReLU()", nn.ReLU, ()),
)
WHOLE = (
    Kind("nn.Sequential(nn.Linear({0}, {1}), nn.ReLU(), nn.Linear({1}, {2}))", in_a_row, (2, 3, 1)),
    Kind("EncoderBlock({}, {}, {})", EncoderBlock, (8, 2, 20), multiples=True),
    Kind(
        "two blocks EncoderBlock({}, {}, {}) in a row",
        lambda *sizes: nn.Sequential(EncoderBlock(*sizes), EncoderBlock(*sizes)),
        (4, 2, 8),
        multiples=True,
    ),
    Kind(
        "a model with parameters of its own: a single number, ({}, {}, {}), and nn.Linear({}, {})",
        Scaled,
        (2, 3, 4, 3, 5),
    ),
)
FROZEN = (
    Kind(
        "nn.Linear({0}, {1}), not trained, then nn.Linear({1}, {2}) with a bias that is not",
        frozen,
        (2, 3, 4),
    ),
)
BUFFERS = (Kind("nn.BatchNorm1d({}), whose running means are no parameters", nn.BatchNorm1d, (6,)),)
SHARED = (
    Kind(
        "nn.Embedding({0}, {1}), nn.Linear({1}, {0}) with its matrix, "
        "nn.Linear({1}, {1}) in two places",
        Tied,
        (7, 4),
    ),
)


def count(answer: Answer, model: Described) -> Any:
    """What the answer says of the model."""
    return answer(model.build())


def draw(kinds: tuple[Kind, ...]) -> Callable[[Generator], Iterator[tuple]]:
    """A model of each kind that can be counted on paper, and one of each with other sizes."""

    def probes(rng: Generator) -> Iterator[tuple]:
        for kind in kinds:
            yield (kind.of(kind.example),)
        for kind in kinds:
            if kind.example:
                yield (kind.drawn(rng),)

    return probes


# -- a right answer, and its known mistakes as edits of it ------------------------------------


def summed(model: nn.Module) -> int:
    """A right answer, which the mistakes edit."""
    counted = [p for p in model.parameters() if p.requires_grad]
    return sum(p.numel() for p in counted)


PARAMETERS, TRAINED = "model.parameters()", "p.requires_grad"
COUNTED = f"[p for p in {PARAMETERS} if {TRAINED}]"
SIZE, SUM = "p.numel()", "sum(p.numel() for p in counted)"
OWN = "part.parameters(recurse=False)"


def of_each(parts: str, parameters: str) -> Edits:
    """Parameters that are looked for part by part."""
    return {PARAMETERS: f"[p for part in {parts} for p in {parameters}]"}


def named(wanted: str) -> Edits:
    """Only the parameters whose name this holds for."""
    return {COUNTED: f"[p for name, p in model.named_parameters() if {wanted} and {TRAINED}]"}


MISTAKES = (
    Mistake(
        "tensors-counted",
        "The parameter tensors are counted. Asked for are the numbers in them.",
        {SIZE: "1"},
        also=(
            {SUM: "len(list(model.parameters()))"},
            {SUM: "len(model.state_dict())"},
        ),
    ),
    Mistake(
        "first-axis",
        "Of each tensor only one axis is counted: len() is the size of the first.",
        {SIZE: "(p.shape[0] if p.ndim else 1)"},
        also=(
            {SIZE: "len(p)"},
            {SIZE: "(p.shape[-1] if p.ndim else 1)"},
            {SIZE: "p.shape[-1]"},
        ),
    ),
    Mistake(
        "sizes-added",
        "The sizes of the axes are added. A matrix (3, 2) has 3 · 2 numbers.",
        {SIZE: "sum(p.shape)"},
    ),
    Mistake(
        "two-axes",
        "The first two axes are multiplied, whatever there are: a bias has one, others three.",
        {SIZE: "p.shape[0] * p.shape[1]"},
        also=({SIZE: "(p.shape[0] * p.shape[1] if p.ndim > 1 else p.shape[0])"},),
    ),
    Mistake(
        "bytes",
        "The unit is another one: bytes, thousands or millions. Asked for is how many numbers "
        "there are.",
        {SIZE: "p.numel() * p.element_size()"},
        also=(
            {SUM: f"{SUM} / 1e6"},
            {SUM: f"{SUM} / 1e3"},
        ),
    ),
    Mistake(
        "values-added",
        "The values of the parameters are added, not how many there are.",
        {SIZE: "float(p.detach().sum())"},
    ),
    Mistake(
        "without-biases",
        "Only matrices are counted. Biases, gains and single numbers are trained as well.",
        {TRAINED: f"{TRAINED} and p.ndim > 1"},
        also=(
            named("name.endswith('weight')"),
            named("not name.endswith('bias')"),
        ),
    ),
    Mistake(
        "linears-only",
        "Only nn.Linear is counted. Embeddings, norms and parameters of a module's own are "
        "trained as well.",
        # not by its class: where answers are graded, a module stands in for another process's
        of_each("model.modules() if hasattr(part, 'in_features')", "part.parameters()"),
    ),
    Mistake(
        "not-nested",
        "Parts within parts are missed. A model's parameters are its own and those of all modules "
        "below it, however deep.",
        {PARAMETERS: "model.parameters(recurse=False)"},
        also=(of_each("model.children()", OWN),),
    ),
    Mistake(
        "once-for-each-level",
        "Parts within parts are counted several times: once for each module above them.",
        of_each("model.modules()", "part.parameters()"),
    ),
    Mistake(
        "same-shape-once",
        "Tensors of the same shape are counted once. Only the same tensor is the same parameter.",
        {SUM: "sum(shape.numel() for shape in {p.shape for p in model.parameters()})"},
    ),
    Mistake(
        "frozen-counted",
        "Parameters that are not trained are counted too. They have requires_grad = False.",
        {" if p.requires_grad": ""},
    ),
    Mistake(
        "with-a-gradient-now",
        "Counted is what holds a gradient at the moment, in p.grad. Before the first backward pass "
        "that is nothing. Whether a parameter is trained stands in requires_grad.",
        {TRAINED: "p.grad is not None"},
    ),
    Mistake(
        "frozen-only",
        "Counted is what is not trained.",
        {TRAINED: "not p.requires_grad"},
    ),
    Mistake(
        "buffers-counted",
        "Buffers are counted, such as the running means of batch norm. They are saved with the "
        "model, and not trained.",
        {SUM: f"{SUM} + sum(buffer.numel() for buffer in model.buffers())"},
    ),
    Mistake(
        "state-dict",
        "Counted is all that is saved. A state_dict also has buffers and what is not trained, and "
        "what is shared stands in it under each of its names.",
        {COUNTED: "model.state_dict().values()"},
    ),
    Mistake(
        "shared-twice",
        "A parameter that stands in several places is counted in each. It is one matrix, trained "
        "once.",
        of_each("dict(model.named_modules(remove_duplicate=False)).values()", OWN),
        also=(
            of_each("model.modules()", OWN),
            {PARAMETERS: "dict(model.named_parameters(remove_duplicate=False)).values()"},
        ),
    ),
)

EXERCISE = Exercise(
    number="7.5",
    reference=count_parameters,
    right=summed,
    wire="callable",
    outputs=(Output(say("number of parameters")),),
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
