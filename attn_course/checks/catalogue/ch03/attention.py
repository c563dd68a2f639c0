"""What exercises 3.2 and 3.5 have in common: a right answer, its mistakes, and most stages."""

from math import inf, sqrt

import torch
from torch import Tensor

from attn_course.checks.catalogue.ch03 import attention_probes as probes
from attn_course.checks.catalogue.families.gradient import GRADIENT
from attn_course.checks.catalogue.families.mask import MASK
from attn_course.checks.catalogue.families.result import RESULT
from attn_course.checks.catalogue.families.scale import SCALE
from attn_course.checks.catalogue.families.softmax import SOFTMAX
from attn_course.checks.exercise import Mistake, Stage


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The right answer that the mistakes edit."""
    scores = query / sqrt(query.shape[-1]) @ key.mT
    hidden = torch.zeros_like(scores, dtype=torch.bool) if mask is None else ~mask
    empty = hidden.all(dim=-1, keepdim=True)
    scores = scores.masked_fill(hidden & ~empty, -inf)
    weights = scores.softmax(dim=-1).masked_fill(empty, 0.0)
    output = weights @ value
    return output, weights


MISTAKES = (
    *SCALE,
    *SOFTMAX.without("no-softmax"),
    *MASK,
    *RESULT.without("output-only"),
    *GRADIENT.without("softmax-detached"),
    Mistake(
        "query-altered",
        "The caller's query is changed in place (`/=` writes into it).",
        {"query / sqrt(query.shape[-1])": "query.div_(sqrt(query.shape[-1]))"},
    ),
)

VALUES = Stage(
    "values",
    probes.draw_values,
    "All keys are equal here, so each query should get the plain mean of the values.",
    diagnose=probes.read_dropout,
)

SCORES_AND_MASKS = (
    Stage(
        "scale",
        probes.draw_thermometer,
        "The scale is not 1/√d_k.",
        diagnose=probes.read_thermometer,
    ),
    Stage("shapes", probes.draw_shapes, "Without a mask, the result differs from the formula."),
    Stage(
        "hidden keys",
        probes.draw_hidden,
        "All scores are equal here: the open keys of a row should share its weight alike, "
        "and the hidden ones get none.",
        diagnose=probes.read_fill,
    ),
    Stage("mask", probes.draw_masked, "With a mask, the result differs; without one it is right."),
    Stage("causal mask", probes.draw_causal, "Under a causal mask the result differs."),
    Stage(
        "mask with leading axes",
        probes.draw_leading_axes,
        "The mask has as many axes as the scores here, each of full size or 1, or is (i, j) "
        "beside batch and heads, and the result differs; for one batch axis and (i, j) it is "
        "right.",
    ),
)

LARGE = Stage("large scores", probes.draw_large, "Scores in the thousands break it.")

NOTHING_OPEN = (
    Stage(
        "far below zero",
        probes.draw_far_below_zero,
        "All open scores lie far below zero here, and the result differs.",
        diagnose=probes.read_far_below_zero,
    ),
    Stage(
        "empty rows",
        probes.draw_empty_rows,
        "A query that may attend to nothing should get zeros, output and weights alike.",
    ),
    Stage(
        "gradients",
        probes.draw_empty_rows,
        "The values are right, but the gradient is not, where a row of the mask is empty.",
        call=probes.gradients,
        outputs=probes.GRADIENTS,
    ),
)

HALF = Stage(
    "half precision",
    probes.draw_half,
    "In float16 the product q · k overflows before it is divided; dividing q first helps.",
    remark=True,
)
