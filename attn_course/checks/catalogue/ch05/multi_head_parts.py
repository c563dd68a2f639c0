"""Mistakes of exercise 5.3, MultiHeadAttention, in what the layer is made of."""

from __future__ import annotations

from math import sqrt

import torch
from torch import nn

from attn_course.checks.catalogue.ch05 import multi_head_versions as v
from attn_course.checks.exercise import Mistake

Q_K_V = ("W_q", "W_k", "W_v")

OF_PARTS = (
    Mistake(
        "no-bias",
        "Not every projection has a bias. nn.Linear has one unless it is told otherwise, and "
        "nn.MultiheadAttention has them, so they are asked for here: in all four.",
        v.with_parts(**dict.fromkeys(v.ROLES, v.unbiased)),
        also=(
            v.with_parts(**dict.fromkeys(Q_K_V, v.unbiased), W_o=v.linear),
            v.with_parts(**dict.fromkeys(Q_K_V, v.linear), W_o=v.unbiased),
        ),
    ),
    Mistake(
        "no-output-projection",
        "There are only three projections: W_o, which mixes the heads, is missing.",
        v.with_parts(**dict.fromkeys(Q_K_V, v.linear)),
    ),
    Mistake(
        "one-head-wide",
        "The projections lead to d_model / num_heads features. They hold the matrices of all heads "
        "side by side: d_model features, of which each head gets its part.",
        v.with_parts(**dict.fromkeys(Q_K_V, v.narrow), W_o=v.linear),
        also=(
            v.with_parts(
                **dict.fromkeys(Q_K_V, v.narrow),
                W_o=lambda d, h: nn.Linear(d // h, d),
            ),
            v.with_parts(**dict.fromkeys(v.ROLES, v.narrow)),
        ),
    ),
    Mistake(
        "split-before-projecting",
        "The projections are as narrow as a head on both sides: x is cut first and projected "
        "then. So a head sees a part of each token only. Project all of x, then split.",
        v.with_parts(**dict.fromkeys(Q_K_V, v.of_a_head), W_o=v.linear),
        also=(v.with_parts(**dict.fromkeys(v.ROLES, v.of_a_head)),),
    ),
    Mistake(
        "all-features-for-each-head",
        "Each head gets d_model features of its own, so there are num_heads times as many weights. "
        "Here the heads share d_model among them.",
        v.with_parts(**dict.fromkeys(Q_K_V, v.whole_a_head), W_o=lambda d, h: nn.Linear(d * h, d)),
    ),
    Mistake(
        "one-module-a-head",
        "Each head has projections of its own. That computes the same; but here weights are "
        "exchanged by role, so W_q, W_k and W_v are one nn.Linear each, for all heads.",
        v.with_parts(**dict.fromkeys(Q_K_V, v.one_a_head), W_o=v.linear),
    ),
    Mistake(
        "fused",
        "One projection makes queries, keys and values at once. That computes the same, but here "
        "weights are exchanged by role: self.W_q, self.W_k, self.W_v, self.W_o.",
        v.with_parts(W_qkv=lambda d, h: nn.Linear(d, 3 * d), W_o=v.linear),
    ),
    Mistake(
        "one-projection",
        "There is only one projection for queries, keys and values. A token's question, what it "
        "is found by and what it gives are three things.",
        v.with_parts(W_q=v.linear, W_o=v.linear),
    ),
    Mistake(
        "in-a-list",
        "The layer has no parameters: a plain Python list or dict hides its modules from "
        "nn.Module, so that they are neither trained nor saved. Set them as self.W_q, …",
        v.with_parts(projections=lambda d, h: [v.linear(d, h) for _ in range(4)]),
    ),
    Mistake(
        "bare-parameters",
        "The weights are bare parameters. Asked for are four nn.Linear, which store their weight "
        "as (out, in), and a bias.",
        v.with_parts(
            **dict.fromkeys(v.ROLES, lambda d, h: nn.Parameter(torch.randn(d, d) / sqrt(d)))
        ),
    ),
    Mistake(
        "torchs-own",
        "This wraps nn.MultiheadAttention. Here you write it: four nn.Linear, and what happens "
        "between them.",
        v.with_parts(attention=lambda d, h: nn.MultiheadAttention(d, h, batch_first=True)),
        also=(v.with_parts(attention=lambda d, h: nn.MultiheadAttention(d, h)),),
    ),
    Mistake(
        "uneven-allowed",
        "A d_model that num_heads does not divide is accepted. Then features are lost, or an error "
        "comes late and speaks of shapes. Raise a ValueError with both numbers in __init__.",
        v.version(v.right, checked=False),
    ),
    Mistake(
        "asserted",
        "Where num_heads does not divide d_model an assert fails. An assert is left out under "
        "`python -O`; a user's mistake is a ValueError with the numbers.",
        v.version(v.right, v.asserting, checked=False),
    ),
    Mistake(
        "extra-parts",
        "Besides the four projections something else is learnt. A second projection behind W_q, "
        "for each head or for all, would be two linear maps in a row, which are one.",
        examples=(
            v.with_parts(**dict.fromkeys(v.ROLES, v.linear), per_head=v.one_a_head),
            v.with_parts(**dict.fromkeys(v.ROLES, v.linear), again=v.linear),
            v.with_parts(**dict.fromkeys(v.ROLES, v.linear), norm=lambda d, h: nn.LayerNorm(d)),
        ),
    ),
    Mistake(
        "other-names",
        "The projections have other names than asked for. The check copies its weights in by "
        "name: self.W_q, self.W_k, self.W_v, self.W_o.",
        examples=(
            v.with_parts(query=v.linear, key=v.linear, value=v.linear, out=v.linear),
            v.with_parts(w_q=v.linear, w_k=v.linear, w_v=v.linear, w_o=v.linear),
        ),
    ),
)

OF_CHANCE = (
    Mistake(
        "dropout",
        "Two calls with the same input differ in training mode: there is a dropout, which is not "
        "asked for here. (With one, a test compares in eval mode, or with p = 0.)",
        v.dropping(0.1),
        also=(v.dropping(0.5), v.dropping(0.2)),
    ),
    Mistake(
        "dropout-in-evaluation",
        "Two calls with the same input differ, in eval mode too: F.dropout drops wherever it is "
        "called, unless it is told `training=self.training`. And none is asked for here.",
        v.dropping(0.1, always=True),
        also=(v.dropping(0.5, always=True),),
    ),
    Mistake(
        "made-in-forward",
        "New projections are drawn at each call, and those of __init__ are not used. What is made "
        "in forward is never trained.",
        v.version(v.made_anew),
    ),
)
