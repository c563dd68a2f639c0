"""Exercise 6.4, alibi_bias: its known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2
from typing import Any

import torch
from torch import Tensor

from attn_course.checks.exercise import Answer, Mistake
from attn_course.positions import alibi_slopes

Slopes = Callable[[int], Tensor]
Distance = Callable[[int, int], Tensor]


def difference(n_query: int, n_key: int) -> Tensor:
    """Query position minus key position, the queries being the last."""
    keys = torch.arange(n_key)
    return keys[n_key - n_query :, None] - keys


def published(num_heads: int) -> Tensor:
    """The slopes asked for."""
    return alibi_slopes(num_heads)


def of_power(num_heads: int) -> Tensor:
    """The rule for powers of two, whatever the count."""
    return 2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)


def version(
    slopes: Slopes = published,
    distance: Distance = lambda i, j: difference(i, j).abs(),
    finish: Callable[[Tensor], Any] = lambda bias: -bias,
    *,
    refuse: bool = True,
) -> Answer:
    """A version whose slopes or distances are these; `finish` is given slope · distance."""

    def answer(num_heads: int, n_query: int, n_key: int) -> Any:
        if refuse and n_query > n_key:
            raise ValueError(f"{n_query} queries, but only {n_key} keys")
        return finish(slopes(num_heads)[:, None, None] * distance(n_query, n_key).float())

    return answer


def two_rules(between: Callable[[int, int], Tensor]) -> Slopes:
    """Slopes of the next lower power of two p, and `between(p, missing)` behind them."""

    def slopes(num_heads: int) -> Tensor:
        lower = 2 ** (num_heads.bit_length() - 1)
        missing = num_heads - lower
        return torch.cat([of_power(lower), between(lower, missing)]) if missing else of_power(lower)

    return slopes


def asserted(num_heads: int, n_query: int, n_key: int) -> Tensor:
    """Refuses with an assert."""
    assert n_query <= n_key
    return version()(num_heads, n_query, n_key)


def higher_power(num_heads: int) -> int:
    """The next power of two from this count on."""
    return 2 ** ceil(log2(num_heads))


def past(n_query: int, n_key: int) -> Tensor:
    """Distances into the past, 0 for keys of the future."""
    return difference(n_query, n_key).clamp(min=0)


def not_square(change: Distance) -> Distance:
    """The right distances where i = j, others elsewhere."""
    return lambda i, j: change(i, j).abs() if i != j else difference(i, j).abs()


HIDDEN = (
    "Keys of the future are hidden. The bias is no mask: it is added to the scores, and masks work "
    "beside it. A key ahead has −slope · |i − j| like one behind."
)

MISTAKES = (
    Mistake(
        "sign",
        "The sign is reversed: distant keys are favoured. The bias is 0 at distance 0 and falls "
        "from there.",
        version(finish=lambda bias: bias),
    ),
    Mistake(
        "signed-distance",
        "The distance has lost its absolute value: keys on one side are favoured.",
        version(distance=difference),
        also=(version(distance=lambda i, j: -difference(i, j)),),
    ),
    Mistake(
        "future-not-biased",
        "Keys ahead of the query have no bias. It is −slope · |i − j| on both sides. (Under a "
        "causal mask nobody would notice.)",
        version(distance=past),
        also=(version(distance=lambda i, j: difference(i, j).clamp(max=0).abs()),),
    ),
    Mistake(
        "future-hidden",
        HIDDEN,
        version(
            finish=lambda bias: (-bias).masked_fill(difference(*bias.shape[1:]) < 0, float("-inf"))
        ),
        also=(
            version(finish=lambda bias: (-bias).masked_fill(difference(*bias.shape[1:]) < 0, -1e9)),
        ),
    ),
    Mistake(
        "key-position-alone",
        "The bias is slope · j, whatever the query. Under a causal mask the weights would be the "
        "same, for a softmax does not see what is equal within a row. Asked for is −slope · |i − "
        "j|, which holds without a mask, too.",
        version(distance=lambda i, j: torch.arange(j).expand(i, j), finish=lambda bias: bias),
        also=(
            version(distance=lambda i, j: (j - 1 - torch.arange(j)).expand(i, j)),
            lambda h, i, j: published(h)[:, None, None] * torch.arange(j)[None, None],
            version(distance=lambda i, j: torch.arange(j).expand(i, j)),
        ),
    ),
    Mistake(
        "squared",
        "The distance is squared. The bias is linear: that is the Li of ALiBi.",
        version(distance=lambda i, j: difference(i, j) ** 2),
    ),
    Mistake(
        "one-further",
        "Every distance is one too large: a query is at distance 0 from its own key. (The softmax "
        "would not notice.)",
        version(distance=lambda i, j: difference(i, j).abs() + 1),
    ),
    Mistake(
        "no-slopes",
        "All heads have the slope 1. Each has its own, so that some look near and some look far.",
        version(torch.ones),
    ),
    Mistake(
        "slopes-from-zero",
        "The heads are counted from 0, so the first slope is 1. It is 2^(−8/h).",
        version(lambda h: 2.0 ** (-8 * torch.arange(h) / h)),
    ),
    Mistake(
        "slopes-reversed",
        "The slopes stand in reverse order: the first head has the largest, 2^(−8/h).",
        version(lambda h: published(h).flip(0)),
    ),
    Mistake(
        "slopes-growing",
        "The slopes grow above 1: the exponent has lost its minus.",
        version(lambda h: 1 / published(h)),
    ),
    Mistake(
        "slopes-linear",
        "The slopes fall by equal differences. They fall by equal factors.",
        version(lambda h: torch.arange(h, 0, -1) / h),
        also=(
            version(lambda h: torch.arange(1, h + 1) / h),
            version(lambda h: 1 / torch.arange(1.0, h + 1)),
            version(lambda h: 8 * torch.arange(1, h + 1) / h),
        ),
    ),
    Mistake(
        "slopes-of-eight-heads",
        "Each slope is half of the one before, as with eight heads. With h heads the factor "
        "between neighbours is 2^(−8/h), and the first slope is that factor.",
        version(lambda h: 2.0 ** -torch.arange(1.0, h + 1)),
        also=(
            version(lambda h: 2.0 ** -torch.arange(0.0, h)),
            version(lambda h: of_power(8)[:h]),
        ),
    ),
    Mistake(
        "natural-base",
        "The slopes are powers of e, not of 2.",
        version(lambda h: torch.exp(-8 * torch.arange(1, h + 1) / h)),
    ),
    Mistake(
        "power-of-two-rule-for-all",
        "The formula 2^(−8k/h) is used for a head count that is no power of two. The published "
        "rule takes the slopes of the next lower power p, and then the first, third, fifth, … of "
        "2p.",
        version(of_power),
    ),
    Mistake(
        "higher-power-cut",
        "The slopes are the first ones of the next higher power of two. The rule begins with all "
        "those of the next lower one.",
        version(lambda h: of_power(higher_power(h))[:h]),
    ),
    Mistake(
        "missing-taken-in-a-row",
        "The missing slopes are the first ones of 2p in a row. Every second one is a slope of p "
        "already: take the first, third, fifth, …",
        version(two_rules(lambda p, missing: of_power(2 * p)[:missing])),
    ),
    Mistake(
        "missing-taken-again",
        "The missing slopes are the second, fourth, … of 2p, which are slopes of p already: heads "
        "then have the same slope. Take the first, third, fifth, …",
        version(two_rules(lambda p, missing: of_power(2 * p)[1::2][:missing])),
        also=(version(two_rules(lambda p, missing: of_power(p)[:missing])),),
    ),
    Mistake(
        "slopes-sorted",
        "The slopes are the right ones, put in order of size. The rule puts those of p first, and "
        "the missing ones behind them.",
        version(lambda h: published(h).sort(descending=True).values),
    ),
    Mistake(
        "other-counts-refused",
        "A head count that is no power of two is refused. There is a rule for it: the slopes of "
        "the next lower power p, then every second one of 2p.",
        lambda h, i, j: version()(h, i, j) if h & (h - 1) == 0 else _refuse_count(h),
    ),
    Mistake(
        "square-by-queries",
        "The bias is built over the queries alone, (h, i, i): keys may be more.",
        version(distance=lambda i, j: difference(i, i).abs()),
    ),
    Mistake(
        "square-by-keys",
        "The bias has a row for every key, (h, j, j). Only the queries have one: the last of them.",
        version(distance=lambda i, j: difference(j, j).abs()),
    ),
    Mistake(
        "top-left",
        "The first query stands at the first key. With fewer queries than keys, the queries are "
        "the last positions: the last query stands at the last key.",
        version(distance=lambda i, j: (torch.arange(i)[:, None] - torch.arange(j)).abs()),
    ),
    Mistake(
        "aligned-one-off",
        "With fewer queries than keys the distances are off by one: the last query stands at the "
        "last key, at distance 0.",
        version(distance=not_square(lambda i, j: difference(i, j) + 1)),
        also=(version(distance=not_square(lambda i, j: difference(i, j) - 1)),),
    ),
    Mistake(
        "sizes-exchanged",
        "The bias is (h, n_key, n_query). Rows are queries, columns are keys.",
        version(finish=lambda bias: -bias.mT),
    ),
    Mistake(
        "heads-last",
        "The heads stand on the last axis. Asked for is (h, i, j).",
        version(finish=lambda bias: -bias.permute(1, 2, 0)),
    ),
    Mistake(
        "batch-axis",
        "There is an axis for the batch. Asked for is exactly (h, i, j).",
        version(finish=lambda bias: -bias[None]),
    ),
    Mistake(
        "slopes-alone",
        "The distances are missing.",
        lambda h, i, j: -published(h)[:, None, None].expand(h, i, j),
        also=(lambda h, i, j: published(h), lambda h, i, j: -published(h)),
    ),
    Mistake(
        "distances-alone",
        "The slopes are missing, and the axis of the heads with them.",
        lambda h, i, j: -difference(i, j).abs().float(),
        also=(lambda h, i, j: -difference(i, j).abs(),),
    ),
    Mistake(
        "too-many-queries",
        "With more queries than keys a bias comes back, or another error. The first queries would "
        "stand before the first key: raise a ValueError with both numbers.",
        version(refuse=False),
        also=(
            version(
                distance=lambda i, j: (torch.arange(j - i, j)[:, None] - torch.arange(j)).abs(),
                refuse=False,
            ),
        ),
    ),
    Mistake(
        "asserted",
        "With more queries than keys an assert fails. An assert is for the programmer, and is left "
        "out under `python -O`; a user's mistake is a ValueError with the numbers.",
        asserted,
    ),
)


def _refuse_count(num_heads: int) -> Tensor:
    raise ValueError(f"num_heads={num_heads} is no power of two")
