"""Exercise 9.3, sample_next: exact where nothing is left to chance, by frequencies elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch09.chance import in_numbers, snapped
from attn_course.checks.catalogue.ch09.sampling_mistakes import MISTAKES, distributions, right
from attn_course.checks.exercise import Answer, Exercise, Output, Stage, normal
from attn_course.generation import next_token_probs, sample_next
from attn_course.sentences import say

Probe = tuple[Any, ...]
DRAWS = 1500  # of each row: what a loop over rows in Python does in some seconds

# -- how an answer is called ------------------------------------------------------------------


def tokens_of(answer: Answer, logits: Tensor, *settings: Any) -> Tensor:
    """The answer's tokens; TypeError or ValueError where they are none."""
    tokens = answer(logits, *settings)
    if not isinstance(tokens, Tensor) or tokens.is_floating_point() or tokens.dtype == torch.bool:
        raise TypeError(say("it must return a tensor of integers, a token for each sequence"))
    if tokens.shape != logits.shape[:1]:
        words = "{n} sequences got tokens of shape {shape}"
        raise ValueError(say(words, n=len(logits), shape=tuple(tokens.shape)))
    if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < logits.shape[1]:
        words = "tokens of {n} from {least} to {most}"
        raise ValueError(say(words, n=logits.shape[1], least=tokens.min(), most=tokens.max()))
    return tokens


def frequencies(
    answer: Answer,
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """How often each token is drawn for each row of logits, (b, vocab)."""
    many = logits.repeat_interleave(DRAWS, dim=0)
    tokens = tokens_of(answer, many, temperature, top_k, top_p).reshape(len(logits), DRAWS)
    counts = torch.stack([torch.bincount(row, minlength=logits.shape[1]) for row in tokens])
    # one after the other: nearly all answers are explained by the first few
    candidates = (
        renormalised(distribution(logits.double(), temperature, top_k, top_p))
        for distribution in (next_token_probs, *distributions())
    )
    return snapped(counts, candidates)


def renormalised(weights: Tensor) -> Tensor:
    """Shares of one, and all the same where nothing is left."""
    weights = weights.nan_to_num(0.0, 0.0, 0.0).clamp(min=0.0)
    total = weights.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, weights / total, torch.ones_like(weights) / weights.shape[-1])


def differ(answer: Answer, logits: Tensor) -> str:
    """Whether equal rows get different tokens."""
    tokens = tokens_of(answer, logits.repeat(100, 1))
    return "differ" if len(tokens.unique()) > 1 else "are all the same"


def same_again(answer: Answer, logits: Tensor) -> tuple[bool, bool, bool]:
    """Whether generators of one seed give the same tokens, of another seed others.

    And whether two calls without a generator, with torch's own chance, give different ones.
    """
    many = logits.repeat(100, 1)
    first, again, other = (
        tokens_of(answer, many, 1.0, None, None, Generator().manual_seed(seed))
        for seed in (3, 3, 4)
    )
    without = [tokens_of(answer, many) for _ in range(2)]
    return torch.equal(first, again), not torch.equal(first, other), not torch.equal(*without)


# -- probes -----------------------------------------------------------------------------------

LOGITS = torch.tensor([[0.5, 2.0, -1.0, 1.0, 0.0, -3.0]])
"""Probabilities .13, .56, .03, .21, .08, .004."""


def spiky(rng: Generator, b: int, vocab: int) -> Tensor:
    """Rows in which one token has all the probability; some rows share theirs."""
    best = torch.randint(vocab - 1, (b,), generator=rng)
    return normal(rng, b, vocab) + 200 * torch.eye(vocab)[best]


def several(rng: Generator) -> Tensor:
    """Three rows that differ in how sharp they are, none with close probabilities."""
    order = torch.stack([torch.randperm(6, generator=rng) for _ in range(3)])
    return LOGITS.expand(3, 6).gather(1, order) * torch.tensor([[0.5], [1.0], [1.6]])


def draw_greedy(rng: Generator) -> Iterator[Probe]:
    """Temperature 0; the cuts change nothing then."""
    yield torch.tensor([[0.5, 2.0, -1.0]]), 0.0
    for b, vocab in ((1, 7), (4, 3), (5, 5)):
        yield normal(rng, b, vocab), 0.0
    yield normal(rng, 4, 6), 0.0, 2, 0.5


def draw_certain(rng: Generator) -> Iterator[Probe]:
    """One token has all the probability, or all that is left."""
    for b, vocab in ((1, 4), (6, 3), (5, 5)):
        yield spiky(rng, b, vocab), 1.0
    yield normal(rng, 4, 6), 1.0, 1
    yield normal(rng, 4, 6), 1.3, None, 1e-4


def draw_flat(_: Generator) -> Iterator[Probe]:
    """Four tokens that are as likely."""
    yield (torch.zeros(1, 4),)


def draw_plain(rng: Generator) -> Iterator[Probe]:
    """Temperature 1, and all rows at once."""
    yield LOGITS, 1.0
    yield several(rng), 1.0


def draw_temperature(rng: Generator) -> Iterator[Probe]:
    """Hot and cold."""
    for temperature in (2.0, 0.5):
        yield LOGITS, temperature
    yield several(rng), 1.7


def draw_top_k(rng: Generator) -> Iterator[Probe]:
    """Two, three, one, and more than there are."""
    for top_k in (2, 3, 1, 9):
        yield LOGITS, 1.0, top_k
    yield several(rng), 1.0, 2
    # the least likely of four comes often enough to be missed
    yield torch.tensor([[0.3, 0.2, 0.1, 0.0]]), 1.0, 9


def draw_top_p(rng: Generator) -> Iterator[Probe]:
    """Nuclei of several sizes, the smallest, and everything."""
    for top_p in (0.7, 0.9, 0.3, 0.01, 1.0):
        yield LOGITS, 1.0, None, top_p
    yield several(rng), 1.0, None, 0.7


def draw_together(rng: Generator) -> Iterator[Probe]:
    """All three: the order matters."""
    yield LOGITS, 2.0, None, 0.8
    yield LOGITS, 2.0, 3, None
    yield LOGITS, 1.0, 2, 0.75
    yield LOGITS, 1.0, 3, 0.85
    yield several(rng), 1.5, 3, 0.7


def draw_large(_: Generator) -> Iterator[Probe]:
    """Logits of a thousand, and of minus infinity: a token that is forbidden."""
    yield torch.tensor([[1000.0, 1001.0, 999.0]]), 1.0
    yield torch.tensor([[-1000.0, -1001.0, -1002.0]]), 1.0, None, 0.8
    yield torch.tensor([[0.0, -inf, 1.0, -inf]]), 2.0, 3


SETTINGS = ("logits", "temperature", "top_k", "top_p")
TOKENS = (Output("tokens", "b"),)
SHARES = (Output(say("how often each token is drawn"), "b v"),)


def by_frequency(name: str, draw: Any, message: str) -> Stage:
    """A stage that counts what is drawn."""
    return Stage(
        name,
        draw,
        message,
        call=frequencies,
        outputs=SHARES,
        inputs=SETTINGS,
        diagnose=in_numbers(message),
    )


EXERCISE = Exercise(
    number="9.3",
    reference=sample_next,
    right=right,
    wire="samples",
    outputs=TOKENS,
    difficulty=3,
    minutes=30,
    points=4,
    may_use="torch, torch.multinomial",
    stages=(
        Stage("greedy", draw_greedy, "At temperature 0 it should be the most likely token."),
        Stage(
            "nothing left to chance",
            draw_certain,
            "Where one token has all the probability, or is all that is left, it should come.",
        ),
        Stage(
            "independent",
            draw_flat,
            "Sequences with the same logits should draw for themselves.",
            call=differ,
            outputs=(Output(say("whether the tokens of equal sequences differ")),),
            inputs=SETTINGS,
        ),
        by_frequency(
            "distribution",
            draw_plain,
            "At temperature 1 each token should be drawn as often as the softmax says.",
        ),
        by_frequency(
            "temperature", draw_temperature, "The logits should be divided by the temperature."
        ),
        by_frequency("top-k", draw_top_k, "Only the k most likely tokens should be drawn."),
        by_frequency(
            "top-p",
            draw_top_p,
            "Only the most likely tokens should be drawn, as many as it takes to reach p.",
        ),
        by_frequency(
            "together",
            draw_together,
            "Each setting works alone, but not together: first the temperature, then top-k, then "
            "top-p on what is left, renormalised.",
        ),
        by_frequency(
            "large logits",
            draw_large,
            "With logits of a thousand, or of minus infinity, the tokens differ.",
        ),
        Stage(
            "generator",
            draw_flat,
            "With a generator all chance should come from it.",
            call=same_again,
            outputs=(
                Output(say("whether the same seed gives the same tokens")),
                Output(say("whether another seed gives others")),
                Output(say("whether two calls without a generator differ")),
            ),
            inputs=SETTINGS,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Four steps, each a line or two: divide, cut to k, softmax, cut to p; then draw. At "
        "temperature 0 none of them is needed.",
        "A logit of −inf has probability 0. The k-th largest logit is "
        "logits.topk(k).values[:, -1:]; k may be larger than the vocabulary. For top-p sort the "
        "probabilities in descending order, and look at the sum *before* each token.",
        "largest, order = probs.sort(dim=-1, descending=True); before = largest.cumsum(-1) − "
        "largest. A token stays if before < top_p. torch.zeros_like(probs).scatter(-1, order, "
        "largest * (before < top_p)) puts them back; torch.multinomial(probs, 1, "
        "generator=generator)[:, 0] draws and needs no normalising.",
    ),
)
