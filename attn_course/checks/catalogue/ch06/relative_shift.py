"""Exercise 6.3, relative_shift: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.families.refusal import WITH_THE_NUMBER, asserted
from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Exercise, Mistake, Output, Stage, whole
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


# -- known mistakes ---------------------------------------------------------------------------


def right(shift: int, d_model: int) -> Tensor:
    """A matrix as a learner may write it; each mistake is an edit of this."""
    if d_model % 2:
        raise ValueError(f"d_model={d_model} is odd")
    exponents = torch.arange(0, d_model, 2) / d_model
    angles = shift * 10000.0**-exponents
    blocks = []
    for cos, sin in zip(angles.cos(), angles.sin(), strict=True):
        blocks.append(torch.tensor([[cos, -sin], [sin, cos]]))
    return torch.block_diag(*blocks)


REFUSED = 'if d_model % 2:\n        raise ValueError(f"d_model={d_model} is odd")\n    '
RATES, BLOCK = "10000.0**-exponents", "[[cos, -sin], [sin, cos]]"
HALVES = "torch.arange(d_model).reshape(-1, 2).T.flatten()"


def overlapping(start: str) -> Edits:
    """Block i stands at row and column i, written over the one before."""
    loop = "for i, block in enumerate(blocks):\n        matrix[i : i + 2, i : i + 2] = block"
    diagonal = "return torch.block_diag(*blocks)"
    return {diagonal: f"matrix = {start}\n    {loop}\n    return matrix"}


def to_add(shift: int, d_model: int) -> Tensor:
    """The encoding of the shift itself."""
    return sinusoidal_encoding(abs(shift) + 1, d_model)[-1]


MISTAKES = (
    Mistake(
        "transposed",
        "The matrix is transposed: it moves the encoding back by `shift`. A pair here is (sin, "
        "cos), in this order, and the encoding is a row to the left of the matrix. Check it with "
        "one pair: (sin a, cos a) M should be (sin(a + shift), cos(a + shift)).",
        {BLOCK: "[[cos, sin], [-sin, cos]]"},
    ),
    Mistake(
        "minus-lost",
        "Both sines have the same sign. This is no rotation: the length of the encoding changes.",
        {"-sin": "sin"},
        also=({BLOCK: "[[cos, -sin], [-sin, cos]]"},),
    ),
    Mistake(
        "sine-and-cosine-exchanged",
        "Sine and cosine are exchanged: a shift by 0 should be the matrix that changes nothing.",
        {BLOCK: "[[sin, cos], [-cos, sin]]"},
        also=(
            {BLOCK: "[[sin, -cos], [cos, sin]]"},
            {BLOCK: "[[sin, cos], [cos, -sin]]"},
        ),
    ),
    Mistake(
        "minus-on-a-cosine",
        "The minus stands before a cosine, so this is a reflection. In sin(a + b) and cos(a + b) "
        "the one minus belongs to a product of two sines.",
        {BLOCK: "[[cos, sin], [sin, -cos]]"},
        also=(
            {BLOCK: "[[-cos, sin], [sin, cos]]"},
            {BLOCK: "[[-cos, -sin], [sin, cos]]"},
            {BLOCK: "[[cos, -sin], [sin, -cos]]"},
        ),
    ),
    Mistake(
        "only-cosines",
        "Each feature is only scaled. The new sine needs the old cosine, too: "
        "sin(a + b) = sin a cos b + cos a sin b.",
        {BLOCK: "[[cos, 0], [0, cos]]"},
        also=({BLOCK: "[[sin, 0], [0, cos]]"},),
    ),
    Mistake(
        "one-rate",
        "All pairs are turned by the same angle. Each pair has its own rate, 1/10000^(2i/d_model).",
        {RATES: "torch.ones_like(exponents)"},
    ),
    Mistake(
        "exponent-doubled",
        "The exponent grows twice as fast as it should: `arange(0, d_model, 2)` is 2i already.",
        {RATES: "10000.0 ** (-2 * exponents)"},
    ),
    Mistake(
        "exponent-halved",
        "The exponent grows half as fast as it should: it is 2i/d_model, where i counts the pairs.",
        {RATES: "10000.0 ** (-exponents / 2)"},
    ),
    Mistake(
        "exponent-sign",
        "The angle is multiplied by 10000^(2i/d_model), not divided by it.",
        {RATES: "10000.0**exponents"},
    ),
    Mistake(
        "rates-reversed",
        "The pairs stand in the opposite order: the first one turns fastest.",
        {RATES: f"({RATES}).flip(0)"},
    ),
    Mistake(
        "other-base",
        "The pairs turn at rates of another base than 10000.",
        {RATES: "1000.0**-exponents"},
    ),
    Mistake(
        "halves",
        "The matrix is for an encoding with all sines first, then all cosines. Here sine and "
        "cosine of a pair are neighbours, so that the blocks stand on the diagonal.",
        {
            "return": f"halves = {HALVES}\n    return",
            "(*blocks)": "(*blocks)[halves][:, halves]",
        },
    ),
    Mistake(
        "shift-ignored",
        "The shift has no effect: the matrix is that of one position.",
        {"shift * ": ""},
    ),
    Mistake(
        "one-too-far",
        "The matrix moves the encoding one position too far.",
        {"shift * ": "(shift + 1) * "},
    ),
    Mistake(
        "one-too-few",
        "The matrix moves the encoding one position too few.",
        {"shift * ": "(shift - 1) * "},
    ),
    Mistake(
        "never-back",
        "A negative shift moves on, not back.",
        {"shift * ": "abs(shift) * "},
    ),
    Mistake(
        "back-refused",
        "A negative shift is refused. It turns the pairs back.",
        {"if d_model % 2": "if shift < 0 or d_model % 2"},
    ),
    Mistake(
        "features-rolled",
        "The matrix moves features along. Features stay where they are; each pair of them is "
        "turned.",
        lambda shift, d: torch.eye(d).roll(shift, dims=1),
        also=(lambda shift, d: torch.eye(d).roll(-shift, dims=1),),
    ),
    Mistake(
        "identity",
        "The matrix changes nothing.",
        {"shift * ": "0 * "},
    ),
    Mistake(
        "one-block",
        "Only the first pair is turned; the others are left as they are.",
        {RATES: "(exponents == 0).float()"},
    ),
    Mistake(
        "batch-axis",
        "There is an axis for the batch. Asked for is exactly (d_model, d_model): the matrix is "
        "the same for all.",
        {"(*blocks)": "(*blocks)[None]"},
    ),
    Mistake(
        "blocks-stacked",
        "The blocks come back side by side, (d_model/2, 2, 2). Put them on the diagonal of one "
        "matrix (d_model, d_model): torch.block_diag does that.",
        {"block_diag(*blocks)": "stack(blocks)"},
    ),
    Mistake(
        "blocks-overlapping",
        "The blocks overlap: block i begins at row and column i. A pair takes two of each, so it "
        "begins at 2i.",
        overlapping("torch.eye(d_model)"),
        also=(overlapping("torch.zeros(d_model, d_model)"),),
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
        {REFUSED: ""},
        also=({REFUSED: "", "(*blocks)": "(*blocks)[:-1, :-1]"},),
    ),
    asserted("With an odd d_model an assert fails.", WITH_THE_NUMBER),
)

EXERCISE = Exercise(
    number="6.3",
    reference=relative_shift,
    right=right,
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
