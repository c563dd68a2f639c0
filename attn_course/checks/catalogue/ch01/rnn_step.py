"""Exercise 1.1, rnn_step: its probes and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.catalogue.families.gradient import detached
from attn_course.checks.exercise import Exercise, Mistake, Output, Stage, normal
from attn_course.checks.gradients import gradient_stage
from attn_course.recurrent import rnn_step
from attn_course.sentences import say

# -- probes -----------------------------------------------------------------------------------


def small(rng: Generator, *shape: int) -> Tensor:
    """One decimal between -0.9 and 0.9, none of them zero: sums that tanh does not flatten."""
    magnitude = torch.randint(1, 10, shape, generator=rng)
    sign = torch.randint(0, 2, shape, generator=rng) * 2 - 1
    return sign * magnitude / 10


def drawn(
    rng: Generator, batch: int, d_in: int, d_h: int, kind: Any = normal
) -> tuple[Tensor, ...]:
    """Random arguments (x, h, W_x, W_h, b) of these sizes."""
    x, h, b = kind(rng, batch, d_in), kind(rng, batch, d_h), kind(rng, d_h)
    return x, h, kind(rng, d_in, d_h), kind(rng, d_h, d_h), b


def draw_input(rng: Generator) -> Iterator[tuple]:
    """No old state and no bias: the new state is tanh(x W_x)."""
    for sizes, kind in (((1, 1, 2), small), ((3, 5, 4), normal)):
        x, h, W_x, W_h, b = drawn(rng, *sizes, kind)
        yield x, torch.zeros_like(h), W_x, W_h, torch.zeros_like(b)


def draw_state(rng: Generator) -> Iterator[tuple]:
    """No input and no bias: the new state is tanh(h W_h)."""
    x, W_x = torch.zeros(1, 1), small(rng, 1, 2)
    yield x, small(rng, 1, 2), W_x, small(rng, 2, 2), torch.zeros(2)
    x, h, W_x, W_h, b = drawn(rng, 3, 5, 4)
    yield torch.zeros_like(x), h, W_x, W_h, torch.zeros_like(b)


def draw_bias(rng: Generator) -> Iterator[tuple]:
    """Neither input nor old state: the new state is tanh(b), the same for each sequence."""
    yield torch.zeros(1, 1), torch.zeros(1, 2), small(rng, 1, 2), small(rng, 2, 2), small(rng, 2)
    x, h, W_x, W_h, b = drawn(rng, 3, 5, 4)
    yield torch.zeros_like(x), torch.zeros_like(h), W_x, W_h, b


def draw_together(rng: Generator) -> Iterator[tuple]:
    """All parts, all sizes different; once in float64."""
    x, W_x = small(rng, 1, 1), small(rng, 1, 2)
    yield x, small(rng, 1, 2), W_x, small(rng, 2, 2), small(rng, 2)
    yield drawn(rng, 2, 5, 3)
    yield drawn(rng, 4, 2, 7)
    yield tuple(tensor.double() for tensor in drawn(rng, 2, 4, 3))


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """Sizes that coincide, so that a transposed or exchanged weight raises no error."""
    yield drawn(rng, 1, 2, 2, small)
    yield drawn(rng, 2, 4, 4)
    yield drawn(rng, 4, 3, 4)
    yield drawn(rng, 3, 3, 3)


def draw_large(rng: Generator) -> Iterator[tuple]:
    """Sums far beyond where exp overflows: tanh is 1 or -1 there."""
    W_x = torch.tensor([[100.0, -100.0]])
    yield torch.ones(1, 1), torch.zeros(1, 2), W_x, torch.zeros(2, 2), torch.zeros(2)
    x, h, W_x, W_h, b = (tensor.double() for tensor in drawn(rng, 3, 5, 4))
    yield 200 * x, h, W_x, W_h, b  # in float64 a sum that was cut at 5 shows, too


def draw_to_train(rng: Generator) -> Iterator[tuple]:
    """Gradients with respect to all five arguments."""
    yield drawn(rng, 1, 1, 2, small)
    yield drawn(rng, 2, 5, 3)


# -- known mistakes ---------------------------------------------------------------------------


def right(x: Tensor, h: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor) -> Tensor:
    """The step as a learner may write it; each mistake is an edit of it."""
    z = x @ W_x + h @ W_h + b
    new = torch.tanh(z)
    return new


SUM, TANH = "x @ W_x + h @ W_h + b", "torch.tanh(z)"
BY_EXPONENTIALS = "(z.exp() - (-z).exp()) / (z.exp() + (-z).exp())"
BY_ONE_EXPONENTIAL = "((2 * z).exp() - 1) / ((2 * z).exp() + 1)"

GRADIENT_CUT = (
    "The values are right, but no gradient comes back: something takes the numbers out of "
    "torch's graph (`detach`, `.data`, `no_grad`, numpy, `torch.tensor`)."
)
ONCE = say("tanh is taken once, of the whole sum x W_x + h W_h + b")
MISTAKES = (
    Mistake(
        "no-tanh",
        "The sum is returned as it is: tanh is missing, or its result is thrown away.",
        {TANH: "z"},
    ),
    Mistake("tanh-twice", "tanh is taken twice.", {TANH: "z.tanh().tanh()"}),
    Mistake(
        "sigmoid",
        "The sum goes through a sigmoid, which has only values from 0 to 1. The step asks for "
        "tanh, from -1 to 1.",
        {TANH: "torch.sigmoid(z)"},
    ),
    Mistake(
        "stretched-sigmoid",
        "A sigmoid, stretched to values from -1 to 1, is only half as steep as tanh: tanh(z) is "
        "2 σ(2z) - 1.",
        {TANH: "2 * torch.sigmoid(z) - 1"},
    ),
    Mistake(
        "relu",
        "Negative sums become 0: this is a ReLU. The step asks for tanh.",
        {TANH: "torch.relu(z)"},
    ),
    Mistake(
        "clamped",
        "The sum is cut off at -1 and 1. tanh bends there gradually.",
        {TANH: "z.clamp(-1, 1)"},
    ),
    Mistake(
        "tanh-overflow",
        "exp of a large number is infinite, and infinite over infinite is NaN: this formula "
        "for tanh holds for small sums only.",
        {TANH: BY_EXPONENTIALS},
        also=(
            {TANH: BY_ONE_EXPONENTIAL},
            {TANH: f"({BY_EXPONENTIALS}).nan_to_num()"},
            {TANH: f"({BY_ONE_EXPONENTIAL}).nan_to_num()"},
        ),
    ),
    Mistake("no-bias", "The bias b is forgotten.", {" + b": ""}),
    Mistake(
        "bias-twice",
        "The bias is added twice. (PyTorch's `nn.RNN` has two biases; this step has one.)",
        {" + b": " + b + b"},
    ),
    Mistake("bias-subtracted", "The bias is subtracted, not added.", {" + b": " - b"}),
    Mistake(
        "bias-after-tanh",
        say("The bias is added after the tanh: {once}.", once=ONCE),
        {" + b": "", TANH: "torch.tanh(z) + b"},
    ),
    Mistake(
        "bias-down-the-batch",
        "The bias is laid along the batch: each sequence gets one number of it. It belongs to "
        "the features, and each sequence gets all of it.",
        {" + b": " + b[:, None]"},
    ),
    Mistake(
        "tanh-for-each-part",
        say(
            "Input and state each go through a tanh of their own before they are added: {once}.",
            once=ONCE,
        ),
        {SUM: "(x @ W_x).tanh() + (h @ W_h).tanh() + b.tanh()", TANH: "z"},
    ),
    Mistake(
        "tanh-of-the-state-only",
        say("The input is added outside the tanh: {once}.", once=ONCE),
        {SUM: "x @ W_x + (h @ W_h + b).tanh()", TANH: "z"},
    ),
    Mistake(
        "tanh-of-the-input-only",
        say("The old state is added outside the tanh: {once}.", once=ONCE),
        {SUM: "(x @ W_x + b).tanh() + h @ W_h", TANH: "z"},
    ),
    Mistake(
        "two-tanhs",
        say("There are two tanhs, one for the input and one for the state: {once}.", once=ONCE),
        {SUM: "(x @ W_x + b).tanh() + (h @ W_h).tanh()", TANH: "z"},
    ),
    Mistake(
        "bias-with-the-state",
        say("There are two tanhs, and the bias is in the state's: {once}.", once=ONCE),
        {SUM: "(x @ W_x).tanh() + (h @ W_h + b).tanh()", TANH: "z"},
    ),
    Mistake(
        "state-ignored",
        "The old state h changes nothing: the network would remember nothing.",
        {" + h @ W_h": ""},
    ),
    Mistake(
        "input-ignored",
        "The input x changes nothing: the network would read nothing.",
        {"x @ W_x + ": ""},
    ),
    Mistake(
        "multiplied",
        "What comes from the input and what comes from the state are multiplied with each "
        "other. They are added.",
        {"x @ W_x + h @ W_h": "(x @ W_x) * (h @ W_h)"},
    ),
    Mistake(
        "elementwise-product",
        "`*` multiplies number by number. A vector times a matrix is a matrix product: each new "
        "number is a sum over the old ones.",
        {"x @": "x *", "h @": "h *"},
    ),
    Mistake(
        "averaged",
        "The two parts are averaged; they are added, without a factor.",
        {"x @ W_x + h @ W_h": "(x @ W_x + h @ W_h) / 2"},
    ),
    Mistake(
        "state-subtracted",
        "What comes from the state is subtracted, not added.",
        {"+ h @ W_h": "- h @ W_h"},
    ),
    Mistake(
        "old-state-added",
        "The old state is added to the new one after the tanh. In this step it enters through "
        "W_h only.",
        {"return new": "return h + new"},
    ),
    Mistake(
        "w-h-unused",
        "The old state is added as it is: W_h is never used.",
        {"h @ W_h": "h"},
    ),
    Mistake(
        "w-x-unused",
        "The input is added as it is: W_x is never used.",
        {"x @ W_x": "x"},
    ),
    Mistake(
        "weights-exchanged",
        "x meets W_h, and h meets W_x. Look at which matrix belongs to which vector, and at "
        "the order of the arguments: x, h, W_x, W_h, b.",
        {"x @ W_x": "x @ W_h", "h @ W_h": "h @ W_x"},
    ),
    Mistake(
        "one-weight-for-both",
        "Input and state both go through W_h: W_x is never used.",
        {"x @ W_x": "x @ W_h"},
    ),
    Mistake(
        "w-h-transposed",
        "W_h is transposed: its first axis belongs to the old state, its second to the new one.",
        {"h @ W_h": "h @ W_h.T"},
    ),
    Mistake(
        "w-x-transposed",
        "W_x is transposed: its first axis belongs to the input, its second to the state.",
        {"x @ W_x": "x @ W_x.T"},
    ),
    Mistake(
        "weights-transposed",
        "Both weights are transposed. Here they are drawn (in, out); `nn.Linear`, `F.linear` "
        "and `nn.RNN` store them (out, in).",
        {"x @ W_x": "x @ W_x.T", "h @ W_h": "h @ W_h.T"},
    ),
    Mistake(
        "column-vectors",
        "The matrix stands before the vector. The vectors are rows here, one for each sequence: "
        "x W_x, not W_x x.",
        {"x @ W_x": "W_x @ x", "h @ W_h": "W_h @ h"},
    ),
    Mistake(
        "stacked-in-another-order",
        "Inputs and weights are glued together in different orders, so numbers of h meet rows "
        "of W_x. The shapes fit all the same.",
        {"x @ W_x + h @ W_h": "torch.cat([h, x], -1) @ torch.cat([W_x, W_h])"},
    ),
    Mistake(
        "tuple-returned",
        "Several things are returned, as `nn.RNN` does. A step returns the new state and "
        "nothing else.",
        {"return new": "return new, new"},
    ),
    Mistake(
        "state-overwritten",
        "The caller's old state is changed in place. Return a new tensor and leave h as it is.",
        {"return new": "with torch.no_grad():\n        h.copy_(new)\n    return new"},
    ),
    Mistake(
        "gradient-cut",
        GRADIENT_CUT,
        detached("new"),
    ),
    Mistake(
        "gradient-cut-at-the-state",
        "The old state is detached: no gradient goes back to the steps before.",
        {"h @ W_h": "h.detach() @ W_h"},
    ),
)

EXERCISE = Exercise(
    number="1.1",
    reference=rnn_step,
    right=right,
    outputs=(Output(say("new state"), "b d"),),
    difficulty=1,
    minutes=10,
    points=2,
    may_use="torch",
    stages=(
        Stage("input", draw_input, "h and b are zero here: what remains is tanh(x W_x)."),
        Stage("state", draw_state, "x and b are zero here: what remains is tanh(h W_h)."),
        Stage("bias", draw_bias, "x and h are zero here: what remains is tanh(b)."),
        Stage(
            "together",
            draw_together,
            "Input, state and bias are each right alone, but not together.",
        ),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "Here sizes coincide, so that a wrong or transposed matrix raises no error.",
        ),
        Stage("large sums", draw_large, "Sums in the hundreds break it; tanh is 1 or -1 there."),
        gradient_stage(
            draw_to_train,
            ("x", "h", "W_x", "W_h", "b"),
            {"x": "b d", "h": "b d", "W_x": "", "W_h": "", "b": "d"},
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Row vectors: x of shape (b, d_in) times W_x of shape (d_in, d_h) gives (b, d_h). Which "
        "other product has that shape?",
        "Three parts of shape (b, d_h), (b, d_h) and (d_h,) are added. Broadcasting lays the "
        "last one under each sequence by itself.",
        "`@` is the matrix product, `torch.tanh` goes around the whole sum.",
    ),
)
