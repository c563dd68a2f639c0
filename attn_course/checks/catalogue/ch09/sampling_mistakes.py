"""Known-wrong versions of exercise 9.3, sample_next."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch09.sampling_distributions import (
    DISTRIBUTIONS,
    Distribution,
    cut_before_crossing,
    no_softmax,
    shared_threshold,
)
from attn_course.checks.exercise import Answer, Mistake
from attn_course.generation import next_token_probs


def drawing(distribution: Distribution) -> Answer:
    """The answer that draws from a distribution, and is greedy at temperature 0."""

    def answer(
        logits: Tensor,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        if temperature == 0:
            return logits.argmax(dim=-1)
        # in their own dtype: torch.multinomial then draws what it draws for a learner
        probs = distribution(logits, temperature, top_k, top_p)
        return torch.multinomial(probs, 1, generator=generator)[:, 0]

    return answer


def returning(make: Callable[[Tensor, Tensor, Generator | None], Tensor]) -> Answer:
    """The answer that makes its result from the logits and the right probabilities."""

    def answer(
        logits: Tensor,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        probs = next_token_probs(logits.double(), temperature, top_k, top_p)
        return make(logits, probs, generator)

    return answer


def drawn(probs: Tensor, generator: Generator | None) -> Tensor:
    """One token for each row, (b, 1)."""
    return torch.multinomial(probs, 1, generator=generator)


def divides_by_zero(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Knows no temperature 0."""
    if temperature == 0:
        return torch.multinomial((logits / temperature).softmax(dim=-1), 1)[:, 0]
    return drawing(next_token_probs)(logits, temperature, top_k, top_p, generator)


def first_when_zero(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Takes temperature 0 for none given."""
    return drawing(next_token_probs)(logits, temperature or 1.0, top_k, top_p, generator)


def scaled_in_place(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Divides the logits that it is given."""
    if temperature == 0:
        return logits.argmax(dim=-1)
    probs = next_token_probs(logits.double(), temperature, top_k, top_p)
    logits.div_(temperature)
    if top_k is not None or top_p is not None:
        logits.masked_fill_(probs == 0, -inf)
    return drawn(probs, generator)[:, 0]


def naive(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Takes exponentials without subtracting the largest."""
    if temperature == 0:
        return logits.argmax(dim=-1)
    weights = (logits / temperature).exp()
    probs = weights / weights.sum(dim=-1, keepdim=True)
    return drawn(next_token_probs(probs.log(), 1.0, top_k, top_p), generator)[:, 0]


def dropped_raw(fill: float) -> Answer:
    """Cuts the token that crosses p, and with a small p all of them."""

    def weights(
        logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
    ) -> Tensor:
        probs = next_token_probs(logits, temperature, top_k)
        if top_p is None:
            return probs
        kept = cut_before_crossing(probs, top_p)
        nothing_left = (kept == 0).all(dim=-1, keepdim=True)
        return kept.masked_fill(nothing_left, fill)

    return drawing(weights)


def k_as_it_is(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Asks for more tokens than there are."""
    if temperature != 0 and top_k is not None:
        logits.topk(top_k)
    return drawing(next_token_probs)(logits, temperature, top_k, top_p, generator)


def of(mistake_id: str, message: str, *others: str) -> Mistake:
    """The mistake of drawing from this distribution, or from one of the others."""
    also = tuple(drawing(DISTRIBUTIONS[other]) for other in others)
    return Mistake(mistake_id, message, drawing(DISTRIBUTIONS[mistake_id]), also=also)


MISTAKES = (
    Mistake(
        "one-hot-row",
        "It returns probabilities. Asked for is a token for each sequence: draw from them.",
        returning(lambda logits, probs, generator: probs),
    ),
    Mistake(
        "not-squeezed",
        "The tokens come back as (b, 1), as torch.multinomial gives them. Asked for is (b,).",
        returning(lambda logits, probs, generator: drawn(probs, generator)),
    ),
    Mistake(
        "floats",
        "The tokens come back as floats. Tokens are integers: an embedding looks up nothing else.",
        returning(lambda logits, probs, generator: drawn(probs, generator)[:, 0].float()),
    ),
    Mistake(
        "zero-divides",
        "Temperature 0 divides by zero. It stands for greedy: the most likely token, nothing is "
        "drawn.",
        divides_by_zero,
    ),
    Mistake(
        "zero-as-one",
        "Temperature 0 is taken for “none given”, and a token is drawn. It stands for greedy: the "
        "most likely one.",
        first_when_zero,
    ),
    of(
        "always-greedy",
        "It is always the most likely token, whatever the temperature: nothing is drawn.",
    ),
    Mistake(
        "one-draw",
        "All sequences get the same token: one draw serves the whole batch. Each draws for itself.",
        returning(
            lambda logits, probs, generator: drawn(probs[:1], generator)[0].expand(len(probs))
        ),
    ),
    of(
        "uniform",
        "Every token is as likely as any other: what the logits say is lost. Is the softmax taken "
        "along the vocabulary, the last axis, or along the batch?",
    ),
    of(
        "no-temperature",
        "The temperature does nothing. It divides the *logits*: a factor on probabilities is lost "
        "when they are normalised.",
    ),
    of(
        "temperature-inverted",
        "The temperature works the other way round: a high one should make the distribution "
        "flatter.",
    ),
    of(
        "temperature-twice",
        "The temperature is applied twice, or squared. At temperature 1 that goes unnoticed.",
    ),
    of("temperature-rooted", "The logits are divided by the root of the temperature."),
    of("no-top-k", "top_k does nothing: tokens beyond the k most likely are still drawn."),
    of("smallest-k", "The k *least* likely tokens are kept. It should be the most likely ones."),
    of("k-plus-one", "k + 1 tokens are kept. Exactly k should be."),
    Mistake(
        "k-minus-one",
        "k − 1 tokens are kept. Exactly k should be: the k-th largest stays.",
        drawing(DISTRIBUTIONS["k-minus-one"]),
        also=(drawing(DISTRIBUTIONS["kth-dropped"]),),
    ),
    Mistake(
        "k-beyond-vocabulary",
        "A top_k larger than the vocabulary raises an error. All tokens stay then.",
        k_as_it_is,
    ),
    of(
        "one-lost",
        "With a top_k as large as the vocabulary, or larger, the least likely token is lost. All "
        "should stay.",
    ),
    Mistake(
        "threshold-shared",
        "All sequences are cut at one threshold, the k-th largest logit of one of them or of the "
        "whole batch. Each row has its own.",
        drawing(DISTRIBUTIONS["threshold-shared"]),
        also=(
            drawing(shared_threshold(lambda kth: kth[0], fill=-1e9)),
            drawing(DISTRIBUTIONS["lowest-threshold-shared"]),
            drawing(DISTRIBUTIONS["highest-threshold-shared"]),
            drawing(DISTRIBUTIONS["largest-of-the-batch"]),
        ),
    ),
    of(
        "cut-to-zero",
        "What top-k cuts away gets the logit 0, and exp(0) = 1 is no small weight. A logit of "
        "minus infinity gives probability 0.",
    ),
    of(
        "rank-of-top-k",
        "With top_k the *place among the k* comes back, not the token: what is drawn is an index "
        "into the shortened list.",
    ),
    of("no-top-p", "top_p does nothing: tokens outside the nucleus are still drawn."),
    Mistake(
        "crossing-dropped",
        "The token that crosses p is left out. The nucleus is the smallest set whose probability "
        "*reaches* p, so it belongs to it; with a small p nothing else would be left.",
        drawing(DISTRIBUTIONS["crossing-dropped"]),
        also=(
            drawing(DISTRIBUTIONS["crossing-dropped-but-one"]),
            dropped_raw(0.0),
            dropped_raw(nan),
        ),
    ),
    of(
        "one-beyond",
        "A token too many is kept: the one that crosses p is the last of the nucleus.",
    ),
    of(
        "least-likely-first",
        "The nucleus is collected from the least likely token on. Sort in descending order.",
    ),
    of(
        "threshold",
        "p is held against each token's own probability. It is the *sum* of the most likely ones "
        "that has to reach p.",
    ),
    of(
        "rank-of-top-p",
        "With top_p the *rank* comes back, not the token: probabilities were sorted, and what is "
        "drawn was not put back into the order of the vocabulary.",
    ),
    of(
        "cut-in-sorted-order",
        "The nucleus is found among *sorted* probabilities, and the cut is made among unsorted "
        "ones. Put it back into the order of the vocabulary first.",
    ),
    of(
        "top-p-without-top-k",
        "Where both are given only one of top_k and top_p is used. First the one, then the other.",
        "top-k-without-top-p",
    ),
    Mistake(
        "no-softmax",
        "What is drawn from are no probabilities, but logits or log-probabilities, and those may "
        "be negative: the softmax is missing.",
        drawing(no_softmax),
        also=(drawing(lambda logits, *rest: no_softmax(logits, *rest).log_softmax(dim=-1)),),
    ),
    of(
        "softmax-twice",
        "The softmax is taken twice. That of probabilities is nearly flat: all of them lie between "
        "0 and 1.",
        "softmax-of-kept",
    ),
    of(
        "softmax-over-batch",
        "The softmax is taken along the batch. Each sequence has probabilities of its own: along "
        "the vocabulary, the last axis.",
    ),
    of(
        "temperature-last",
        "The temperature comes after top-k and top-p. It comes first: with a flatter distribution "
        "the nucleus needs more tokens.",
        "temperature-last-p-first",
    ),
    of(
        "top-p-first",
        "p is taken as a share of *all* probability, though top-k has cut some away: top-p comes "
        "last, and what top-k has left is renormalised for it.",
    ),
    of(
        "uniform-over-kept",
        "The kept tokens are all drawn as often. Among them the probabilities still count.",
    ),
    Mistake(
        "overflow",
        "With large logits the exponential overflows. softmax subtracts the largest first.",
        naive,
    ),
    Mistake(
        "generator-ignored",
        "The chance does not come from the generator: with the same seed the tokens differ.",
        returning(lambda logits, probs, generator: drawn(probs, None)[:, 0]),
    ),
    Mistake(
        "own-seed",
        "Another seed gives the same tokens, or two calls without a generator do: there is a seed "
        "inside, and every text would come out the same.",
        returning(lambda logits, probs, _: drawn(probs, Generator().manual_seed(0))[:, 0]),
        also=(
            returning(
                lambda logits, probs, generator: drawn(
                    probs, generator or Generator().manual_seed(0)
                )[:, 0]
            ),
        ),
    ),
    Mistake(
        "in-place",
        "The logits themselves are altered. Whoever calls may still need them.",
        scaled_in_place,
    ),
)
