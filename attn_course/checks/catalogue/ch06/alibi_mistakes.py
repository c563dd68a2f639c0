"""Exercise 6.5, alibi_bias: its known mistakes."""

from __future__ import annotations

import torch
from torch import Tensor

from attn_course.checks.catalogue.families.refusal import FOR_THE_PROGRAMMER, asserted
from attn_course.checks.exercise import Mistake


def falling(count: int) -> Tensor:
    """The slopes of so many heads, a power of two."""
    return 2.0 ** (-8 * torch.arange(1, count + 1) / count)


def right(num_heads: int, n_query: int, n_key: int) -> Tensor:
    """A bias as a learner may write it; each mistake is an edit of this."""
    if n_query > n_key:
        raise ValueError(f"{n_query} queries, but only {n_key} keys")
    p = 2 ** (num_heads.bit_length() - 1)
    between = falling(2 * p)[0::2]
    slopes = torch.cat([falling(p), between])[:num_heads]
    queries = torch.arange(n_key - n_query, n_key)
    distance = (queries[:, None] - torch.arange(n_key)).abs()
    return -slopes[:, None, None] * distance


REFUSED = """if n_query > n_key:
        raise ValueError(f"{n_query} queries, but only {n_key} keys")
    """
SLOPES = "torch.cat([falling(p), between])[:num_heads]"
QUERIES = "torch.arange(n_key - n_query, n_key)"
DISTANCE = "(queries[:, None] - torch.arange(n_key)).abs()"
BIAS = "-slopes[:, None, None] * distance"
AHEAD = "queries[:, None] < torch.arange(n_key)"

HIDDEN = (
    "Keys of the future are hidden. The bias is no mask: it is added to the scores, and masks work "
    "beside it. A key ahead has −slope · |i − j| like one behind."
)

MISTAKES = (
    Mistake(
        "sign",
        "The sign is reversed: distant keys are favoured. The bias is 0 at distance 0 and falls "
        "from there.",
        {"return -slopes": "return slopes"},
    ),
    Mistake(
        "signed-distance",
        "The distance has lost its absolute value: keys on one side are favoured.",
        {".abs()": ""},
        also=({DISTANCE: "torch.arange(n_key) - queries[:, None]"},),
    ),
    Mistake(
        "future-not-biased",
        "Keys ahead of the query have no bias. It is −slope · |i − j| on both sides. (Under a "
        "causal mask nobody would notice.)",
        {".abs()": ".clamp(min=0)"},
        also=({".abs()": ".clamp(max=0).abs()"},),
    ),
    Mistake(
        "future-hidden",
        HIDDEN,
        {BIAS: f"({BIAS}).masked_fill({AHEAD}, -torch.inf)"},
        also=({BIAS: f"({BIAS}).masked_fill({AHEAD}, -1e9)"},),
    ),
    Mistake(
        "key-position-alone",
        "The bias is slope · j, whatever the query. Under a causal mask the weights would be the "
        "same, for a softmax does not see what is equal within a row. Asked for is −slope · |i − "
        "j|, which holds without a mask, too.",
        {DISTANCE: "torch.arange(n_key).expand(n_query, n_key)", "-slopes": "slopes"},
        also=(
            {DISTANCE: "(n_key - 1 - torch.arange(n_key)).expand(n_query, n_key)"},
            {REFUSED: "", DISTANCE: "torch.arange(n_key)", "-slopes": "slopes"},
            {DISTANCE: "torch.arange(n_key).expand(n_query, n_key)"},
        ),
    ),
    Mistake(
        "squared",
        "The distance is squared. The bias is linear: that is the Li of ALiBi.",
        {".abs()": " ** 2"},
    ),
    Mistake(
        "one-further",
        "Every distance is one too large: a query is at distance 0 from its own key. (The softmax "
        "would not notice.)",
        {".abs()": ".abs() + 1"},
    ),
    Mistake(
        "no-slopes",
        "All heads have the slope 1. Each has its own, so that some look near and some look far.",
        {SLOPES: "torch.ones(num_heads)"},
    ),
    Mistake(
        "slopes-from-zero",
        "The heads are counted from 0, so the first slope is 1. It is 2^(−8/h).",
        {SLOPES: "2.0 ** (-8 * torch.arange(num_heads) / num_heads)"},
    ),
    Mistake(
        "slopes-reversed",
        "The slopes stand in reverse order: the first head has the largest, 2^(−8/h).",
        {SLOPES: f"{SLOPES}.flip(0)"},
    ),
    Mistake(
        "slopes-growing",
        "The slopes grow above 1: the exponent has lost its minus.",
        {SLOPES: f"1 / {SLOPES}"},
    ),
    Mistake(
        "slopes-linear",
        "The slopes fall by equal differences. They fall by equal factors.",
        {SLOPES: "torch.arange(num_heads, 0, -1) / num_heads"},
        also=(
            {SLOPES: "torch.arange(1, num_heads + 1) / num_heads"},
            {SLOPES: "1 / torch.arange(1, num_heads + 1)"},
            {SLOPES: "8 * torch.arange(1, num_heads + 1) / num_heads"},
        ),
    ),
    Mistake(
        "slopes-of-eight-heads",
        "Each slope is half of the one before, as with eight heads. With h heads the factor "
        "between neighbours is 2^(−8/h), and the first slope is that factor.",
        {SLOPES: "2.0 ** -torch.arange(1, num_heads + 1)"},
        also=(
            {SLOPES: "2.0 ** -torch.arange(num_heads)"},
            {SLOPES: "falling(8)[:num_heads]"},
        ),
    ),
    Mistake(
        "natural-base",
        "The slopes are powers of e, not of 2.",
        {SLOPES: "torch.exp(-8 * torch.arange(1, num_heads + 1) / num_heads)"},
    ),
    Mistake(
        "power-of-two-rule-for-all",
        "The formula 2^(−8k/h) is used for a head count that is no power of two. The published "
        "rule takes the slopes of the next lower power p, and then the first, third, fifth, … of "
        "2p.",
        {SLOPES: "falling(num_heads)"},
    ),
    Mistake(
        "higher-power-cut",
        "The slopes are the first ones of the next higher power of two. The rule begins with all "
        "those of the next lower one.",
        {SLOPES: "falling(2 ** math.ceil(math.log2(num_heads)))[:num_heads]"},
    ),
    Mistake(
        "missing-taken-in-a-row",
        "The missing slopes are the first ones of 2p in a row. Every second one is a slope of p "
        "already: take the first, third, fifth, …",
        {"[0::2]": ""},
    ),
    Mistake(
        "missing-taken-again",
        "The missing slopes are the second, fourth, … of 2p, which are slopes of p already: heads "
        "then have the same slope. Take the first, third, fifth, …",
        {"[0::2]": "[1::2]"},
        also=({"falling(2 * p)[0::2]": "falling(p)"},),
    ),
    Mistake(
        "slopes-sorted",
        "The slopes are the right ones, put in order of size. The rule puts those of p first, and "
        "the missing ones behind them.",
        {SLOPES: f"{SLOPES}.sort(descending=True).values"},
    ),
    Mistake(
        "other-counts-refused",
        "A head count that is no power of two is refused. There is a rule for it: the slopes of "
        "the next lower power p, then every second one of 2p.",
        {
            "p = ": "if num_heads & (num_heads - 1):\n"
            '        raise ValueError(f"num_heads={num_heads} is no power of two")\n'
            "    p = "
        },
    ),
    Mistake(
        "square-by-queries",
        "The bias is built over the queries alone, (h, i, i): keys may be more.",
        {DISTANCE: "(torch.arange(n_query)[:, None] - torch.arange(n_query)).abs()"},
    ),
    Mistake(
        "square-by-keys",
        "The bias has a row for every key, (h, j, j). Only the queries have one: the last of them.",
        {DISTANCE: "(torch.arange(n_key)[:, None] - torch.arange(n_key)).abs()"},
    ),
    Mistake(
        "top-left",
        "The first query stands at the first key. With fewer queries than keys, the queries are "
        "the last positions: the last query stands at the last key.",
        {QUERIES: "torch.arange(n_query)"},
    ),
    Mistake(
        "aligned-one-off",
        "With fewer queries than keys the distances are off by one: the last query stands at the "
        "last key, at distance 0.",
        {QUERIES: f"{QUERIES} + int(n_query < n_key)"},
        also=({QUERIES: f"{QUERIES} - int(n_query < n_key)"},),
    ),
    Mistake(
        "sizes-exchanged",
        "The bias is (h, n_key, n_query). Rows are queries, columns are keys.",
        {"* distance": "* distance.mT"},
    ),
    Mistake(
        "heads-last",
        "The heads stand on the last axis. Asked for is (h, i, j).",
        {BIAS: f"({BIAS}).permute(1, 2, 0)"},
    ),
    Mistake(
        "batch-axis",
        "There is an axis for the batch. Asked for is exactly (h, i, j).",
        {BIAS: f"({BIAS})[None]"},
    ),
    Mistake(
        "slopes-alone",
        "The distances are missing.",
        {REFUSED: "", "* distance": "* torch.ones(n_query, n_key)"},
        also=({REFUSED: "", BIAS: "slopes"}, {REFUSED: "", BIAS: "-slopes"}),
    ),
    Mistake(
        "distances-alone",
        "The slopes are missing, and the axis of the heads with them.",
        {REFUSED: "", BIAS: "-distance.float()"},
        also=({REFUSED: "", BIAS: "-distance"},),
    ),
    Mistake(
        "too-many-queries",
        "With more queries than keys a bias comes back, or another error. The first queries would "
        "stand before the first key: raise a ValueError with both numbers.",
        {REFUSED: "", QUERIES: "torch.arange(n_key)[n_key - n_query :]"},
        also=({REFUSED: ""},),
    ),
    asserted("With more queries than keys an assert fails.", FOR_THE_PROGRAMMER),
)
