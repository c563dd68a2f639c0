"""Exercise 5.5, fuse_value_output: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage, normal, tenths
from attn_course.checks.gradients import detached_inputs, gradient_stage
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


# -- known-wrong versions ---------------------------------------------------------------------

Rule = Callable[[Tensor, Tensor, int], Any]


def checked(rule: Rule) -> Answer:
    """A version that refuses what it should, and fuses by `rule`."""

    def answer(W_v: Tensor, W_o: Tensor, num_heads: int) -> Any:
        if W_v.shape[1] != W_o.shape[0] or W_v.shape[1] % num_heads != 0:
            raise ValueError(f"{tuple(W_v.shape)}, {tuple(W_o.shape)}, {num_heads} heads")
        return rule(W_v, W_o, num_heads)

    return answer


def parts(W_v: Tensor, W_o: Tensor, h: int) -> tuple[Tensor, Tensor]:
    """Columns of W_v and rows of W_o, head by head: (h, d_in, d) and (h, d, d_out)."""
    return W_v.unflatten(1, (h, -1)).movedim(1, 0), W_o.unflatten(0, (h, -1))


def interleaved(W_v: Tensor, W_o: Tensor, h: int) -> tuple[Tensor, Tensor]:
    """The same in (d h) order."""
    return W_v.unflatten(1, (-1, h)).movedim(2, 0), W_o.unflatten(0, (-1, h)).movedim(1, 0)


def product(parts: tuple[Tensor, Tensor]) -> Tensor:
    """One matrix for each head."""
    return parts[0] @ parts[1]


def right(W_v: Tensor, W_o: Tensor, h: int) -> Tensor:
    """What is asked for."""
    return product(parts(W_v, W_o, h))


def reversed_product(W_v: Tensor, W_o: Tensor, h: int) -> Tensor:
    """W_o before W_v."""
    values, outputs = parts(W_v, W_o, h)
    return outputs @ values


def transposed_first(W_v: Tensor, W_o: Tensor, h: int) -> Tensor:
    """Takes both for what nn.Linear stores."""
    return right(W_v.mT, W_o.mT, h)


def mixed(W_v: Tensor, W_o: Tensor, h: int) -> Tensor:
    """Columns in (h d) order, rows in (d h) order."""
    return parts(W_v, W_o, h)[0] @ interleaved(W_v, W_o, h)[1]


def viewed(W_v: Tensor, W_o: Tensor, h: int) -> Tensor:
    """W_v counted off anew, so that its rows are cut."""
    return W_v.reshape(h, len(W_v), -1) @ parts(W_v, W_o, h)[1]


def unchecked(W_v: Tensor, W_o: Tensor, num_heads: int) -> Tensor:
    """Takes what is left of the features."""
    n = min(W_v.shape[1], len(W_o)) // num_heads * num_heads
    return right(W_v[:, :n], W_o[:n], num_heads)


def chunked(W_v: Tensor, W_o: Tensor, num_heads: int) -> Tensor:
    """Lets `chunk` make as many parts as come out."""
    pairs = zip(W_v.chunk(num_heads, dim=1), W_o.chunk(num_heads, dim=0), strict=True)
    return torch.stack([values @ outputs for values, outputs in pairs])


def on_the_wrong_sides(W_v: Tensor, W_o: Tensor, num_heads: int) -> Tensor:
    """Cuts the rows of W_v and the columns of W_o."""
    pairs = zip(W_v.chunk(num_heads, dim=0), W_o.chunk(num_heads, dim=1), strict=False)
    return torch.stack([values @ outputs for values, outputs in pairs])


def as_it_comes(W_v: Tensor, W_o: Tensor, num_heads: int) -> Tensor:
    """Leaves it to PyTorch to complain."""
    return right(W_v, W_o, num_heads)


def asserted(W_v: Tensor, W_o: Tensor, num_heads: int) -> Tensor:
    """Refuses with an assert."""
    assert W_v.shape[1] == len(W_o)
    assert len(W_o) % num_heads == 0
    return right(W_v, W_o, num_heads)


MISTAKES = (
    Mistake(
        "order-exchanged",
        "The product is taken the other way round, W_o before W_v. Row vectors pass W_v first: "
        "x W_v W_o.",
        checked(reversed_product),
    ),
    Mistake(
        "heads-fused-together",
        "W_v and W_o are multiplied whole, so the heads are added up. Each head has weights of its "
        "own over the tokens, so each needs a matrix of its own: (h, d_in, d_out).",
        checked(lambda W_v, W_o, h: W_v @ W_o),
        also=(
            checked(lambda W_v, W_o, h: (W_v @ W_o)[None]),
            checked(lambda W_v, W_o, h: (W_v @ W_o).expand(h, -1, -1)),
            checked(lambda W_v, W_o, h: right(W_v, W_o, h).sum(dim=0)),
        ),
    ),
    Mistake(
        "averaged",
        "The heads' matrices are averaged. One for each head is asked for.",
        checked(lambda W_v, W_o, h: right(W_v, W_o, h).mean(dim=0)),
    ),
    Mistake(
        "features-first",
        "The heads are dealt out in turn, (d h). They lie head after head, (h d): the first d "
        "columns of W_v and the first d rows of W_o are head 0's.",
        checked(lambda W_v, W_o, h: product(interleaved(W_v, W_o, h))),
    ),
    Mistake(
        "one-side-interleaved",
        "W_v and W_o are cut in different orders: one head's values meet another's outputs.",
        checked(mixed),
    ),
    Mistake(
        "rows-cut",
        "W_v is counted off anew, so that its rows are cut. The head's part are d of its columns, "
        "in every row.",
        checked(viewed),
    ),
    Mistake(
        "inputs-cut",
        "W_v is cut along its rows: a head then reads a part of the token only. It reads all of "
        "it; its part of W_v are d columns.",
        checked(lambda W_v, W_o, h: W_v.unflatten(0, (h, -1)) @ W_o if len(W_v) % h == 0 else None),
    ),
    Mistake(
        "outputs-cut",
        "W_o is cut along its columns: a head then writes a part of the output only. It writes all "
        "of it; its part of W_o are d rows.",
        checked(
            lambda W_v, W_o, h: (
                W_v @ W_o.unflatten(1, (h, -1)).movedim(1, 0) if W_o.shape[1] % h == 0 else None
            )
        ),
    ),
    Mistake(
        "both-on-the-wrong-side",
        "W_v is cut along its rows and W_o along its columns, as nn.Linear stores them. Here both "
        "are drawn (in, out): the head's part are d columns of W_v and d rows of W_o.",
        checked(on_the_wrong_sides),
    ),
    Mistake(
        "heads-last",
        "The matrices are right, and the axis of the heads stands in another place than the first.",
        checked(lambda W_v, W_o, h: right(W_v, W_o, h).movedim(0, -1)),
        also=(checked(lambda W_v, W_o, h: right(W_v, W_o, h).movedim(0, 1)),),
    ),
    Mistake(
        "transposed",
        "The matrices are transposed, (h, d_out, d_in). With row vectors, x M has d_in rows in M.",
        checked(lambda W_v, W_o, h: right(W_v, W_o, h).mT),
    ),
    Mistake(
        "as-nn-linear-stores",
        "W_v and W_o are transposed before use. Here they are drawn (in, out) already; it is "
        "nn.Linear that stores them as (out, in).",
        checked(transposed_first),
    ),
    Mistake(
        "heads-reversed",
        "The heads come in the reverse order.",
        checked(lambda W_v, W_o, h: right(W_v, W_o, h).flip(0)),
    ),
    Mistake(
        "scaled",
        "There is a factor too much. The scale belongs to the scores; between W_v and W_o there is "
        "none.",
        checked(lambda W_v, W_o, h: right(W_v, W_o, h) / sqrt(len(W_o) / h)),
        also=(
            checked(lambda W_v, W_o, h: right(W_v, W_o, h) / h),
            checked(lambda W_v, W_o, h: right(W_v, W_o, h) * h),
            checked(lambda W_v, W_o, h: right(W_v, W_o, h) / len(W_o)),
        ),
    ),
    Mistake(
        "a-list",
        "The matrices come as a list. One tensor (h, d_in, d_out) is asked for.",
        checked(lambda W_v, W_o, h: list(right(W_v, W_o, h))),
    ),
    Mistake(
        "one-head-only",
        "Only one head's matrix comes back.",
        checked(lambda W_v, W_o, h: right(W_v, W_o, h)[0]),
        also=(checked(lambda W_v, W_o, h: right(W_v, W_o, h)[-1]),),
    ),
    Mistake(
        "no-gradient",
        "The values are right, but no gradient gets back to the weights: they are detached, or "
        "rebuilt from bare numbers.",
        detached_inputs(fuse_value_output),
    ),
    Mistake(
        "unfit-allowed",
        "Weights that do not fit give matrices all the same, of a part of them. Raise a ValueError "
        "with the numbers: for inner widths that differ, and for one that num_heads does not "
        "divide.",
        unchecked,
        also=(chunked,),
    ),
    Mistake(
        "asserted",
        "For weights that do not fit an assert fails. An assert is left out under `python -O`; a "
        "user's mistake is a ValueError with the numbers.",
        asserted,
    ),
    Mistake(
        "late-error",
        "Weights that do not fit are refused by an operation further on, whose message speaks of "
        "its own shapes. Raise a ValueError with the numbers before it.",
        as_it_comes,
    ),
)


EXERCISE = Exercise(
    number="5.5",
    reference=fuse_value_output,
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
