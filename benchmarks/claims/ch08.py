"""Chapter 08: dates, what the shift does, what a beam finds, and a map against a knife."""

from collections.abc import Mapping
from functools import cache, partial
from itertools import product

from attn_course.experiments.ch08 import (
    BEST,
    KINDS,
    DateRun,
    DateSettings,
    lengths_of,
    padding_only_loss,
    train_dates,
    train_small,
    trimmed,
)
from attn_course.experiments.ch08_maps import map_against_knife
from attn_course.experiments.ch08_search import compare_search
from attn_course.tasks import Batch, date_task
from benchmarks.claims import Claim
from benchmarks.claims.grid import near_the_best

GRID = tuple(product((2e-3, 3e-3, 5e-3, 1e-2), (0.25, 1.0)))
"""The learning rates and gradient clippings that all three models were tuned on."""


@cache
def trained(kind: str, seed: int) -> DateRun:
    """The chapter's run of one kind; the copy of it after 200 steps is kept too."""
    return train_dates(kind, seed=seed, early_step=200, label="")


def exact(kind: str, seed: int) -> Mapping[str, float]:
    """Exact match on unseen dates, of all and of the worst language."""
    run = trained(kind, seed)
    return {"exact match": run.exact, "worst language": min(run.by_language.values())}


def tuned(kind: str) -> Claim:
    """That no setting of the grid is clearly better: by more than five dates in a hundred.

    Without attention, seeds of one setting differ by as much.
    """

    def exact_match(settings: DateSettings, seed: int) -> float:
        return train_dates(kind, seed=seed, settings=settings, label="").exact

    # a grid of eight runs a model takes many minutes
    return near_the_best(kind, BEST[kind], exact_match, GRID, 0.05, rises=True, seeds=(0,))


def shift(seed: int) -> Mapping[str, float]:
    """What a small model reaches with the shift and without it."""
    with_it, without = (train_small(shifted=shifted, seed=seed) for shifted in (True, False))
    return {
        "loss, shifted": with_it.loss,
        "loss, not shifted": without.loss,
        "exact, shifted": with_it.exact,
        "exact, not shifted": without.exact,
    }


def lazy(seed: int) -> Mapping[str, float]:
    """The loss of a model that knows where padding is, and nothing else."""
    lengths = lengths_of(date_task(seed=seed).test_set(500).inputs) - 1
    everywhere, tokens_only = padding_only_loss(lengths, 36, vocab=130)
    return {"over all positions": everywhere, "over tokens": tokens_only}


def beam(seed: int) -> Mapping[str, float]:
    """What a beam of 4 changes for the model after 200 steps."""
    run = trained("Transformer", seed)
    found = compare_search(run.early, trimmed(date_task(seed=seed).test_set(1000)))
    return {
        "greedy": found.greedy,
        "beam": found.beam,
        "errors of the search": found.search_errors,
        "errors of the model": found.model_errors,
    }


def map_and_knife(seed: int) -> Mapping[str, float]:
    """How well the mean attention map agrees with hiding each character."""
    test = date_task(seed=seed).test_set(200)
    found = map_against_knife(trained("Transformer", seed).model, Batch(*test))
    return {
        "same top": found.same_top,
        "rank correlation": found.rank,
        "digits that need some character": found.needed,
        "same top, of those": found.same_top_needed,
    }


CLAIMS = (
    Claim(
        "The Transformer writes at least 99 % of unseen dates right",
        partial(exact, "Transformer"),
        lambda found: found["exact match"] >= 0.99,
    ),
    Claim(
        "A GRU with attention does it as well",
        partial(exact, "GRU with attention"),
        lambda found: found["exact match"] >= 0.97,
    ),
    Claim(
        "A GRU without attention is behind at this budget",
        partial(exact, "GRU without"),
        lambda found: found["exact match"] < 0.97,
    ),
    Claim(
        "Without the shift the loss is near 0 and no date comes out right",
        shift,
        lambda found: found["loss, not shifted"] < 0.1 and found["exact, not shifted"] < 0.01,
    ),
    Claim(
        "Counting padding makes a lazy model look good",
        lazy,
        lambda found: found["over all positions"] < 0.5 * found["over tokens"],
    ),
    Claim(
        "Half-trained, most wrong dates are errors of the model; a beam gains little",
        beam,
        lambda found: found["errors of the model"] > found["errors of the search"],
    ),
    Claim(
        "Map and knife mostly agree on the top, and less on the order",
        map_and_knife,
        lambda found: found["same top"] > 0.5 and found["rank correlation"] < 0.75,
    ),
    *(tuned(kind) for kind in KINDS),
)
