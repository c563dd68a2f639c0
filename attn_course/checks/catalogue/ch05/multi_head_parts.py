"""Mistakes of exercise 5.3, MultiHeadAttention, in what the layer is made of."""

from __future__ import annotations

from attn_course.checks.catalogue.ch05.multi_head_by_hand import (
    Q_K_V,
    ROLES,
    called,
    made,
    made_besides,
    made_instead,
    renamed,
)
from attn_course.checks.catalogue.families.refusal import asserted
from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake

UNBIASED = "nn.Linear(d_model, d_model, bias=False)"
NARROW = "nn.Linear(d_model, d_model // num_heads)"
OF_A_HEAD = "nn.Linear(d_model // num_heads, d_model // num_heads)"
ONE_A_HEAD = f"nn.ModuleList({NARROW} for _ in range(num_heads))"
TORCHS = "nn.MultiheadAttention(d_model, num_heads"


def dropping(how: str) -> Edits:
    """A part of the weights is dropped."""
    return {"weights @ value": f"nn.functional.dropout(weights, {how}) @ value"}


OF_PARTS = (
    Mistake(
        "no-bias",
        "Not every projection has a bias. nn.Linear has one unless it is told otherwise, and "
        "nn.MultiheadAttention has them, so they are asked for here: in all four.",
        made(UNBIASED, *ROLES),
        also=(made(UNBIASED, *Q_K_V), made(UNBIASED, "W_o")),
    ),
    Mistake(
        "no-output-projection",
        "There are only three projections: W_o, which mixes the heads, is missing.",
        made_instead("", "W_o"),
    ),
    Mistake(
        "one-head-wide",
        "The projections lead to d_model / num_heads features. They hold the matrices of all heads "
        "side by side: d_model features, of which each head gets its part.",
        made(NARROW, *Q_K_V),
        also=(
            {**made(NARROW, *Q_K_V), **made("nn.Linear(d_model // num_heads, d_model)", "W_o")},
            made(NARROW, *ROLES),
        ),
    ),
    Mistake(
        "split-before-projecting",
        "The projections are as narrow as a head on both sides: x is cut first and projected "
        "then. So a head sees a part of each token only. Project all of x, then split.",
        made(OF_A_HEAD, *Q_K_V),
        also=(made(OF_A_HEAD, *ROLES),),
    ),
    Mistake(
        "all-features-for-each-head",
        "Each head gets d_model features of its own, so there are num_heads times as many weights. "
        "Here the heads share d_model among them.",
        {
            **made("nn.Linear(d_model, d_model * num_heads)", *Q_K_V),
            **made("nn.Linear(d_model * num_heads, d_model)", "W_o"),
        },
    ),
    Mistake(
        "one-module-a-head",
        "Each head has projections of its own. That computes the same; but here weights are "
        "exchanged by role, so W_q, W_k and W_v are one nn.Linear each, for all heads.",
        made(ONE_A_HEAD, *Q_K_V),
    ),
    Mistake(
        "fused",
        "One projection makes queries, keys and values at once. That computes the same, but here "
        "weights are exchanged by role: self.W_q, self.W_k, self.W_v, self.W_o.",
        made_instead("self.W_qkv = nn.Linear(d_model, 3 * d_model)", *Q_K_V),
    ),
    Mistake(
        "one-projection",
        "There is only one projection for queries, keys and values. A token's question, what it "
        "is found by and what it gives are three things.",
        made_instead("", "W_k", "W_v"),
    ),
    Mistake(
        "in-a-list",
        "The layer has no parameters: a plain Python list or dict hides its modules from "
        "nn.Module, so that they are neither trained nor saved. Set them as self.W_q, …",
        made_instead("self.projections = [nn.Linear(d_model, d_model) for _ in range(4)]", *ROLES),
    ),
    Mistake(
        "bare-parameters",
        "The weights are bare parameters. Asked for are four nn.Linear, which store their weight "
        "as (out, in), and a bias.",
        made("nn.Parameter(torch.randn(d_model, d_model) / sqrt(d_model))", *ROLES),
    ),
    Mistake(
        "torchs-own",
        "This wraps nn.MultiheadAttention. Here you write it: four nn.Linear, and what happens "
        "between them.",
        made_instead(f"self.attention = {TORCHS}, batch_first=True)", *ROLES),
        also=(made_instead(f"self.attention = {TORCHS})", *ROLES),),
    ),
    Mistake(
        "uneven-allowed",
        "A d_model that num_heads does not divide is accepted. Then features are lost, or an error "
        "comes late and speaks of shapes. Raise a ValueError with both numbers in __init__.",
        {"d_model % num_heads != 0": "False"},
    ),
    asserted("Where num_heads does not divide d_model an assert fails."),
    Mistake(
        "extra-parts",
        "Besides the four projections something else is learnt. A second projection behind W_q, "
        "for each head or for all, would be two linear maps in a row, which are one.",
        examples=(
            made_besides(f"self.per_head = {ONE_A_HEAD}"),
            made_besides("self.again = nn.Linear(d_model, d_model)"),
            made_besides("self.norm = nn.LayerNorm(d_model)"),
        ),
    ),
    Mistake(
        "other-names",
        "The projections have other names than asked for. The check copies its weights in by "
        "name: self.W_q, self.W_k, self.W_v, self.W_o.",
        examples=(renamed("query", "key", "value", "out"), renamed("w_q", "w_k", "w_v", "w_o")),
    ),
)

OF_CHANCE = (
    Mistake(
        "dropout",
        "Two calls with the same input differ in training mode: there is a dropout, which is not "
        "asked for here. (With one, a test compares in eval mode, or with p = 0.)",
        dropping("0.1, self.training"),
        also=(dropping("0.5, self.training"), dropping("0.2, self.training")),
    ),
    Mistake(
        "dropout-in-evaluation",
        "Two calls with the same input differ, in eval mode too: F.dropout drops wherever it is "
        "called, unless it is told `training=self.training`. And none is asked for here.",
        dropping("0.1"),
        also=(dropping("0.5"),),
    ),
    Mistake(
        "made-in-forward",
        "New projections are drawn at each call, and those of __init__ are not used. What is made "
        "in forward is never trained.",
        called("nn.Linear(*{W}.weight.shape).to(query.dtype)({x})", *ROLES),
    ),
)
