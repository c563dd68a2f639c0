"""Exercise 5.2, merge_heads: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator

from einops import rearrange
from torch import Generator, Tensor

from attn_course.checks.catalogue.families.gradient import detached
from attn_course.checks.exercise import Exercise, Mistake, Output, Stage, normal, tenths
from attn_course.checks.gradients import gradient_stage
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


# -- the answer that the mistakes are edits of ------------------------------------------------


def side_by_side(x: Tensor) -> Tensor:
    """The heads of each token laid side by side."""
    merged = rearrange(x, "b h n d -> b n (h d)")
    return merged


MERGED = 'rearrange(x, "b h n d -> b n (h d)")'

MISTAKES = (
    Mistake(
        "not-moved-back",
        "The numbers are only counted off anew, as (b, n, h·d): one token's row is filled with "
        "features of several tokens. The shape is right, and a model trains with it. Move the "
        "axis of the heads beside the features first.",
        {MERGED: "x.reshape(len(x), x.shape[2], -1)"},
    ),
    Mistake(
        "view-after-transpose",
        "After the axes are exchanged the numbers of a token no longer lie side by side in memory, "
        "so `view` refuses. `reshape` copies where it has to, and so does einops.",
        {MERGED: "x.transpose(1, 2).view(len(x), x.shape[2], -1)"},
    ),
    Mistake(
        "features-first",
        "The heads are interleaved, feature 0 of every head first: that is (d h) order. The "
        "inverse of split_heads lays the heads one after the other, (h d).",
        {"b n (h d)": "b n (d h)"},
    ),
    Mistake(
        "heads-reversed",
        "The heads are laid side by side in the reverse order: head 0 comes first.",
        {"rearrange(x": "rearrange(x.flip(1)"},
    ),
    Mistake(
        "summed",
        "The heads are added up. They are laid side by side, so that W_o can tell them apart.",
        {MERGED: "x.sum(dim=1)"},
    ),
    Mistake(
        "averaged",
        "The heads are averaged. They are laid side by side, so that W_o can tell them apart.",
        {MERGED: "x.mean(dim=1)"},
    ),
    Mistake(
        "tokens-lengthened",
        "The heads are laid one after the other along the tokens, (b, h·n, d). They belong side by "
        "side in the features of each token: (b, n, h·d).",
        {"b n (h d)": "b (h n) d"},
        also=({"b n (h d)": "b (n h) d"},),
    ),
    Mistake(
        "not-flattened",
        "The axis of the heads stands in the right place but is still there: (b, n, h, d). The "
        "last two make one, h·d.",
        {"b n (h d)": "b n h d"},
    ),
    Mistake(
        "features-and-tokens-exchanged",
        "The result is (b, h·d, n): tokens should be the middle axis, features the last.",
        {"b n (h d)": "b (h d) n"},
    ),
    Mistake(
        "everything-flattened",
        "Tokens and features are one long axis. Each token keeps a row of its own: (b, n, h·d).",
        {"b n (h d)": "b (n h d)"},
        also=({"b n (h d)": "b (h n d)"},),
    ),
    Mistake(
        "batch-joined",
        "Batch and tokens are one axis. They stay apart: (b, n, h·d).",
        {"b n (h d)": "(b n) (h d)"},
    ),
    Mistake(
        "sequence-first",
        "The result is (n, b, h·d). The batch stays in front.",
        {"b n (h d)": "n b (h d)"},
    ),
    Mistake(
        "only-one-head",
        "Only one head comes back; the others are dropped.",
        {MERGED: "x[:, 0]"},
        also=({MERGED: "x[:, -1]"},),
    ),
    Mistake(
        "first-head-for-all",
        "The first head stands in the place of every head.",
        {"rearrange(x": "rearrange(x[:, :1].expand_as(x)"},
    ),
    Mistake(
        "squeezed",
        "An axis of size 1 has been squeezed away. A batch may hold one sequence, a sequence one "
        "token.",
        {"return merged": "return merged.squeeze()"},
        also=(
            {"return merged": "return merged.squeeze(0)"},
            {"return merged": "return merged.squeeze(1)"},
        ),
    ),
    Mistake(
        "no-gradient",
        "The values are right, but no gradient gets back to x: it is detached, or rebuilt from "
        "bare numbers, and the layers before it would not be trained.",
        detached("merged"),
        also=({"return merged": "return torch.tensor(merged.tolist(), dtype=x.dtype)"},),
    ),
)

EXERCISE = Exercise(
    number="5.2",
    reference=merge_heads,
    right=side_by_side,
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
