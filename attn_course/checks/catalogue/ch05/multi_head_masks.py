"""Mistakes of exercise 5.3, MultiHeadAttention, in its masks and in what it returns."""

from __future__ import annotations

from attn_course.checks.catalogue.ch05.multi_head_by_hand import (
    COURSES_ATTENTION,
    MERGED,
    RETURNED,
    called,
    lifted,
)
from attn_course.checks.catalogue.ch05.multi_head_probes import OTHER_WEIGHTS
from attn_course.checks.catalogue.families.gradient import GRADIENT
from attn_course.checks.catalogue.families.mask import FILLED, MASK, filled_with
from attn_course.checks.catalogue.families.result import RETURN
from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake

TILED = """mask = lift_mask(mask)
            if mask.shape[:2] == (len(query), 1):
                mask = mask[:, 0].repeat(self.num_heads, 1, 1)
                mask = mask.unflatten(0, (len(query), self.num_heads))"""
KEPT = """if mask is None:
            mask = getattr(self, "kept", None)
        self.kept = mask
        if mask is not None"""
ALWAYS_CAUSAL = """past = max(key.shape[-2] - query.shape[-2], 0)
        hidden = hidden | torch.ones_like(scores, dtype=torch.bool).triu(past + 1)
        empty = hidden"""
TEXTBOOKS = "x.transpose(1, 2).contiguous().view(len(x), -1, self.num_heads * x.shape[-1])"
AXES_IN_FRONT = "mask.reshape((1,) * (4 - mask.ndim) + mask.shape)"
SEES_NOTHING = "~weights.any(dim=-1).any(dim=1)[..., None]"


def hidden_by(fill: str) -> Edits:
    """Hidden keys get this score; a query that may attend to nothing gets zeros."""
    return {FILLED: f"scores.masked_fill(hidden, {fill})"}


def returning(weights: str) -> Edits:
    """This is returned in the place of the weights."""
    return {RETURN: f"return output, {weights}"}


OF_MASKS = (
    MASK.told(
        "mask-ignored",
        "The mask changes nothing. Is it handed on?",
    ),
    MASK.told(
        "mask-inverted",
        "The mask works the other way round. Here True means “may attend”; the masks of "
        "nn.MultiheadAttention say the opposite.",
        also=(lifted("lift_mask(~mask)"),),
    ),
    Mistake(
        "mask-of-heads",
        "A mask (b, i, j) is laid against scores (b, h, i, j) as it is, so that sequence m's mask "
        "hides keys from head m. Where b and h agree nothing tells. It needs an axis for the heads "
        "behind the one of the batch.",
        {"mask = lift_mask(mask)": "pass", **filled_with("-inf")},
        also=(lifted("mask"), {**lifted(AXES_IN_FRONT), **COURSES_ATTENTION}),
    ),
    Mistake(
        "mask-tiled",
        "Sequences are hidden by each other's masks: sequences and heads are one axis, b times h, "
        "and the masks stand on it in another order than the heads. All heads of a sequence come "
        "first, then those of the next (repeat_interleave, not repeat).",
        {"mask = lift_mask(mask)": TILED},
    ),
    Mistake(
        "mask-unsqueezed",
        "Every mask gets an axis of size 1 in the second place. That suits (b, i, j) alone: a mask "
        "(i, j) becomes (i, 1, j), and one with four axes gets five.",
        {**lifted("mask.unsqueeze(1)"), **filled_with("-1e9"), MERGED: TEXTBOOKS},
        also=({**lifted("mask.unsqueeze(1)"), **filled_with("-inf")},),
    ),
    Mistake(
        "always-causal",
        "The future is hidden without being asked: without a mask every query sees all keys.",
        {"empty = hidden": ALWAYS_CAUSAL},
    ),
    Mistake(
        "mask-kept",
        "A mask given in one call is still at work in the next, which gives none.",
        {"if mask is not None": KEPT},
    ),
    MASK.told(
        "mask-added",
        "The mask is added to the scores as ones and zeros: what is open gets a little more, what "
        "is hidden keeps its weight. To be added, it must be 0 and minus infinity.",
    ),
    MASK.told(
        "fill-zero",
        "Hidden scores are set to 0, and a key with score 0 still gets weight.",
        like="mask-filled-with-zero",
        also=(filled_with("1e-9"), filled_with("-1e-9")),
    ),
    Mistake(
        "fill-too-small",
        "Hidden keys get a score that is only somewhat low; beside lower ones it wins.",
        hidden_by("-100.0"),
        also=(hidden_by("-10.0"), hidden_by("-1000.0")),
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
        "Here its weights should be zeros.",
    ),
    MASK.told(
        "empty-row-mean",
        "A query that may attend to nothing gets the mean of all values, those that it may not "
        "see. Here its weights should be zeros, and its output is W_o's bias alone.",
    ),
    MASK.told(
        "empty-row-gradient",
        "NaN is cleared from the result, but it was there: through a softmax over nothing but "
        "minus infinity the gradient is NaN, and so are the weights after one step.",
        like="gradient-nan",
    ),
    Mistake(
        "empty-row-output-cleared",
        "For a query that may attend to nothing the output is cleared after W_o. What W_o is given "
        "there is zeros; its bias stays.",
        called(f"{{W}}({{x}}).masked_fill({SEES_NOTHING}, 0.0)", "W_o"),
    ),
)

OF_RESULTS = (
    Mistake(
        "output-only",
        "Only the output comes back. Asked for is the pair (output, weights).",
        {RETURNED: "return self.W_o(self.merge(output))"},
    ),
    Mistake(
        "no-weights",
        "In place of the weights there is None: PyTorch's fused kernel does not have them. Asked "
        "for are those of each head.",
        {RETURNED: "return self.W_o(self.merge(output)), None"},
    ),
    Mistake(
        "pair-exchanged",
        "The pair is (weights, output). Asked for is (output, weights).",
        {RETURNED: "return weights, self.W_o(self.merge(output))"},
    ),
    Mistake(
        "other-weights",
        OTHER_WEIGHTS,
        examples=(
            returning("query @ key.mT / sqrt(query.shape[-1])"),
            returning("weights.softmax(dim=-1)"),
            returning("weights.log()"),
        ),
    ),
    Mistake(
        "no-gradient",
        "No gradient reaches the weights: forward runs under no_grad, or detaches, so nothing of "
        "it would be trained.",
        {RETURNED: "return self.W_o(self.merge(output)).detach(), weights.detach()"},
    ),
    GRADIENT.told(
        "weights-detached",
        "The attention weights are detached before the values are summed: W_q and W_k get no "
        "gradient from the output and are never trained.",
    ),
)
