"""Exercise 3.5, repaired_attention: a faulty version is to be mended, one fault after another.

Each stage shows one of its faults and is blind to those that the later stages show, so that
the check can name them in turn, in whatever order they are mended.
"""

from dataclasses import replace

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
    number="3.5",
    reference=scaled_dot_product_attention,
    right=attention,
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
        replace(VALUES, name="softmax axis"),
        *SCORES_AND_MASKS,
        LARGE,
        *NOTHING_OPEN,
        HALF,
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
