"""Exercise 7.3, EncoderBlock: a right answer, its known mistakes as edits, and its stages."""

from __future__ import annotations

from torch import Tensor, nn

from attn_course.blocks import EncoderBlock, FeedForward, LayerNorm
from attn_course.checks.catalogue.ch07.block_mistakes import Order, common, first
from attn_course.checks.catalogue.ch07.block_parts import in_place_copy, stages
from attn_course.checks.exercise import Exercise, Mistake, Output
from attn_course.multihead import MultiHeadAttention
from attn_course.sentences import joined


class PostBlock(nn.Module):
    """A right answer, which the mistakes edit: norm(x + sublayer(x)) twice."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Let the tokens inform each other, then work on each alone."""

        def attend(x: Tensor) -> Tensor:
            return self.self_attention(x, x, x, mask)[0]

        x = self.norm_1(x + attend(x))
        x = self.norm_2(x + self.feed_forward(x))
        return x


POST = Order("norm(x + step(x))")
BOTH_ADDED = {"x + attend(x)": "x + attend(x) + self.feed_forward(x)"}
ORDER = "Asked for is the paper's order, norm(x + sublayer(x))."

MISTAKES = (
    *common(POST, without="norm(x)"),
    in_place_copy(
        first("x = x.clone()") | POST.steps("norm(x.add_(step(x)))"),
        first("x = x.clone()") | POST.steps("norm(x.add_(step(x)))", 1),
    ),
    POST.either(
        "pre-norm",
        joined(["The norm stands before the sublayer: that is pre-norm.", ORDER]),
        "x + step(norm(x))",
    ),
    POST.either(
        "norm-of-the-output",
        joined(
            ["The norm is taken of the sublayer's output alone, and x is added after it.", ORDER]
        ),
        "x + norm(step(x))",
    ),
    POST.either(
        "residual-of-the-normalised",
        joined(["x is normalised first, and the residual starts from that.", ORDER]),
        "norm(x) + step(norm(x))",
    ),
    POST.either(
        "norm-of-the-residual",
        joined(["Only x is normalised, and the sublayer's output is added to it.", ORDER]),
        "norm(x) + step(x)",
    ),
    POST.either(
        "norm-twice",
        joined(["The norm stands before the sublayer and again after the sum.", ORDER]),
        "norm(x + step(norm(x)))",
    ),
    Mistake(
        "no-residuals",
        "There are no residuals: each step replaces x instead of adding to it.",
        POST.steps("norm(step(x))"),
        also=(POST.steps("step(norm(x))"),),
    ),
    Mistake(
        "no-residual-attention",
        "The residual around self-attention is missing: what a token was is replaced by what the "
        "others bring.",
        POST.steps("norm(step(x))", 1),
    ),
    Mistake(
        "no-residual-feed-forward",
        "The residual around the feed-forward is missing.",
        POST.steps("norm(step(x))", 2),
    ),
    POST.either(
        "doubled",
        "x is overwritten by the sublayer's output before the two are added: it is the output that "
        "is added to itself.",
        "norm(2 * step(x))",
    ),
    POST.either(
        "residual-twice",
        "x is added twice.",
        "norm(x + x + step(x))",
    ),
    POST.either(
        "subtracted",
        "The sublayer's output is subtracted from x, or x from it.",
        "norm(x - step(x))",
    ),
    POST.either(
        "multiplied",
        "x and the sublayer's output are multiplied. A residual is a sum.",
        "norm(x * step(x))",
    ),
    Mistake(
        "stream-kept",
        "The second residual starts from the sum before norm_1. It should start from what norm_1 "
        "returns: in post-norm nothing passes a norm by.",
        POST.steps("x + step(x)", 1) | {"feed_forward(x": "feed_forward(self.norm_1(x)"},
    ),
    Mistake(
        "adds-to-the-input",
        "The second residual starts from what came into the block, not from what the first step "
        "gave.",
        first("came = x") | {"x + self.feed": "came + self.feed"},
    ),
    Mistake(
        "feeds-the-input",
        "The feed-forward works on what came into the block, not on what the first step gave.",
        first("came = x") | {"feed_forward(x": "feed_forward(came"},
    ),
    Mistake(
        "side-by-side",
        "Both sublayers work on the same x, side by side. The feed-forward comes after "
        "self-attention, on its result.",
        BOTH_ADDED | POST.steps("norm(x)", 2),
        also=(BOTH_ADDED | POST.steps("x", 2),),
    ),
    Mistake(
        "feed-forward-unnormalised",
        "The feed-forward works on the sum before norm_1, which comes later or not at all.",
        POST.steps("x + step(x)", 1) | {"x + self.feed": "self.norm_1(x) + self.feed"},
    ),
    POST.either(
        "sum-fed",
        "The sublayer gets x where its output should be: the order of adding and applying is "
        "exchanged.",
        "norm(step(x + x))",
    ),
    POST.either(
        "residual-detached",
        "The gradient does not pass along the residual. That path is why deep stacks train.",
        "norm(x.detach() + step(x))",
    ),
)

EXERCISE = Exercise(
    number="7.3",
    reference=EncoderBlock,
    right=PostBlock,
    wire="class",
    outputs=(Output("output", "b n d"),),
    difficulty=2,
    minutes=20,
    points=4,
    may_use="torch, nn.LayerNorm or the course's LayerNorm, your own or the course's "
    "MultiHeadAttention and FeedForward",
    stages=stages(
        MISTAKES,
        "Without a mask the output differs. Two steps, each norm(x + sublayer(x)): self-attention "
        "with norm_1, then the feed-forward with norm_2.",
    ),
    mistakes=MISTAKES,
    hints=(
        "Four parts and two steps. In each step a sublayer works on x, the result is added to x, "
        "and the sum is normalised. What does the second step take for its x?",
        "self.self_attention(x, x, x, mask) returns a pair; the residual wants its first part. "
        "The feed-forward takes x alone.",
        "x = self.norm_1(x + …) with self-attention in the gap, then the same with self.norm_2 and "
        "self.feed_forward, and x is returned.",
    ),
)
