"""Known-wrong versions of exercise 4.1, SelfAttention."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import torch
from torch import Tensor, nn

from attn_course.checks.catalogue.families.gradient import detached
from attn_course.checks.catalogue.families.mask import MASK, filled_with, no_softmax
from attn_course.checks.catalogue.families.result import RESULT, RETURN
from attn_course.checks.catalogue.families.scale import SCALE
from attn_course.checks.catalogue.families.softmax import SOFTMAX, over
from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake
from attn_course.checks.modules import of_repeated_calls

ROLES = ("W_q", "W_k", "W_v")


class OneHead(nn.Module):
    """Self-attention by hand."""

    def __init__(self, d_model: int, d_k: int) -> None:
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_v = nn.Linear(d_model, d_k, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Any:
        """The pair (output, weights)."""
        query = self.W_q(x)
        key = self.W_k(x)
        value = self.W_v(x)
        scores = query / sqrt(query.shape[-1]) @ key.mT
        hidden = torch.zeros_like(scores, dtype=torch.bool) if mask is None else ~mask
        empty = hidden.all(dim=-1, keepdim=True)
        scores = scores.masked_fill(hidden & ~empty, -inf)
        weights = scores.softmax(dim=-1).masked_fill(empty, 0.0)
        output = weights @ value
        return output, weights


MADE = {role: f"self.{role} = nn.Linear(d_model, d_k, bias=False)" for role in ROLES}


def made(part: str) -> Edits:
    """Each projection is made like this."""
    return {line: f"self.{role} = {part}" for role, line in MADE.items()}


def made_alone(line: str) -> Edits:
    """This is made in the place of three projections."""
    return {MADE["W_q"]: line, MADE["W_k"]: "", MADE["W_v"]: ""}


def called(projection: str) -> Edits:
    """Each projection is used like this."""
    return {f"self.{role}(x)": projection.format(role=role) for role in ROLES}


WITH_OUTPUT_PROJECTION = """super().__init__()
        self.W_o = nn.Linear(d_k, d_model, bias=False)"""
ALWAYS_CAUSAL = """hidden = hidden | torch.ones_like(scores, dtype=torch.bool).triu(1)
        empty = hidden"""
ANEW = "nn.Linear(x.shape[-1], self.W_q.out_features, bias=False).to(x.dtype)"

OF_D_MODEL = {"query.shape[-1]": "x.shape[-1]"}
OF_AXIS_1 = SCALE.edits("scale-axis-counted-from-left")

MISTAKES = (
    Mistake(
        "bias",
        "The projections have biases. nn.Linear has one unless it is told otherwise; here none is "
        "asked for, so that x W_q is all there is.",
        made("nn.Linear(d_model, d_k)"),
    ),
    Mistake(
        "output-projection",
        "There is a fourth projection. W_o comes with several heads, in chapter 05.",
        {"super().__init__()": WITH_OUTPUT_PROJECTION},
    ),
    Mistake(
        "sizes-exchanged",
        "The projections go from d_k to d_model. nn.Linear takes the size that comes in first, "
        "then the one that goes out.",
        made("nn.Linear(d_k, d_model, bias=False)"),
    ),
    Mistake(
        "square-projections",
        "The projections lead back to d_model features. They should lead to d_k.",
        made("nn.Linear(d_model, d_model, bias=False)"),
    ),
    Mistake(
        "one-projection",
        "There is only one projection for all three roles. A token's question, what it is found "
        "by and what it gives are three things.",
        made_alone("self.W_q = nn.Linear(d_model, d_k, bias=False)"),
        also=({MADE["W_k"]: "self.W_k = self.W_q", MADE["W_v"]: "self.W_v = self.W_q"},),
    ),
    Mistake(
        "in-a-list",
        "The layer has no parameters: a plain Python list or dict hides its modules from "
        "nn.Module, so that they are neither trained nor saved. Set them as self.W_q, …",
        made_alone("self.projections = [nn.Linear(d_model, d_k, bias=False) for _ in ROLES]"),
    ),
    Mistake(
        "fused",
        "One projection makes all three at once. That computes the same, but here weights are "
        "exchanged by role: self.W_q, self.W_k, self.W_v.",
        made_alone("self.W_qkv = nn.Linear(d_model, 3 * d_k, bias=False)"),
    ),
    Mistake(
        "bare-parameters",
        "The weights are bare parameters. Asked for are three nn.Linear, which store theirs as "
        "(d_k, d_model).",
        made("nn.Parameter(torch.randn(d_model, d_k) / sqrt(d_model))"),
        also=(made("nn.Parameter(torch.randn(d_k, d_model) / sqrt(d_model))"),),
    ),
    Mistake(
        "weight-not-transposed",
        "x is multiplied by W.weight as nn.Linear stores it, (d_k, d_model). Call the projection, "
        "self.W_q(x), or transpose its weight.",
        called("x @ self.{role}.weight"),
    ),
    Mistake(
        "query-and-key-exchanged",
        "Queries are made with W_k, and keys with W_q. The scores are transposed then: row i "
        "should hold what token i asks of all others.",
        {"self.W_q(x)": "self.W_k(x)", "self.W_k(x)": "self.W_q(x)"},
    ),
    Mistake(
        "key-from-query",
        "The keys are made with W_q: a line copied and not changed? Scores are symmetric then.",
        {"self.W_k(x)": "self.W_q(x)"},
    ),
    Mistake(
        "query-from-key",
        "The queries are made with W_k: a line copied and not changed? Scores are symmetric then.",
        {"self.W_q(x)": "self.W_k(x)"},
    ),
    Mistake(
        "value-from-key",
        "The values are made with W_k, and W_v is not used.",
        {"self.W_v(x)": "self.W_k(x)"},
    ),
    Mistake(
        "value-from-query",
        "The values are made with W_q, and W_v is not used.",
        {"self.W_v(x)": "self.W_q(x)"},
    ),
    Mistake(
        "key-and-value-exchanged",
        "Keys are made with W_v, and values with W_k.",
        {"self.W_k(x)": "self.W_v(x)", "self.W_v(x)": "self.W_k(x)"},
    ),
    Mistake(
        "values-not-projected",
        "The values are the tokens themselves: W_v is not used.",
        {"self.W_v(x)": "x"},
    ),
    Mistake(
        "not-projected",
        "Queries and keys are the tokens themselves: W_q and W_k are not used.",
        {"self.W_q(x)": "x", "self.W_k(x)": "x"},
    ),
    Mistake(
        "chained",
        "Each projection starts from the result of the one before. All three start from x.",
        {"self.W_k(x)": "self.W_k(query)", "self.W_v(x)": "self.W_v(key)"},
    ),
    SCALE.told(
        "no-scale",
        "The scores are not divided by √d_k.",
    ),
    SCALE.told(
        "scale-of-d-k",
        "The scores are divided by d_k. It should be its root.",
        like="scale-by-d",
    ),
    Mistake(
        "scale-of-d-model",
        "The scores are divided by the root of d_model. A query has d_k numbers, and it is the "
        "root of their number.",
        OF_D_MODEL,
        also=({**OF_D_MODEL, **filled_with("-inf")}, {**OF_D_MODEL, **filled_with("-1e9")}),
    ),
    Mistake(
        "softmax-axis-counted-from-left",
        "The axis of the softmax is counted from the left, so that it is that of the keys for some "
        "shapes only. The last axis is -1, whatever stands before it.",
        over("2"),
        also=(
            over("1"),
            {**over("2"), **filled_with("-1e9")},
            {**over("1"), **filled_with("-1e9")},
            # an error, so that nothing tells of the other mistake in it
            {**over("2"), **filled_with("-inf")},
        ),
    ),
    Mistake(
        "scale-axis-counted-from-left",
        "The scores are divided by the root of a size whose axis is counted from the left, so "
        "that it is d_k for some shapes only. The last axis is -1, whatever stands before it.",
        OF_AXIS_1,
        also=({**OF_AXIS_1, **filled_with("-1e9")},),
    ),
    SCALE.told(
        "scale-of-the-length",
        "The scores are divided by the root of the number of tokens. It should be the root of d_k, "
        "the size of a query.",
        like="scale-by-keys",
    ),
    SOFTMAX.told(
        "softmax-over-queries",
        "The softmax runs over the queries: columns of the weights sum to one, not rows. Each "
        "query should share out one whole among the keys.",
    ),
    Mistake(
        "no-softmax", "The values are weighted by bare scores: there is no softmax.", no_softmax()
    ),
    MASK.told(
        "mask-ignored",
        "The mask changes nothing. Does forward hand it on, that of this call and no earlier one?",
    ),
    MASK.told(
        "mask-inverted",
        "The mask works the other way round: True means “may attend”.",
    ),
    Mistake(
        "always-causal",
        "The future is hidden without being asked: without a mask, every token sees all others.",
        {"empty = hidden": ALWAYS_CAUSAL},
    ),
    MASK.told(
        "fill-zero",
        "Hidden scores are set to 0, and a key with score 0 still gets weight.",
        like="mask-filled-with-zero",
    ),
    MASK.told(
        "mask-added",
        "The mask is added to the scores as 0 and 1: hidden keys are only 1 behind.",
    ),
    MASK.told(
        "mask-after-softmax",
        "Hidden weights are set to 0 after the softmax: the others no longer sum to one.",
        like="mask-multiplied-after",
    ),
    MASK["mask-renormalised"],
    MASK.told(
        "empty-row-nan",
        "A query that may attend to nothing gives NaN: a softmax over nothing but minus infinity. "
        "Here it should give zeros.",
    ),
    MASK.told(
        "empty-row-mean",
        "A query that may attend to nothing gets the mean of all values, those that it may not "
        "see. Here it should get zeros.",
    ),
    Mistake(
        "gradient-nan",
        "The output is clean, but where a query may attend to nothing the gradient is NaN: NaN "
        "arose inside and was replaced only at the end. It must not arise.",
        {**filled_with("-inf"), RETURN: "return output.nan_to_num(), weights.nan_to_num()"},
        also=(MASK.edits("gradient-nan"),),
    ),
    Mistake(
        "residual",
        "The tokens themselves are added to the output. That residual comes in chapter 07, outside "
        "of attention.",
        {"weights @ value": "weights @ value + value"},
    ),
    RESULT["output-only"],
    RESULT.told(
        "pair-exchanged",
        "The pair is (weights, output). Asked for is (output, weights).",
        like="result-exchanged",
    ),
    Mistake(
        "no-gradient",
        "No gradient reaches the weights: forward runs under no_grad, or detaches, so nothing of "
        "it would be trained.",
        detached("output", "weights"),
        also=(called("x @ self.{role}.weight.data.T"),),
    ),
    *of_repeated_calls(
        dropping=(
            {"weights @ value": "nn.functional.dropout(weights @ value, 0.1, self.training)"},
        ),
        made_anew=(called(f"{ANEW}(x)"), {"self.W_k(x)": f"{ANEW}(x)"}),
    ),
)
