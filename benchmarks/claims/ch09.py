"""What chapter 09 claims: counting, two networks on prose, and gaps filled from both sides."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import product

from attn_course.experiments.ch09 import (
    BEST,
    KINDS,
    LMRun,
    ProseSettings,
    ngram_losses,
    scaled,
    train_lm,
)
from attn_course.experiments.ch09_masked import (
    FILLING,
    WAYS,
    FillRun,
    left_context_loss,
    train_filler,
)
from attn_course.experiments.ch09_speed import relative_speed, tokens_per_second
from attn_course.experiments.ch09_text import echoed, seen_before, tail_split
from attn_course.experiments.ch09_views import written
from attn_course.tasks import prose
from benchmarks.claims import Claim
from benchmarks.claims.grid import near_the_best

GRID = tuple(product((2e-3, 5e-3, 1e-2, 2e-2), (0.25, 1.0)))
"""The learning rates and gradient clippings that both models were tuned on."""

PROMPTS = ("The value of ", "If the object ", "This is a ", "In the case of ")
LONG = 4  # times the chapter's budget


@cache
def trained(kind: str, seed: int, budget: float = 1) -> LMRun:
    """The chapter's run of one kind, or one with so many times its steps."""
    return train_lm(kind, seed=seed, settings=scaled(kind, budget), label="")


@cache
def filler(way: str, seed: int, budget: int = 1) -> FillRun:
    """The chapter's filler, or one with so many times its steps."""
    settings = replace(FILLING, steps=budget * FILLING.steps)
    return train_filler(way, seed=seed, settings=settings, label="")


def split(seed: int) -> Mapping[str, float]:
    """How much of the held-out text stands word for word in the rest, in runs of 50."""
    text = prose(seed=seed)
    return {
        "last tenth": seen_before(*tail_split()),
        "by topic": seen_before(text.train, text.test),
    }


def counting(seed: int) -> Mapping[str, float]:
    """The loss of n-grams."""
    losses = ngram_losses(prose(seed=seed), (1, 2, 3, 4, 5, 6, 8), BEST["Transformer"])
    return {f"{n}-gram": loss for n, loss in losses.items()}


def at_budget(budget: float, seed: int) -> Mapping[str, float]:
    """Held-out losses and CPU-seconds at so many times the chapter's steps."""
    found = {"best n-gram": min(counting(seed).values())}
    for kind in KINDS:
        run = trained(kind, seed, budget)
        found |= {kind: run.loss, f"{kind}, CPU-seconds": run.history.seconds[-1]}
    return found


def gap(seed: int) -> Mapping[str, float]:
    """How far the Transformer is behind the GRU, by budget; negative: ahead."""
    return {
        f"{budget:g} of the budget": trained("Transformer", seed, budget).loss
        - trained("GRU", seed, budget).loss
        for budget in (1 / 4, 1, LONG)
    }


def tuned(kind: str) -> Claim:
    """That no setting of the grid is clearly better: by more than 0.03 nats, held out."""

    def loss(settings: ProseSettings, seed: int) -> float:
        return train_lm(kind, seed=seed, settings=settings, label="").loss

    return near_the_best(f"{kind} on prose", BEST[kind], loss, GRID, 0.03, rises=False)


def repetition(seed: int) -> Mapping[str, float]:
    """The share of what is written that repeats itself, greedily and at temperature 1."""
    model, text = trained("Transformer", seed).model, prose(seed=seed)
    return {
        name: sum(
            echoed(written(model, text, prompt, 200, temperature=temperature, seed=seed))
            for prompt in PROMPTS
        )
        / len(PROMPTS)
        for name, temperature in (("greedy", 0.0), ("temperature 1", 1.0))
    }


def filling(budget: int, seed: int) -> Mapping[str, float]:
    """Losses at hidden characters: both ways, to the left, and the next-character model's."""
    runs = {way: filler(way, seed, budget) for way in WAYS}
    found = {way: run.loss for way, run in runs.items()}
    decoder = trained("Transformer", seed, budget)
    found["next character"] = left_context_loss(decoder.model, runs["both ways"].test)
    return found | {f"{way}, accuracy": run.accuracy for way, run in runs.items()}


def speed(_seed: int) -> Mapping[str, float]:
    """How many times faster the Transformer reads than a GRU, on one CPU thread."""
    lengths = (64, 1024)
    speeds = tokens_per_second(lengths)
    return {
        f"against the {reader}, n = {n}": ratio
        for reader in list(speeds)[1:]
        for n, ratio in zip(lengths, relative_speed(speeds, reader), strict=True)
    }


def n_gram_leads(found: Mapping[str, float]) -> bool:
    """Whether counting has the lowest loss."""
    return found["best n-gram"] < min(found[kind] for kind in KINDS)


CLAIMS = (
    Claim(
        "Held out by topic, far less of the test was seen word for word than in a tail",
        split,
        lambda found: found["by topic"] < 0.6 * found["last tenth"],
    ),
    Claim(
        "n-grams are best with about five characters, and worse with eight",
        counting,
        lambda found: (
            min(found, key=found.__getitem__) in ("4-gram", "5-gram", "6-gram")
            and found["8-gram"] > found["5-gram"]
        ),
    ),
    Claim(
        "At a quarter of the chapter's budget counting is far ahead of both networks",
        partial(at_budget, 1 / 4),
        lambda found: found["best n-gram"] < min(found[kind] for kind in KINDS) - 0.2,
    ),
    Claim(
        "At the chapter's budget counting still leads, the networks are within 0.25 of each other",
        partial(at_budget, 1),
        lambda found: n_gram_leads(found) and abs(found["GRU"] - found["Transformer"]) < 0.25,
    ),
    Claim(
        "At four times the budget both networks are ahead of counting",
        partial(at_budget, LONG),
        lambda found: max(found[kind] for kind in KINDS) < found["best n-gram"],
    ),
    Claim(
        "Between the two networks the distance is small at every budget",
        gap,
        lambda found: max(map(abs, found.values())) < 0.3,
    ),
    *(tuned(kind) for kind in KINDS),
    Claim(
        "Greedy writing repeats itself, drawn text hardly does",
        repetition,
        lambda found: found["greedy"] > 3 * found["temperature 1"],
    ),
    Claim(
        "Looking both ways helps to fill gaps, but at this budget a next-character model is better",
        partial(filling, 1),
        lambda found: found["next character"] < found["both ways"] < found["to the left"] - 0.1,
    ),
    Claim(
        "With four times the budget looking both ways is worth more",
        partial(filling, LONG),
        lambda found: found["both ways"] < found["to the left"] - 0.2,
    ),
    Claim(
        "On one CPU thread Transformer and fused GRU are within a factor of five",
        speed,
        lambda found: all(0.2 < v < 5 for name, v in found.items() if "fused" in name),
    ),
)
