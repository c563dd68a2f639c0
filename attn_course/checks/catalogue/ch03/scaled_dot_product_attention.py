"""Exercise 3.2, scaled_dot_product_attention: its stages."""

from attn_course.attention import scaled_dot_product_attention
from attn_course.checks import ready_made
from attn_course.checks.catalogue.ch03 import attention_probes as probes
from attn_course.checks.catalogue.ch03.attention import (
    HALF,
    LARGE,
    MISTAKES,
    NOTHING_OPEN,
    SCORES_AND_MASKS,
    VALUES,
    attention,
)
from attn_course.checks.exercise import Exercise, Stage

EXERCISE = Exercise(
    number="3.2",
    reference=scaled_dot_product_attention,
    right=attention,
    outputs=probes.ATTENDED,
    difficulty=2,
    minutes=20,
    points=4,
    may_use="torch and einops, but no ready-made attention",
    rules_out=ready_made.ATTENTION,
    stages=(
        VALUES,
        *SCORES_AND_MASKS,
        Stage("leak", probes.draw_poisoned, "Values behind the mask reach the output."),
        *NOTHING_OPEN,
        LARGE,
        HALF,
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
