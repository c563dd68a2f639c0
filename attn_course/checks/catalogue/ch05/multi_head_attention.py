"""Exercise 5.3, MultiHeadAttention: its stages."""

from attn_course.checks import ready_made
from attn_course.checks.catalogue.ch05 import multi_head_probes as probes
from attn_course.checks.catalogue.ch05.multi_head_by_hand import ROLES, ManyHeads
from attn_course.checks.catalogue.ch05.multi_head_mistakes import MISTAKES
from attn_course.checks.exercise import Exercise, Output, Stage
from attn_course.checks.gradients import LOST_GRADIENT, gradient_of
from attn_course.checks.modules import named_shapes
from attn_course.checks.refusals import refusal_stages
from attn_course.multihead import MultiHeadAttention
from attn_course.sentences import say

EXERCISE = Exercise(
    number="5.3",
    reference=MultiHeadAttention,
    right=ManyHeads,
    wire="class",
    outputs=probes.ATTENDED,
    difficulty=3,
    minutes=35,
    points=6,
    may_use="torch, einops, and your own or the course's functions, but no nn.MultiheadAttention",
    rules_out=ready_made.MULTI_HEAD,
    stages=(
        Stage(
            "parts",
            probes.draw_sizes,
            "A new layer should have four projections and nothing else that is learnt: W_q, W_k, "
            "W_v and W_o, each nn.Linear(d_model, d_model), set in __init__ as self.W_q, …",
            call=named_shapes,
            outputs=(Output(say("the layer's parameters")),),
            inputs=("d_model", "num_heads"),
            diagnose=probes.read_parts,
        ),
        Stage(
            "repeated calls",
            probes.draw_repeated,
            "Two calls with the same input should agree, and depend on the layer's weights.",
            call=probes.repeated,
            outputs=(
                Output(say("two calls agree in training")),
                Output(say("two calls agree in evaluation")),
                Output(say("other weights, other output")),
            ),
        ),
        Stage(
            "one head",
            probes.draw_one_head,
            "A single head should be attention between the projections: W_o(attention(W_q query, "
            "W_k key, W_v value)).",
            call=probes.attend,
            diagnose=probes.read_attention,
        ),
        Stage(
            "heads",
            probes.draw_heads,
            "One head is right, several are not: each should attend with its own d_model / "
            "num_heads features.",
            call=probes.attend,
        ),
        Stage(
            "equal sizes",
            probes.draw_equal_sizes,
            "Here some sizes agree, or all inputs do, and the result differs.",
            call=probes.attend,
        ),
        Stage(
            "mask",
            probes.draw_masked,
            "With a mask the result differs; without one it is right. A mask is (i, j), (b, i, j) "
            "or (b, h, i, j), sizes of 1 standing for all.",
            call=probes.attend_masked,
        ),
        Stage(
            "after a mask",
            probes.draw_after_a_mask,
            "A call without a mask, after one with, differs.",
            call=probes.attend_after_a_mask,
        ),
        Stage(
            "empty rows",
            probes.draw_empty_rows,
            "A query that may attend to nothing should get weights of zero, and as its output "
            "W_o's bias.",
            call=probes.attend_masked,
        ),
        Stage(
            "gradients",
            probes.draw_gradients,
            LOST_GRADIENT,
            call=probes.gradients,
            outputs=(
                *(gradient_of(name, "b n d") for name in ("query", "key", "value")),
                *(gradient_of(f"{role}.weight") for role in ROLES),
                gradient_of("W_o.bias"),
            ),
        ),
        *refusal_stages(
            "uneven",
            probes.draw_uneven,
            "A d_model that num_heads does not divide is a ValueError, raised when the layer is "
            "made, with both numbers.",
            inputs=("d_model", "num_heads"),
            numbers=lambda d_model, num_heads: (d_model, num_heads),
        ),
        Stage(
            "half precision",
            probes.draw_half,
            "In float16 the score of a hidden key must be a number that float16 can hold; minus "
            "infinity fits every dtype.",
            call=probes.attend_masked,
            remark=True,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Five steps: project, split, attend, merge, project. Four of them are functions that you "
        "have; the attention works on the last two axes and lets (b, h) be.",
        "__init__ makes four nn.Linear(d_model, d_model) and keeps num_heads. forward gives each "
        "of query, key and value to its own projection, all of it, and splits afterwards.",
        "A mask (i, j) gets two axes in front, (b, i, j) one behind b: the course's lift_mask does "
        "both. Then scaled_dot_product_attention(q, k, v, mask), and "
        "self.W_o(merge_heads(output)).",
    ),
)
