"""Exercise 3.4, repaired_attention: a faulty version is to be mended, one fault after another.

Each stage shows one of its faults and is blind to those that the later stages show, so that
the check can name them in turn, in whatever order they are mended.
"""

from attn_course.attention import scaled_dot_product_attention
from attn_course.checks import ready_made
from attn_course.checks.catalogue.ch03 import attention_probes as probes
from attn_course.checks.catalogue.ch03.attention_mistakes import MISTAKES
from attn_course.checks.exercise import Exercise, Stage

EXERCISE = Exercise(
    number="3.4",
    reference=scaled_dot_product_attention,
    alias="repaired_attention",
    outputs=probes.ATTENDED,
    difficulty=3,
    minutes=25,
    points=6,
    may_use="torch and einops, but no ready-made attention",
    rules_out=ready_made.ATTENTION,
    stages=(
        Stage(
            "inputs left alone",
            probes.draw_one_key,
            "There is one key here: it gets the weight 1, and its value is the output.",
            diagnose=probes.read_dropout,
        ),
        Stage(
            "softmax axis",
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
        Stage("large scores", probes.draw_large, "Scores in the thousands break it."),
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
        Stage(
            "half precision",
            probes.draw_half,
            "In float16 the product q · k overflows before it is divided; dividing q first helps.",
            remark=True,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Run the check, read which fault it names, change that line, run it again. Each message "
        "has the smallest numbers that show the fault: work them through by hand.",
        "Look for: a line that writes into the caller's tensor; a size taken from the wrong "
        "tensor; an axis counted from the left; a mask read the other way round; an exponential "
        "of a number that nothing bounds; a row that may attend to nothing.",
        "`query = query / …` makes a new tensor. `scores.softmax(dim=-1)` takes the largest "
        "score off first. For the empty rows compute `~mask.any(dim=-1, keepdim=True)`, give "
        "them finite scores before the softmax and zero weights after it.",
    ),
)
