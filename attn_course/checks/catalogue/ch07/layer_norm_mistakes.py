"""Exercise 7.1, layer_norm: a right answer, and its known mistakes as edits of it."""

from __future__ import annotations

from torch import Tensor

from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake


def normalised(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """A right answer, which the mistakes edit."""
    mean = x.mean(dim=-1, keepdim=True)
    centred = x - mean
    variance = centred.square().mean(dim=-1, keepdim=True)
    deviation = (variance + eps).sqrt()
    normal = centred / deviation
    return gain * normal + bias


# the pieces of it that are edited most often
MEAN = "x.mean(dim=-1, keepdim=True)"
VARIANCE = "centred.square().mean(dim=-1, keepdim=True)"
DEVIATION = "(variance + eps).sqrt()"
NORMAL = "centred / deviation"
RESULT = "gain * normal + bias"

SMALLEST = "x.amin(dim=-1, keepdim=True)"
RANGE = f"x.amax(dim=-1, keepdim=True) - {SMALLEST} + eps"
AGAIN = "F.layer_norm({}, x.shape[-1:], eps=eps)"


def over(dim: str) -> Edits:
    """Mean and variance along other axes."""
    return {
        "x.mean(dim=-1": f"x.mean(dim={dim}",
        "square().mean(dim=-1": f"square().mean(dim={dim}",
    }


MISTAKES = (
    Mistake(
        "input-altered",
        "x is centred in place, so that the caller's numbers change.",
        {"centred = x - mean": "x -= mean\n    centred = x"},
    ),
    Mistake(
        "sample-deviation",
        "The variance is divided by d − 1, the sample's. Layer norm divides by d; torch.var and "
        "torch.std divide by d − 1 unless they are told otherwise.",
        {VARIANCE: "x.var(dim=-1, keepdim=True)"},
        also=(
            {DEVIATION: "x.std(dim=-1, keepdim=True) + eps"},
            {DEVIATION: "x.std(dim=-1, keepdim=True)"},
        ),
    ),
    Mistake(
        "variance-for-deviation",
        "It is divided by the variance. The root of it has the unit of x, so that 10 · x gives the "
        "same as x.",
        {DEVIATION: "variance + eps"},
        also=({"variance + eps": "variance.square() + eps"},),
    ),
    Mistake(
        "multiplied",
        "The root is multiplied where it should divide.",
        {NORMAL: "centred * deviation"},
    ),
    Mistake(
        "not-centred",
        "The mean is not taken away: this divides by the root mean square, which is another norm.",
        {"x - mean": "x"},
        also=({NORMAL: "x / deviation"},),
    ),
    Mistake(
        "not-scaled",
        "The tokens are centred and not divided: their variance stays what it was.",
        {NORMAL: "centred"},
    ),
    Mistake(
        "unchanged",
        "The features are not normalised at all; only gain and bias do something.",
        {NORMAL: "x"},
    ),
    Mistake(
        "mean-square-for-variance",
        "The variance is taken of x before it is centred: that is the mean of the squares.",
        {"centred.square()": "x.square()"},
    ),
    Mistake(
        "length-for-deviation",
        "It is divided by the length of the vector, the root of the *sum* of squares. The variance "
        "is their mean.",
        {"square().mean(": "square().sum("},
        also=(
            {DEVIATION: "centred.norm(dim=-1, keepdim=True) + eps"},
            {DEVIATION: "x.norm(dim=-1, keepdim=True) + eps", NORMAL: "x / deviation"},
        ),
    ),
    Mistake(
        "absolute-deviation",
        "The spread is the mean of the absolute distances. The variance is that of the squares.",
        {DEVIATION: "centred.abs().mean(dim=-1, keepdim=True) + eps"},
    ),
    Mistake(
        "range-for-deviation",
        "The features are brought between a smallest and a largest value. Asked for are mean 0 and "
        "variance 1.",
        {DEVIATION: RANGE},
        also=({DEVIATION: RANGE, NORMAL: f"(x - {SMALLEST}) / deviation"},),
    ),
    Mistake(
        "median-for-mean",
        "The median is taken away, not the mean.",
        {NORMAL: "(x - x.median(dim=-1, keepdim=True).values) / deviation"},
    ),
    Mistake(
        "over-tokens",
        "Mean and variance are taken along the sequence. Then a token depends on its neighbours, "
        "the later ones too. Each token has its own, over its features.",
        over("-2"),
        also=(over("1"),),
    ),
    Mistake(
        "over-batch",
        "Mean and variance are taken along the first axis, over the sequences of the batch. That "
        "is batch norm: who else is in the batch would change a sentence.",
        over("0"),
    ),
    Mistake(
        "over-sequence",
        "There is one mean and one variance for a whole sequence, its tokens together. Then a "
        "token depends on the later ones. Each token has its own.",
        over("tuple(range(x.ndim))[-2:]"),
        also=(over("tuple(range(1, x.ndim)) or 0"),),
    ),
    Mistake(
        "over-everything",
        "There is one mean and one variance for all tokens of all sequences together. Each token "
        "has its own.",
        {MEAN: "x.mean()", VARIANCE: "centred.square().mean()"},
    ),
    Mistake(
        "no-keepdim",
        "Mean and variance have lost their last axis, so they do not line up with their tokens: an "
        "error, or, with as many tokens as features, silently another token's.",
        {MEAN: "x.mean(dim=-1)", VARIANCE: "x.var(dim=-1, correction=0)"},
        also=({MEAN: "x.mean(dim=-1)", VARIANCE: "x.var(dim=-1, correction=0, keepdim=True)"},),
    ),
    Mistake(
        "no-gain-and-bias",
        "Neither gain nor bias is used.",
        {RESULT: "normal"},
    ),
    Mistake(
        "no-gain",
        "The gain is not used.",
        {"gain * ": ""},
    ),
    Mistake(
        "no-bias",
        "The bias is not used.",
        {" + bias": ""},
    ),
    Mistake(
        "gain-and-bias-exchanged",
        "Gain and bias are exchanged: the gain multiplies, the bias is added.",
        {RESULT: "bias * normal + gain"},
    ),
    Mistake(
        "bias-scaled",
        "The gain multiplies the bias too. Multiply first, add afterwards.",
        {RESULT: "gain * (normal + bias)"},
    ),
    Mistake(
        "affine-first",
        "Gain and bias are put in before the normalisation, which takes them out again in part.",
        {"mean = x": "x = gain * x + bias\n    mean = x", RESULT: "normal"},
        also=({"mean = x": "x = gain * x\n    mean = x", "gain * ": ""},),
    ),
    Mistake(
        "bias-subtracted",
        "The bias is subtracted.",
        {" + bias": " - bias"},
    ),
    Mistake(
        "gain-divides",
        "The gain divides. It multiplies.",
        {RESULT: "normal / gain + bias"},
    ),
    Mistake(
        "gain-plus-one",
        "One is added to the gain. Some models store it so; here the gain is the whole factor.",
        {"gain * ": "(1 + gain) * "},
    ),
    Mistake(
        "residual",
        "x is added to its own norm. The residual belongs to the block, not to the norm.",
        {"return gain": "return x + gain"},
    ),
    Mistake(
        "epsilon-outside",
        "Epsilon is added to the deviation. It stands under the root, beside the variance: the "
        "same for large features, not for small ones.",
        {DEVIATION: "variance.sqrt() + eps"},
        also=(
            {DEVIATION: "variance.sqrt().clamp(min=eps)"},
            {DEVIATION: "variance.sqrt()", NORMAL: "centred / deviation + eps"},
        ),
    ),
    Mistake(
        "epsilon-squared",
        "Epsilon is squared before it is added, or its root is taken.",
        {"+ eps": "+ eps * eps"},
        also=({"+ eps": "+ eps**0.5"},),
    ),
    Mistake(
        "no-epsilon",
        "Epsilon is missing. A token whose features are all alike is then divided by zero.",
        {" + eps": ""},
    ),
    Mistake(
        "epsilon-subtracted",
        "Epsilon is subtracted. It is there so that the root is never of zero, let alone less.",
        {"+ eps": "- eps"},
    ),
    Mistake(
        "epsilon-fixed",
        "Epsilon is a number of its own. It is an argument, whose default is 1e-5.",
        {"+ eps": "+ 1e-5"},
        also=tuple({"+ eps": f"+ {other}"} for other in (1e-6, 1e-8, 1e-12, 1e-3)),
    ),
    Mistake(
        "no-gradient",
        "No gradient comes through: it is computed under no_grad, with .data, .item() or numpy.",
        {RESULT: f"({RESULT}).detach()"},
    ),
    Mistake(
        "statistics-detached",
        "The gradient does not go through mean and variance. They depend on x as well.",
        {MEAN: f"{MEAN}.detach()", VARIANCE: f"{VARIANCE}.detach()"},
        also=(
            {MEAN: f"{MEAN}.detach()"},
            {VARIANCE: f"{VARIANCE}.detach()"},
        ),
    ),
    Mistake(
        "normalised-twice",
        "The result is normalised a second time, after gain and bias.",
        {RESULT: AGAIN.format(RESULT)},
        also=({RESULT: RESULT.replace("normal", AGAIN.format("normal"))},),
    ),
    Mistake(
        "softmax",
        "The features go through a softmax: positive numbers with the sum 1. Asked for are mean 0 "
        "and variance 1.",
        {NORMAL: "x.softmax(dim=-1)"},
    ),
)
