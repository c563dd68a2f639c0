"""Exercise 3.2, scaled_dot_product_attention: its stages."""

from attn_course.attention import scaled_dot_product_attention
from attn_course.checks import ready_made
from attn_course.checks.catalogue.ch03 import attention_probes as probes
from attn_course.checks.catalogue.ch03.attention_mistakes import MISTAKES
from attn_course.checks.exercise import Exercise, Stage

EXERCISE = Exercise(
    number="3.2",
    reference=scaled_dot_product_attention,
    outputs=probes.ATTENDED,
    difficulty=2,
    minutes=20,
    points=4,
    may_use="torch and einops, but no ready-made attention",
    rules_out=ready_made.ATTENTION,
    stages=(
        Stage(
            "values",
            probes.draw_values,
            "All keys are equal here, so each query should get the plain mean of the values.",
            diagnose=probes.read_dropout,
        ),
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
        Stage(
            "mask", probes.draw_masked, "With a mask, the result differs; without one it is right."
        ),
        Stage("causal mask", probes.draw_causal, "Under a causal mask the result differs."),
        Stage(
            "mask with leading axes",
            probes.draw_leading_axes,
            "The mask has as many axes as the scores here, each of full size or 1, or is (i, j) "
            "beside batch and heads, and the result differs; for one batch axis and (i, j) it is "
            "right.",
        ),
        Stage("leak", probes.draw_poisoned, "Values behind the mask reach the output."),
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
        Stage("large scores", probes.draw_large, "Scores in the thousands break it."),
        Stage(
            "half precision",
            probes.draw_half,
            "In float16 the product q · k overflows before it is divided; dividing q first helps.",
            remark=True,
        ),
        Stage(
            "half precision mask",
            probes.draw_half_masked,
            "In float16 the score of a hidden key must be a number that float16 can hold; minus "
            "infinity fits every dtype.",
            remark=True,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Three steps: a score for each pair (i, j), weights over j, a sum over j.",
        "Divide by the root of the size of query's last axis. A hidden score must be one "
        "whose exponential is 0.",
        "A row of nothing but minus infinity is NaN after the softmax, and its gradient too. "
        "Give such a row any finite scores before the softmax and zero weights after it.",
    ),
)
