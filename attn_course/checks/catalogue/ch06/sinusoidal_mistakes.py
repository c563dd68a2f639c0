"""Exercise 6.1, sinusoidal_encoding: a right answer, and its known mistakes as edits of it."""

from __future__ import annotations

import torch
from torch import Tensor

from attn_course.checks.exercise import Mistake


def encoding(n: int, d_model: int) -> Tensor:
    """A right answer, which the mistakes edit."""
    positions = torch.arange(n).double()[:, None]
    even = torch.arange(0, d_model, 2)
    rates = 10000.0 ** (-even / d_model)
    angles = positions * rates
    sines, cosines = angles.sin(), angles.cos()
    table = torch.stack([sines, cosines], dim=-1).flatten(-2)
    return table[:, :d_model].float()


# the pieces of it that are edited most often
POSITIONS = "torch.arange(n)"
EXPONENT = "-even / d_model"
RATES = f"10000.0 ** ({EXPONENT})"
BOTH = "[sines, cosines]"
JOINED = f"torch.stack({BOTH}, dim=-1).flatten(-2)"
ONE_BEHIND_THE_OTHER = f"torch.cat({BOTH}, dim=-1)"
RESULT = "table[:, :d_model].float()"
BY_POSITION = "torch.where(positions % 2 == 0, angles.sin(), angles.cos())"
EVEN_WIDTH = "d_model // 2 * 2"


def first(statement: str) -> dict[str, str]:
    """A statement before all others."""
    return {"positions = torch": f"{statement}\n    positions = torch"}


def cosines_with(exponent: str) -> dict[str, str]:
    """Cosines whose angles are not those of the sines."""
    return {"angles.cos()": f"(positions * 10000.0 ** ({exponent})).cos()"}


MISTAKES = (
    Mistake(
        "exponent-doubled",
        "The exponent grows twice as fast as it should. `arange(0, d_model, 2)` is 2i already: "
        "multiplied by 2 again it is 4i. Most pairs then hardly turn at all. (A base of 10⁸ would "
        "do the same.)",
        {EXPONENT: "-2 * even / d_model"},
    ),
    Mistake(
        "exponent-halved",
        "The exponent grows half as fast as it should: it is 2i/d_model, where i counts pairs, not "
        "i/d_model. (A base of 100 would do the same.)",
        {EXPONENT: "-even / 2 / d_model"},
    ),
    Mistake(
        "own-rate-for-each-feature",
        "Sine and cosine of a pair turn at different rates: the squares of features 2i and 2i + 1 "
        "do not sum to 1. Both have the exponent 2i/d_model, with the same i.",
        cosines_with("-(even + 1) / d_model"),
        also=(
            cosines_with("-(even + 2) / d_model"),
            cosines_with("-2 * (even + 1) / d_model"),
            {EXPONENT: "-2 * even / d_model"} | cosines_with("-(2 * even + 2) / d_model"),
            {EXPONENT: "-2 * even / d_model"} | cosines_with("-(2 * even + 1) / d_model"),
            cosines_with("-(even - 1) / d_model"),
        ),
    ),
    Mistake(
        "exponent-sign",
        "The angle is multiplied by 10000^(2i/d_model), not divided by it: the later features "
        "turn thousands of times between neighbours.",
        {"(-even": "(even"},
    ),
    Mistake(
        "one-rate",
        "All features turn at one rate. The exponent 2i/d_model is a fraction that differs from "
        "pair to pair: fast ones tell neighbours apart, slow ones distant positions. Is it lost, "
        "or cut to a whole number by `//`?",
        {RATES: "torch.ones(len(even))"},
    ),
    Mistake(
        "base-and-exponent-swapped",
        "Base and exponent are exchanged: the number that is raised is 10000, and 2i/d_model is "
        "the power.",
        {RATES: "(even / d_model) ** -10000.0"},
        also=(
            {RATES: "(even / d_model) ** 1e-4"},
            {RATES: "(even / d_model) ** -1e-4"},
        ),
    ),
    Mistake(
        "not-divided-by-the-width",
        "The exponent is 2i; it should be 2i/d_model. Already the second pair hardly turns.",
        {EXPONENT: "-even.double()"},
        also=({EXPONENT: "-even.double() / 2"},),
    ),
    Mistake(
        "linear",
        "The angle is divided by 10000 · 2i/d_model, a product. It should be 10000 to the power of "
        "2i/d_model.",
        {RATES: "1 / (10000.0 * even / d_model)"},
        also=(
            {RATES: "1 / (10000.0 * even / d_model).clamp(min=1)"},
            {RATES: "10000.0 * even / d_model"},
        ),
    ),
    Mistake(
        "last-pair-at-10000",
        "The rates are spread so that the last pair has exactly 10000. In the formula the exponent "
        "is 2i/d_model, whose last value stays below 1.",
        {EXPONENT: "-even / 2 / max(1, len(even) - 1)"},
        also=(
            {EXPONENT: "-even / 2 / (len(even) - 1)"},
            {RATES: "torch.logspace(0, -4, len(even))"},
        ),
    ),
    Mistake(
        "pairs-from-one",
        "The pairs are counted from 1: the first pair should turn by one radian a position, with "
        "the exponent 0.",
        {EXPONENT: "-(even + 2) / d_model"},
    ),
    Mistake(
        "rates-reversed",
        "The pairs stand in the opposite order: the fastest comes first.",
        {RATES: f"({RATES}).flip(0)"},
    ),
    Mistake(
        "base",
        "The base is not 10000.",
        examples=(
            {"10000.0": "1000.0"},
            {"10000.0": "1e5"},
            {"10000.0": "512.0"},
        ),
    ),
    Mistake(
        "fixed-width",
        "The exponent is divided by a fixed number.",
        examples=(
            {EXPONENT: "-even / 512"},
            {EXPONENT: "-even / 16"},
        ),
    ),
    Mistake(
        "cosine-first",
        "Sine and cosine are exchanged: position 0 should give 0, 1, 0, 1, …",
        {BOTH: "[cosines, sines]"},
    ),
    Mistake(
        "not-interleaved",
        "All sines come first, then all cosines. Asked for is sine and cosine in turn: the pair i "
        "stands at the features 2i and 2i + 1. (Both layouts are in use; weights trained with one "
        "do not fit the other.)",
        {JOINED: ONE_BEHIND_THE_OTHER},
        also=(
            {JOINED: ONE_BEHIND_THE_OTHER, "[:, :d_model]": ""},
            {JOINED: ONE_BEHIND_THE_OTHER, EXPONENT: "-even / 2 / d_model"},
            {JOINED: ONE_BEHIND_THE_OTHER, EXPONENT: "-2 * even / d_model"},
        ),
    ),
    Mistake(
        "only-sines",
        "Every feature is a sine. The cosine at 2i + 1 tells which side of its wave the sine is "
        "on.",
        {BOTH: "[sines, sines]"},
        also=({"(0, d_model, 2)": "(d_model)", JOINED: "sines"},),
    ),
    Mistake(
        "only-cosines",
        "Every feature is a cosine.",
        {BOTH: "[cosines, cosines]"},
    ),
    Mistake(
        "angles-overwritten",
        "The cosine is taken of the sine: an operation in place (`sin_`, `out=`, or a name used "
        "again) has overwritten the angles. Make the sines and the cosines from the same angles.",
        {"angles.cos()": "angles.sin().cos()"},
        also=({"angles.sin()": "angles.cos().sin()"},),
    ),
    Mistake(
        "angles-returned",
        "These are the angles themselves. Take their sines and cosines.",
        {"angles.sin(), angles.cos()": "angles, angles"},
    ),
    Mistake(
        "alternates-over-positions",
        "Sine and cosine alternate from position to position. They alternate from feature to "
        "feature: in each row both occur.",
        {"angles.sin()": BY_POSITION, "angles.cos()": BY_POSITION},
    ),
    Mistake(
        "positions-from-one",
        "The first row is that of position 1. Position 0 comes first: 0, 1, 0, 1, …",
        {POSITIONS: "torch.arange(1, n + 1)"},
    ),
    Mistake(
        "positions-scaled",
        "The positions are divided by n, so that they depend on the length: position 3 of a short "
        "sequence is not position 3 of a long one.",
        {POSITIONS: "(torch.arange(n) / n)"},
        also=({POSITIONS: "torch.linspace(0, 1, n)"},),
    ),
    Mistake(
        "positions-reversed",
        "The last position comes first.",
        {POSITIONS: "torch.arange(n).flip(0)"},
    ),
    Mistake(
        "one-position",
        "All rows are the same: the positions do not enter.",
        {POSITIONS: "torch.zeros(n)"},
        also=(
            {POSITIONS: "torch.ones(n)"},
            {POSITIONS: "torch.full((n,), n)"},
        ),
    ),
    Mistake(
        "degrees",
        "The angles are taken for degrees; they are radians already.",
        {RATES: f"{RATES} * torch.pi / 180"},
        also=({RATES: f"({RATES}).rad2deg()"},),
    ),
    Mistake(
        "whole-turns",
        "The angle is multiplied by 2π. In the formula the wave of the first pair is 2π positions "
        "long, and there is no further π.",
        {RATES: f"2 * torch.pi * {RATES}"},
        also=({RATES: f"torch.pi * {RATES}"},),
    ),
    Mistake(
        "transposed",
        "The encoding is (d_model, n). Positions are rows, features are columns.",
        {RESULT: f"{RESULT}.mT"},
    ),
    Mistake(
        "batch-axis",
        "There is an axis for the batch. Asked for is exactly (n, d_model).",
        {RESULT: f"{RESULT}[None]"},
        also=(
            {RESULT: f"{RESULT}[:, None]"},
            {RESULT: f"{RESULT}[None, None]"},
        ),
    ),
    Mistake(
        "long-table",
        "The table has a fixed number of rows. Asked for are n.",
        {POSITIONS: "torch.arange(5000)"},
        also=(
            {POSITIONS: "torch.arange(512)"},
            {POSITIONS: "torch.arange(1000)"},
        ),
    ),
    Mistake(
        "odd-width-fails",
        "With an odd d_model there is one cosine fewer than sines: there is no room for the last "
        "one.",
        {JOINED: "torch.zeros(n, d_model)\n    table[:, 0::2], table[:, 1::2] = sines, cosines"},
        also=(first("if d_model % 2:\n        raise ValueError(f'd_model={d_model} is odd')"),),
    ),
    Mistake(
        "odd-width-not-cut",
        "With an odd d_model there is one feature too many: a cosine behind the last sine.",
        {"[:, :d_model]": ""},
        also=(first("d_model += d_model % 2"),),
    ),
    Mistake(
        "odd-width-short",
        "With an odd d_model there is one feature too few: the last sine is missing.",
        {RESULT: f"table[:, : {EVEN_WIDTH}].float()"},
        also=(first("d_model -= d_model % 2"),),
    ),
    Mistake(
        "odd-width-ends-in-zero",
        "With an odd d_model the last feature is left at zero. It is a sine.",
        {RESULT: f"F.pad(table[:, : {EVEN_WIDTH}], (0, d_model % 2)).float()"},
        also=(
            first("odd = d_model % 2\n    d_model -= odd")
            | {RESULT: "F.pad(table, (0, odd)).float()"},
        ),
    ),
    Mistake(
        "odd-width-ends-in-cosine",
        "With an odd d_model the last feature is a cosine. The features alternate, beginning with "
        "a sine, so the last one is a sine as well.",
        {RESULT: "torch.cat([table[:, : d_model - 1], cosines[:, -1:]], dim=1).float()"},
    ),
    Mistake(
        "odd-width-other-rates",
        "With an odd d_model the rates are those of another width. The exponent is 2i/d_model with "
        "d_model as it is given.",
        {EXPONENT: "-even / (d_model + d_model % 2)"},
        also=({EXPONENT: f"-even / max(1, {EVEN_WIDTH})"},),
    ),
)
