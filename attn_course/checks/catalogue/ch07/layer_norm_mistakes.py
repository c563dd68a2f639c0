"""Known-wrong versions of exercise 7.1, layer_norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attn_course.checks.exercise import Answer, Mistake
from attn_course.checks.gradients import detached_inputs
from attn_course.norms import layer_norm

Normalise = Callable[[Tensor, float], Tensor]


def version(normalise: Normalise) -> Answer:
    """Another normalisation, with gain and bias as they should be."""

    def answer(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
        return gain * normalise(x, eps) + bias

    return answer


def over(*axes: int, biased: bool = True) -> Answer:
    """The statistics along other axes; an axis that x does not have is left out."""

    def normalise(x: Tensor, eps: float) -> Tensor:
        there = [axis for axis in axes if -x.ndim <= axis < x.ndim]
        if not there:
            raise IndexError(f"Dimension out of range (x has {x.ndim} axes)")
        mean = x.mean(dim=there, keepdim=True)
        variance = x.var(dim=there, correction=0 if biased else 1, keepdim=True)
        return (x - mean) / (variance + eps).sqrt()

    return version(normalise)


def over_all_but_first(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """One mean and variance for each sequence."""
    axes = list(range(1, x.ndim)) or [0]
    mean = x.mean(dim=axes, keepdim=True)
    variance = x.var(dim=axes, correction=0, keepdim=True)
    return gain * (x - mean) / (variance + eps).sqrt() + bias


def over_everything(x: Tensor, eps: float) -> Tensor:
    """One mean and variance for all."""
    return (x - x.mean()) / (x.var(correction=0) + eps).sqrt()


def variance_of(x: Tensor) -> Tensor:
    """The biased variance of each token."""
    return x.var(dim=-1, correction=0, keepdim=True)


def centred(x: Tensor) -> Tensor:
    """Each token without its mean."""
    return x - x.mean(dim=-1, keepdim=True)


def plain(x: Tensor, eps: float) -> Tensor:
    """The normalisation asked for."""
    return centred(x) / (variance_of(x) + eps).sqrt()


def without_keepdim(x: Tensor, eps: float) -> Tensor:
    """Means that no longer line up with their tokens."""
    return (x - x.mean(-1)) / (x.var(-1, correction=0) + eps).sqrt()


def in_place(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Centres the caller's own numbers."""
    x -= x.mean(dim=-1, keepdim=True)
    return gain * x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() + bias


def affine(combine: Callable[[Tensor, Tensor, Tensor, float], Any]) -> Answer:
    """Gain and bias put in elsewhere."""

    def answer(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Any:
        return combine(x, gain, bias, eps)

    return answer


def with_epsilon(change: Callable[[float], float]) -> Answer:
    """Another epsilon than the one given."""
    return version(lambda x, eps: plain(x, change(eps)))


def with_constant_statistics(x: Tensor, eps: float) -> Tensor:
    """Mean and variance that no gradient goes through."""
    mean = x.mean(dim=-1, keepdim=True).detach()
    return (x - mean) / (variance_of(x).detach() + eps).sqrt()


MISTAKES = (
    Mistake(
        "input-altered", "x is centred in place, so that the caller's numbers change.", in_place
    ),
    Mistake(
        "sample-deviation",
        "The variance is divided by d − 1, the sample's. Layer norm divides by d; torch.var and "
        "torch.std divide by d − 1 unless they are told otherwise.",
        over(-1, biased=False),
        also=(
            version(lambda x, eps: centred(x) / (x.std(-1, keepdim=True) + eps)),
            version(lambda x, eps: centred(x) / x.std(-1, keepdim=True)),
        ),
    ),
    Mistake(
        "variance-for-deviation",
        "It is divided by the variance. The root of it has the unit of x, so that 10 · x gives the "
        "same as x.",
        version(lambda x, eps: centred(x) / (variance_of(x) + eps)),
        also=(version(lambda x, eps: centred(x) / (variance_of(x).square() + eps).sqrt()),),
    ),
    Mistake(
        "multiplied",
        "The root is multiplied where it should divide.",
        version(lambda x, eps: centred(x) * (variance_of(x) + eps).sqrt()),
    ),
    Mistake(
        "not-centred",
        "The mean is not taken away: this divides by the root mean square, which is another norm.",
        version(lambda x, eps: x / (x.square().mean(-1, keepdim=True) + eps).sqrt()),
        also=(version(lambda x, eps: x / (variance_of(x) + eps).sqrt()),),
    ),
    Mistake(
        "not-scaled",
        "The tokens are centred and not divided: their variance stays what it was.",
        version(lambda x, eps: centred(x)),
    ),
    Mistake(
        "unchanged",
        "The features are not normalised at all; only gain and bias do something.",
        version(lambda x, eps: x),
    ),
    Mistake(
        "mean-square-for-variance",
        "The variance is taken of x before it is centred: that is the mean of the squares.",
        version(lambda x, eps: centred(x) / (x.square().mean(-1, keepdim=True) + eps).sqrt()),
    ),
    Mistake(
        "length-for-deviation",
        "It is divided by the length of the vector, the root of the *sum* of squares. The variance "
        "is their mean.",
        version(
            lambda x, eps: centred(x) / (centred(x).square().sum(-1, keepdim=True) + eps).sqrt()
        ),
        also=(
            version(lambda x, eps: centred(x) / (centred(x).norm(dim=-1, keepdim=True) + eps)),
            version(lambda x, eps: x / (x.norm(dim=-1, keepdim=True) + eps)),
        ),
    ),
    Mistake(
        "absolute-deviation",
        "The spread is the mean of the absolute distances. The variance is that of the squares.",
        version(lambda x, eps: centred(x) / (centred(x).abs().mean(-1, keepdim=True) + eps)),
    ),
    Mistake(
        "range-for-deviation",
        "The features are brought between a smallest and a largest value. Asked for are mean 0 and "
        "variance 1.",
        version(
            lambda x, eps: centred(x) / (x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True) + eps)
        ),
        also=(
            version(
                lambda x, eps: (
                    (x - x.amin(-1, keepdim=True))
                    / (x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True) + eps)
                )
            ),
        ),
    ),
    Mistake(
        "median-for-mean",
        "The median is taken away, not the mean.",
        version(
            lambda x, eps: (x - x.median(-1, keepdim=True).values) / (variance_of(x) + eps).sqrt()
        ),
    ),
    Mistake(
        "over-tokens",
        "Mean and variance are taken along the sequence. Then a token depends on its neighbours, "
        "the later ones too. Each token has its own, over its features.",
        over(-2),
        also=(over(1),),
    ),
    Mistake(
        "over-batch",
        "Mean and variance are taken along the first axis, over the sequences of the batch. That "
        "is batch norm: who else is in the batch would change a sentence.",
        over(0),
    ),
    Mistake(
        "over-sequence",
        "There is one mean and one variance for a whole sequence, its tokens together. Then a "
        "token depends on the later ones. Each token has its own.",
        over(-1, -2),
        also=(over_all_but_first,),
    ),
    Mistake(
        "over-everything",
        "There is one mean and one variance for all tokens of all sequences together. Each token "
        "has its own.",
        version(over_everything),
    ),
    Mistake(
        "no-keepdim",
        "Mean and variance have lost their last axis, so they do not line up with their tokens: an "
        "error, or, with as many tokens as features, silently another token's.",
        version(without_keepdim),
        also=(version(lambda x, eps: (x - x.mean(-1)) / (variance_of(x) + eps).sqrt()),),
    ),
    Mistake(
        "no-gain-and-bias",
        "Neither gain nor bias is used.",
        affine(lambda x, gain, bias, eps: plain(x, eps)),
    ),
    Mistake(
        "no-gain", "The gain is not used.", affine(lambda x, gain, bias, eps: plain(x, eps) + bias)
    ),
    Mistake(
        "no-bias", "The bias is not used.", affine(lambda x, gain, bias, eps: gain * plain(x, eps))
    ),
    Mistake(
        "gain-and-bias-exchanged",
        "Gain and bias are exchanged: the gain multiplies, the bias is added.",
        affine(lambda x, gain, bias, eps: bias * plain(x, eps) + gain),
    ),
    Mistake(
        "bias-scaled",
        "The gain multiplies the bias too. Multiply first, add afterwards.",
        affine(lambda x, gain, bias, eps: gain * (plain(x, eps) + bias)),
    ),
    Mistake(
        "affine-first",
        "Gain and bias are put in before the normalisation, which takes them out again in part.",
        affine(lambda x, gain, bias, eps: plain(gain * x + bias, eps)),
        also=(affine(lambda x, gain, bias, eps: plain(gain * x, eps) + bias),),
    ),
    Mistake(
        "bias-subtracted",
        "The bias is subtracted.",
        affine(lambda x, gain, bias, eps: gain * plain(x, eps) - bias),
    ),
    Mistake(
        "gain-divides",
        "The gain divides. It multiplies.",
        affine(lambda x, gain, bias, eps: plain(x, eps) / gain + bias),
    ),
    Mistake(
        "gain-plus-one",
        "One is added to the gain. Some models store it so; here the gain is the whole factor.",
        affine(lambda x, gain, bias, eps: (1 + gain) * plain(x, eps) + bias),
    ),
    Mistake(
        "residual",
        "x is added to its own norm. The residual belongs to the block, not to the norm.",
        affine(lambda x, gain, bias, eps: x + gain * plain(x, eps) + bias),
    ),
    Mistake(
        "epsilon-outside",
        "Epsilon is added to the deviation. It stands under the root, beside the variance: the "
        "same for large features, not for small ones.",
        version(lambda x, eps: centred(x) / (variance_of(x).sqrt() + eps)),
        also=(
            version(lambda x, eps: centred(x) / variance_of(x).sqrt().clamp(min=eps)),
            version(lambda x, eps: centred(x) / variance_of(x).sqrt() + eps),
        ),
    ),
    Mistake(
        "epsilon-squared",
        "Epsilon is squared before it is added, or its root is taken.",
        with_epsilon(lambda eps: eps * eps),
        also=(with_epsilon(lambda eps: eps**0.5),),
    ),
    Mistake(
        "no-epsilon",
        "Epsilon is missing. A token whose features are all alike is then divided by zero.",
        version(lambda x, eps: centred(x) / variance_of(x).sqrt()),
    ),
    Mistake(
        "epsilon-subtracted",
        "Epsilon is subtracted. It is there so that the root is never of zero, let alone less.",
        with_epsilon(lambda eps: -eps),
    ),
    Mistake(
        "epsilon-fixed",
        "Epsilon is a number of its own. It is an argument, whose default is 1e-5.",
        with_epsilon(lambda eps: 1e-5),
        also=tuple(
            with_epsilon(lambda eps, other=other: other) for other in (1e-6, 1e-8, 1e-12, 1e-3)
        ),
    ),
    Mistake(
        "no-gradient",
        "No gradient comes through: it is computed under no_grad, with .data, .item() or numpy.",
        detached_inputs(layer_norm),
    ),
    Mistake(
        "statistics-detached",
        "The gradient does not go through mean and variance. They depend on x as well.",
        version(with_constant_statistics),
        also=(
            version(
                lambda x, eps: (
                    (x - x.mean(-1, keepdim=True).detach()) / (variance_of(x) + eps).sqrt()
                )
            ),
            version(lambda x, eps: centred(x) / (variance_of(x).detach() + eps).sqrt()),
        ),
    ),
    Mistake(
        "normalised-twice",
        "The result is normalised a second time, after gain and bias.",
        affine(lambda x, gain, bias, eps: plain(gain * plain(x, eps) + bias, eps)),
        also=(affine(lambda x, gain, bias, eps: gain * plain(plain(x, eps), eps) + bias),),
    ),
    Mistake(
        "softmax",
        "The features go through a softmax: positive numbers with the sum 1. Asked for are mean 0 "
        "and variance 1.",
        version(lambda x, eps: torch.softmax(x, dim=-1)),
    ),
)
