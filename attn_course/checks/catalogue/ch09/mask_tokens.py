"""Exercise 9.4, mask_tokens: its stages. What is left to chance is judged by its frequencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.ch09 import mask_observations as observed
from attn_course.checks.catalogue.ch09.chance import in_numbers
from attn_course.checks.catalogue.ch09.mask_mistakes import MISTAKES, right
from attn_course.checks.exercise import Diagnosis, Exercise, Output, Seen, Stage
from attn_course.sentences import say
from attn_course.tasks.base import IGNORE
from attn_course.tasks.language import mask_tokens

Probe = tuple[Any, ...]
MANY = (100, 100)  # tokens of which frequencies are taken; a loop over tokens does it in a second
MORE = (150, 200)  # the same, where two shares differ by little
ROWS = 1000  # short sequences, to see whether their positions differ

# -- probes -----------------------------------------------------------------------------------


def tokens(rng: Generator, *shape: int) -> Tensor:
    """Ids 0 … 6."""
    return torch.randint(7, shape, generator=rng)


def draw_none(rng: Generator) -> Iterator[Probe]:
    """Nothing is chosen."""
    yield torch.tensor([[5, 3, 6]]), 7, 7, 0.0
    yield tokens(rng, 2, 4), 7, 9, 0.0


def draw_some(rng: Generator) -> Iterator[Probe]:
    """Some are chosen; mask tokens outside the vocabulary, and among its ids."""
    for mask_token, p in ((7, 0.15), (9, 0.5), (7, 1.0)):
        yield tokens(rng, 20, 30), 7, mask_token, p


def draw_shares(rng: Generator) -> Iterator[Probe]:
    """Many tokens, with several probabilities."""
    for p in (0.15, 0.4, 1.0):
        yield tokens(rng, *MANY), 7, 7, p


def draw_fates(rng: Generator) -> Iterator[Probe]:
    """Many tokens, of which many are chosen."""
    yield tokens(rng, *MANY), 7, 7, 0.5
    yield tokens(rng, *MORE), 7, 9, 0.9


def draw_alike(_: Generator) -> Iterator[Probe]:
    """All tokens are the same, so that whatever else stands there was drawn."""
    for own, vocab_size in ((0, 7), (0, 4), (3, 7)):
        yield torch.full(MANY, own), vocab_size, 9, 0.8


def draw_places(rng: Generator) -> Iterator[Probe]:
    """Many tokens."""
    yield tokens(rng, *MANY), 7, 7, 0.3


def draw_rows(rng: Generator) -> Iterator[Probe]:
    """Many short sequences."""
    yield tokens(rng, ROWS, 2), 7, 7, 0.5


def draw_batches(rng: Generator) -> Iterator[Probe]:
    """Few tokens, to be hidden again and again, all of them."""
    yield tokens(rng, 3, 8), 7, 7, 1.0


def draw_pair(rng: Generator) -> Iterator[Probe]:
    """Two tokens, to be hidden again and again."""
    yield tokens(rng, 1, 2), 7, 7, 0.5


def draw_generator(rng: Generator) -> Iterator[Probe]:
    """Enough tokens that no two draws agree by chance."""
    yield tokens(rng, 6, 20), 7, 7, 0.5


def hidden_all_the_same(seen: Sequence[Seen]) -> Diagnosis | None:
    """Whether tokens are hidden of which the answer itself says that they were not chosen."""
    for one in seen:
        inputs, targets = one.actual
        if bool(((targets == IGNORE) & (inputs != one.args[0])).any()):
            known = next(m for m in MISTAKES if m.id == "unchosen-hidden")
            return Diagnosis(known.message, known.id)
    return None


def in_spans(seen: Sequence[Seen]) -> Diagnosis | None:
    """Whether neighbours in a sequence are chosen together."""
    if any(one.actual[0] == observed.TOGETHER for one in seen):
        known = next(m for m in MISTAKES if m.id == "spans")
        return Diagnosis(known.message, known.id)
    return None


EVERYTHING = (Output("inputs", "b n"), Output("targets", "b n"))

EXERCISE = Exercise(
    number="9.4",
    reference=mask_tokens,
    right=right,
    wire="samples",
    outputs=EVERYTHING,
    difficulty=2,
    minutes=20,
    points=3,
    may_use="torch",
    stages=(
        Stage(
            "none",
            draw_none,
            "With p = 0 nothing is chosen: the inputs are the ids, all targets −100.",
            diagnose=hidden_all_the_same,
        ),
        Stage(
            "not chosen",
            draw_some,
            "Where there is no target the inputs should be the ids.",
            call=observed.untouched,
            outputs=(Output(say("what stands where there is no target")),),
        ),
        Stage(
            "targets",
            draw_some,
            "At the chosen places the targets should be the ids as they were.",
            call=observed.asked,
            outputs=(Output(say("what the targets are at the chosen places")),),
        ),
        Stage(
            "each for itself",
            draw_places,
            "Each token should be chosen independently of its neighbours.",
            call=observed.places,
            outputs=(
                Output(say("how neighbours in a sequence are chosen")),
                Output(say("how the same place of two sequences is chosen")),
            ),
            diagnose=in_spans,
        ),
        Stage(
            "positions",
            draw_rows,
            "Every position should be chosen equally often.",
            call=observed.by_position,
            diagnose=in_numbers(
                "Every position should be chosen equally often. Share chosen, by position:"
            ),
            outputs=(Output(say("share chosen, by position")),),
        ),
        Stage(
            "how many",
            draw_shares,
            "Each token should be chosen with probability p.",
            call=observed.share_chosen,
            diagnose=in_numbers(
                "Each token should be chosen with probability p. Shares (chosen, not chosen):"
            ),
            outputs=(Output(say("shares (chosen, not chosen)")),),
        ),
        Stage(
            "which tokens",
            draw_places,
            "Whatever a token is, it should be chosen with probability p.",
            call=observed.by_token,
            diagnose=in_numbers(
                "Whatever a token is, it should be chosen with probability p. Share chosen of the "
                "tokens 0, 1, …:"
            ),
            outputs=(Output(say("share chosen, by token")),),
        ),
        Stage(
            "mask token",
            draw_some,
            "Most of the chosen should become the mask token that is given.",
            call=observed.mostly,
            outputs=(Output(say("what most of the chosen become")),),
        ),
        Stage(
            "each decided alone",
            draw_batches,
            "What becomes of a chosen token should be decided for each of them.",
            call=observed.fates_together,
            outputs=(Output(say("what becomes of the chosen is decided")),),
        ),
        Stage(
            "what becomes of them",
            draw_fates,
            "Of the chosen, 80 % should become the mask token, 10 % a random token, and 10 % stay. "
            "(A random token is by chance the same as before once in vocab_size.)",
            call=observed.fates,
            diagnose=in_numbers(
                "Of the chosen, 80 % should become the mask token, 10 % a random token, and 10 % "
                "stay. A random token is by chance the same as before once in vocab_size. Shares "
                "(mask token, other, as before):"
            ),
            outputs=(Output(say("shares of the chosen (mask token, other, as before)")),),
        ),
        Stage(
            "random tokens",
            draw_alike,
            "Random tokens should come from 0 … vocab_size − 1, each as likely.",
            call=observed.replacements,
            diagnose=in_numbers(
                "Random tokens should come from 0 … vocab_size − 1, each as likely. Shares of the "
                "tokens put in for others (0, 1, …, vocab_size − 1, beyond):"
            ),
            outputs=(Output(say("shares of the tokens 0 … vocab_size")),),
        ),
        Stage(
            "sequences",
            draw_rows,
            "How many tokens of a sequence are chosen should be left to chance.",
            call=observed.by_sequence,
            diagnose=in_numbers(
                "How many tokens of a sequence are chosen should be left to chance. Share of "
                "sequences of two tokens with 0, 1, 2 chosen:"
            ),
            outputs=(Output(say("share of sequences with 0, 1, 2 chosen")),),
        ),
        Stage(
            "generator",
            draw_generator,
            "With a generator all chance should come from it.",
            call=observed.same_again,
            outputs=(
                Output(say("whether the same seed hides the same")),
                Output(say("whether another seed hides other tokens")),
            ),
        ),
        Stage(
            "calls",
            draw_pair,
            "How many tokens of a batch are chosen should be left to chance.",
            call=observed.by_call,
            diagnose=in_numbers(
                "How many tokens of a batch are chosen should be left to chance. Share of calls "
                "with two tokens in which 0, 1, 2 are chosen:"
            ),
            outputs=(Output(say("share of calls with 0, 1, 2 chosen")),),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Three questions for each token, each answered by chance: is it chosen? If so, what "
        "becomes of it? If it is to be another token, which? Draw the answers to all three for "
        "all tokens at once.",
        "torch.rand(ids.shape, generator=generator) < p chooses. A second torch.rand decides: "
        "below 0.8, from 0.9 on, between. torch.where picks by a condition.",
        "torch.randint(vocab_size, ids.shape, generator=generator) are random tokens. The targets "
        "are ids.masked_fill(~chosen, -100).",
    ),
)
