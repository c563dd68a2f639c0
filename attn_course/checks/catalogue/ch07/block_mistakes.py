"""The known mistakes that answers to exercises 7.3 and 7.4 share, as edits of either."""

from __future__ import annotations

import re
from dataclasses import dataclass

from attn_course.checks.catalogue.ch07.block_parts import OTHER_HEADS, OTHER_WIDTH
from attn_course.checks.exercise import Mistake
from attn_course.checks.modules import of_repeated_calls
from attn_course.sentences import Spoken


@dataclass(frozen=True)
class Order:
    """How a right answer puts norm, sublayer and residual together, and edits of that.

    Attributes:
        right: how each step is written, such as "norm(x + step(x))".
        sublayers: what stands for `step`, one step after the other.
    """

    right: str
    sublayers: tuple[str, ...] = ("attend", "self.feed_forward")

    def steps(self, written: str, *numbers: int) -> dict[str, str]:
        """All steps, or those with these numbers, written in another way."""
        numbers = numbers or tuple(range(1, len(self.sublayers) + 1))
        return {self.step(k, self.right): self.step(k, written) for k in numbers}

    def step(self, number: int, written: str) -> str:
        """A step as it stands in the answer, with its own norm and sublayer."""
        with_norm = re.sub(r"\bnorm\b", f"self.norm_{number}", written)
        return re.sub(r"\bstep\b", self.sublayers[number - 1], with_norm)

    def either(self, mistake_id: str, message: Spoken, written: str) -> Mistake:
        """A mistake made in both steps, or in one of them only."""
        one_only = self.steps(written, 1), self.steps(written, 2)
        return Mistake(mistake_id, message, self.steps(written), also=one_only)


def first(statement: str) -> dict[str, str]:
    """A statement before the steps."""
    return {"def attend": f"{statement}\n        def attend"}


# -- pieces of both right answers -------------------------------------------------------------

ATTENTION = "MultiHeadAttention(d_model, num_heads)"
GIVEN = "x, x, x, mask"
ATTENDED = f"self.self_attention({GIVEN})[0]"
RETURN = "return x"

OTHER_SEQUENCES = {"return self": "x = x.transpose(0, 1)\n            return self"}


def common(order: Order, without: str) -> tuple[Mistake, ...]:
    """The mistakes that answers of both orders can have.

    Args:
        order: that of the right answer.
        without: what is left of a step whose sublayer is left out, such as "norm(x)".
    """
    return *OTHER_PARTS, *other_steps(order, without), *OTHER_USE


OTHER_PARTS = (
    Mistake(
        "shared-norm",
        "One norm stands in both places. Each has gains and biases of its own to learn.",
        {"norm_2 = LayerNorm(d_model)": "norm_2 = self.norm_1"},
    ),
    Mistake(
        "width",
        OTHER_WIDTH,
        {"FeedForward(d_model, d_ff)": "FeedForward(d_model, 4 * d_model)"},
    ),
    Mistake(
        "heads-not-handed-on",
        OTHER_HEADS,
        {ATTENTION: "MultiHeadAttention(d_model, 1)"},
    ),
    Mistake(
        "library-attention",
        "The attention is PyTorch's nn.MultiheadAttention. Its fourth argument is a mask of "
        "padding, True where it is *hidden*, and it averages the weights of the heads. Asked "
        "for is the course's MultiHeadAttention, or your own.",
        {ATTENTION: "nn.MultiheadAttention(d_model, num_heads, batch_first=True)"},
    ),
    Mistake(
        "third-norm",
        "There is a third norm. A block has two, one for each sublayer; what stands at the end "
        "of a stack of blocks belongs to the model.",
        {
            "super().__init__()": "super().__init__()\n        self.norm_3 = LayerNorm(d_model)",
            RETURN: "return self.norm_3(x)",
        },
    ),
    *of_repeated_calls(
        dropping=({RETURN: "return F.dropout(x, 0.3, self.training)"},),
        made_anew=(
            {RETURN: "return F.dropout(x, 0.3)"},
            first("self.feed_forward = FeedForward(x.shape[-1], 2 * x.shape[-1]).to(x)"),
        ),
    ),
)


def other_steps(order: Order, without: str) -> tuple[Mistake, ...]:
    """Steps that are exchanged or left out."""
    step_1, step_2 = order.step(1, order.right), order.step(2, order.right)
    return (
        Mistake(
            "feed-forward-first",
            "The feed-forward stands before self-attention. First tokens inform each other, then "
            "each is worked on alone.",
            {"x + attend": "x + self.feed_forward", "x + self.feed_forward": "x + attend"},
            also=({step_1: step_2, step_2: step_1},),
        ),
        Mistake(
            "no-attention",
            "Self-attention is left out: no token sees another.",
            order.steps(without, 1),
            also=(order.steps("x", 1),),
        ),
        Mistake(
            "no-feed-forward",
            "The feed-forward is left out.",
            order.steps(without, 2),
            also=(order.steps("x", 2),),
        ),
    )


OTHER_USE = (
    Mistake(
        "norms-exchanged",
        "The norms are exchanged: norm_1 is for self-attention, norm_2 for the feed-forward.",
        {"norm_1(x": "norm_2(x", "norm_2(x": "norm_1(x"},
    ),
    Mistake(
        "one-norm-used",
        "One norm is used in both places, and the other in none.",
        {"norm_2(x": "norm_1(x"},
        also=({"norm_1(x": "norm_2(x"},),
    ),
    Mistake(
        "norm-1-unused",
        "norm_1, the norm of self-attention, is made and not used.",
        {"self.norm_1(x": "(x"},
    ),
    Mistake(
        "norm-2-unused",
        "norm_2, the norm of the feed-forward, is made and not used.",
        {"self.norm_2(x": "(x"},
    ),
    Mistake(
        "no-norms",
        "The norms are made and not used.",
        {"self.norm_1(x": "(x", "self.norm_2(x": "(x"},
    ),
    Mistake(
        "sublayer-twice",
        "A sublayer is applied twice in a row.",
        {f"return {ATTENDED}": f"x = {ATTENDED}\n            return {ATTENDED}"},
        also=({"x + self.feed_forward": "x + nn.Sequential(*[self.feed_forward] * 2)"},),
    ),
    Mistake(
        "mask-ignored",
        "The mask changes nothing.",
        {GIVEN: "x, x, x"},
    ),
    Mistake(
        "mask-inverted",
        "The mask works the other way round: True means “may attend”.",
        {GIVEN: "x, x, x, None if mask is None else ~mask"},
    ),
    Mistake(
        "always-causal",
        "The future is hidden without being asked. The mask comes from the caller.",
        first("causal = torch.ones(2 * x.shape[1:2]).tril().bool()")
        | {GIVEN: "x, x, x, causal if mask is None else mask & causal"},
    ),
    Mistake(
        "mask-kept",
        "A mask of an earlier call is kept, and used in a call that has none.",
        first("self.kept = getattr(self, 'kept', None) if mask is None else mask")
        | {GIVEN: "x, x, x, self.kept"},
    ),
    Mistake(
        "pair-added",
        "self.self_attention returns a pair, (output, weights). Its output alone is added.",
        {"mask)[0]": "mask)"},
        also=({"mask)[0]": "mask) + x"},),
    ),
    Mistake(
        "attention-asked-with-less",
        "self.self_attention takes query, key, value and mask. In self-attention the first "
        "three are one and the same, and each of them is given.",
        {GIVEN: "x, mask"},
        also=(
            {GIVEN: "x"},
            {GIVEN: "x, mask=mask"},
        ),
    ),
    Mistake(
        "sequence-first",
        "Sequences and positions are exchanged on the way into the attention, which takes the "
        "batch first: tokens then see other sequences, and not their own.",
        OTHER_SEQUENCES | {"mask)[0]": "mask)[0].transpose(0, 1)"},
        also=(OTHER_SEQUENCES | {"mask)[0]": "None)[0].transpose(0, 1)"},),
    ),
    Mistake(
        "pair",
        "A pair comes back. The block returns its output alone.",
        {RETURN: "return x, None"},
        also=(first(f"weights = self.self_attention({GIVEN})[1]") | {RETURN: "return x, weights"},),
    ),
    Mistake(
        "no-gradient",
        "No gradient comes through: the block runs under no_grad, or detaches.",
        {"def forward": "@torch.no_grad()\n    def forward"},
    ),
    Mistake(
        "input-detached",
        "No gradient reaches x, so that nothing below this block would be trained.",
        first("x = x.detach()"),
    ),
)
