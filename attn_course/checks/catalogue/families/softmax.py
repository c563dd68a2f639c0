"""Mistakes in the softmax over the keys."""

from attn_course.checks.catalogue.families.family import Family
from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake

SOFT = "scores.softmax(dim=-1)"


def over(dim: str) -> Edits:
    """A softmax over another axis."""
    return {SOFT: f"scores.softmax(dim={dim})"}


def by_hand(exponentials: str, *, least: str = "") -> Edits:
    """These exponentials, divided by their sum, which may be kept from being less than `least`."""
    total = f"{exponentials}.sum(dim=-1, keepdim=True)"
    total = f"{total}.clamp(min={least})" if least else total
    return {SOFT: f"({exponentials} / {total})"}


SOFTMAX = Family(
    Mistake(
        "softmax-over-queries",
        "The softmax runs over the queries: for one key the weights sum to one, "
        "but for one query they do not.",
        over("-2"),
    ),
    Mistake(
        "softmax-axis-counted-from-left",
        "The axis of the softmax is counted from the left, "
        "so it is another one as soon as there are more leading axes.",
        over("1"),
    ),
    Mistake(
        "softmax-axis-for-three-axes",
        "The axis of the softmax is counted from the left: 2 is the keys' axis only where "
        "there is exactly one leading axis.",
        over("2"),
    ),
    Mistake(
        "softmax-without-an-axis",
        "The softmax is not told its axis, and chooses the first or the second one by the number "
        "of axes. It should run over the keys, the last axis, always.",
        over("0 if scores.ndim in (0, 1, 3) else 1"),  # what `F.softmax(scores)` does
    ),
    Mistake(
        "softmax-over-first-axis",
        "The softmax runs over the first axis: without leading axes these are the queries, "
        "with them the sequences of the batch.",
        over("0"),
    ),
    Mistake(
        "softmax-over-all-pairs",
        "The softmax runs over all pairs (i, j) of a sequence together; each query has a row "
        "of its own, and each row sums to one.",
        {SOFT: "scores.flatten(-2).softmax(dim=-1).unflatten(-1, scores.shape[-2:])"},
    ),
    Mistake(
        "softmax-twice",
        "The weights go through a second softmax, which makes them nearly equal.",
        {SOFT: "scores.softmax(dim=-1).softmax(dim=-1)"},
    ),
    Mistake(
        "log-softmax",
        "These are the logarithms of the weights: they are negative and do not sum to one.",
        {SOFT: "scores.log_softmax(dim=-1)"},
    ),
    Mistake(
        "sigmoid",
        "Each score goes through a sigmoid by itself, so the keys do not compete and a row "
        "does not sum to one.",
        {SOFT: "scores.sigmoid()"},
    ),
    Mistake(
        "not-normalised",
        "The exponentials are not divided by their sum over the keys.",
        {SOFT: "scores.exp()"},
    ),
    Mistake(
        "sign-of-the-scores",
        "The better a key matches, the less weight it gets: the scores have the wrong sign.",
        {SOFT: "(-scores).softmax(dim=-1)"},
    ),
    Mistake(
        "uniform-weights",
        "All keys get the same weight: the scores do not reach the softmax.",
        {SOFT: "torch.zeros_like(scores).softmax(dim=-1)"},
    ),
    Mistake(
        "hard-choice",
        "All weight goes to the best key: this is a hard choice, not a softmax.",
        {SOFT: "torch.zeros_like(scores).scatter(-1, scores.argmax(dim=-1, keepdim=True), 1.0)"},
    ),
    Mistake(
        "unstable-softmax",
        "exp of a large score is infinite, and exp of scores far below zero is 0 for all of "
        "them. The softmax does not change when the same number is taken from all scores of "
        "a row.",
        by_hand("scores.exp()"),
    ),
    Mistake(
        "largest-of-all-taken-off",
        "The largest score of all is taken off before the exponential. For a row that lies far "
        "below it nothing is left: each row needs its own largest score taken off.",
        by_hand("(scores - scores.max()).exp()"),
        also=(by_hand("(scores - scores.max()).exp()", least="1e-30"),),
    ),
    Mistake(
        "no-softmax",
        "The values are weighted by bare scores: there is no softmax.",
        {SOFT: "scores"},
    ),
)
"""Edits of `scores.softmax(dim=-1)`."""
