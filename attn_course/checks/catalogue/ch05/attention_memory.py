"""Exercise 5.5, attention_memory: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import Generator

from attn_course.checks.catalogue.families.refusal import asserted
from attn_course.checks.compare import is_number
from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage, whole
from attn_course.checks.refusals import refusal_stages
from attn_course.memory import attention_memory

PARTS = ("parameters", "projected", "merged", "weights")
INPUTS = ("d_model", "num_heads", "n_query", "n_key")

# -- how an answer is called ------------------------------------------------------------------


def account(answer: Answer, *sizes: int) -> Any:
    """The four numbers of the account, from whatever holds them in this order or by name."""
    found: Any = answer(*sizes)
    if isinstance(found, dict):
        found = [found.get(part) for part in PARTS]
    elif all(hasattr(found, part) for part in PARTS):
        found = tuple(getattr(found, part) for part in PARTS)
    if isinstance(found, tuple | list):
        return tuple(_as_float(number) for number in found)
    return found


def _as_float(number: Any) -> Any:
    """A number, whole or not, as a float; whatever else as it is."""
    return float(number) if is_number(number) else number


def part(name: str) -> Callable[..., Any]:
    """A call that looks at one of the four numbers only."""

    def call(answer: Answer, *sizes: int) -> Any:
        found = account(answer, *sizes)
        if isinstance(found, tuple | list) and len(found) == len(PARTS):
            return found[PARTS.index(name)]
        return found

    return call


def draw_square(rng: Generator) -> Iterator[tuple]:
    """As many keys as queries: n_key is left out."""
    yield 2, 1, 1
    yield 4, 2, 3
    yield 512, 8, 64
    yield 512, 1, 2048
    yield 48, 16, 100
    num_heads = whole(rng, 2, 9)
    yield whole(rng, 3, 40) * num_heads, num_heads, whole(rng, 3, 300)


def draw_rectangular(rng: Generator) -> Iterator[tuple]:
    """Fewer or more queries than keys."""
    yield 4, 2, 1, 3
    yield 64, 4, 10, 200
    yield 12, 3, 50, 7
    num_heads = whole(rng, 2, 9)
    yield whole(rng, 3, 40) * num_heads, num_heads, whole(rng, 3, 99), whole(rng, 100, 300)


def draw_uneven(rng: Generator) -> Iterator[tuple]:
    """A width that the heads do not divide."""
    yield 10, 4, 3
    yield 4, 8, 3


# -- the answer that the mistakes are edits of ------------------------------------------------


def bytes_of_each_part(
    d_model: int, num_heads: int, n_query: int, n_key: int | None = None
) -> tuple[int, ...]:
    """The account asked for."""
    if d_model % num_heads != 0:
        raise ValueError(f"{d_model} features, {num_heads} heads")
    d, h, i = d_model, num_heads, n_query
    j = n_query if n_key is None else n_key
    parameters = 4 * (d * d + d)
    projected = (i + 2 * j) * d
    merged = i * d
    weights = h * i * j
    return tuple(4 * numbers for numbers in (parameters, projected, merged, weights))


MISTAKES = (
    Mistake(
        "numbers-for-bytes",
        "You count numbers. Asked for are bytes: a float32 takes four.",
        {"4 * numbers": "numbers"},
    ),
    Mistake(
        "other-precision",
        "Your numbers take another amount of memory than float32 does. It has four bytes, "
        "float16 two, float64 eight; 32 is its number of bits.",
        {"4 * numbers": "2 * numbers"},
        also=(
            {"4 * numbers": "8 * numbers"},
            {"4 * numbers": "32 * numbers"},
        ),
    ),
    Mistake(
        "kilobytes",
        "The unit is a thousand bytes or more. Asked for are bytes.",
        {"4 * numbers": "4 / 1024 * numbers"},
        also=(
            {"4 * numbers": "4e-3 * numbers"},
            {"4 * numbers": "4 / 2**20 * numbers"},
            {"4 * numbers": "4e-6 * numbers"},
        ),
    ),
    Mistake(
        "biases-forgotten",
        "The biases are missing: each of the four projections has d_model of them.",
        {"4 * (d * d + d)": "4 * d * d"},
    ),
    Mistake(
        "three-projections",
        "Three projections are counted. There are four: W_o is one of them.",
        {"4 * (d * d + d)": "3 * (d * d + d)"},
        also=({"4 * (d * d + d)": "3 * d * d"},),
    ),
    Mistake(
        "parameters-for-each-head",
        "The parameters are multiplied by the number of heads. The heads share d_model features "
        "among them: each has (d_model, d_k), and h · d_k = d_model.",
        {"4 * (d * d + d)": "4 * (d * d + d) * h"},
        also=(
            {"4 * (d * d + d)": "4 * d * d * h"},
            {"4 * (d * d + d)": "(3 * h + 1) * (d * d + d)"},
        ),
    ),
    Mistake(
        "parameters-of-one-head",
        "The parameters are those of a single head, d_model / num_heads features wide. All heads "
        "together have d_model.",
        {"4 * (d * d + d)": "3 * (d * d // h + d // h) + d * d + d"},
        also=(
            {"4 * (d * d + d)": "4 * (d * d // h + d // h)"},
            {"4 * (d * d + d)": "4 * d * d // h"},
        ),
    ),
    Mistake(
        "projected-for-each-head",
        "Queries, keys and values are multiplied by the number of heads. Together the heads have "
        "d_model features a token, however many they are.",
        {"(i + 2 * j) * d": "(i + 2 * j) * d * h"},
    ),
    Mistake(
        "projected-of-one-head",
        "Queries, keys and values are those of one head. All heads together have d_model features "
        "a token.",
        {"(i + 2 * j) * d": "(i + 2 * j) * d / h"},
    ),
    Mistake(
        "one-projected",
        "Only one of query, key and value is counted. All three are kept.",
        {"(i + 2 * j) * d": "i * d"},
        also=({"(i + 2 * j) * d": "j * d"},),
    ),
    Mistake(
        "two-projected",
        "Only two of query, key and value are counted. The values are kept, too: the gradient of "
        "the weights needs them.",
        {"(i + 2 * j) * d": "(i + j) * d"},
        also=({"(i + 2 * j) * d": "2 * j * d"},),
    ),
    Mistake(
        "projected-with-the-input",
        "Four times n · d_model is counted as projected: the input is not made here. Queries, keys "
        "and values are three.",
        {"(i + 2 * j) * d": "2 * (i + j) * d"},
        also=({"(i + 2 * j) * d": "(i + 3 * j) * d"},),
    ),
    Mistake(
        "merged-for-each-head",
        "The merged heads are multiplied by the number of heads. They lie side by side in d_model "
        "features.",
        {"merged = i * d": "merged = i * d * h"},
    ),
    Mistake(
        "merged-of-one-head",
        "The merged heads are as wide as one head. They lie side by side, d_model features in all.",
        {"merged = i * d": "merged = i * d / h"},
    ),
    Mistake(
        "merged-forgotten",
        "Nothing is counted as merged. The gradient of W_o needs its input, so the heads side by "
        "side are kept: n_query · d_model.",
        {"merged = i * d": "merged = 0"},
    ),
    Mistake(
        "weights-of-one-head",
        "The weights do not know the number of heads. Each head has its own n_query · n_key: that "
        "is the one place where h counts.",
        {"h * i * j": "i * j"},
    ),
    Mistake(
        "weights-by-features",
        "The features are in the weights. A weight is one number for a head, a query and a key.",
        {"h * i * j": "h * i * j * d"},
        also=(
            {"h * i * j": "h * i * j * d / h"},
            {"h * i * j": "h * j * d"},
            {"h * i * j": "i * j * d"},
        ),
    ),
    Mistake(
        "weights-not-squared",
        "The weights grow with the length, not with its square. There is one for each pair of a "
        "query and a key.",
        {"h * i * j": "h * i"},
        also=(
            {"h * i * j": "h * j"},
            {"h * i * j": "h * (i + j)"},
        ),
    ),
    Mistake(
        "scores-kept-too",
        "Scores and weights are counted, twice h · n_query · n_key. The softmax's gradient needs "
        "its result only; the scores are let go.",
        {"h * i * j": "2 * h * i * j"},
    ),
    Mistake(
        "heads-squared",
        "The number of heads is squared. Heads do not attend to each other.",
        {"h * i * j": "h * h * i * j"},
    ),
    Mistake(
        "causal-half",
        "Half of the weights is counted. A mask hides them, but a tensor has no gaps: hidden "
        "weights are zeros that take their place.",
        {"h * i * j": "h * i * j / 2"},
        also=({"h * i * j": "h * i * (j + 1) / 2"},),
    ),
    Mistake(
        "queries-for-keys",
        "n_query stands where n_key belongs, or n_key is not used. Queries have n_query rows, keys "
        "and values n_key; the weights have one for each pair; what is merged has a row for each "
        "query.",
        {"(i + 2 * j) * d": "3 * i * d", "h * i * j": "h * i * i"},
        also=(
            {"(i + 2 * j) * d": "3 * i * d"},
            {"h * i * j": "h * i * i"},
            {"(i + 2 * j) * d": "(2 * i + j) * d"},
            {"h * i * j": "h * j * j"},
            {"(i + 2 * j) * d": "3 * j * d"},
            {"merged = i * d": "merged = j * d"},
        ),
    ),
    Mistake(
        "one-number",
        "One number comes back. Asked for are four, each for what it holds: they grow in different "
        "ways.",
        {"return tuple(": "return sum("},
    ),
    Mistake(
        "uneven-allowed",
        "A d_model that num_heads does not divide gets an account, of a layer that cannot be. "
        "Raise a ValueError with both numbers.",
        {"d_model % num_heads != 0": "False"},
    ),
    asserted("Where num_heads does not divide d_model an assert fails."),
)

SAID = {
    "parameters": "The bytes of the parameters are wrong: the four projections, weights and "
    "biases.",
    "projected": "The bytes of queries, keys and values are wrong.",
    "merged": "The bytes of the heads' outputs side by side are wrong.",
    "weights": "The bytes of the attention weights are wrong.",
}

EXERCISE = Exercise(
    number="5.5",
    reference=attention_memory,
    right=bytes_of_each_part,
    outputs=tuple(Output(name) for name in PARTS),
    difficulty=2,
    minutes=15,
    points=3,
    may_use="Python's arithmetic",
    stages=(
        *(
            Stage(
                name,
                draw_square,
                SAID[name],
                call=part(name),
                outputs=(Output(name),),
                inputs=INPUTS,
            )
            for name in PARTS
        ),
        Stage(
            "other lengths",
            draw_rectangular,
            "With as many keys as queries it is right; here n_key is another number.",
            call=account,
            inputs=INPUTS,
        ),
        *refusal_stages(
            "uneven",
            draw_uneven,
            "A d_model that num_heads does not divide is a ValueError, with both numbers.",
            inputs=INPUTS,
            numbers=lambda d_model, num_heads, *_: (d_model, num_heads),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Walk through the forward pass and write down the shape of what each step leaves behind. "
        "Which of these shapes have h in them, and in which does it come together with d_k?",
        "h heads of d_model / h features are d_model features. So h is left over in one place "
        "only: where there are no features, in the weights (h, i, j).",
        "parameters: four times d_model² + d_model. projected: one row for each query, two for "
        "each key. All of it times 4, the bytes of a float32.",
    ),
)
