"""The known mistakes of exercise 2.2, softmax."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attn_course.attention import softmax
from attn_course.checks.exercise import Answer, Mistake
from attn_course.checks.gradients import detached_inputs

# -- known-wrong versions ---------------------------------------------------------------------


def shifted(
    scores: Tensor,
    dim: int = -1,
    *,
    shift: Any = lambda scores, dim: scores.amax(dim, keepdim=True),
    total: Any = lambda exponentials, dim: exponentials.sum(dim, keepdim=True),
) -> Tensor:
    """The softmax with its joints open: what is subtracted, and what is divided by."""
    exponentials = (scores - shift(scores, dim)).exp()
    return exponentials / total(exponentials, dim)


def no_shift(scores: Tensor, dim: int) -> float:
    """Leaves the scores where they are."""
    return 0.0


def with_epsilon(epsilon: float, **joints: Any) -> Answer:
    """A version that adds `epsilon` to the sum."""
    return partial(shifted, total=lambda e, dim: e.sum(dim, keepdim=True) + epsilon, **joints)


def times(factor: float) -> Answer:
    """A version that multiplies the scores."""
    return lambda scores, dim=-1: (factor * scores).softmax(dim)


def clamped(limit: float) -> Answer:
    """A version that cuts the scores to ±`limit`, where the exponential is still finite."""
    return lambda scores, dim=-1: scores.clamp(-limit, limit).softmax(dim)


def hard(scores: Tensor, dim: int = -1) -> Tensor:
    """Gives all weight to the largest score."""
    return torch.zeros_like(scores).scatter(dim, scores.argmax(dim, keepdim=True), 1.0)


def all_but_first_axis(scores: Tensor, dim: int = -1) -> Tensor:
    """Joins all axes but the first."""
    return scores.flatten(1).softmax(-1).view_as(scores) if scores.ndim > 1 else scores.softmax(0)


def in_place(scores: Tensor, dim: int = -1) -> Tensor:
    """Subtracts from the caller's own scores."""
    scores -= scores.amax(dim, keepdim=True)
    return scores.softmax(dim)


EPSILON_ADDED = (
    "The weights do not quite sum to one: something small is added below the fraction. It is not "
    "needed: once the largest score is moved to 0 the sum is at least 1."
)
SCORES_CLAMPED = (
    "Large scores are cut to a limit, so different scores get the same weight. The softmax does "
    "not change when the same number is taken from all scores of a row."
)
POWERS_OF_TWO = "This takes powers of 2, not of e: the weights are too even."
SCORES_SCALED = "The scores are multiplied by something before the exponential"
NO_DIVISION = (
    "Here the weights of a row do not sum to one: what the exponentials are divided by is not "
    "their sum."
)
OVERFLOW = (
    "exp of a large score is infinite, and exp of a very negative one is 0, which leaves ∞/∞ or "
    "0/0. The softmax does not change when the same number is taken from all scores of a row: "
)
NO_KEEPDIM = (
    "is reduced to one axis less and then meets the scores again, and broadcasting lines it up "
    "with another axis. Keep the reduced axis with size 1."
)
WRONG_AXES = "It is right along the last axis only. Along another one, "

MISTAKES = (
    Mistake(
        "not-divided",
        NO_DIVISION + " As it stands the largest weight of every row is 1.",
        partial(shifted, total=lambda e, dim: 1.0),
    ),
    Mistake(
        "exponentials-only",
        "These are the exponentials of the scores. They are not yet divided by their sum.",
        lambda scores, dim=-1: scores.exp(),
    ),
    Mistake(
        "mean-for-sum",
        NO_DIVISION + " It is their mean.",
        partial(shifted, total=lambda e, dim: e.mean(dim, keepdim=True)),
    ),
    Mistake(
        "norm-for-sum",
        NO_DIVISION + " It is their Euclidean length.",
        partial(shifted, total=lambda e, dim: e.norm(dim=dim, keepdim=True)),
    ),
    Mistake(
        "log-softmax",
        "These are the logarithms of the weights.",
        lambda scores, dim=-1: scores.log_softmax(dim),
    ),
    Mistake(
        "no-exponential",
        "The scores are divided by their sum without an exponential: negative scores then "
        "give negative weights.",
        lambda scores, dim=-1: scores / scores.sum(dim, keepdim=True),
    ),
    Mistake(
        "sigmoid",
        "Each score is squeezed between 0 and 1 by itself (a sigmoid): the weights of a row "
        "share one whole.",
        lambda scores, dim=-1: scores.sigmoid(),
    ),
    Mistake(
        "twice",
        "The softmax is taken twice: the weights go through it again as if they were scores.",
        lambda scores, dim=-1: scores.softmax(dim).softmax(dim),
    ),
    Mistake(
        "hard-choice",
        "All weight goes to the largest score: this is a hard choice, not a soft one.",
        hard,
    ),
    Mistake(
        "scores-scaled",
        f"{SCORES_SCALED}.",
        examples=(times(0.5), times(3.0)),
    ),
    Mistake(
        "sign-turned",
        "The smallest score gets the largest weight: the sign of the scores is turned round.",
        examples=(times(-1.0),),
    ),
    Mistake("powers-of-two", POWERS_OF_TWO, examples=(times(math.log(2)),)),
    Mistake(
        "sum-not-shifted",
        "The shift is taken above the fraction only: the sum below it is that of the unshifted "
        "exponentials. Both must be shifted by the same number.",
        lambda scores, dim=-1: (
            (scores - scores.amax(dim, keepdim=True)).exp() / scores.exp().sum(dim, keepdim=True)
        ),
    ),
    Mistake(
        "sum-over-everything",
        "The sum runs over the whole tensor: all weights together are one, where each row "
        "should be. (For a single row this is the same.)",
        partial(shifted, shift=lambda s, dim: s.max(), total=lambda e, dim: e.sum()),
    ),
    Mistake(
        "sum-over-everything-shifted-by-rows",
        "The sum runs over the whole tensor, where each row needs its own. (For a single row "
        "this is the same.)",
        partial(shifted, total=lambda e, dim: e.sum()),
    ),
    Mistake(
        "joined-axes",
        "All axes but the first are joined into one, and share one whole.",
        all_but_first_axis,
    ),
    Mistake(
        "dim-ignored",
        f"{WRONG_AXES}`dim` changes nothing.",
        lambda scores, dim=-1: scores.softmax(-1),
    ),
    Mistake(
        "first-axis-always",
        "The weights sum to one along the first axis, whatever `dim` says; by default it "
        "should be the last.",
        lambda scores, dim=-1: scores.softmax(0),
    ),
    Mistake(
        "axis-left-to-torch",
        "`dim` is not passed on. Left alone, an old function of torch picks an axis by the number "
        "of axes: the first of three, but the second of two.",
        lambda scores, dim=-1: scores.softmax(0 if scores.ndim in (1, 3) else 1),
    ),
    Mistake(
        "default-axis-counted-from-left",
        "By default the weights should sum to one along the last axis, dim = −1, however "
        "many axes there are.",
        lambda scores, dim=0: scores.softmax(dim),
        also=(lambda scores, dim=1: scores.softmax(dim),),
    ),
    Mistake(
        "sum-along-last",
        f"{WRONG_AXES}the sum is still taken over the last one; only the maximum follows `dim`.",
        partial(shifted, total=lambda e, dim: e.sum(-1, keepdim=True)),
    ),
    Mistake(
        "maximum-along-last",
        f"{WRONG_AXES}the maximum is still taken over the last one, and so the scores that "
        "share a sum are shifted by different amounts.",
        partial(shifted, shift=lambda s, dim: s.amax(-1, keepdim=True)),
    ),
    Mistake(
        "maximum-along-first",
        "The maximum is taken along the first axis. The scores that share a sum must all "
        "be shifted by the same amount.",
        partial(shifted, shift=lambda s, dim: s.amax(0, keepdim=True)),
    ),
    Mistake(
        "keepdim-maximum",
        f"The maximum {NO_KEEPDIM}",
        partial(shifted, shift=lambda s, dim: s.amax(dim)),
    ),
    Mistake(
        "keepdim-sum",
        f"The sum {NO_KEEPDIM}",
        partial(shifted, total=lambda e, dim: e.sum(dim)),
    ),
    Mistake(
        "keepdim-both",
        f"Maximum and sum: each {NO_KEEPDIM}",
        partial(shifted, shift=lambda s, dim: s.amax(dim), total=lambda e, dim: e.sum(dim)),
    ),
    Mistake(
        "axis-put-back-last",
        f"{WRONG_AXES}the reduced axis is put back at the end, not where it was.",
        partial(
            shifted,
            shift=lambda s, dim: s.amax(dim)[..., None],
            total=lambda e, dim: e.sum(dim)[..., None],
        ),
    ),
    Mistake(
        "sum-put-back-last",
        f"{WRONG_AXES}the axis of the sum is put back at the end, not where it was.",
        partial(shifted, total=lambda e, dim: e.sum(dim)[..., None]),
    ),
    Mistake(
        "dim-zero-lost",
        "dim = 0 is taken for no `dim` at all: 0 counts as false in `dim or -1` and `if dim`. "
        "Compare with None, or give the parameter its default in the first line.",
        lambda scores, dim=None: scores.softmax(dim or -1),
    ),
    Mistake(
        "no-shift",
        OVERFLOW + "which number leaves no exponential above 1?",
        partial(shifted, shift=no_shift),
        also=(lambda scores, dim=-1: (scores - scores.exp().sum(dim, keepdim=True).log()).exp(),),
    ),
    Mistake(
        "shift-never-negative",
        OVERFLOW + "here the number taken is never negative, so a row of very negative "
        "scores is left where it is. Take the largest of the row, whatever its sign.",
        partial(shifted, shift=lambda s, dim: s.amax(dim, keepdim=True).clamp(min=0)),
    ),
    Mistake(
        "shift-by-overall-maximum",
        OVERFLOW + "here one number is taken from the whole tensor, and a row far below it "
        "is all zeros. Each row needs its own.",
        partial(shifted, shift=lambda s, dim: s.max()),
    ),
    Mistake(
        "shift-by-mean",
        OVERFLOW + "here it is the mean, and a score far above it still overflows.",
        partial(shifted, shift=lambda s, dim: s.mean(dim, keepdim=True)),
    ),
    Mistake(
        "shift-by-minimum",
        OVERFLOW + "here it is the smallest, and a score far above it still overflows.",
        partial(shifted, shift=lambda s, dim: s.amin(dim, keepdim=True)),
    ),
    Mistake(
        "nan-replaced",
        "NaN arises and is replaced afterwards: the weights of such a row are lost. It must "
        "not arise. " + OVERFLOW + "which number keeps every exponential finite?",
        lambda scores, dim=-1: shifted(scores, dim, shift=no_shift).nan_to_num(),
    ),
    Mistake(
        "epsilon-for-shift",
        "Something small is added below the fraction in place of a shift: 0/0 is gone, but "
        "the weights of such a row are 0. " + OVERFLOW + "which number keeps one of the "
        "exponentials at 1?",
        with_epsilon(1e-9, shift=no_shift),
    ),
    Mistake("scores-clamped", SCORES_CLAMPED, examples=(clamped(80.0), clamped(50.0))),
    Mistake(
        "weights-raised",
        "The weights sum to more than one.",
        examples=(lambda scores, dim=-1: scores.softmax(dim).clamp(min=1e-7),),
    ),
    Mistake("epsilon-added", EPSILON_ADDED, with_epsilon(1e-9)),
    Mistake(
        "scores-altered",
        "The weights are right, but the caller's scores are changed in place (`-=` and "
        "functions that end in `_` write into them).",
        in_place,
    ),
    Mistake(
        "detached",
        "The weights are right, but no gradient passes through them. Do the scores pass "
        "through `.detach()`, `.data`, `.item()`, numpy or `torch.tensor(…)`?",
        detached_inputs(softmax),
    ),
    Mistake(
        "sum-detached",
        "The weights are right, but the sum they are divided by is cut off from the "
        "gradient. Only the shift may be: it cancels, the sum does not.",
        partial(shifted, total=lambda e, dim: e.sum(dim, keepdim=True).detach()),
    ),
)
