"""Exercise 6.5, relative_shift: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage, whole
from attn_course.checks.refusals import not_refused, refusal_stages
from attn_course.positions import relative_shift, sinusoidal_encoding


def draw_one_pair(rng: Generator) -> Iterator[tuple]:
    """One pair, turned by as many radians as positions."""
    yield from ((1, 2), (2, 2), (3, 2), (whole(rng, 4, 60), 2))


def draw_several_pairs(rng: Generator) -> Iterator[tuple]:
    """Each pair turns at a rate of its own."""
    yield from ((1, 4), (5, 6), (3, 16), (37, 24))
    yield whole(rng, 4, 60), 2 * whole(rng, 2, 16)


def draw_back(rng: Generator) -> Iterator[tuple]:
    """No shift, and one to earlier positions."""
    yield from ((0, 2), (-1, 2), (0, 6), (-4, 8), (-20, 16))
    yield -whole(rng, 2, 60), 2 * whole(rng, 2, 16)


def draw_odd(rng: Generator) -> Iterator[tuple]:
    """A sine without its cosine."""
    yield from ((1, 3), (2, 1), (4, 9))


# -- known-wrong versions ---------------------------------------------------------------------

Rates = Callable[[Tensor, int], Tensor]
Block = Callable[[Tensor, Tensor], list[Tensor]]


def paper(even: Tensor, d: int) -> Tensor:
    """10000^(−2i/d), where `even` is 2i."""
    return 10000.0 ** (-even / d)


def right_block(cos: Tensor, sin: Tensor) -> list[Tensor]:
    """What turns (sin, cos) on, row by row."""
    return [cos, -sin, sin, cos]


def version(
    rates: Rates = paper,
    block: Block = right_block,
    *,
    shift_of: Callable[[int], float] = float,
    refuse: bool = True,
    finish: Callable[[Tensor], Any] = lambda matrix: matrix,
) -> Answer:
    """A matrix of such blocks on the diagonal."""

    def answer(shift: int, d_model: int) -> Any:
        if refuse and d_model % 2:
            raise ValueError(f"d_model={d_model} is odd")
        angles = shift_of(shift) * rates(torch.arange(0, d_model, 2), d_model)
        entries = torch.stack(block(angles.cos(), angles.sin()), dim=-1)
        return finish(torch.block_diag(*entries.unflatten(-1, (2, 2))))

    return answer


def of_halves(shift: int, d_model: int) -> Tensor:
    """For an encoding with all sines first."""
    matrix = version()(shift, d_model)
    order = torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])
    return matrix[order][:, order]


def rolled(shift: int, d_model: int) -> Tensor:
    """Moves features, or rows, instead of turning pairs."""
    return torch.eye(d_model).roll(shift, dims=1)


def overlapping(start: Tensor, shift: int, d_model: int) -> Tensor:
    """Block i stands at row and column i, written over the one before."""
    matrix, right = start.clone(), version()(shift, d_model)
    for i in range(d_model // 2):
        matrix[i : i + 2, i : i + 2] = right[2 * i : 2 * i + 2, 2 * i : 2 * i + 2]
    return matrix


def to_add(shift: int, d_model: int) -> Tensor:
    """The encoding of the shift itself."""
    return sinusoidal_encoding(abs(shift) + 1, d_model)[-1]


def asserted(shift: int, d_model: int) -> Tensor:
    """Refuses with an assert."""
    assert d_model % 2 == 0
    return version()(shift, d_model)


MISTAKES = (
    Mistake(
        "transposed",
        "The matrix is transposed: it moves the encoding back by `shift`. A pair here is (sin, "
        "cos), in this order, and the encoding is a row to the left of the matrix. Check it with "
        "one pair: (sin a, cos a) M should be (sin(a + shift), cos(a + shift)).",
        version(block=lambda cos, sin: [cos, sin, -sin, cos]),
    ),
    Mistake(
        "minus-lost",
        "Both sines have the same sign. This is no rotation: the length of the encoding changes.",
        version(block=lambda cos, sin: [cos, sin, sin, cos]),
        also=(version(block=lambda cos, sin: [cos, -sin, -sin, cos]),),
    ),
    Mistake(
        "sine-and-cosine-exchanged",
        "Sine and cosine are exchanged: a shift by 0 should be the matrix that changes nothing.",
        version(block=lambda cos, sin: [sin, cos, -cos, sin]),
        also=(
            version(block=lambda cos, sin: [sin, -cos, cos, sin]),
            version(block=lambda cos, sin: [sin, cos, cos, -sin]),
        ),
    ),
    Mistake(
        "minus-on-a-cosine",
        "The minus stands before a cosine, so this is a reflection. In sin(a + b) and cos(a + b) "
        "the one minus belongs to a product of two sines.",
        version(block=lambda cos, sin: [cos, sin, sin, -cos]),
        also=(
            version(block=lambda cos, sin: [-cos, sin, sin, cos]),
            version(block=lambda cos, sin: [-cos, -sin, sin, cos]),
            version(block=lambda cos, sin: [cos, -sin, sin, -cos]),
        ),
    ),
    Mistake(
        "only-cosines",
        "Each feature is only scaled. The new sine needs the old cosine, too: "
        "sin(a + b) = sin a cos b + cos a sin b.",
        version(block=lambda cos, sin: [cos, 0 * sin, 0 * sin, cos]),
        also=(version(block=lambda cos, sin: [sin, 0 * sin, 0 * sin, cos]),),
    ),
    Mistake(
        "one-rate",
        "All pairs are turned by the same angle. Each pair has its own rate, 1/10000^(2i/d_model).",
        version(lambda even, d: torch.ones(len(even))),
    ),
    Mistake(
        "exponent-doubled",
        "The exponent grows twice as fast as it should: `arange(0, d_model, 2)` is 2i already.",
        version(lambda even, d: paper(2 * even, d)),
    ),
    Mistake(
        "exponent-halved",
        "The exponent grows half as fast as it should: it is 2i/d_model, where i counts the pairs.",
        version(lambda even, d: paper(even / 2, d)),
    ),
    Mistake(
        "exponent-sign",
        "The angle is multiplied by 10000^(2i/d_model), not divided by it.",
        version(lambda even, d: 10000.0 ** (even / d)),
    ),
    Mistake(
        "rates-reversed",
        "The pairs stand in the opposite order: the first one turns fastest.",
        version(lambda even, d: paper(even, d).flip(0)),
    ),
    Mistake(
        "other-base",
        "The pairs turn at rates of another base than 10000.",
        version(lambda even, d: 1000.0 ** (-even / d)),
    ),
    Mistake(
        "halves",
        "The matrix is for an encoding with all sines first, then all cosines. Here sine and "
        "cosine of a pair are neighbours, so that the blocks stand on the diagonal.",
        of_halves,
    ),
    Mistake(
        "shift-ignored",
        "The shift has no effect: the matrix is that of one position.",
        version(shift_of=lambda shift: 1.0),
    ),
    Mistake(
        "one-too-far",
        "The matrix moves the encoding one position too far.",
        version(shift_of=lambda shift: shift + 1),
    ),
    Mistake(
        "one-too-few",
        "The matrix moves the encoding one position too few.",
        version(shift_of=lambda shift: shift - 1),
    ),
    Mistake(
        "never-back",
        "A negative shift moves on, not back.",
        version(shift_of=abs),
    ),
    Mistake(
        "back-refused",
        "A negative shift is refused. It turns the pairs back.",
        lambda shift, d: version()(shift, d) if shift >= 0 else version()(shift, 1),
    ),
    Mistake(
        "features-rolled",
        "The matrix moves features along. Features stay where they are; each pair of them is "
        "turned.",
        rolled,
        also=(lambda shift, d: torch.eye(d).roll(-shift, dims=1),),
    ),
    Mistake(
        "identity",
        "The matrix changes nothing.",
        version(shift_of=lambda shift: 0.0),
    ),
    Mistake(
        "one-block",
        "Only the first pair is turned; the others are left as they are.",
        version(lambda even, d: (even == 0).float()),
    ),
    Mistake(
        "batch-axis",
        "There is an axis for the batch. Asked for is exactly (d_model, d_model): the matrix is "
        "the same for all.",
        version(finish=lambda m: m[None]),
    ),
    Mistake(
        "blocks-stacked",
        "The blocks come back side by side, (d_model/2, 2, 2). Put them on the diagonal of one "
        "matrix (d_model, d_model): torch.block_diag does that.",
        version(
            finish=lambda m: torch.stack([m[k : k + 2, k : k + 2] for k in range(0, len(m), 2)])
        ),
    ),
    Mistake(
        "blocks-overlapping",
        "The blocks overlap: block i begins at row and column i. A pair takes two of each, so it "
        "begins at 2i.",
        lambda shift, d: overlapping(torch.eye(d), shift, d),
        also=(lambda shift, d: overlapping(torch.zeros(d, d), shift, d),),
    ),
    Mistake(
        "vector",
        "This is the encoding of the shift, a vector. A shift is not added: it is a matrix, the "
        "same for every position.",
        to_add,
        also=(lambda shift, d: to_add(shift, d)[None],),
    ),
    Mistake(
        "odd-accepted",
        "An odd d_model raises another error, or none. The last sine has no cosine, without which "
        "it cannot be moved on: raise a ValueError that names d_model.",
        version(refuse=False),
        also=(version(refuse=False, finish=lambda m: m[: len(m) - 1, : len(m) - 1]),),
    ),
    Mistake(
        "asserted",
        "With an odd d_model an assert fails. An assert is for the programmer, and is left out "
        "under `python -O`; a user's mistake is a ValueError with the number.",
        asserted,
    ),
)

EXERCISE = Exercise(
    number="6.5",
    reference=relative_shift,
    outputs=(Output("matrix", "row column"),),
    difficulty=3,
    minutes=25,
    points=3,
    may_use="torch and einops",
    stages=(
        Stage(
            "one pair",
            draw_one_pair,
            "With d_model = 2, (sin a, cos a) times the matrix should be (sin(a + shift), "
            "cos(a + shift)).",
        ),
        Stage(
            "several pairs",
            draw_several_pairs,
            "One pair alone is right; with several, each has a block of its own on the diagonal, "
            "turned by its own rate.",
        ),
        Stage(
            "no shift, and back",
            draw_back,
            "Shifts to later positions are right; a shift by 0 changes nothing, and a negative one "
            "leads back.",
        ),
        *refusal_stages(
            "odd width",
            draw_odd,
            "With an odd d_model the last sine has no cosine: raise a ValueError that names "
            "d_model.",
            inputs=("shift", "d_model"),
            numbers=lambda _, d_model: (d_model,),
            diagnose=not_refused(MISTAKES, "odd-accepted"),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "One pair first. Write sin(a + b) and cos(a + b) in terms of sin a and cos a. The factors "
        "of the new sine are the first column of the matrix.",
        "Row vectors: the new sine is sin a · M₀₀ + cos a · M₁₀. Which of cos b, sin b, −sin b "
        "stands where?",
        "The block is [[cos b, −sin b], [sin b, cos b]], with b = shift / 10000^(2i/d_model) for "
        "pair i. torch.block_diag(*blocks) puts the blocks on the diagonal.",
    ),
)
