"""Exercise 9.3, sample_next: its known mistakes, and the distributions that they draw from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from math import inf

import torch
from torch import Generator, Tensor

from attn_course.checks.edits import edited
from attn_course.checks.exercise import Mistake

Distribution = Callable[[Tensor, float, int | None, float | None], Tensor]
"""logits (b, vocab), temperature, top_k, top_p -> weights to draw by, (b, vocab)."""


def right(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw as a learner may; each mistake is an edit of this."""
    if temperature == 0:
        return logits.argmax(dim=-1)
    scaled = kept = logits / temperature
    if top_k is not None:
        k = min(top_k, logits.shape[-1])
        kth = scaled.topk(k).values[:, -1:]
        kept = scaled.masked_fill(scaled < kth, -inf)
    probs = kept.softmax(dim=-1)
    if top_p is not None:
        largest, order = probs.sort(dim=-1, descending=True)
        before = largest.cumsum(dim=-1) - largest
        largest = largest.masked_fill(before >= top_p, 0.0)
        probs = torch.zeros_like(probs).scatter(-1, order, largest)
    probs = probs / probs.sum(dim=-1, keepdim=True)
    return torch.multinomial(probs, 1, generator=generator)[:, 0]


GREEDY = "logits.argmax(dim=-1)"
ZERO = f"if temperature == 0:\n        return {GREEDY}\n    "
SOFTMAX = "kept.softmax(dim=-1)"
PUT_BACK = "torch.zeros_like(probs).scatter(-1, order, largest)"
SHARES = "probs / probs.sum(dim=-1, keepdim=True)"
OR_ALL_THE_SAME = f"({SHARES}).nan_to_num(1.0)"  # where nothing is left
DRAWN = "torch.multinomial(probs, 1, generator=generator)[:, 0]"

OF_ALL = "scaled.softmax(dim=-1) * (kept > -inf)"
AT_TEMPERATURE = "(probs.log() / temperature).softmax(dim=-1)"

OF_THE_RESULT = (
    Mistake(
        "one-hot-row",
        "It returns probabilities. Asked for is a token for each sequence: draw from them.",
        {GREEDY: f"F.one_hot({GREEDY}, logits.shape[-1]).float()", DRAWN: "probs"},
    ),
    Mistake(
        "not-squeezed",
        "The tokens come back as (b, 1), as torch.multinomial gives them. Asked for is (b,).",
        {"argmax(dim=-1)": "argmax(dim=-1, keepdim=True)", "[:, 0]": ""},
    ),
    Mistake(
        "floats",
        "The tokens come back as floats. Tokens are integers: an embedding looks up nothing else.",
        {GREEDY: f"{GREEDY}.float()", DRAWN: f"{DRAWN}.float()"},
    ),
    Mistake(
        "zero-divides",
        "Temperature 0 divides by zero. It stands for greedy: the most likely token, nothing is "
        "drawn.",
        {ZERO: ""},
    ),
    Mistake(
        "zero-as-one",
        "Temperature 0 is taken for “none given”, and a token is drawn. It stands for greedy: the "
        "most likely one.",
        {ZERO: "temperature = temperature or 1.0\n    "},
    ),
    Mistake(
        "always-greedy",
        "It is always the most likely token, whatever the temperature: nothing is drawn.",
        {DRAWN: GREEDY},
    ),
    Mistake(
        "one-draw",
        "All sequences get the same token: one draw serves the whole batch. Each draws for itself.",
        {
            GREEDY: f"{GREEDY}[:1].expand(len(logits))",
            "(probs, 1": "(probs[:1], 1",
            "[:, 0]": "[0].expand(len(logits))",
        },
    ),
)

OF_THE_DISTRIBUTION = (
    Mistake(
        "uniform",
        "Every token is as likely as any other: what the logits say is lost. Is the softmax taken "
        "along the vocabulary, the last axis, or along the batch?",
        {SHARES: "torch.ones_like(probs)"},
    ),
    Mistake(
        "no-temperature",
        "The temperature does nothing. It divides the *logits*: a factor on probabilities is lost "
        "when they are normalised.",
        {"logits / temperature": "logits"},
    ),
    Mistake(
        "temperature-inverted",
        "The temperature works the other way round: a high one should make the distribution "
        "flatter.",
        {"/ temperature": "* temperature"},
    ),
    Mistake(
        "temperature-twice",
        "The temperature is applied twice, or squared. At temperature 1 that goes unnoticed.",
        {"/ temperature": "/ temperature**2"},
    ),
    Mistake(
        "temperature-rooted",
        "The logits are divided by the root of the temperature.",
        {"/ temperature": "/ temperature**0.5"},
    ),
    Mistake(
        "no-top-k",
        "top_k does nothing: tokens beyond the k most likely are still drawn.",
        {"scaled.masked_fill(scaled < kth, -inf)": "scaled"},
    ),
    Mistake(
        "smallest-k",
        "The k *least* likely tokens are kept. It should be the most likely ones.",
        {"topk(k)": "topk(k, largest=False)", "scaled < kth": "scaled > kth"},
    ),
    Mistake(
        "k-plus-one",
        "k + 1 tokens are kept. Exactly k should be.",
        {"min(top_k,": "min(top_k + 1,"},
    ),
    Mistake(
        "k-minus-one",
        "k − 1 tokens are kept. Exactly k should be: the k-th largest stays.",
        {"min(top_k,": "min(max(1, top_k - 1),"},
        also=({"scaled < kth": "scaled <= kth"},),
    ),
    Mistake(
        "k-beyond-vocabulary",
        "A top_k larger than the vocabulary raises an error. All tokens stay then.",
        {"min(top_k, logits.shape[-1])": "top_k"},
    ),
    Mistake(
        "one-lost",
        "With a top_k as large as the vocabulary, or larger, the least likely token is lost. All "
        "should stay.",
        {"logits.shape[-1])": "logits.shape[-1] - 1)"},
    ),
    Mistake(
        "threshold-shared",
        "All sequences are cut at one threshold, the k-th largest logit of one of them or of the "
        "whole batch. Each row has its own.",
        {"[:, -1:]": "[0, -1]"},
        also=(
            {"[:, -1:]": "[0, -1]", "-inf": "-1e9"},
            {"[:, -1:]": "[:, -1].min()"},
            {"[:, -1:]": "[:, -1].max()"},
            {"scaled < kth": "scaled < scaled.max()"},  # every row of the batch stands there often
        ),
    ),
    Mistake(
        "cut-to-zero",
        "What top-k cuts away gets the logit 0, and exp(0) = 1 is no small weight. A logit of "
        "minus infinity gives probability 0.",
        {"-inf": "0.0"},
    ),
    Mistake(
        "rank-of-top-k",
        "With top_k the *place among the k* comes back, not the token: what is drawn is an index "
        "into the shortened list.",
        {SHARES: "probs if top_k is None else probs.sort(dim=-1, descending=True).values"},
    ),
    Mistake(
        "no-top-p",
        "top_p does nothing: tokens outside the nucleus are still drawn.",
        {PUT_BACK: "probs"},
    ),
    Mistake(
        "crossing-dropped",
        "The token that crosses p is left out. The nucleus is the smallest set whose probability "
        "*reaches* p, so it belongs to it; with a small p nothing else would be left.",
        {"before >= top_p": "largest.cumsum(dim=-1) > top_p", SHARES: OR_ALL_THE_SAME},
        also=(
            {"before >= top_p": "(largest.cumsum(dim=-1) > top_p) & (before > 0)"},
            {"before >= top_p": "largest.cumsum(dim=-1) > top_p", SHARES: "probs"},
            {"before >= top_p": "largest.cumsum(dim=-1) > top_p"},
        ),
    ),
    Mistake(
        "one-beyond",
        "A token too many is kept: the one that crosses p is the last of the nucleus.",
        {"before >= top_p": "F.pad(before, (1, -1)) >= top_p"},
    ),
    Mistake(
        "least-likely-first",
        "The nucleus is collected from the least likely token on. Sort in descending order.",
        {", descending=True": ""},
    ),
    Mistake(
        "threshold",
        "p is held against each token's own probability. It is the *sum* of the most likely ones "
        "that has to reach p.",
        {PUT_BACK: "probs.masked_fill(probs < top_p, 0.0)", SHARES: OR_ALL_THE_SAME},
    ),
    Mistake(
        "rank-of-top-p",
        "With top_p the *rank* comes back, not the token: probabilities were sorted, and what is "
        "drawn was not put back into the order of the vocabulary.",
        {PUT_BACK: "largest"},
    ),
    Mistake(
        "cut-in-sorted-order",
        "The nucleus is found among *sorted* probabilities, and the cut is made among unsorted "
        "ones. Put it back into the order of the vocabulary first.",
        {PUT_BACK: "probs.masked_fill(before >= top_p, 0.0)"},
    ),
    Mistake(
        "top-p-without-top-k",
        "Where both are given only one of top_k and top_p is used. First the one, then the other.",
        {"top_k is not None": "top_k is not None and top_p is None"},
        also=({"top_p is not None": "top_p is not None and top_k is None"},),
    ),
    Mistake(
        "no-softmax",
        "What is drawn from are no probabilities, but logits or log-probabilities, and those may "
        "be negative: the softmax is missing.",
        {SOFTMAX: "kept", SHARES: "probs"},
        also=({SOFTMAX: "kept.log_softmax(dim=-1)", SHARES: "probs"},),
    ),
    Mistake(
        "softmax-twice",
        "The softmax is taken twice. That of probabilities is nearly flat: all of them lie between "
        "0 and 1.",
        {"logits / temperature": "(logits / temperature).softmax(dim=-1)"},
        also=(
            {"logits / temperature": "logits", SHARES: f"({SHARES} / temperature).softmax(dim=-1)"},
        ),
    ),
    Mistake(
        "softmax-over-batch",
        "The softmax is taken along the batch. Each sequence has probabilities of its own: along "
        "the vocabulary, the last axis.",
        {SHARES: "(logits / temperature).softmax(dim=0)"},
    ),
    Mistake(
        "temperature-last",
        "The temperature comes after top-k and top-p. It comes first: with a flatter distribution "
        "the nucleus needs more tokens.",
        {"logits / temperature": "logits", SHARES: AT_TEMPERATURE},
        also=({"logits / temperature": "logits", SOFTMAX: OF_ALL, SHARES: AT_TEMPERATURE},),
    ),
    Mistake(
        "top-p-first",
        "p is taken as a share of *all* probability, though top-k has cut some away: top-p comes "
        "last, and what top-k has left is renormalised for it.",
        {SOFTMAX: OF_ALL},
    ),
    Mistake(
        "uniform-over-kept",
        "The kept tokens are all drawn as often. Among them the probabilities still count.",
        {SHARES: "(probs > 0).to(probs.dtype)"},
    ),
)

OF_THE_DRAW = (
    Mistake(
        "overflow",
        "With large logits the exponential overflows. softmax subtracts the largest first.",
        {SOFTMAX: "kept.exp() / kept.exp().sum(dim=-1, keepdim=True)"},
    ),
    Mistake(
        "generator-ignored",
        "The chance does not come from the generator: with the same seed the tokens differ.",
        {", generator=generator": ""},
    ),
    Mistake(
        "own-seed",
        "Another seed gives the same tokens, or two calls without a generator do: there is a seed "
        "inside, and every text would come out the same.",
        {"generator=generator": "generator=torch.Generator().manual_seed(0)"},
        also=({"generator=generator": "generator=generator or torch.Generator().manual_seed(0)"},),
    ),
    Mistake(
        "in-place",
        "The logits themselves are altered. Whoever calls may still need them.",
        {
            "logits / temperature": "logits.div_(temperature)",
            "scaled.masked_fill": "scaled.masked_fill_",
        },
    ),
)

MISTAKES = (*OF_THE_RESULT, *OF_THE_DISTRIBUTION, *OF_THE_DRAW)


@cache
def distributions() -> tuple[Distribution, ...]:
    """What these mistakes draw from: the same answers with what they draw by in place of a draw."""
    versions = (
        version
        for mistake in OF_THE_DISTRIBUTION
        for version in mistake.versions
        if mistake.id != "k-beyond-vocabulary"  # it draws as it should, or raises an error
    )
    return tuple(
        edited(right, {**edits, DRAWN: "probs"}) for edits in versions if isinstance(edits, Mapping)
    )
