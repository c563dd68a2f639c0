"""Exercise 3.2, scaled_dot_product_attention: its probes and its known mistakes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.attention import scaled_dot_product_attention
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
from attn_course.masks import causal_mask

ATTENDED = (Output("output", "b i d"), Output("weights", "b i j"))


# -- probes -----------------------------------------------------------------------------------


def draw_shapes(rng: Generator) -> Iterator[tuple]:
    """All sizes different, so that no two axes can be taken for each other; 0 to 2 leading axes."""
    yield tenths(rng, 2, 2), tenths(rng, 3, 2), tenths(rng, 3, 1)
    for leading in ((), (5,), (2, 3)):
        yield normal(rng, *leading, 4, 6), normal(rng, *leading, 7, 6), normal(rng, *leading, 7, 3)


def draw_values(rng: Generator) -> Iterator[tuple]:
    """Equal keys: the weights are uniform whatever the scale, and only the values matter."""
    yield tenths(rng, 1, 2), torch.zeros(2, 2), tenths(rng, 2, 2)
    yield normal(rng, 3, 4, 5), torch.zeros(3, 6, 5), normal(rng, 3, 6, 2)


def draw_thermometer(rng: Generator) -> Iterator[tuple]:
    """Scores (1, 0) and values (1, 0): the log-odds of the output are the scale itself."""
    for d_k in (2, 5, 12):
        query, key = torch.zeros(1, d_k), torch.zeros(2, d_k)
        query[0, 0] = key[0, 0] = 1.0
        yield query, key, torch.tensor([[1.0], [0.0]])


def draw_masked(rng: Generator) -> Iterator[tuple]:
    """Causal, ragged and rectangular masks; then batch = length, where broadcasting is silent."""
    yield tenths(rng, 2, 1), tenths(rng, 2, 1), tenths(rng, 2, 1), causal_mask(2)
    yield normal(rng, 3, 5, 4), normal(rng, 3, 5, 4), normal(rng, 3, 5, 2), causal_mask(5)
    yield normal(rng, 2, 3, 4), normal(rng, 2, 6, 4), normal(rng, 2, 6, 5), causal_mask(3, 6)
    ragged = torch.rand(4, 4, generator=rng) < 0.5
    yield (
        normal(rng, 4, 4, 6),
        normal(rng, 4, 4, 6),
        normal(rng, 4, 4, 6),
        ragged | torch.eye(4, dtype=torch.bool),
    )


def draw_poisoned(rng: Generator) -> Iterator[tuple]:
    """Values of a million where no query may look: any leak is seen."""
    query, key, value = normal(rng, 2, 4, 3), normal(rng, 2, 5, 3), normal(rng, 2, 5, 2)
    value[:, 3:] = 1e6
    yield query, key, value, torch.tensor([True, True, True, False, False]).expand(4, 5)


def draw_empty_rows(rng: Generator) -> Iterator[tuple]:
    """A query that may attend to nothing."""
    mask = torch.tensor([[True, True], [False, False]])
    yield tenths(rng, 2, 1), tenths(rng, 2, 1), tenths(rng, 2, 1), mask
    mask = causal_mask(4, 6)
    mask[1] = False
    yield normal(rng, 2, 4, 3), normal(rng, 2, 6, 3), normal(rng, 2, 6, 5), mask


def draw_large(rng: Generator) -> Iterator[tuple]:
    """Scores in the thousands, positive and negative: the softmax must not overflow."""
    query = torch.tensor([[60.0, 0.0], [-60.0, 0.0]])
    yield query, torch.tensor([[60.0, 1.0], [59.0, 0.0]]), torch.tensor([[1.0], [0.0]])
    yield 50 * normal(rng, 3, 4, 8), 50 * normal(rng, 3, 5, 8), normal(rng, 3, 5, 2)


def draw_half(rng: Generator) -> Iterator[tuple]:
    """q · k = 102 400 is beyond float16; q · k / √d_k is not."""
    query, key = torch.full((1, 64), 40.0).half(), torch.full((2, 64), 40.0).half()
    yield query, key, torch.tensor([[1.0], [0.0]]).half()


def gradients(answer: Answer, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Any:
    """Gradients of the rows that may attend to something, with respect to all three inputs."""
    inputs = [tensor.clone().requires_grad_() for tensor in (query, key, value)]
    output, _ = answer(*inputs, mask)
    output[..., mask.any(dim=-1), :].square().sum().backward()
    return tuple(tensor.grad for tensor in inputs)


def read_thermometer(seen: Sequence[Seen]) -> Diagnosis | None:
    """Read the scale off the outputs and say which rule it follows."""
    read = []
    for probe in seen:
        share = probe.actual[0].double().clamp(1e-12, 1 - 1e-12).item()
        read.append((probe.args[0].shape[-1], math.log(share / (1 - share))))
    shown = ", ".join(f"{scale:.3g} at d_k = {d_k}" for d_k, scale in read)
    wanted = ", ".join(f"{1 / math.sqrt(d_k):.3g}" for d_k, _ in read)
    scales = [scale for _, scale in read]
    if len(scales) > 1 and max(scales) - min(scales) < 1e-3:
        return Diagnosis(
            f"The scores are multiplied by {scales[0]:.3g} whatever d_k is: "
            "the scale must come from the vectors' own width.",
            "fixed-scale",
        )
    return Diagnosis(f"The scores are multiplied by {shown}; 1/√d_k would be {wanted}.")


# -- known-wrong versions ---------------------------------------------------------------------


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    scale: Any = lambda query, key, value: 1 / math.sqrt(query.shape[-1]),
    softmax_dim: int = -1,
    mask_scores: Any = None,
    mask_weights: Any = None,
    after: Any = None,
) -> tuple[Tensor, Tensor]:
    """The mechanism with its joints open: each mistake replaces one of them."""
    scores = query @ key.mT * scale(query, key, value)
    empty = torch.zeros((), dtype=torch.bool) if mask is None else ~mask.any(-1, keepdim=True)
    if mask is not None and mask_scores:
        scores = mask_scores(scores, mask)
    elif mask is not None and mask_weights is None:
        scores = scores.masked_fill(~mask, -math.inf).masked_fill(empty, 0.0)
    weights = scores.softmax(softmax_dim)
    if mask is not None and mask_weights:
        weights = mask_weights(weights, mask)
    elif mask is not None and not mask_scores:
        weights = weights.masked_fill(empty, 0.0)
    if after:
        weights = after(weights, query)
    return weights @ value, weights


def scaled_by(rule: Any) -> Answer:
    """A version whose scale follows another rule of the three shapes."""
    return partial(attention, scale=rule)


def filled_with(fill: float) -> Answer:
    """A version that writes `fill` where it should write minus infinity."""
    return partial(attention, mask_scores=lambda scores, mask: scores.masked_fill(~mask, fill))


def masked_gradient_nan(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Cleans NaN in the result only; the gradient has met it already."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(~mask, -math.inf)
    weights = scores.softmax(-1)
    return (weights @ value).nan_to_num(), weights.nan_to_num()


def unstable(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Exponentiates the scores as they are."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
    if mask is not None:
        weights = weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return weights @ value, weights


def scores_for_weights(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Returns what goes into the softmax in place of what comes out."""
    output, _ = attention(query, key, value, mask)
    return output, query @ key.mT / math.sqrt(query.shape[-1])


def keys_for_values(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Sums the keys, not the values."""
    _, weights = attention(query, key, value, mask)
    return weights @ key, weights


def exchanged_result(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Returns (weights, output)."""
    return attention(query, key, value, mask)[::-1]


def hard_choice(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Gives all weight to the best key."""
    _, soft = attention(query, key, value, mask)
    weights = torch.zeros_like(soft).scatter(-1, soft.argmax(-1, keepdim=True), 1.0)
    return weights @ value, weights


def in_place(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
    """Divides the caller's own query."""
    query /= math.sqrt(query.shape[-1])
    return attention(query, key, value, mask, scale=lambda q, k, v: 1.0)


WRONG_SCALE = "Look at the factor between the dot product and the softmax: "

SCALED_DOT_PRODUCT_ATTENTION = Exercise(
    number="3.2",
    reference=scaled_dot_product_attention,
    outputs=ATTENDED,
    difficulty=2,
    minutes=20,
    points=4,
    may_use="torch and einops, but no ready-made attention",
    stages=(
        Stage(
            "values",
            draw_values,
            "All keys are equal here, so each query should get the plain mean of the values.",
        ),
        Stage(
            "scale",
            draw_thermometer,
            "The scale is not 1/√d_k.",
            diagnose=read_thermometer,
        ),
        Stage("shapes", draw_shapes, "Without a mask, the result differs from the formula."),
        Stage("mask", draw_masked, "With a mask, the result differs; without one it is right."),
        Stage("leak", draw_poisoned, "Values behind the mask reach the output."),
        Stage(
            "empty rows",
            draw_empty_rows,
            "A query that may attend to nothing should get zeros, output and weights alike.",
        ),
        Stage(
            "gradients",
            draw_empty_rows,
            "The values are right, but the gradient is not, where a row of the mask is empty.",
            call=gradients,
            outputs=(
                Output("gradient of query", "b i d"),
                Output("gradient of key", "b j d"),
                Output("gradient of value", "b j d"),
            ),
        ),
        Stage("large scores", draw_large, "Scores in the thousands break it."),
        Stage(
            "half precision",
            draw_half,
            "In float16 the product q · k overflows before it is divided; dividing q first helps.",
            remark=True,
        ),
    ),
    mistakes=(
        Mistake(
            "no-scale",
            f"{WRONG_SCALE}there is none.",
            scaled_by(lambda q, k, v: 1.0),
        ),
        Mistake(
            "scale-by-d",
            f"{WRONG_SCALE}the scores are divided by d_k, or twice by its root.",
            scaled_by(lambda q, k, v: 1 / q.shape[-1]),
        ),
        Mistake(
            "scale-inverted",
            f"{WRONG_SCALE}the scores are multiplied by √d_k, which makes them larger.",
            scaled_by(lambda q, k, v: math.sqrt(q.shape[-1])),
        ),
        Mistake(
            "scale-by-keys",
            f"{WRONG_SCALE}it follows the number of keys, not the width d_k.",
            scaled_by(lambda q, k, v: 1 / math.sqrt(k.shape[-2])),
        ),
        Mistake(
            "scale-by-queries",
            f"{WRONG_SCALE}it follows the number of queries, not the width d_k.",
            scaled_by(lambda q, k, v: 1 / math.sqrt(q.shape[-2])),
        ),
        Mistake(
            "scale-by-values",
            f"{WRONG_SCALE}it follows the width of the values, not that of query and key.",
            scaled_by(lambda q, k, v: 1 / math.sqrt(v.shape[-1])),
        ),
        Mistake(
            "scale-after-softmax",
            "The scale is applied to the weights, after the softmax, so they no longer sum to one.",
            partial(
                attention,
                scale=lambda q, k, v: 1.0,
                after=lambda weights, query: weights / math.sqrt(query.shape[-1]),
            ),
        ),
        Mistake(
            "fixed-scale",
            "The scores are multiplied by the same number whatever d_k is: "
            "the scale must come from the vectors' own width.",
            examples=(scaled_by(lambda q, k, v: 1 / 8), scaled_by(lambda q, k, v: 0.3)),
        ),
        Mistake(
            "softmax-over-queries",
            "The softmax runs over the queries: for one key the weights sum to one, "
            "but for one query they do not.",
            partial(attention, softmax_dim=-2),
        ),
        Mistake(
            "softmax-axis-counted-from-left",
            "The axis of the softmax is counted from the left, "
            "so it is another one as soon as there are more leading axes.",
            partial(attention, softmax_dim=1),
        ),
        Mistake(
            "key-axes-reversed",
            "The wrong axes of key are exchanged: it works for two axes only. Exchange the "
            "last two and leave all leading ones (batch, heads) where they are.",
            lambda q, k, v, mask=None: attention(q, k.transpose(0, 1).mT, v, mask),
        ),
        Mistake(
            "mask-inverted",
            "True means “may attend” here, and the mask is used the other way round.",
            lambda q, k, v, mask=None: attention(q, k, v, None if mask is None else ~mask),
        ),
        Mistake(
            "mask-ignored",
            "The mask changes nothing: it is never used, or what it gives is thrown away.",
            lambda q, k, v, mask=None: attention(q, k, v),
        ),
        Mistake(
            "mask-added",
            "The mask is added to the scores as 0 and 1: hidden keys are only 1 behind.",
            partial(attention, mask_scores=lambda scores, mask: scores + mask),
        ),
        Mistake(
            "mask-multiplied-after",
            "The mask is multiplied onto the weights after the softmax, "
            "so what is left in a row no longer sums to one.",
            partial(attention, mask_weights=lambda weights, mask: weights * mask),
        ),
        Mistake(
            "mask-filled-with-zero",
            "Hidden scores become about 0, and exp(0) is 1: hidden keys still get weight. "
            "Which number does the exponential turn into 0?",
            filled_with(0.0),
        ),
        Mistake(
            "mask-filled-with-plus-infinity",
            "Hidden scores become plus infinity: the sign is lost.",
            filled_with(math.inf),
        ),
        Mistake(
            "empty-row-nan",
            "A query that may attend to nothing gets NaN: a softmax over nothing but minus "
            "infinity is 0/0. It should get zeros.",
            filled_with(-math.inf),
        ),
        Mistake(
            "empty-row-mean",
            "A query that may attend to nothing gets the mean of all values, hidden ones "
            "included: with a finite fill, equal scores share alike. It should get zeros.",
            filled_with(-1e9),
        ),
        Mistake(
            "gradient-nan",
            "The output is clean, but the gradient is NaN: NaN arose inside and was "
            "replaced only at the end. It must not arise.",
            masked_gradient_nan,
        ),
        Mistake(
            "unstable-softmax",
            "exp of a large score is infinite. The softmax does not change when the same "
            "number is taken from all scores of a row.",
            unstable,
        ),
        Mistake(
            "scores-returned",
            "The second value is the scores that go into the softmax, not the weights.",
            scores_for_weights,
        ),
        Mistake(
            "keys-summed",
            "The weighted sum is taken over the keys, not over the values.",
            keys_for_values,
        ),
        Mistake(
            "result-exchanged",
            "The two results are exchanged: the output comes first, then the weights.",
            exchanged_result,
        ),
        Mistake(
            "hard-choice",
            "All weight goes to the best key: this is a hard choice, not a softmax.",
            hard_choice,
        ),
        Mistake(
            "query-altered",
            "The caller's query is changed in place (`/=` writes into it).",
            in_place,
        ),
    ),
    hints=(
        "Three steps: a score for each pair (i, j), weights over j, a sum over j.",
        "Divide by the root of the size of query's last axis. A hidden score must be one "
        "whose exponential is 0.",
        "A row of nothing but minus infinity is NaN after the softmax, and its gradient too. "
        "Give such a row any finite scores before the softmax and zero weights after it.",
    ),
)

EXERCISES = (SCALED_DOT_PRODUCT_ATTENTION,)
