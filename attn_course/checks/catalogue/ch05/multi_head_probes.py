"""What exercise 5.3, MultiHeadAttention, is probed with, and how an answer is called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import sqrt
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attn_course.checks.catalogue.ch05.multi_head_by_hand import ROLES
from attn_course.checks.compare import number
from attn_course.checks.exercise import (
    Answer,
    Diagnosis,
    Output,
    Seen,
    normal,
    tensors_in,
    tenths,
)
from attn_course.checks.gradients import gradients_at
from attn_course.checks.modules import require_module
from attn_course.masks import causal_mask, padding_mask
from attn_course.sentences import say

ATTENDED = (Output("output", "b i d"), Output("weights", "b h i j"))
IDENTITY = "identity, no biases"
"""Weights that pass everything on: a probe that can be done on paper."""

DRAWN = "random, seed "

# -- how an answer is called ------------------------------------------------------------------


def drawn(seed: int) -> str:
    """Random weights and biases, in words: a learner reads them beside the inputs."""
    return f"{DRAWN}{seed}"


def built(answer: Answer, d_model: int, num_heads: int, weights: str, like: Tensor) -> Any:
    """A layer of the learner's class, with weights (d_model, d_model) and biases by role.

    weights: IDENTITY, or what `drawn` makes of a seed.
    """
    layer = answer(d_model, num_heads)
    require_module(layer)
    seed = 0 if weights == IDENTITY else int(weights.removeprefix(DRAWN))
    rng = torch.Generator().manual_seed(seed)
    for role in ROLES:
        linear = getattr(layer, role, None)
        if not isinstance(linear, nn.Linear):
            words = "self.{role} should be an nn.Linear, it is {found}"
            raise TypeError(say(words, role=role, found=type(linear).__name__))
        weight, bias = torch.eye(d_model), torch.zeros(d_model)
        if weights != IDENTITY:
            weight, bias = normal(rng, d_model, d_model) / sqrt(d_model), normal(rng, d_model)
        linear.weight = nn.Parameter(weight.T.to(like))
        if linear.bias is not None:
            linear.bias = nn.Parameter(bias.to(like))
    return layer


def repeated(answer: Answer, x: Tensor, num_heads: int, weights: str) -> tuple:
    """Whether two calls agree, in training and in evaluation, and whether the weights count."""
    layer = built(answer, x.shape[-1], num_heads, weights, x)
    other = built(answer, x.shape[-1], num_heads, drawn(1), x).eval()

    def output(layer: nn.Module) -> Any:
        return tensors_in(layer(x, x, x))[0]

    training = bool((output(layer) == output(layer)).all())
    layer.eval()
    evaluation = bool((output(layer) == output(layer)).all())
    return training, evaluation, not bool((output(layer) == output(other)).all())


def attend(
    answer: Answer, query: Tensor, key: Tensor, value: Tensor, num_heads: int, weights: str
) -> Any:
    """One call without a mask."""
    return built(answer, query.shape[-1], num_heads, weights, query)(query, key, value)


def attend_masked(
    answer: Answer,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    num_heads: int,
    weights: str,
) -> Any:
    """One call with a mask, after one without: neither a mask nor a length may be kept."""
    layer = built(answer, query.shape[-1], num_heads, weights, query)
    layer(query[:, :1], key[:, :1], value[:, :1])
    return layer(query, key, value, mask)


def attend_after_a_mask(
    answer: Answer, query: Tensor, key: Tensor, value: Tensor, num_heads: int, weights: str
) -> Any:
    """One call without a mask, after one with."""
    layer = built(answer, query.shape[-1], num_heads, weights, query)
    mask = torch.ones(query.shape[1], key.shape[1], dtype=torch.bool)
    mask[:, 0] = False
    layer(query, key, value, mask)
    return layer(query, key, value)


def gradients(
    answer: Answer,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    num_heads: int,
    weights: str,
) -> Any:
    """The gradients of the sum of squares of the output: of the inputs and of all weights."""
    inputs = [x.clone().requires_grad_() for x in (query, key, value)]
    layer = built(answer, query.shape[-1], num_heads, weights, query)
    inputs += [getattr(layer, role).weight for role in ROLES] + [layer.W_o.bias]
    return gradients_at(inputs, [tensors_in(layer(*inputs[:3], mask))[0]])


# -- probes -----------------------------------------------------------------------------------


def draw_sizes(rng: Generator) -> Iterator[tuple]:
    """Widths and numbers of heads."""
    yield 4, 2
    yield 15, 3


def draw_repeated(rng: Generator) -> Iterator[tuple]:
    """Enough tokens for a dropout of any size to show."""
    yield normal(rng, 2, 12, 12), 3, drawn(3)


def draw_one_head(rng: Generator) -> Iterator[tuple]:
    """A single head: attention between projections."""
    yield tenths(rng, 1, 1, 2), tenths(rng, 1, 2, 2), tenths(rng, 1, 2, 2), 1, IDENTITY
    yield normal(rng, 2, 3, 5), normal(rng, 2, 4, 5), normal(rng, 2, 4, 5), 1, drawn(5)
    yield normal(rng, 3, 4, 5), normal(rng, 3, 2, 5), normal(rng, 3, 2, 5), 1, drawn(6)


def draw_heads(rng: Generator) -> Iterator[tuple]:
    """Several heads, without projections first; then all sizes different."""
    x = tenths(rng, 1, 2, 2)
    yield x, x, x, 2, IDENTITY
    yield tenths(rng, 1, 1, 4), tenths(rng, 1, 2, 4), tenths(rng, 1, 2, 4), 2, IDENTITY
    yield normal(rng, 2, 3, 12), normal(rng, 2, 5, 12), normal(rng, 2, 5, 12), 4, IDENTITY
    yield normal(rng, 2, 3, 20), normal(rng, 2, 6, 20), normal(rng, 2, 6, 20), 4, drawn(7)
    yield (
        normal(rng, 2, 3, 20).double(),
        *(normal(rng, 2, 6, 20).double() for _ in "kv"),
        4,
        drawn(7),
    )


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """Self-attention, and batch, heads and length equal: what is exchanged keeps the shape."""
    for b, n, d_model, num_heads in ((3, 3, 15, 3), (2, 5, 6, 6), (1, 4, 12, 3), (4, 4, 16, 4)):
        x = normal(rng, b, n, d_model)
        yield x, x, x, num_heads, drawn(8)
    yield normal(rng, 3, 3, 6), normal(rng, 3, 3, 6), normal(rng, 3, 3, 6), 3, drawn(9)


def draw_masked(rng: Generator) -> Iterator[tuple]:
    """(i, j), padding as (b, 1, j), (b, i, j) with as many heads as sequences, four axes."""
    x = tenths(rng, 1, 2, 2)
    yield x, x, x, torch.tensor([[True, False], [True, True]]), 2, IDENTITY

    def inputs(b: int, i: int, j: int, d_model: int) -> tuple:
        return tuple(normal(rng, b, n, d_model) for n in (i, j, j))

    def mask(*shape: int) -> Tensor:
        some = torch.rand(shape, generator=rng) < 0.5
        some[..., 0] |= ~some.any(dim=-1)  # something is open in every row, and something not
        some[..., -1] &= ~some.all(dim=-1)
        return some

    yield *inputs(2, 4, 4, 12), causal_mask(4), 3, drawn(10)
    yield *inputs(2, 3, 5, 12), mask(3, 5), 4, drawn(11)
    lengths = padding_mask(torch.tensor([2, 4, 1]), 5)
    yield *inputs(3, 4, 5, 12), lengths[:, None], 2, drawn(12)
    yield *inputs(3, 3, 3, 12), mask(3, 3, 3), 3, drawn(13)
    yield *inputs(3, 2, 4, 12), lengths[:, None, None, :4], 3, drawn(14)
    yield *inputs(2, 3, 4, 12), mask(2, 4, 3, 4), 4, drawn(15)
    # beside a score of about -2500 a hidden key must not win
    far = torch.tensor([[[-60.0, 0.0]]]), torch.tensor([[[60.0, 0.0], [0.0, 0.0]]])
    yield (
        *far,
        torch.tensor([[[0.5, -0.2], [1.0, 0.3]]]),
        torch.tensor([[True, False]]),
        1,
        IDENTITY,
    )


def draw_after_a_mask(rng: Generator) -> Iterator[tuple]:
    """As many tokens as in the call before."""
    x = normal(rng, 2, 4, 12)
    yield x, x, x, 3, drawn(16)


def draw_empty_rows(rng: Generator) -> Iterator[tuple]:
    """A query that may attend to nothing; a sequence of nothing but padding."""
    x = tenths(rng, 1, 2, 2)
    yield x, x, x, torch.tensor([[False, False], [True, True]]), 2, IDENTITY
    lengths = padding_mask(torch.tensor([0, 4, 2]), 4)
    yield *(normal(rng, 3, n, 12) for n in (5, 4, 4)), lengths[:, None], 4, drawn(17)


def draw_gradients(rng: Generator) -> Iterator[tuple]:
    """Under a mask with an empty row."""
    x = tenths(rng, 1, 2, 2)
    yield x, x, x, torch.tensor([[False, False], [True, True]]), 2, IDENTITY
    mask = causal_mask(3, 4).clone()
    mask[1] = False
    yield *(normal(rng, 2, n, 12) for n in (3, 4, 4)), mask, 3, drawn(18)


def draw_uneven(rng: Generator) -> Iterator[tuple]:
    """A width that the heads do not divide."""
    yield 10, 4
    yield 4, 3
    yield 6, 12


def draw_half(rng: Generator) -> Iterator[tuple]:
    """float16 with a mask: what is filled in must be a number that float16 can hold."""
    x = normal(rng, 2, 4, 12).half()
    yield x, x, x, causal_mask(4), 3, drawn(19)


def read_parts(seen: Sequence[Seen]) -> Diagnosis | None:
    """More parameters than asked for, or as many under other names."""
    found, wanted = (_parts_in(text) for text in (seen[0].actual, seen[0].expected))
    extra = found.keys() - wanted.keys()
    if extra and wanted.items() <= found.items():
        words = (
            "Besides the four projections there is {extra}. Nothing else is learnt here: a second "
            "projection behind W_q, for each head or for all, would be two linear maps in a row, "
            "which are one."
        )
        return Diagnosis(say(words, extra=", ".join(sorted(extra))), "extra-parts")
    if sorted(found.values()) == sorted(wanted.values()):
        names = sorted({name.rpartition(".")[0] for name in found})
        words = (
            "The projections are called {names}. The check copies its weights in by name: "
            "self.W_q, self.W_k, self.W_v, self.W_o."
        )
        return Diagnosis(say(words, names=", ".join(names)), "other-names")
    return None


def _parts_in(text: str) -> dict[str, str]:
    """Name -> shape, from what `named_shapes` says."""
    return dict(part.rsplit(" (", 1) for part in text.removesuffix(")").split("), ") if part)


OTHER_WEIGHTS = (
    "The output is right, but what comes back beside it are not the weights that it was made "
    "with. Return those that the values are multiplied by: after the softmax, each row sums to "
    "one."
)


def read_attention(seen: Sequence[Seen]) -> Diagnosis | None:
    """Weights that the output was not made with; else another scale."""
    (output, weights), (wanted_output, wanted) = seen[0].actual, seen[0].expected
    near = partial(torch.allclose, rtol=1e-4, atol=1e-5)
    if near(output.double(), wanted_output) and not near(weights.double(), wanted):
        return Diagnosis(OTHER_WEIGHTS, "other-weights")
    return read_scale(seen)


def read_scale(seen: Sequence[Seen]) -> Diagnosis | None:
    """The scale, if one number in the place of 1/√d_k explains all weights of each probe."""
    read = [(sqrt(probe.args[0].shape[-1] // probe.args[3]), _too_much(probe)) for probe in seen]
    found = [(root / factor, root) for root, factor in read if factor and 1e-4 < factor < 1e4]
    if len(found) < len(seen):
        return None
    divisor, root = found[0]
    words = (
        "The scores are divided by {found}. It should be √d_k, here {wanted}: the root of the "
        "width of a head, d_model / num_heads."
    )
    return Diagnosis(say(words, found=number(divisor), wanted=number(root)), "fixed-scale")


def _too_much(probe: Seen) -> float | None:
    """By what the scores are too large, which is one number for all pairs; None if by none."""
    # a softmax keeps the differences of what it is given
    logs = [weights.double().log() for weights in (probe.actual[1], probe.expected[1])]
    found, wanted = (log[..., 1:] - log[..., :1] for log in logs)
    factor = float((found * wanted).sum() / wanted.square().sum())
    return factor if torch.allclose(found, factor * wanted, atol=1e-3) else None
