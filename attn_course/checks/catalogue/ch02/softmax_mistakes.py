"""A right answer of exercise 2.2, softmax, and its known mistakes."""

from __future__ import annotations

from torch import Tensor

from attn_course.checks.catalogue.families.gradient import detached
from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake
from attn_course.sentences import joined, say


def weighed(scores: Tensor, dim: int = -1) -> Tensor:
    """The right answer that the mistakes edit."""
    largest = scores.amax(dim, keepdim=True)
    exponentials = (scores - largest).exp()
    total = exponentials.sum(dim, keepdim=True)
    weights = exponentials / total
    return weights


LARGEST = "scores.amax(dim, keepdim=True)"
SHIFTED = "(scores - largest)"
TOTAL = "exponentials.sum(dim, keepdim=True)"
WEIGHTS = "exponentials / total"


def scaled(factor: str) -> Edits:
    """The scores are multiplied by something."""
    return {WEIGHTS: f"({factor} * scores).softmax(dim)"}


def clamped(limit: str) -> Edits:
    """The scores are cut to ±`limit`, where the exponential is still finite."""
    return {WEIGHTS: f"scores.clamp(-{limit}, {limit}).softmax(dim)"}


EPSILON_ADDED = (
    "The weights do not quite sum to one: something small is added below the fraction. It is not "
    "needed: once the largest score is moved to 0 the sum is at least 1."
)
SCORES_CLAMPED = (
    "Large scores are cut to a limit, so different scores get the same weight. The softmax does "
    "not change when the same number is taken from all scores of a row."
)
POWERS_OF_TWO = "This takes powers of 2, not of e: the weights are too even."
NO_DIVISION = (
    "Here the weights of a row do not sum to one: what the exponentials are divided by is not "
    "their sum."
)
OVERFLOW = (
    "exp of a large score is infinite, and exp of a very negative one is 0, which leaves ∞/∞ or "
    "0/0. The softmax does not change when the same number is taken from all scores of a row:"
)
NO_KEEPDIM = (
    "{reduced} is reduced to one axis less and then meets the scores again, and broadcasting lines "
    "it up with another axis. Keep the reduced axis with size 1."
)
WRONG_AXES = "It is right along the last axis only. Along another one,"

MISTAKES = (
    Mistake(
        "not-divided",
        joined([NO_DIVISION, "As it stands the largest weight of every row is 1."]),
        {WEIGHTS: "exponentials"},
    ),
    Mistake(
        "exponentials-only",
        "These are the exponentials of the scores. They are not yet divided by their sum.",
        {WEIGHTS: "scores.exp()"},
    ),
    Mistake(
        "mean-for-sum",
        joined([NO_DIVISION, "It is their mean."]),
        {TOTAL: "exponentials.mean(dim, keepdim=True)"},
    ),
    Mistake(
        "norm-for-sum",
        joined([NO_DIVISION, "It is their Euclidean length."]),
        {TOTAL: "exponentials.norm(dim=dim, keepdim=True)"},
    ),
    Mistake(
        "log-softmax",
        "These are the logarithms of the weights.",
        {WEIGHTS: "scores.log_softmax(dim)"},
    ),
    Mistake(
        "no-exponential",
        "The scores are divided by their sum without an exponential: negative scores then "
        "give negative weights.",
        {WEIGHTS: "scores / scores.sum(dim, keepdim=True)"},
    ),
    Mistake(
        "sigmoid",
        "Each score is squeezed between 0 and 1 by itself (a sigmoid): the weights of a row "
        "share one whole.",
        {WEIGHTS: "scores.sigmoid()"},
    ),
    Mistake(
        "twice",
        "The softmax is taken twice: the weights go through it again as if they were scores.",
        {"return weights": "return weights.softmax(dim)"},
    ),
    Mistake(
        "hard-choice",
        "All weight goes to the largest score: this is a hard choice, not a soft one.",
        {WEIGHTS: "torch.zeros_like(scores).scatter(dim, scores.argmax(dim, keepdim=True), 1.0)"},
    ),
    Mistake(
        "scores-scaled",
        "The scores are multiplied by something before the exponential.",
        examples=(scaled("0.5"), scaled("3.0")),
    ),
    Mistake(
        "sign-turned",
        "The smallest score gets the largest weight: the sign of the scores is turned round.",
        examples=(scaled("-1.0"),),
    ),
    Mistake("powers-of-two", POWERS_OF_TWO, examples=(scaled("math.log(2)"),)),
    Mistake(
        "sum-not-shifted",
        "The shift is taken above the fraction only: the sum below it is that of the unshifted "
        "exponentials. Both must be shifted by the same number.",
        {TOTAL: "scores.exp().sum(dim, keepdim=True)"},
    ),
    Mistake(
        "sum-over-everything",
        "The sum runs over the whole tensor: all weights together are one, where each row "
        "should be. (For a single row this is the same.)",
        {LARGEST: "scores.max()", TOTAL: "exponentials.sum()"},
    ),
    Mistake(
        "sum-over-everything-shifted-by-rows",
        "The sum runs over the whole tensor, where each row needs its own. (For a single row "
        "this is the same.)",
        {TOTAL: "exponentials.sum()"},
    ),
    Mistake(
        "joined-axes",
        "All axes but the first are joined into one, and share one whole.",
        {
            WEIGHTS: "scores.softmax(0) if scores.ndim == 1 else "
            "scores.flatten(1).softmax(-1).view_as(scores)"
        },
    ),
    Mistake(
        "dim-ignored",
        joined([WRONG_AXES, "`dim` changes nothing."]),
        {WEIGHTS: "scores.softmax(-1)"},
    ),
    Mistake(
        "first-axis-always",
        "The weights sum to one along the first axis, whatever `dim` says; by default it "
        "should be the last.",
        {WEIGHTS: "scores.softmax(0)"},
    ),
    Mistake(
        "axis-left-to-torch",
        "`dim` is not passed on. Left alone, an old function of torch picks an axis by the number "
        "of axes: the first of three, but the second of two.",
        {WEIGHTS: "scores.softmax(0 if scores.ndim in (1, 3) else 1)"},
    ),
    Mistake(
        "default-axis-counted-from-left",
        "By default the weights should sum to one along the last axis, dim = −1, however "
        "many axes there are.",
        {"dim: int = -1": "dim: int = 0"},
        also=({"dim: int = -1": "dim: int = 1"},),
    ),
    Mistake(
        "sum-along-last",
        joined(
            [
                WRONG_AXES,
                "the sum is still taken over the last one; only the maximum follows `dim`.",
            ]
        ),
        {TOTAL: "exponentials.sum(-1, keepdim=True)"},
    ),
    Mistake(
        "maximum-along-last",
        joined(
            [
                WRONG_AXES,
                "the maximum is still taken over the last one, and so the scores that share a "
                "sum are shifted by different amounts.",
            ]
        ),
        {LARGEST: "scores.amax(-1, keepdim=True)"},
    ),
    Mistake(
        "maximum-along-first",
        "The maximum is taken along the first axis. The scores that share a sum must all "
        "be shifted by the same amount.",
        {LARGEST: "scores.amax(0, keepdim=True)"},
    ),
    Mistake(
        "keepdim-maximum",
        say(NO_KEEPDIM, reduced=say("The maximum")),
        {LARGEST: "scores.amax(dim)"},
    ),
    Mistake(
        "keepdim-sum",
        say(NO_KEEPDIM, reduced=say("The sum")),
        {TOTAL: "exponentials.sum(dim)"},
    ),
    Mistake(
        "keepdim-both",
        say(NO_KEEPDIM, reduced=say("Maximum and sum: each")),
        {LARGEST: "scores.amax(dim)", TOTAL: "exponentials.sum(dim)"},
    ),
    Mistake(
        "axis-put-back-last",
        joined([WRONG_AXES, "the reduced axis is put back at the end, not where it was."]),
        {LARGEST: "scores.amax(dim)[..., None]", TOTAL: "exponentials.sum(dim)[..., None]"},
    ),
    Mistake(
        "sum-put-back-last",
        joined([WRONG_AXES, "the axis of the sum is put back at the end, not where it was."]),
        {TOTAL: "exponentials.sum(dim)[..., None]"},
    ),
    Mistake(
        "dim-zero-lost",
        "dim = 0 is taken for no `dim` at all: 0 counts as false in `dim or -1` and `if dim`. "
        "Compare with None, or give the parameter its default in the first line.",
        {
            LARGEST: "scores.amax(dim or -1, keepdim=True)",
            TOTAL: "exponentials.sum(dim or -1, keepdim=True)",
        },
    ),
    Mistake(
        "no-shift",
        joined([OVERFLOW, "which number leaves no exponential above 1?"]),
        {SHIFTED: "scores"},
        also=({WEIGHTS: "(scores - scores.exp().sum(dim, keepdim=True).log()).exp()"},),
    ),
    Mistake(
        "shift-never-negative",
        joined(
            [
                OVERFLOW,
                "here the number taken is never negative, so a row of very negative scores is "
                "left where it is. Take the largest of the row, whatever its sign.",
            ]
        ),
        {LARGEST: f"{LARGEST}.clamp(min=0)"},
    ),
    Mistake(
        "shift-by-overall-maximum",
        joined(
            [
                OVERFLOW,
                "here one number is taken from the whole tensor, and a row far below it is all "
                "zeros. Each row needs its own.",
            ]
        ),
        {LARGEST: "scores.max()"},
    ),
    Mistake(
        "shift-by-mean",
        joined([OVERFLOW, "here it is the mean, and a score far above it still overflows."]),
        {LARGEST: "scores.mean(dim, keepdim=True)"},
    ),
    Mistake(
        "shift-by-minimum",
        joined([OVERFLOW, "here it is the smallest, and a score far above it still overflows."]),
        {LARGEST: "scores.amin(dim, keepdim=True)"},
    ),
    Mistake(
        "nan-replaced",
        joined(
            [
                "NaN arises and is replaced afterwards: the weights of such a row are lost. It "
                "must not arise.",
                OVERFLOW,
                "which number keeps every exponential finite?",
            ]
        ),
        {SHIFTED: "scores", "return weights": "return weights.nan_to_num()"},
    ),
    Mistake(
        "epsilon-for-shift",
        joined(
            [
                "Something small is added below the fraction in place of a shift: 0/0 is gone, "
                "but the weights of such a row are 0.",
                OVERFLOW,
                "which number keeps one of the exponentials at 1?",
            ]
        ),
        {SHIFTED: "scores", TOTAL: f"{TOTAL} + 1e-9"},
    ),
    Mistake("scores-clamped", SCORES_CLAMPED, examples=(clamped("80.0"), clamped("50.0"))),
    Mistake(
        "weights-raised",
        "The weights sum to more than one.",
        examples=({"return weights": "return weights.clamp(min=1e-7)"},),
    ),
    Mistake("epsilon-added", EPSILON_ADDED, {TOTAL: f"{TOTAL} + 1e-9"}),
    Mistake(
        "scores-altered",
        "The weights are right, but the caller's scores are changed in place (`-=` and "
        "functions that end in `_` write into them).",
        {SHIFTED: "scores.sub_(largest)"},
    ),
    Mistake(
        "detached",
        "The weights are right, but no gradient passes through them. Do the scores pass "
        "through `.detach()`, `.data`, `.item()`, numpy or `torch.tensor(…)`?",
        detached("weights"),
    ),
    Mistake(
        "sum-detached",
        "The weights are right, but the sum they are divided by is cut off from the "
        "gradient. Only the shift may be: it cancels, the sum does not.",
        {TOTAL: f"{TOTAL}.detach()"},
    ),
)
