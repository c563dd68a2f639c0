"""Exercise 5.6, ablate_heads: its stages and its known mistakes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attn_course.checks.catalogue.ch05.multi_head_probes import IDENTITY, built, drawn
from attn_course.checks.catalogue.families.refusal import asserted
from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage, normal, tenths
from attn_course.checks.refusals import refusal_stages
from attn_course.multihead import MultiHeadAttention, ablate_heads
from attn_course.sentences import say

INPUTS = ("x", "num_heads", "heads", say("weights of the layer"))

# -- how an answer is called ------------------------------------------------------------------


def ablated(answer: Answer, x: Tensor, num_heads: int, heads: list, weights: str) -> Any:
    """What the returned layer makes of x, and what the given layer makes of it afterwards."""
    layer = built(MultiHeadAttention, x.shape[-1], num_heads, weights, x)
    return _output(_layer(answer(layer, heads)), x), _output(layer, x)


def _layer(found: Any) -> nn.Module:
    if not isinstance(found, nn.Module):
        # the same words for a Parameter or an OrderedDict, which another process gives in plain
        plain = next((kind for kind in (Tensor, dict) if isinstance(found, kind)), type(found))
        words = "{kind} comes back; asked for is a layer, an nn.Module"
        raise TypeError(say(words, kind=plain.__name__))
    return found


def _output(layer: nn.Module, x: Tensor) -> Any:
    result = layer(x, x, x)
    return result[0] if isinstance(result, tuple | list) else result


def separate(answer: Answer, x: Tensor, num_heads: int, heads: list, weights: str) -> bool:
    """Whether the returned layer stays as it is when the given one's weights are changed."""
    layer = built(MultiHeadAttention, x.shape[-1], num_heads, weights, x)
    found = _layer(answer(layer, heads))
    before = _output(found, x)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(2).add_(1)
    return torch.allclose(before, _output(found, x))


def layer_and_heads(num_heads: int, heads: list) -> tuple[MultiHeadAttention, list]:
    """What an answer is called with that should refuse these heads."""
    return MultiHeadAttention(2 * num_heads, num_heads), heads


def draw_nothing(rng: Generator) -> Iterator[tuple]:
    """No head is silenced: everything stays."""
    yield tenths(rng, 1, 2, 2), 2, [], IDENTITY
    yield normal(rng, 2, 3, 12), 4, [], drawn(3)


def draw_one(rng: Generator) -> Iterator[tuple]:
    """One head, the first, the last and one between; without projections in the small case."""
    yield tenths(rng, 1, 2, 2), 2, [1], IDENTITY
    yield tenths(rng, 1, 2, 4), 2, [0], IDENTITY
    for head in (0, 1, 3):
        yield normal(rng, 2, 3, 12), 4, [head], drawn(4)
    yield normal(rng, 2, 5, 9), 3, [2], drawn(5)


def draw_several(rng: Generator) -> Iterator[tuple]:
    """Several heads, in any order, one of them named twice; all of them."""
    yield tenths(rng, 1, 2, 3), 3, [0, 2], IDENTITY
    yield normal(rng, 2, 3, 20), 4, [3, 0], drawn(6)
    yield normal(rng, 2, 3, 12), 6, [1, 4, 2], drawn(7)
    yield normal(rng, 2, 3, 12), 3, [1, 1], drawn(8)
    yield normal(rng, 2, 4, 12), 3, [0, 1, 2], drawn(9)
    yield normal(rng, 2, 4, 6), 1, [0], drawn(10)


def draw_copies(rng: Generator) -> Iterator[tuple]:
    """One head, and none: a copy is asked for in either case."""
    yield normal(rng, 1, 4, 6), 3, [1], drawn(11)
    yield normal(rng, 1, 4, 6), 3, [], drawn(12)


def draw_missing(rng: Generator) -> Iterator[tuple]:
    """Heads that there are not."""
    yield 2, [2]
    yield 4, [0, 7]
    yield 3, [-1]


# -- the answer that the mistakes are edits of ------------------------------------------------


def without_heads(attention: Any, heads: list[int]) -> Any:
    """A copy in which nothing of these heads passes W_o."""
    h = attention.num_heads
    if not all(0 <= m < h for m in heads):
        raise ValueError(f"{heads} are not all among {h} heads")
    layer = copy.deepcopy(attention)
    with torch.no_grad():
        parts = layer.W_o.weight.unflatten(1, (h, -1))  # (out, h, d), a view
        parts[:, heads] = 0.0
    return layer


MISSING = "not all(0 <= m < h for m in heads)"
SILENCED = "parts[:, heads] = 0.0"

QUERIES_SILENCED = """
        parts[heads] = 0.0
        layer.W_q.bias.unflatten(0, (h, -1))[heads] = 0.0"""
NEW_OUTPUT = """
    layer.W_o = copy.deepcopy(layer.W_o)"""
OLD_INPUTS = """
    layer.W_q, layer.W_k, layer.W_v = attention.W_q, attention.W_k, attention.W_v"""


def copied(layer: str) -> Edits:
    """The layer that is silenced is another one than a copy of all."""
    return {"copy.deepcopy(attention)": layer}


def by_slices(width: str) -> Edits:
    """The columns are cleared head by head, in slices of this width."""
    loop = f"""
        d = {width}
        for m in heads:
            layer.W_o.weight[:, m * d : (m + 1) * d] = 0.0"""
    return {SILENCED: loop}


MISTAKES = (
    Mistake(
        "in-place",
        "The layer that was given is silenced itself. After one ablation the next would start "
        "from a damaged layer. Return a copy that shares no weights with it.",
        copied("attention"),
        also=(
            copied("copy.copy(attention)"),
            copied(f"copy.copy(attention){NEW_OUTPUT}"),
            copied(f"attention{NEW_OUTPUT}"),
        ),
    ),
    Mistake(
        "shared",
        "What comes back shares weights with the layer that was given, so that training one would "
        "change the other: a projection is taken over as it is, or, with no head to silence, the "
        "layer itself comes back. Return a copy that shares none.",
        copied("copy.deepcopy(attention) if heads else attention"),
        also=(copied(f"copy.deepcopy(attention){OLD_INPUTS}"),),
    ),
    Mistake(
        "outputs-for-heads",
        "What is cleared are rows of W_o.weight, features of the output. nn.Linear stores its "
        "weight as (out, in): what comes in, and so the heads, are its columns.",
        {"unflatten(1,": "unflatten(0,", "parts[:, heads]": "parts[heads]"},
    ),
    Mistake(
        "one-feature-a-head",
        "One column of W_o.weight is cleared for each head. A head is d_model / num_heads columns "
        "wide.",
        {"parts[:, heads]": "layer.W_o.weight[:, heads]"},
    ),
    Mistake(
        "number-for-width",
        "The number of heads is taken for the width of a head. A head is d_model / num_heads "
        "columns wide, and the next one begins there.",
        by_slices("h"),
    ),
    Mistake(
        "features-first",
        "The columns that are cleared lie num_heads apart. In (h d) order a head's columns lie "
        "side by side.",
        {"(h, -1)": "(-1, h)", "parts[:, heads]": "parts[:, :, heads]"},
    ),
    Mistake(
        "others-silenced",
        "The named heads are kept and the others silenced.",
        {"parts[:, heads]": "parts[:, [m for m in range(h) if m not in heads]]"},
    ),
    Mistake(
        "first-only",
        "Only the first of the named heads is silenced.",
        {"parts[:, heads]": "parts[:, heads[:1]]"},
        also=({"parts[:, heads]": "parts[:, heads[-1:]]"},),
    ),
    Mistake(
        "all-silenced",
        "All heads are silenced, whichever are named.",
        {"parts[:, heads]": "parts[:, : h if heads else 0]"},
        also=({"parts[:, heads]": "parts[:]"},),
    ),
    Mistake(
        "nothing-silenced",
        "No head is silenced: the layer that comes back does what it did before.",
        {"parts[:, heads]": "parts[:, []]"},
    ),
    Mistake(
        "counted-from-one",
        "The heads are counted from 1. The first one is head 0.",
        {"parts[:, heads]": "parts[:, [m - 1 for m in heads if m > 0]]"},
        also=({"parts[:, heads]": "parts[:, [m - 1 for m in heads]]"},),
    ),
    Mistake(
        "counted-from-the-end",
        "The heads are counted from the end.",
        {"parts[:, heads]": "parts[:, [-1 - m for m in heads]]"},
    ),
    Mistake(
        "bias-taken-too",
        "W_o's bias is cleared, too. It belongs to no head, and stays.",
        {SILENCED: f"{SILENCED}\n        layer.W_o.bias *= not heads"},
    ),
    Mistake(
        "value-bias-left",
        "The value weights of the head are cleared, but not their bias: it still comes through, "
        "since the weights of attention sum to one.",
        {"W_o.weight.unflatten(1,": "W_v.weight.unflatten(0,", "parts[:, heads]": "parts[heads]"},
    ),
    Mistake(
        "query-silenced",
        "The head's queries or keys are cleared. It does not fall silent: with scores that are all "
        "alike it attends to all tokens alike, and it passes on their mean.",
        {"W_o.weight.unflatten(1,": "W_q.weight.unflatten(0,", SILENCED: QUERIES_SILENCED},
    ),
    Mistake(
        "leaf-in-place",
        "The weights are parameters, and PyTorch keeps account of what is done to them: nobody may "
        "change one in place, unless it is told under `with torch.no_grad():` that this is no part "
        "of what is trained.",
        {**by_slices("layer.W_o.in_features // h"), "no_grad": "enable_grad"},
        also=({"no_grad": "enable_grad"},),
    ),
    Mistake(
        "others-scaled-up",
        "The other heads are scaled up, as dropout does. Here they stay as they are.",
        {SILENCED: f"{SILENCED}\n        parts *= h / max(1, h - len(set(heads)))"},
    ),
    Mistake(
        "nothing-returned",
        "Nothing comes back. A copy of the layer is asked for.",
        lambda attention, heads: None,
        also=({MISSING: "False", "return layer": "return None"},),
    ),
    Mistake(
        "only-the-projection",
        "Only W_o comes back. A copy of the whole layer is asked for.",
        {"return layer": "return layer.W_o"},
    ),
    Mistake(
        "only-the-weight",
        "A tensor comes back. A copy of the whole layer is asked for.",
        {"return layer": "return layer.W_o.weight"},
    ),
    Mistake(
        "missing-allowed",
        "A head that there is not is passed over, or counted from the end. Then an experiment "
        "measures nothing, and nothing tells: raise a ValueError that names it.",
        {MISSING: "False", "parts[:, heads]": "parts[:, [m for m in heads if -h <= m < h]]"},
        also=(
            {"0 <= m < h": "m < h", "parts[:, heads]": "parts[:, [m for m in heads if m >= -h]]"},
            {MISSING: "False", **by_slices("layer.W_o.in_features // h")},
        ),
    ),
    asserted("For a head that there is not an assert fails."),
    Mistake(
        "late-error",
        "A head that there is not is refused by the index, which raises an IndexError. Raise a "
        "ValueError that names it and says how many heads there are; below 0, too.",
        {MISSING: "min(heads, default=0) < 0", "ValueError": "IndexError"},
    ),
)

RETURNED = (
    Output(say("output of the ablated layer"), "b n d"),
    Output(say("output of the layer given"), "b n d"),
)

EXERCISE = Exercise(
    number="5.6",
    reference=ablate_heads,
    right=without_heads,
    wire="callable",
    outputs=RETURNED,
    difficulty=2,
    minutes=15,
    points=3,
    may_use="torch, einops and copy",
    stages=(
        Stage(
            "one head",
            draw_one,
            "With one head named, the output should lack what this head adds to it, and nothing "
            "else; and the layer given should be as before.",
            call=ablated,
            inputs=INPUTS,
        ),
        Stage(
            "no head",
            draw_nothing,
            "With no head named the layer should do what it did before.",
            call=ablated,
            inputs=INPUTS,
        ),
        Stage(
            "several heads",
            draw_several,
            "With one head named it is right, with several it is not.",
            call=ablated,
            inputs=INPUTS,
        ),
        Stage(
            "a copy",
            draw_copies,
            "What comes back should share no weights with the layer that was given.",
            call=separate,
            outputs=(Output(say("shares no weights with the layer given")),),
            inputs=INPUTS,
        ),
        *refusal_stages(
            "missing heads",
            draw_missing,
            "A head that there is not is a ValueError, with the numbers.",
            inputs=("num_heads", "heads"),
            numbers=lambda num_heads, heads: [[h for h in heads if not 0 <= h < num_heads]],
            arguments=layer_and_heads,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Where does a head's result pass on its way to the output, and what lies only on its way?",
        "The merged row holds head m's d features side by side, and each meets a row of W_o, drawn "
        "(in, out). With those rows at zero the head adds nothing. Mind how nn.Linear stores them.",
        "deepcopy(attention) is a layer of its own. Under torch.no_grad(), its W_o.weight as "
        "(out, h, d), by unflatten, is a view: what you set in it is set in the layer.",
    ),
)
