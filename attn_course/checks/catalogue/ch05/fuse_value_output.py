"""Exercise 5.4, fuse_value_output: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Generator, Tensor

from attn_course.checks.catalogue.families.gradient import detached
from attn_course.checks.catalogue.families.refusal import asserted
from attn_course.checks.exercise import Exercise, Mistake, Output, Stage, normal, tenths
from attn_course.checks.gradients import gradient_stage
from attn_course.checks.refusals import refusal_stages
from attn_course.multihead import fuse_value_output

INPUTS = ("W_v", "W_o", "num_heads")


def draw_one_head(rng: Generator) -> Iterator[tuple]:
    """A single head: one product of two matrices."""
    yield tenths(rng, 2, 2), tenths(rng, 2, 2), 1
    yield normal(rng, 3, 4), normal(rng, 4, 5), 1
    yield normal(rng, 6, 2), normal(rng, 2, 6), 1


def draw_heads(rng: Generator) -> Iterator[tuple]:
    """Several heads; heads of one feature; all sizes different; float64."""
    yield tenths(rng, 2, 2), tenths(rng, 2, 2), 2
    yield tenths(rng, 1, 4), tenths(rng, 4, 2), 2
    yield normal(rng, 5, 12), normal(rng, 12, 7), 3
    yield normal(rng, 4, 6), normal(rng, 6, 3), 6
    yield normal(rng, 5, 12).double(), normal(rng, 12, 7).double(), 4


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """Square weights, and as many heads as features of a head."""
    yield normal(rng, 9, 9), normal(rng, 9, 9), 3
    yield normal(rng, 12, 12), normal(rng, 12, 12), 4
    yield normal(rng, 8, 8).mT, normal(rng, 8, 8).mT, 2


def draw_gradients(rng: Generator) -> Iterator[tuple]:
    """Small, and with all sizes different."""
    yield tenths(rng, 2, 2), tenths(rng, 2, 2), 2
    yield normal(rng, 5, 12), normal(rng, 12, 7), 3


def draw_unfit(rng: Generator) -> Iterator[tuple]:
    """Heads that do not divide the inner width; inner widths that differ."""
    yield tenths(rng, 1, 4), tenths(rng, 4, 1), 3
    yield normal(rng, 5, 12), normal(rng, 12, 7), 5
    yield normal(rng, 5, 12), normal(rng, 8, 5), 2
    yield normal(rng, 5, 4), normal(rng, 5, 4), 2


# -- the answer that the mistakes are edits of ------------------------------------------------


def matrix_of_each_head(W_v: Tensor, W_o: Tensor, num_heads: int) -> Tensor:
    """Each head's part of W_v times its part of W_o."""
    if W_v.shape[1] != len(W_o) or len(W_o) % num_heads != 0:
        raise ValueError(f"{tuple(W_v.shape)}, {tuple(W_o.shape)}, {num_heads} heads")
    values = W_v.unflatten(1, (num_heads, -1)).movedim(1, 0)
    outputs = W_o.unflatten(0, (num_heads, -1))
    fused = values @ outputs
    return fused


UNFIT = "W_v.shape[1] != len(W_o) or len(W_o) % num_heads != 0"
VALUES = "W_v.unflatten(1, (num_heads, -1)).movedim(1, 0)"
OUTPUTS = "W_o.unflatten(0, (num_heads, -1))"

ONE_BY_ONE = "torch.stack([value @ output for value, output in zip(values, outputs)])"

INPUTS_CUT = """
    if len(W_v) % num_heads != 0:
        return None
    return W_v.unflatten(0, (num_heads, -1)) @ W_o
"""

OUTPUTS_CUT = """
    if W_o.shape[1] % num_heads != 0:
        return None
    return W_v @ W_o.unflatten(1, (num_heads, -1)).movedim(1, 0)
"""

CUT_TO_FIT = """
    n = min(W_v.shape[1], len(W_o)) // num_heads * num_heads
    W_v, W_o = W_v[:, :n], W_o[:n]
    if False"""

MISTAKES = (
    Mistake(
        "order-exchanged",
        "The product is taken the other way round, W_o before W_v. Row vectors pass W_v first: "
        "x W_v W_o.",
        {"values @ outputs": "outputs @ values"},
    ),
    Mistake(
        "heads-fused-together",
        "W_v and W_o are multiplied whole, so the heads are added up. Each head has weights of its "
        "own over the tokens, so each needs a matrix of its own: (h, d_in, d_out).",
        {"values @ outputs": "W_v @ W_o"},
        also=(
            {"values @ outputs": "(W_v @ W_o)[None]"},
            {"values @ outputs": "(W_v @ W_o).expand(num_heads, -1, -1)"},
            {"return fused": "return fused.sum(dim=0)"},
        ),
    ),
    Mistake(
        "averaged",
        "The heads' matrices are averaged. One for each head is asked for.",
        {"return fused": "return fused.mean(dim=0)"},
    ),
    Mistake(
        "features-first",
        "The heads are dealt out in turn, (d h). They lie head after head, (h d): the first d "
        "columns of W_v and the first d rows of W_o are head 0's.",
        {
            VALUES: "W_v.unflatten(1, (-1, num_heads)).movedim(2, 0)",
            OUTPUTS: "W_o.unflatten(0, (-1, num_heads)).movedim(1, 0)",
        },
    ),
    Mistake(
        "one-side-interleaved",
        "W_v and W_o are cut in different orders: one head's values meet another's outputs.",
        {OUTPUTS: "W_o.unflatten(0, (-1, num_heads)).movedim(1, 0)"},
    ),
    Mistake(
        "rows-cut",
        "W_v is counted off anew, so that its rows are cut. The head's part are d of its columns, "
        "in every row.",
        {VALUES: "W_v.reshape(num_heads, len(W_v), -1)"},
    ),
    Mistake(
        "inputs-cut",
        "W_v is cut along its rows: a head then reads a part of the token only. It reads all of "
        "it; its part of W_v are d columns.",
        {"return fused": INPUTS_CUT},
    ),
    Mistake(
        "outputs-cut",
        "W_o is cut along its columns: a head then writes a part of the output only. It writes all "
        "of it; its part of W_o are d rows.",
        {"return fused": OUTPUTS_CUT},
    ),
    Mistake(
        "both-on-the-wrong-side",
        "W_v is cut along its rows and W_o along its columns, as nn.Linear stores them. Here both "
        "are drawn (in, out): the head's part are d columns of W_v and d rows of W_o.",
        {
            VALUES: "W_v.chunk(num_heads, dim=0)",
            OUTPUTS: "W_o.chunk(num_heads, dim=1)",
            "values @ outputs": ONE_BY_ONE,
        },
    ),
    Mistake(
        "heads-last",
        "The matrices are right, and the axis of the heads stands in another place than the first.",
        {"return fused": "return fused.movedim(0, -1)"},
        also=({"return fused": "return fused.movedim(0, 1)"},),
    ),
    Mistake(
        "transposed",
        "The matrices are transposed, (h, d_out, d_in). With row vectors, x M has d_in rows in M.",
        {"return fused": "return fused.mT"},
    ),
    Mistake(
        "as-nn-linear-stores",
        "W_v and W_o are transposed before use. Here they are drawn (in, out) already; it is "
        "nn.Linear that stores them as (out, in).",
        {"W_v.unflatten": "W_v.mT.unflatten", "W_o.unflatten": "W_o.mT.unflatten"},
    ),
    Mistake(
        "heads-reversed",
        "The heads come in the reverse order.",
        {"return fused": "return fused.flip(0)"},
    ),
    Mistake(
        "scaled",
        "There is a factor too much. The scale belongs to the scores; between W_v and W_o there is "
        "none.",
        {"return fused": "return fused / (len(W_o) / num_heads) ** 0.5"},
        also=(
            {"return fused": "return fused / num_heads"},
            {"return fused": "return fused * num_heads"},
            {"return fused": "return fused / len(W_o)"},
        ),
    ),
    Mistake(
        "a-list",
        "The matrices come as a list. One tensor (h, d_in, d_out) is asked for.",
        {"return fused": "return list(fused)"},
    ),
    Mistake(
        "one-head-only",
        "Only one head's matrix comes back.",
        {"return fused": "return fused[0]"},
        also=({"return fused": "return fused[-1]"},),
    ),
    Mistake(
        "no-gradient",
        "The values are right, but no gradient gets back to the weights: they are detached, or "
        "rebuilt from bare numbers.",
        detached("fused"),
    ),
    Mistake(
        "unfit-allowed",
        "Weights that do not fit give matrices all the same, of a part of them. Raise a ValueError "
        "with the numbers: for inner widths that differ, and for one that num_heads does not "
        "divide.",
        {f"if {UNFIT}": CUT_TO_FIT},
        also=(
            {
                UNFIT: "False",
                VALUES: "W_v.chunk(num_heads, dim=1)",
                OUTPUTS: "W_o.chunk(num_heads, dim=0)",
                "values @ outputs": ONE_BY_ONE,
            },
        ),
    ),
    asserted("For weights that do not fit an assert fails."),
    Mistake(
        "late-error",
        "Weights that do not fit are refused by an operation further on, whose message speaks of "
        "its own shapes. Raise a ValueError with the numbers before it.",
        {UNFIT: "False"},
    ),
)


EXERCISE = Exercise(
    number="5.4",
    reference=fuse_value_output,
    right=matrix_of_each_head,
    outputs=(Output("fused", "h d_in d_out"),),
    difficulty=2,
    minutes=15,
    points=3,
    may_use="torch and einops",
    stages=(
        Stage("one head", draw_one_head, "With one head it should be the product W_v W_o."),
        Stage(
            "heads",
            draw_heads,
            "One head is right, several are not: head m's matrix is the product of its columns of "
            "W_v and its rows of W_o.",
        ),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "Here some sizes agree, and the matrices differ.",
        ),
        gradient_stage(draw_gradients, INPUTS, {"W_v": "d_in d", "W_o": "d d_out"}),
        *refusal_stages(
            "unfit",
            draw_unfit,
            "Inner widths that differ, or that num_heads does not divide, are a ValueError with "
            "the numbers.",
            inputs=INPUTS,
            numbers=lambda W_v, W_o, num_heads: (
                (W_v.shape[1], num_heads)
                if W_v.shape[1] == W_o.shape[0]
                else (W_v.shape[1], W_o.shape[0])
            ),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Follow one head: x W_v has d_model features, of which d are this head's. What of W_o do "
        "these d features meet?",
        "Head m's values are made by d columns of W_v; in the merged row they stand at the places "
        "that meet d rows of W_o. Cut both with rearrange, h in front.",
        'rearrange(W_v, "d_in (h d) -> h d_in d", h=num_heads), W_o likewise by its rows, then one '
        "product for each head.",
    ),
)
