"""Known mistakes of exercise 8.3, DecoderBlock."""

from __future__ import annotations

from torch import Tensor, nn

from attn_course.blocks import FeedForward, LayerNorm
from attn_course.checks.catalogue.ch07.block_mistakes import Order
from attn_course.checks.catalogue.ch07.block_parts import OTHER_HEADS, OTHER_WIDTH, in_place_copy
from attn_course.checks.exercise import Mistake
from attn_course.checks.modules import of_repeated_calls
from attn_course.multihead import MultiHeadAttention
from attn_course.sentences import joined


class PostNormBlock(nn.Module):
    """A right answer: three steps, each norm(x + step(x))."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.norm_3 = LayerNorm(d_model)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Ask oneself, ask the memory, and work on the answers."""

        def ask_self(x: Tensor) -> Tensor:
            return self.self_attention(x, x, x, mask)[0]

        def ask_memory(x: Tensor) -> Tensor:
            return self.cross_attention(x, memory, memory, memory_mask)[0]

        x = self.norm_1(x + ask_self(x))
        x = self.norm_2(x + ask_memory(x))
        return self.norm_3(x + self.feed_forward(x))


# -- pieces of it, and what often stands in their place ---------------------------------------

SELF = "self.self_attention = MultiHeadAttention(d_model, num_heads)"
CROSS = "self.cross_attention = MultiHeadAttention(d_model, num_heads)"
LIBRARY = "nn.MultiheadAttention(d_model, num_heads, batch_first=True)"

OF_SELF = "x, x, x, mask"
OF_MEMORY = "x, memory, memory, memory_mask"

STEP_1 = "self.norm_1(x + ask_self(x))"
STEP_2 = "self.norm_2(x + ask_memory(x))"
STEP_3 = "self.norm_3(x + self.feed_forward(x))"
PLAIN_NORM = "F.layer_norm(x + step(x), x.shape[-1:])"

steps = Order("norm(x + step(x))", ("ask_self", "ask_memory", "self.feed_forward")).steps


def first(statement: str) -> dict[str, str]:
    """A statement before the steps."""
    return {"def ask_self": f"{statement}\n        def ask_self"}


def norms(numbers: str) -> dict[str, str]:
    """The norms with these numbers in the places of 1, 2 and 3."""
    places = zip("123", numbers, strict=True)
    return {f"self.norm_{k}(x": f"self.norm_{used}(x" for k, used in places if used != k}


ORDER = "The steps are self-attention, then attention to the memory, then feed-forward."

MISTAKES = (
    Mistake(
        "shared-norm",
        "One norm stands in several places. Each of the three has gains and biases of its own to "
        "learn.",
        {
            "norm_2 = LayerNorm(d_model)": "norm_2 = self.norm_1",
            "norm_3 = LayerNorm(d_model)": "norm_3 = self.norm_1",
        },
    ),
    Mistake(
        "shared-attention",
        "One attention stands in both places. To ask oneself and to ask the memory are two things, "
        "with weights of their own.",
        {CROSS: "self.cross_attention = self.self_attention"},
    ),
    Mistake(
        "width",
        OTHER_WIDTH,
        {"d_model, d_ff)\n        self.norm_1": "d_model, 4 * d_model)\n        self.norm_1"},
    ),
    Mistake(
        "heads-not-handed-on",
        OTHER_HEADS,
        {
            SELF: "self.self_attention = MultiHeadAttention(d_model, 1)",
            CROSS: "self.cross_attention = MultiHeadAttention(d_model, 1)",
        },
        also=({CROSS: "self.cross_attention = MultiHeadAttention(d_model, 1)"},),
    ),
    Mistake(
        "pre-norm",
        "The norm stands before each sublayer. That is pre-norm; asked for is the paper's order, "
        "norm(x + sublayer(x)).",
        steps("x + step(norm(x))"),
    ),
    Mistake(
        "norm-inside",
        "The norm is taken of the sublayer's output alone, and x is added after it. Asked for is "
        "the norm of the sum.",
        steps("x + norm(step(x))"),
    ),
    Mistake(
        "residual-inside",
        "The sublayer is given norm(x) + x, and nothing is added to what it returns. The residual "
        "goes round the sublayer: norm(x + sublayer(x)).",
        steps("step(norm(x) + x)"),
        also=(steps("norm(step(x + x))"),),
    ),
    Mistake(
        "stream-not-normalised",
        "What goes on from step to step is the sum before its norm: the norm's result is read by "
        "the next sublayer and then lost. Here the norm's result *is* the new x.",
        {
            **steps("x + step(x)", 1),
            STEP_2: "x + ask_memory(self.norm_1(x))",
            STEP_3: "self.norm_3(x + self.feed_forward(self.norm_2(x)))",
        },
        also=(
            {
                **steps("x + step(x)", 1),
                STEP_2: "x + ask_memory(self.norm_1(x))",
                STEP_3: "x + self.feed_forward(self.norm_2(x))",
            },
        ),
    ),
    Mistake(
        "queries-normalised",
        "Pre-norm, in which only the queries are normalised and not the keys and values of the "
        "same x. Asked for is the paper's order, norm(x + sublayer(x)).",
        {
            OF_SELF: "self.norm_1(x), x, x, mask",
            **steps("x + step(x)", 1),
            **steps("x + step(norm(x))", 2, 3),
        },
    ),
    Mistake(
        "norm-before-and-residual-of-it",
        "x is normalised first, and the residual starts from that. Asked for is the norm of the "
        "sum.",
        steps("norm(x) + step(norm(x))"),
    ),
    Mistake(
        "no-residuals",
        "There are no residuals: each step replaces x instead of adding to it. (Or it overwrites x "
        "before the two are added, so that the sublayer's output is added to itself: the norm "
        "makes the same of both.)",
        steps("norm(step(x))"),
        also=(steps("norm(2 * step(x))"),),
    ),
    Mistake("no-norms", "The norms are made and not used.", steps("x + step(x)")),
    Mistake(
        "no-residual-self",
        "The residual around self-attention is missing.",
        steps("norm(step(x))", 1),
    ),
    Mistake(
        "no-residual-cross",
        "The residual around cross-attention is missing: what x was is replaced by what the memory "
        "gives.",
        steps("norm(step(x))", 2),
    ),
    Mistake(
        "no-residual-feed-forward",
        "The residual around the feed-forward is missing.",
        steps("norm(step(x))", 3),
    ),
    Mistake(
        "norm-weights-unused",
        "Gain and bias of a norm do not reach the result: in its place stands one without them, or "
        "one that is made anew in each call. Make three in __init__, and use those.",
        steps(PLAIN_NORM),
        also=tuple(steps(PLAIN_NORM, step) for step in (1, 2, 3)),
    ),
    Mistake(
        "pair-added",
        "An attention returns a pair, (output, weights). Its output alone is added.",
        {f"({OF_MEMORY})[0]": f"({OF_MEMORY})"},
        also=(
            {f"({OF_SELF})[0]": f"({OF_SELF})"},
            {f"({OF_MEMORY})[0]": f"({OF_MEMORY})", **steps("norm(step(x) + x)", 2)},
            {f"({OF_SELF})[0]": f"({OF_SELF})", **steps("norm(step(x) + x)", 1)},
        ),
    ),
    Mistake("norm-1-unused", "The norm after self-attention is missing.", steps("x + step(x)", 1)),
    Mistake("norm-2-unused", "The norm after cross-attention is missing.", steps("x + step(x)", 2)),
    Mistake(
        "norm-3-unused",
        "The norm after the feed-forward is missing.",
        steps("x + step(x)", 3),
    ),
    Mistake("no-self-attention", joined(["Self-attention is left out.", ORDER]), steps("x", 1)),
    Mistake(
        "no-cross-attention",
        joined(["Attention to the memory is left out: the decoder never reads the source.", ORDER]),
        steps("x", 2),
    ),
    Mistake("no-feed-forward", joined(["The feed-forward is left out.", ORDER]), steps("x", 3)),
    Mistake(
        "cross-first",
        joined(["The memory is asked before x has asked itself.", ORDER]),
        {"x + ask_self": "x + ask_memory", "x + ask_memory": "x + ask_self"},
        also=({STEP_1: STEP_2, STEP_2: STEP_1},),
    ),
    Mistake(
        "feed-forward-between",
        joined(["The feed-forward stands before cross-attention.", ORDER]),
        {"x + ask_memory": "x + self.feed_forward", "x + self.feed_forward": "x + ask_memory"},
        also=({STEP_2: STEP_3, STEP_3: STEP_2},),
    ),
    Mistake(
        "norms-exchanged",
        "The norms stand in another order: norm_1 is for self-attention, norm_2 for "
        "cross-attention, norm_3 for the feed-forward.",
        norms("213"),
        also=(norms("132"), norms("321")),
    ),
    Mistake(
        "one-norm-used",
        "One norm is used in several places, and another in none.",
        norms("111"),
        also=tuple(map(norms, ("112", "113", "122", "133", "223", "233"))),
    ),
    Mistake(
        "roles-reversed",
        "The memory asks and x is looked up. The decoder asks: there is one output for each token "
        "of x.",
        {OF_MEMORY: "memory, x, x, memory_mask"},
        also=({OF_MEMORY: "memory, x, x, mask"}, {OF_MEMORY: "memory, x, x"}),
    ),
    Mistake(
        "memory-not-read",
        "Cross-attention takes its keys and values from x: the memory is not read.",
        {OF_MEMORY: "x, x, x, memory_mask"},
        also=({OF_MEMORY: "x, x, x, mask"}, {OF_MEMORY: "x, x, x"}),
    ),
    Mistake(
        "values-from-x",
        "The values of cross-attention come from x. What is handed over comes from the memory.",
        {OF_MEMORY: "x, memory, x, memory_mask"},
    ),
    Mistake(
        "keys-from-x",
        "The keys of cross-attention come from x. What is looked up is the memory.",
        {OF_MEMORY: "x, x, memory, memory_mask"},
    ),
    Mistake(
        "masks-exchanged",
        "The two masks are exchanged: `mask` is for self-attention, `memory_mask` for the memory.",
        {OF_SELF: "x, x, x, memory_mask", OF_MEMORY: "x, memory, memory, mask"},
    ),
    Mistake(
        "target-mask-on-memory",
        "Cross-attention gets the mask of x. At equal lengths nothing tells, and the decoder reads "
        "the source only as far as it has written.",
        {OF_MEMORY: "x, memory, memory, mask"},
    ),
    Mistake(
        "memory-mask-on-x",
        "Self-attention gets the mask of the memory.",
        {OF_SELF: "x, x, x, memory_mask"},
        also=(
            first("given = [one for one in (mask, memory_mask) if one is not None]")
            | {OF_SELF: "x, x, x, given[0] & given[-1] if given else None"},
        ),
    ),
    Mistake(
        "mask-ignored",
        "The mask on x changes nothing: the decoder sees its own future.",
        {OF_SELF: "x, x, x"},
    ),
    Mistake(
        "memory-mask-ignored",
        "The mask on the memory changes nothing: padding is read.",
        {OF_MEMORY: "x, memory, memory"},
    ),
    Mistake(
        "memory-zeroed",
        "The padded tokens of the memory are set to zeros, and then attended to: a key of zeros "
        "has a score like others. Hand the mask to cross-attention.",
        first("if memory_mask is not None: memory = memory * memory_mask[:, 0, 0, :, None]")
        | {OF_MEMORY: "x, memory, memory"},
    ),
    Mistake(
        "masks-inverted",
        "A mask works the other way round: True means “may attend”.",
        {
            OF_SELF: "x, x, x, None if mask is None else ~mask",
            OF_MEMORY: "x, memory, memory, None if memory_mask is None else ~memory_mask",
        },
        also=(
            {OF_SELF: "x, x, x, None if mask is None else ~mask"},
            {OF_MEMORY: "x, memory, memory, None if memory_mask is None else ~memory_mask"},
        ),
    ),
    Mistake(
        "always-causal",
        "The future of x is hidden without being asked. The mask comes from the caller.",
        first("causal = torch.ones(2 * x.shape[1:2]).tril().bool()")
        | {OF_SELF: "x, x, x, causal if mask is None else mask & causal"},
    ),
    Mistake(
        "self-attention-twice",
        "self.self_attention asks the memory, too; self.cross_attention is not used.",
        {"self.cross_attention(x": "self.self_attention(x"},
    ),
    Mistake(
        "cross-attention-twice",
        "self.cross_attention serves for x, too; self.self_attention is not used.",
        {"self.self_attention(x": "self.cross_attention(x"},
    ),
    Mistake(
        "attentions-exchanged",
        "self.cross_attention is used for x, and self.self_attention for the memory.",
        {
            "self.self_attention(x": "self.cross_attention(x",
            "self.cross_attention(x": "self.self_attention(x",
        },
    ),
    Mistake(
        "asks-with-the-input",
        "The memory is asked with what came in, not with what self-attention has made of it.",
        first("came = x") | {"ask_memory(x))": "ask_memory(came))"},
    ),
    Mistake(
        "adds-to-the-input",
        "A residual starts from what came into the block. It should start from what the step "
        "before gave.",
        first("came = x")
        | {"x + ask_memory": "came + ask_memory", "x + self.feed": "came + self.feed"},
        also=(first("came = x") | {"x + self.feed": "came + self.feed"},),
    ),
    Mistake(
        "memory-normalised",
        "The memory is normalised before it is read. The norms here are for x.",
        {OF_MEMORY: "x, self.norm_2(memory), self.norm_2(memory), memory_mask"},
    ),
    Mistake(
        "input-returned",
        "What came in comes back: the result of the steps has another name, and is lost.",
        first("came = x") | {STEP_3: "came + 0"},
        also=({STEP_3: "memory + 0"},),
    ),
    Mistake(
        "in-place",
        "The caller's x or memory is changed in place (`+=` writes into it). Whoever calls still "
        "needs it: every block reads the same memory.",
        steps("norm(x.add_(step(x)))"),
        also=(first("memory -= memory.mean(dim=-1, keepdim=True)"),),
    ),
    in_place_copy(
        first("x = x.clone()") | steps("norm(x.add_(step(x)))"),
        first("x = x.clone()") | steps("norm(x.add_(step(x)))", 1),
    ),
    Mistake(
        "library-attention",
        "The attention is PyTorch's nn.MultiheadAttention. Its fourth argument is a mask of "
        "padding, True where it is *hidden*, and it takes (b, j) alone. Asked for is the course's "
        "MultiHeadAttention, or your own.",
        {
            SELF: f"self.self_attention = {LIBRARY}",
            CROSS: f"self.cross_attention = {LIBRARY}",
        },
    ),
    Mistake(
        "pair",
        "A pair comes back. The block returns its output alone.",
        {f"return {STEP_3}": f"return {STEP_3}, None"},
        also=({f"return {STEP_3}": f"return {STEP_3}, memory"},),
    ),
    Mistake(
        "no-gradient",
        "No gradient comes through: the block runs under no_grad, or detaches.",
        {"def forward": "@torch.no_grad()\n    def forward"},
    ),
    Mistake(
        "memory-detached",
        "No gradient reaches the memory, so that the encoder would never be trained.",
        {OF_MEMORY: "x, memory.detach(), memory.detach(), memory_mask"},
    ),
    *of_repeated_calls(
        dropping=(first("x = F.dropout(x, 0.1, self.training)"),),
        made_anew=(
            {"self.cross_attention(x": "MultiHeadAttention(x.shape[-1], 1).to(x)(x"},
            {"x + self.feed_forward": "x + FeedForward(x.shape[-1], 9).to(x)"},
        ),
    ),
)
