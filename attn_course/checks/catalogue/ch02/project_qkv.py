"""Exercise 2.4, project_qkv: its probes and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from math import sqrt

import torch
from torch import Generator, Tensor

from attn_course.attention import project_qkv
from attn_course.checks.exercise import (
    Answer,
    Diagnosis,
    Exercise,
    Mistake,
    Output,
    Seen,
    Stage,
    normal,
    tenths,
)
from attn_course.checks.gradients import detached_inputs, gradient_stage

ROLES = ("query", "key", "value")

# -- probes -----------------------------------------------------------------------------------


def draw_zeros(rng: Generator) -> Iterator[tuple]:
    """Weights of zero: nothing may be left."""
    yield tenths(rng, 3, 2), *(torch.zeros(2, 1) for _ in ROLES)


def draw_roles(rng: Generator) -> Iterator[tuple]:
    """Three outputs of one width, so that an exchange shows in the numbers."""
    yield tenths(rng, 1, 2), *(tenths(rng, 2, 2) for _ in ROLES)
    yield normal(rng, 4, 3), *(normal(rng, 3, 5) for _ in ROLES)


def draw_widths(rng: Generator) -> Iterator[tuple]:
    """Values of another width than query and key, and zero to two leading axes."""
    for leading in ((), (3,), (2, 3)):
        yield normal(rng, *leading, 4, 6), normal(rng, 6, 5), normal(rng, 6, 5), normal(rng, 6, 7)


def draw_square(rng: Generator) -> Iterator[tuple]:
    """Square weights, where a transposed one raises no error; then everything of one size."""
    yield normal(rng, 3, 4), *(normal(rng, 4, 4) for _ in ROLES)
    yield normal(rng, 2, 3, 4), *(normal(rng, 4, 4) for _ in ROLES)
    yield normal(rng, 3, 3), *(normal(rng, 3, 3) for _ in ROLES)
    yield normal(rng, 3, 3, 3), *(normal(rng, 3, 3) for _ in ROLES)


def draw_to_train(rng: Generator) -> Iterator[tuple]:
    """Gradients with respect to the tokens and all three weights."""
    yield tenths(rng, 4, 2), tenths(rng, 2, 3), tenths(rng, 2, 3), tenths(rng, 2, 1)


def read_order(seen: Sequence[Seen]) -> Diagnosis | None:
    """Say which weight made which result, if each result is x times one of the weights."""
    x, *weights = (tensor.double() for tensor in seen[-1].args)
    found = []
    for result in seen[-1].actual:
        made_by = [
            k
            for k, weight in enumerate(weights)
            if torch.allclose(x @ weight, result.double(), atol=1e-4)
        ]
        found.append(made_by[0] if made_by else None)
    if None in found or found == [0, 1, 2]:
        return None
    names = [f"W_{'qkv'[k]}" for k in found]
    if sorted(found) == [0, 1, 2]:
        return Diagnosis(f"{ORDER} Yours come from {', '.join(names)}.", "order")
    return Diagnosis(
        f"{SAME_WEIGHT} Query, key and value come from {', '.join(names)}.", "weight-used-twice"
    )


# -- known-wrong versions ---------------------------------------------------------------------


def from_weights(*order: int) -> Answer:
    """A version whose results come from these weights: (0, 1, 2) would be right."""

    def project(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> tuple[Tensor, ...]:
        return tuple(x @ (W_q, W_k, W_v)[k] for k in order)

    return project


def each(rule: Answer) -> Answer:
    """A version that makes each result by `rule(x, W)`."""

    def project(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> tuple[Tensor, ...]:
        return rule(x, W_q), rule(x, W_k), rule(x, W_v)

    return project


def chained(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> tuple[Tensor, ...]:
    """Overwrites x, so that the key is made from the query and the value from the key."""
    query = x @ W_q
    key = query @ W_k
    return query, key, key @ W_v


def query_scaled(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> tuple[Tensor, ...]:
    """Divides the query by √d_k already."""
    return x @ W_q / sqrt(W_q.shape[-1]), x @ W_k, x @ W_v


def fresh_layers(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> tuple[Tensor, ...]:
    """Draws weights of its own."""
    layers = [torch.nn.Linear(W.shape[0], W.shape[1]) for W in (W_q, W_k, W_v)]
    return tuple(layer(x) for layer in layers)


ORDER = "The three results are in another order: query first, then key, then value."
SAME_WEIGHT = "One of the weights is used twice, and another never: a line copied and not changed?"
TRANSPOSED = (
    "The weights are transposed. Here they are drawn (in, out) and stand to the right of x. "
    "(`nn.Linear` and `F.linear` store them the other way round.) With square weights no error "
    "tells you so."
)

EXERCISE = Exercise(
    number="2.4",
    reference=project_qkv,
    outputs=(Output("query", "b n d"), Output("key", "b n d"), Output("value", "b n d")),
    difficulty=1,
    minutes=10,
    points=2,
    may_use="torch and einops",
    stages=(
        Stage(
            "roles",
            draw_roles,
            "Query, key and value should be x times W_q, W_k and W_v, nothing more: no bias, no "
            "scale.",
            diagnose=read_order,
        ),
        Stage(
            "zero weights",
            draw_zeros,
            "All weights are zero, so all three results should be zero. Is something added after "
            "the product (a bias?), or are other weights used than those passed in?",
        ),
        Stage(
            "widths",
            draw_widths,
            "Values may be wider than queries and keys, and x may have leading axes.",
        ),
        Stage(
            "square weights",
            draw_square,
            "Here the weights are square, so that a transposed one raises no error.",
            diagnose=read_order,
        ),
        gradient_stage(
            draw_to_train,
            ("x", "W_q", "W_k", "W_v"),
            {"x": "n d", "W_q": "", "W_k": "", "W_v": ""},
        ),
    ),
    mistakes=(
        Mistake("weights-transposed", TRANSPOSED, each(lambda x, W: x @ W.mT)),
        Mistake(
            "columns-for-rows",
            "The tokens are taken as columns: the result has features before positions. Here "
            "every row of x is a token, and so is every row of the results.",
            each(lambda x, W: W.mT @ x.mT),
        ),
        Mistake(
            "matrix-first",
            "The matrix stands before the tokens. Each token is a row of x, so the weight stands "
            "to its right: x W, not W x.",
            each(lambda x, W: W @ x),
        ),
        Mistake(
            "elementwise",
            "`*` multiplies number by number. A row times a matrix is a matrix product: each new "
            "number is a sum over the old ones.",
            each(lambda x, W: x * W),
        ),
        Mistake(
            "three-axes-only",
            "It takes a batch of sequences, three axes, and nothing else: there may be no leading "
            "axis, or several.",
            each(lambda x, W: torch.einsum("bnd,dk->bnk", x, W)),
            also=(each(lambda x, W: torch.bmm(x, W.expand(len(x), *W.shape))),),
        ),
        Mistake(
            "two-axes-only",
            "One sequence is right, and a batch of them is not: there may be any number of "
            "leading axes.",
            each(lambda x, W: torch.mm(x, W)),
            also=(each(lambda x, W: torch.einsum("nd,dk->nk", x, W)),),
        ),
        Mistake(
            "joined-tokens",
            "All sequences are joined into one: the results must keep every leading axis of x.",
            each(lambda x, W: x.reshape(-1, x.shape[-1]) @ W),
        ),
        Mistake(
            "order",
            ORDER,
            examples=tuple(from_weights(*p) for p in permutations(range(3)) if p != (0, 1, 2)),
        ),
        Mistake(
            "weight-used-twice",
            SAME_WEIGHT,
            examples=tuple(
                from_weights(*w) for w in ((0, 0, 2), (0, 1, 1), (1, 1, 2), (0, 2, 2), (0, 0, 0))
            ),
        ),
        Mistake(
            "chained",
            "Each projection starts from the result of the one before. All three start from x.",
            chained,
        ),
        Mistake(
            "stacked",
            "The three results are stacked in one tensor; return them as three, (query, key, "
            "value), since their widths may differ.",
            lambda x, W_q, W_k, W_v: torch.stack(project_qkv(x, W_q, W_k, W_v)),
        ),
        Mistake(
            "joined",
            "The three results are joined in one tensor; return three: (query, key, value).",
            lambda x, W_q, W_k, W_v: torch.cat(project_qkv(x, W_q, W_k, W_v), dim=-1),
        ),
        Mistake(
            "query-scaled",
            "The query is divided by √d_k. That belongs to chapter 03; here it is x W_q itself.",
            query_scaled,
        ),
        Mistake(
            "all-scaled",
            "The results are divided by the root of their width. Here they are plain products.",
            each(lambda x, W: x @ W / sqrt(W.shape[-1])),
        ),
        Mistake(
            "tanh-applied",
            "The results pass through a tanh. A projection is linear: the product alone.",
            each(lambda x, W: torch.tanh(x @ W)),
        ),
        Mistake(
            "negative-cut-off",
            "Negative entries are set to 0 (a ReLU). A projection is linear: the product alone.",
            each(lambda x, W: (x @ W).relu()),
        ),
        Mistake(
            "input-added",
            "The input is added to the product. That is a residual connection (chapter 07).",
            each(lambda x, W: x + x @ W),
        ),
        Mistake(
            "weights-of-its-own",
            "The weights that are passed in are never used: new ones are drawn instead.",
            fresh_layers,
        ),
        Mistake(
            "averaged-over-tokens",
            "The tokens are averaged first: every token has its own query, key and value.",
            each(lambda x, W: x.mean(-2, keepdim=True) @ W),
        ),
        Mistake(
            "detached",
            "The values are right, but no gradient reaches tokens and weights, so the projections "
            "would never be trained. `.detach()`, `.data`, numpy, a new `nn.Linear` or "
            "`torch.tensor(…)` cut it off.",
            detached_inputs(project_qkv),
        ),
    ),
    hints=(
        "A token is a row of x. Row times matrix gives a row: which axis of the matrix is summed "
        "over?",
        "x is (…, n, d_model) and W_q is (d_model, d_k): `x @ W_q` needs no transposition. What "
        "has to hold for the other two?",
        "Three products with the same x, returned as a tuple in the order query, key, value.",
    ),
)
