"""Exercise 2.4, project_qkv: its probes and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import torch
from torch import Generator, Tensor

from attn_course.attention import project_qkv
from attn_course.checks.catalogue.families.gradient import detached
from attn_course.checks.edits import Edits
from attn_course.checks.exercise import (
    Diagnosis,
    Exercise,
    Mistake,
    Output,
    Seen,
    Stage,
    normal,
    tenths,
)
from attn_course.checks.gradients import gradient_stage
from attn_course.sentences import joined, say

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
    names = ", ".join(WEIGHTS[k] for k in found)
    if sorted(found) == [0, 1, 2]:
        return Diagnosis(joined([ORDER, say("Yours come from {names}.", names=names)]), "order")
    told = say("Query, key and value come from {names}.", names=names)
    return Diagnosis(joined([SAME_WEIGHT, told]), "weight-used-twice")


# -- a right answer and what goes wrong in it --------------------------------------------------


def projected(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The right answer that the mistakes edit."""
    query, key, value = x @ W_q, x @ W_k, x @ W_v
    return query, key, value


WEIGHTS = ("W_q", "W_k", "W_v")
RETURN = "return query, key, value"


def from_weights(*order: str) -> Edits:
    """The results come from these weights."""
    return {f"x @ {right}": f"x @ {used}" for right, used in zip(WEIGHTS, order, strict=True)}


def each(rule: str) -> Edits:
    """Each result is made by this rule, which speaks of x and W."""
    return {f"x @ {name}": rule.replace("W", name) for name in WEIGHTS}


ORDER = "The three results are in another order: query first, then key, then value."
SAME_WEIGHT = "One of the weights is used twice, and another never: a line copied and not changed?"
TRANSPOSED = (
    "The weights are transposed. Here they are drawn (in, out) and stand to the right of x. "
    "(`nn.Linear` and `F.linear` store them the other way round.) With square weights no error "
    "tells you so."
)

MISTAKES = (
    Mistake("weights-transposed", TRANSPOSED, each("x @ W.mT")),
    Mistake(
        "columns-for-rows",
        "The tokens are taken as columns: the result has features before positions. Here "
        "every row of x is a token, and so is every row of the results.",
        each("W.mT @ x.mT"),
    ),
    Mistake(
        "matrix-first",
        "The matrix stands before the tokens. Each token is a row of x, so the weight stands "
        "to its right: x W, not W x.",
        each("W @ x"),
    ),
    Mistake(
        "elementwise",
        "`*` multiplies number by number. A row times a matrix is a matrix product: each new "
        "number is a sum over the old ones.",
        each("x * W"),
    ),
    Mistake(
        "three-axes-only",
        "It takes a batch of sequences, three axes, and nothing else: there may be no leading "
        "axis, or several.",
        each("torch.einsum('bnd,dk->bnk', x, W)"),
        also=(each("torch.bmm(x, W.expand(len(x), *W.shape))"),),
    ),
    Mistake(
        "two-axes-only",
        "One sequence is right, and a batch of them is not: there may be any number of "
        "leading axes.",
        each("torch.mm(x, W)"),
        also=(each("torch.einsum('nd,dk->nk', x, W)"),),
    ),
    Mistake(
        "joined-tokens",
        "All sequences are joined into one: the results must keep every leading axis of x.",
        each("x.reshape(-1, x.shape[-1]) @ W"),
    ),
    Mistake(
        "order",
        ORDER,
        examples=tuple(from_weights(*order) for order in permutations(WEIGHTS) if order != WEIGHTS),
    ),
    Mistake(
        "weight-used-twice",
        SAME_WEIGHT,
        examples=(
            from_weights("W_q", "W_q", "W_v"),
            from_weights("W_q", "W_k", "W_k"),
            from_weights("W_k", "W_k", "W_v"),
            from_weights("W_q", "W_v", "W_v"),
            from_weights("W_q", "W_q", "W_q"),
        ),
    ),
    Mistake(
        "chained",
        "Each projection starts from the result of the one before. All three start from x.",
        {"x @ W_q": "(x := x @ W_q)", "x @ W_k": "(x := x @ W_k)"},
    ),
    Mistake(
        "stacked",
        "The three results are stacked in one tensor; return them as three, (query, key, "
        "value), since their widths may differ.",
        {RETURN: "return torch.stack([query, key, value])"},
    ),
    Mistake(
        "joined",
        "The three results are joined in one tensor; return three: (query, key, value).",
        {RETURN: "return torch.cat([query, key, value], dim=-1)"},
    ),
    Mistake(
        "query-scaled",
        "The query is divided by √d_k. That belongs to chapter 03; here it is x W_q itself.",
        {"x @ W_q": "x @ W_q / math.sqrt(W_q.shape[-1])"},
    ),
    Mistake(
        "all-scaled",
        "The results are divided by the root of their width. Here they are plain products.",
        each("x @ W / math.sqrt(W.shape[-1])"),
    ),
    Mistake(
        "tanh-applied",
        "The results pass through a tanh. A projection is linear: the product alone.",
        each("torch.tanh(x @ W)"),
    ),
    Mistake(
        "negative-cut-off",
        "Negative entries are set to 0 (a ReLU). A projection is linear: the product alone.",
        each("(x @ W).relu()"),
    ),
    Mistake(
        "input-added",
        "The input is added to the product. That is a residual connection (chapter 07).",
        each("x + x @ W"),
    ),
    Mistake(
        "weights-of-its-own",
        "The weights that are passed in are never used: new ones are drawn instead.",
        each("nn.Linear(W.shape[0], W.shape[1])(x)"),
    ),
    Mistake(
        "averaged-over-tokens",
        "The tokens are averaged first: every token has its own query, key and value.",
        each("x.mean(-2, keepdim=True) @ W"),
    ),
    Mistake(
        "detached",
        "The values are right, but no gradient reaches tokens and weights, so the projections "
        "would never be trained. `.detach()`, `.data`, numpy, a new `nn.Linear` or "
        "`torch.tensor(…)` cut it off.",
        detached("query", "key", "value"),
    ),
)

EXERCISE = Exercise(
    number="2.4",
    reference=project_qkv,
    right=projected,
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
    mistakes=MISTAKES,
    hints=(
        "A token is a row of x. Row times matrix gives a row: which axis of the matrix is summed "
        "over?",
        "x is (…, n, d_model) and W_q is (d_model, d_k): `x @ W_q` needs no transposition. What "
        "has to hold for the other two?",
        "Three products with the same x, returned as a tuple in the order query, key, value.",
    ),
)
