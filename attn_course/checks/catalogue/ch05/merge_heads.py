"""Exercise 5.2, merge_heads: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from einops import rearrange, reduce
from torch import Generator, Tensor

from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage, normal, tenths
from attn_course.checks.gradients import detached_inputs, gradient_stage
from attn_course.multihead import merge_heads


def draw_one_token(rng: Generator) -> Iterator[tuple]:
    """A token alone: only the order of its features can go wrong."""
    yield (tenths(rng, 1, 2, 1, 2),)
    yield (tenths(rng, 1, 3, 1, 2),)
    yield (normal(rng, 2, 4, 1, 5),)


def draw_tokens(rng: Generator) -> Iterator[tuple]:
    """Several tokens, all sizes different; one head, and heads of one feature."""
    yield (tenths(rng, 1, 2, 2, 2),)
    yield (normal(rng, 2, 4, 3, 5),)
    yield (normal(rng, 3, 2, 4, 5),)
    yield (normal(rng, 2, 1, 5, 6),)
    yield (normal(rng, 3, 5, 2, 1),)
    yield (normal(rng, 2, 3, 4, 5).double(),)


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """Sizes that agree, where axes may be exchanged unseen; another layout in memory."""
    yield (normal(rng, 2, 2, 2, 2),)
    yield (normal(rng, 2, 3, 3, 4),)
    yield (normal(rng, 3, 3, 5, 2),)
    yield (normal(rng, 4, 2, 4, 3),)
    yield (normal(rng, 2, 4, 3, 5).transpose(1, 2),)


def draw_gradients(rng: Generator) -> Iterator[tuple]:
    """Small, and with all sizes different."""
    yield (tenths(rng, 1, 2, 2, 2),)
    yield (normal(rng, 2, 4, 3, 5),)


# -- known-wrong versions ---------------------------------------------------------------------


def patterned(pattern: str) -> Answer:
    """A version that rearranges by this pattern."""

    def answer(x: Tensor) -> Tensor:
        return rearrange(x, pattern)

    return answer


def not_moved(x: Tensor) -> Tensor:
    """Counts the numbers off anew."""
    b, h, n, d = x.shape
    return x.reshape(b, n, h * d)


def view_after_transpose(x: Tensor) -> Tensor:
    """Asks for a view where the memory's order does not allow one."""
    b, h, n, d = x.shape
    return x.transpose(1, 2).view(b, n, h * d)


MISTAKES = (
    Mistake(
        "not-moved-back",
        "The numbers are only counted off anew, as (b, n, h·d): one token's row is filled with "
        "features of several tokens. The shape is right, and a model trains with it. Move the "
        "axis of the heads beside the features first.",
        not_moved,
    ),
    Mistake(
        "view-after-transpose",
        "After the axes are exchanged the numbers of a token no longer lie side by side in memory, "
        "so `view` refuses. `reshape` copies where it has to, and so does einops.",
        view_after_transpose,
    ),
    Mistake(
        "features-first",
        "The heads are interleaved, feature 0 of every head first: that is (d h) order. The "
        "inverse of split_heads lays the heads one after the other, (h d).",
        patterned("b h n d -> b n (d h)"),
    ),
    Mistake(
        "heads-reversed",
        "The heads are laid side by side in the reverse order: head 0 comes first.",
        lambda x: merge_heads(x.flip(1)),
    ),
    Mistake(
        "summed",
        "The heads are added up. They are laid side by side, so that W_o can tell them apart.",
        lambda x: reduce(x, "b h n d -> b n d", "sum"),
    ),
    Mistake(
        "averaged",
        "The heads are averaged. They are laid side by side, so that W_o can tell them apart.",
        lambda x: reduce(x, "b h n d -> b n d", "mean"),
    ),
    Mistake(
        "tokens-lengthened",
        "The heads are laid one after the other along the tokens, (b, h·n, d). They belong side by "
        "side in the features of each token: (b, n, h·d).",
        patterned("b h n d -> b (h n) d"),
        also=(patterned("b h n d -> b (n h) d"),),
    ),
    Mistake(
        "not-flattened",
        "The axis of the heads stands in the right place but is still there: (b, n, h, d). The "
        "last two make one, h·d.",
        patterned("b h n d -> b n h d"),
    ),
    Mistake(
        "features-and-tokens-exchanged",
        "The result is (b, h·d, n): tokens should be the middle axis, features the last.",
        patterned("b h n d -> b (h d) n"),
    ),
    Mistake(
        "everything-flattened",
        "Tokens and features are one long axis. Each token keeps a row of its own: (b, n, h·d).",
        patterned("b h n d -> b (n h d)"),
        also=(patterned("b h n d -> b (h n d)"),),
    ),
    Mistake(
        "batch-joined",
        "Batch and tokens are one axis. They stay apart: (b, n, h·d).",
        patterned("b h n d -> (b n) (h d)"),
    ),
    Mistake(
        "sequence-first",
        "The result is (n, b, h·d). The batch stays in front.",
        patterned("b h n d -> n b (h d)"),
    ),
    Mistake(
        "only-one-head",
        "Only one head comes back; the others are dropped.",
        lambda x: x[:, 0],
        also=(lambda x: x[:, -1],),
    ),
    Mistake(
        "first-head-for-all",
        "The first head stands in the place of every head.",
        lambda x: x[:, 0].repeat(1, 1, x.shape[1]),
    ),
    Mistake(
        "squeezed",
        "An axis of size 1 has been squeezed away. A batch may hold one sequence, a sequence one "
        "token.",
        lambda x: merge_heads(x).squeeze(),
        also=(
            lambda x: merge_heads(x).squeeze(0),
            lambda x: merge_heads(x).squeeze(1),
        ),
    ),
    Mistake(
        "no-gradient",
        "The values are right, but no gradient gets back to x: it is detached, or rebuilt from "
        "bare numbers, and the layers before it would not be trained.",
        detached_inputs(merge_heads),
        also=(lambda x: torch.tensor(merge_heads(x).tolist(), dtype=x.dtype),),
    ),
)

EXERCISE = Exercise(
    number="5.2",
    reference=merge_heads,
    outputs=(Output("merged", "b n d"),),
    difficulty=1,
    minutes=5,
    points=2,
    may_use="torch and einops",
    stages=(
        Stage(
            "one token",
            draw_one_token,
            "With a single token, its row should hold head 0's features, then head 1's, and so on.",
        ),
        Stage("tokens", draw_tokens, "With several tokens, the rows hold wrong numbers."),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "Here some sizes agree, or x lies in memory in another order, and the rows hold wrong "
            "numbers.",
        ),
        gradient_stage(draw_gradients, ("x",), {"x": "b h n d"}),
    ),
    mistakes=MISTAKES,
    hints=(
        "What is the one thing that a row of the result must hold? All that is known of one token, "
        "from every head.",
        "The axis of the heads moves back beside the features; then the two become one, with h "
        "counting slowly.",
        'rearrange(x, "b h n d -> …"): read the pattern of split_heads from right to left.',
    ),
)
