"""Probes for attention, shared by exercises 3.2 and 3.5, and what is read off them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.compare import number
from attn_course.checks.exercise import Diagnosis, Output, Seen, normal, tenths
from attn_course.checks.gradients import gradient_of, gradients_at
from attn_course.masks import causal_mask
from attn_course.sentences import Sentence, joined, say

ATTENDED = (Output("output", "b i d"), Output("weights", "b i j"))
GRADIENTS = (
    gradient_of("query", "b i d"),
    gradient_of("key", "b j d"),
    gradient_of("value", "b j d"),
)


# -- without a mask ---------------------------------------------------------------------------


def draw_one_key(rng: Generator) -> Iterator[tuple]:
    """One query and one key: its weight is 1 and its value the output, whatever else is wrong."""
    yield tenths(rng, 1, 2), tenths(rng, 1, 2), tenths(rng, 1, 3)
    yield normal(rng, 2, 1, 4), normal(rng, 2, 1, 4), normal(rng, 2, 1, 3)


def draw_values(rng: Generator) -> Iterator[tuple]:
    """Equal keys: the weights are uniform whatever the scale, and only the values matter."""
    yield tenths(rng, 1, 2), torch.zeros(2, 2), tenths(rng, 2, 2)
    yield normal(rng, 3, 4, 5), torch.zeros(3, 6, 5), normal(rng, 3, 6, 2)
    yield normal(rng, 2, 3, 4, 5), torch.zeros(2, 3, 6, 5), normal(rng, 2, 3, 6, 2)


def draw_thermometer(rng: Generator) -> Iterator[tuple]:
    """One score is 1 and the others 0: the log-odds of the output are the scale itself.

    The first probe is small enough for paper; the others keep all sizes apart.
    """
    for leading, n_query, n_key, d_k, d_v in (
        ((), 1, 2, 2, 1),
        ((), 4, 3, 5, 7),
        ((), 6, 5, 12, 2),
        ((3,), 4, 2, 5, 7),
        ((2, 3), 6, 5, 12, 4),
    ):
        query, key = torch.zeros(*leading, n_query, d_k), torch.zeros(*leading, n_key, d_k)
        value = torch.zeros(*leading, n_key, d_v)
        query[..., 0] = key[..., 0, 0] = value[..., 0, 0] = 1.0
        yield query, key, value


def draw_shapes(rng: Generator) -> Iterator[tuple]:
    """All sizes different, so that no two axes can be taken for each other; 0 to 2 leading axes."""
    yield tenths(rng, 2, 2), tenths(rng, 3, 2), tenths(rng, 3, 1)
    for leading in ((), (5,), (2, 3)):
        yield normal(rng, *leading, 4, 6), normal(rng, *leading, 7, 6), normal(rng, *leading, 7, 3)


def draw_large(rng: Generator) -> Iterator[tuple]:
    """Scores in the thousands, positive and negative: the softmax must not overflow."""
    query = torch.tensor([[60.0, 0.0], [-60.0, 0.0]])
    yield query, torch.tensor([[60.0, 1.0], [59.0, 0.0]]), torch.tensor([[1.0], [0.0]])
    yield 50 * normal(rng, 3, 4, 8), 50 * normal(rng, 3, 5, 8), normal(rng, 3, 5, 2)


def draw_half(rng: Generator) -> Iterator[tuple]:
    """q · k = 102 400 is beyond float16; q · k / √d_k is not."""
    query, key = torch.full((1, 64), 40.0).half(), torch.full((2, 64), 40.0).half()
    yield query, key, torch.tensor([[1.0], [0.0]]).half()


def draw_half_masked(rng: Generator) -> Iterator[tuple]:
    """A mask in float16, which holds numbers down to -65 504 and minus infinity."""
    query, key, value = (tenths(rng, 2, 2).half() for _ in range(3))
    yield query, key, value, causal_mask(2)


# -- with a mask ------------------------------------------------------------------------------


def draw_hidden(rng: Generator) -> Iterator[tuple]:
    """Equal scores, and in each row both a hidden and an open key.

    The hidden key's weight then tells which score it was left with, and an inverted mask
    has no row without keys.
    """
    key, value = tenths(rng, 2, 2), tenths(rng, 2, 1)
    yield torch.zeros(1, 2), key, value, torch.tensor([[True, False]])
    mask = _mixed_mask(rng, 3, 5)
    yield torch.zeros(2, 3, 4), normal(rng, 2, 5, 4), normal(rng, 2, 5, 6), mask


def draw_masked(rng: Generator) -> Iterator[tuple]:
    """Masks with open and hidden keys in each row; last batch = length, where slips are silent."""
    yield (
        tenths(rng, 2, 1),
        tenths(rng, 2, 1),
        tenths(rng, 2, 1),
        torch.tensor([[True, False], [False, True]]),
    )
    for b, i, j, d_k, d_v in ((3, 4, 6, 5, 2), (4, 4, 4, 4, 4)):
        sizes = normal(rng, b, i, d_k), normal(rng, b, j, d_k), normal(rng, b, j, d_v)
        yield *sizes, _mixed_mask(rng, i, j)


def draw_causal(rng: Generator) -> Iterator[tuple]:
    """Causal masks, square and with more keys than queries."""
    yield tenths(rng, 2, 1), tenths(rng, 2, 1), tenths(rng, 2, 1), causal_mask(2)
    yield normal(rng, 3, 5, 4), normal(rng, 3, 5, 4), normal(rng, 3, 5, 2), causal_mask(5)
    yield normal(rng, 2, 3, 4), normal(rng, 2, 6, 4), normal(rng, 2, 6, 5), causal_mask(3, 6)


def draw_leading_axes(rng: Generator) -> Iterator[tuple]:
    """Masks with as many axes as the scores, and (i, j) beside batch and heads."""
    for b, i, j in ((2, 3, 4), (3, 3, 5)):
        sizes = normal(rng, b, i, 4), normal(rng, b, j, 4), normal(rng, b, j, 2)
        yield *sizes, torch.stack([_mixed_mask(rng, i, j) for _ in range(b)])
        yield *sizes, _mixed_mask(rng, b, j)[:, None, :]
    # batch and heads, of unequal and of equal size
    for b, h, i, j in ((2, 3, 4, 5), (3, 3, 3, 3)):
        sizes = normal(rng, b, h, i, 4), normal(rng, b, h, j, 4), normal(rng, b, h, j, 2)
        yield *sizes, _mixed_mask(rng, b, j)[:, None, None, :]
        yield *sizes, _mixed_mask(rng, i, j)


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


def draw_far_below_zero(rng: Generator) -> Iterator[tuple]:
    """Open scores of about -4000, and a hidden one of 0, far above them."""
    query, key = torch.tensor([[-60.0]]), torch.tensor([[70.0], [70.01], [0.0]])
    yield query, key, torch.tensor([[1.0], [2.0], [9.0]]), torch.tensor([[True, True, False]])
    yield normal(rng, 3, 4), normal(rng, 5, 4), normal(rng, 5, 2), _mixed_mask(rng, 3, 5)


def _mixed_mask(rng: Generator, n_query: int, n_key: int) -> Tensor:
    """A mask with True and False in every row and every column, unlike its transpose."""
    mask = torch.rand(n_query, n_key, generator=rng) < 0.5
    i = torch.arange(n_query)
    mask[i, i % n_key], mask[i, (i + 1) % n_key] = True, False
    return mask


# -- what is asked and read -------------------------------------------------------------------


def gradients(
    answer: Callable[..., Any], query: Tensor, key: Tensor, value: Tensor, mask: Tensor
) -> tuple[Tensor, ...]:
    """Gradients of the rows that may attend to something, with respect to all three inputs."""
    inputs = [tensor.clone().requires_grad_() for tensor in (query, key, value)]
    output, _ = answer(*inputs, mask)
    return gradients_at(inputs, [output[..., mask.any(dim=-1), :]])


def read_thermometer(seen: Sequence[Seen]) -> Diagnosis | None:
    """Read the scale off the outputs and say which rule it follows."""
    read = [(_sizes(probe.args), _scale_read(probe)) for probe in seen]
    scales = [scale for _, scale in read]
    if not all(map(math.isfinite, scales)):
        return None
    if all(probe.args[0].ndim > 2 for probe in seen):
        return Diagnosis(
            "The scale is right as long as there are no leading axes (batch, heads), and another "
            "one with them: an axis is counted from the left.",
            "scale-axis-counted-from-left",
        )
    if len(read) > 1 and max(scales) - min(scales) < 1e-3:
        return Diagnosis(say(FIXED, factor=_short(scales[0])), "fixed-scale")
    for size in read[0][0]:
        for text, power in _POWERS.items():
            if all(math.isclose(s, sizes[size] ** power, rel_tol=0.02) for sizes, s in read):
                return Diagnosis(say(BY_ANOTHER_RULE, factor=text.format(size)))
    return Diagnosis(_at_each_width(read))


def _at_each_width(read: Sequence[tuple[dict[str, int], float]]) -> Sentence:
    by_width = {sizes["d_k"]: scale for sizes, scale in reversed(read)}
    widths = sorted(by_width)
    shown = joined(
        (say("{factor} at d_k = {d_k}", factor=_short(by_width[d_k]), d_k=d_k) for d_k in widths),
        ", ",
    )
    wanted = ", ".join(number(1 / math.sqrt(d_k)) for d_k in widths)
    words = "The scores are multiplied by {shown}; 1/√d_k would be {wanted}."
    return say(words, shown=shown, wanted=wanted)


def _short(factor: float) -> str:
    return f"{factor:.3g}"


FIXED = (
    "The scores are multiplied by {factor} whatever d_k is: the scale must come from the vectors' "
    "own width."
)
BY_ANOTHER_RULE = "The scores are multiplied by {factor}, not 1/√d_k."

_POWERS = {"1/{}": -1.0, "1/{}^¼": -0.25, "{}^¼": 0.25, "√{}": 0.5, "{}": 1.0, "1/√{}": -0.5}


def _sizes(args: tuple[Any, ...]) -> dict[str, int]:
    query, key, value = args[:3]
    return {
        "d_k": query.shape[-1],
        "n_query": query.shape[-2],
        "n_key": key.shape[-2],
        "d_v": value.shape[-1],
    }


def _scale_read(probe: Seen) -> float:
    share = float(probe.actual[0].flatten()[0])
    others = probe.args[1].shape[-2] - 1
    inside = 0 < share < 1
    return math.log(share * others / (1 - share)) if inside else math.nan


def read_dropout(seen: Sequence[Seen]) -> Diagnosis | None:
    """See whether numbers are either 0 or larger than they should be, all by one factor."""
    for k in (1, 0):  # the weights, then the output
        pairs = [(p.actual[k].flatten(), p.expected[k].flatten()) for p in seen]
        actual, expected = (torch.cat([pair[n].double() for pair in pairs]) for n in (0, 1))
        factors = (actual / expected)[expected.abs() > 1e-6]
        kept = factors[factors != 0]
        if 0 < len(kept) < len(factors) and kept.min() > 1 and kept.max() - kept.min() < 1e-3:
            return Diagnosis(say(DROPPED, factor=number(kept[0])), "dropout")
    return None


DROPPED = (
    "Some numbers are 0 and the others {factor} times what they should be: that is a dropout. "
    "Nothing is to be dropped here."
)


def read_fill(seen: Sequence[Seen]) -> Diagnosis | None:
    """Say with which score a hidden key was left, where all open keys score 0."""
    if all(probe.args[0].ndim > 2 for probe in seen):
        return None  # with one query alone it is right: not the fill is wrong, but which are hidden
    for probe in seen:
        mask, weights = probe.args[3].expand_as(probe.actual[1]), probe.actual[1].double()
        leaked, kept = weights[~mask], weights[mask]
        if bool((leaked > 0).all()) and bool((kept > 0).all()):
            fill = math.log(float(leaked.mean() / kept.mean()))
            told = say(KEEPS_WEIGHT, share=number(leaked.mean()), fill=f"{fill:.3g}")
            return Diagnosis(told, "fill-too-small" if fill < -1.5 else None)
    return None


def read_far_below_zero(seen: Sequence[Seen]) -> Diagnosis | None:
    """See whether the hidden key is the best of all, since the others score even less."""
    weights = seen[0].actual[1].flatten()
    if weights[-1] > 0.99:
        return Diagnosis(STILL_THE_BEST, "fill-too-small")
    return None


KEEPS_WEIGHT = (
    "A hidden key keeps {share} of the weight, as if its score were about {fill}. Only a score "
    "whose exponential is 0 beside any other score hides a key."
)
STILL_THE_BEST = (
    "All open keys score about -4000 here, and the hidden one gets the weight: it was left with a "
    "higher score. Only a score whose exponential is 0 beside any other score hides a key."
)
