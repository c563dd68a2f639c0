"""Exercise 7.4, PreNormBlock: a right answer, its known mistakes as edits, and its stages."""

from __future__ import annotations

from torch import Tensor, nn

from attn_course.blocks import FeedForward, LayerNorm, PreNormBlock
from attn_course.checks.catalogue.ch07.block_mistakes import Order, common, first
from attn_course.checks.catalogue.ch07.block_parts import in_place_copy, stages
from attn_course.checks.exercise import Exercise, Mistake, Output
from attn_course.multihead import MultiHeadAttention
from attn_course.sentences import joined


class PreBlock(nn.Module):
    """A right answer, which the mistakes edit: x + sublayer(norm(x)) twice."""

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

        x = x + attend(self.norm_1(x))
        x = x + self.feed_forward(self.norm_2(x))
        return x


PRE = Order("x + step(norm(x))")


def asking(queries_keys_values: str) -> dict[str, str]:
    """Attention asked in this way, where y is the normalised x."""
    return first("y = self.norm_1(x)") | {
        "attend(self.norm_1(x))": f"self.self_attention({queries_keys_values}, mask)[0]"
    }


ORDER = "Asked for is x + sublayer(norm(x)): nothing stands on the way through the sums."

MISTAKES = (
    *common(PRE, without="x"),
    in_place_copy(first("x = x.clone()") | PRE.steps("x.add_(step(norm(x)))", 1)),
    PRE.either(
        "post-norm",
        joined(["The norm stands after the sum: that is post-norm.", ORDER]),
        "norm(x + step(x))",
    ),
    PRE.either(
        "norm-of-the-output",
        joined(["The norm is taken of the sublayer's output. It belongs on its input.", ORDER]),
        "x + norm(step(x))",
    ),
    PRE.either(
        "residual-of-the-normalised",
        joined(
            [
                "The residual starts from the normalised x, as when x is overwritten by its norm. "
                "Then the norm stands on the way through.",
                ORDER,
            ]
        ),
        "norm(x) + step(norm(x))",
    ),
    PRE.either(
        "norm-of-the-residual",
        joined(["The norm is on the residual, and the sublayer gets x as it is.", ORDER]),
        "norm(x) + step(x)",
    ),
    Mistake(
        "norm-twice",
        joined(["The norm stands before the sublayer and again after the sum.", ORDER]),
        PRE.steps("norm(x + step(norm(x)))"),
        also=(PRE.steps("norm(x + step(norm(x)))", 1),),
    ),
    Mistake(
        "normalised-at-the-end",
        "What leaves the block is normalised. The model puts one norm after its last block; "
        "within, the sums pass untouched.",
        {"return x": "return self.norm_2(x)"},
        also=({"return x": "return self.norm_1(x)"},),
    ),
    PRE.either(
        "sum-inside",
        "x is added inside the sublayer's argument: f(norm(x) + x). The residual goes around the "
        "sublayer.",
        "step(norm(x) + x)",
    ),
    PRE.either(
        "input-not-normalised",
        "The sublayer works on norm(x) + x, so that its input is not normalised.",
        "x + step(norm(x) + x)",
    ),
    Mistake(
        "no-residuals",
        "There are no residuals: each step replaces x instead of adding to it.",
        PRE.steps("step(norm(x))"),
        also=(PRE.steps("norm(step(x))"),),
    ),
    Mistake(
        "no-residual-attention",
        "The residual around self-attention is missing: what a token was is replaced by what the "
        "others bring.",
        PRE.steps("step(norm(x))", 1),
    ),
    Mistake(
        "no-residual-feed-forward",
        "The residual around the feed-forward is missing.",
        PRE.steps("step(norm(x))", 2),
    ),
    PRE.either(
        "doubled",
        "x is overwritten by the sublayer's output before the two are added: it is the output that "
        "is added to itself.",
        "2 * step(norm(x))",
    ),
    PRE.either(
        "residual-twice",
        "x is added twice.",
        "x + x + step(norm(x))",
    ),
    PRE.either(
        "subtracted",
        "The sublayer's output is subtracted from x, or x from it.",
        "x - step(norm(x))",
    ),
    PRE.either(
        "multiplied",
        "x and the sublayer's output are multiplied. A residual is a sum.",
        "x * step(norm(x))",
    ),
    Mistake(
        "queries-only",
        "Of queries, keys and values only some are made from the normalised x, the others from x "
        "as it is. In self-attention all three come from the same normalised x.",
        asking("y, x, x"),
        also=(
            asking("x, y, y"),
            asking("y, y, x"),
            asking("y, x, y"),
            asking("x, x, y"),
            asking("x, y, x"),
        ),
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
        first("came = x") | {"norm_2(x": "norm_2(came"},
        also=(first("came = x") | {"norm_2(x": "norm_1(came"},),
    ),
    PRE.either(
        "residual-detached",
        "The gradient does not pass along the residual. That path is why deep stacks train.",
        "x.detach() + step(norm(x))",
    ),
)

EXERCISE = Exercise(
    number="7.4",
    reference=PreNormBlock,
    right=PreBlock,
    wire="class",
    outputs=(Output("output", "b n d"),),
    difficulty=2,
    minutes=10,
    points=3,
    may_use="torch, nn.LayerNorm or the course's LayerNorm, your own or the course's "
    "MultiHeadAttention and FeedForward",
    stages=stages(
        MISTAKES,
        "Without a mask the output differs. Two steps, each x + sublayer(norm(x)): self-attention "
        "with norm_1, then the feed-forward with norm_2.",
    ),
    mistakes=MISTAKES,
    hints=(
        "The parts are those of your EncoderBlock. Only the place of the norm changes: if both "
        "sublayers returned zeros, x should pass unchanged.",
        "Normalise into a variable of another name, so that x is still there for the sum. All "
        "three of query, key and value are the normalised x.",
        "y = self.norm_1(x), then x = x + … with self-attention of y in the gap; the same with "
        "self.norm_2 and the feed-forward.",
    ),
)
