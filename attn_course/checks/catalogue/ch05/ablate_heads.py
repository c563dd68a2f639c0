"""Exercise 5.6, ablate_heads: its stages and its known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attn_course.checks.catalogue.ch05.multi_head_probes import IDENTITY, built, drawn
from attn_course.checks.exercise import Answer, Exercise, Mistake, Output, Stage, normal, tenths
from attn_course.checks.refusals import refusal_stages
from attn_course.multihead import MultiHeadAttention, ablate_heads

INPUTS = ("x", "num_heads", "heads", "weights of the layer")

# -- how an answer is called ------------------------------------------------------------------


def ablated(answer: Answer, x: Tensor, num_heads: int, heads: list, weights: str) -> Any:
    """What the returned layer makes of x, and what the given layer makes of it afterwards."""
    layer = built(MultiHeadAttention, x.shape[-1], num_heads, weights, x)
    return _output(_layer(answer(layer, heads)), x), _output(layer, x)


def _layer(found: Any) -> nn.Module:
    if not isinstance(found, nn.Module):
        # the same words for a Parameter or an OrderedDict, which another process gives in plain
        plain = next((kind for kind in (Tensor, dict) if isinstance(found, kind)), type(found))
        raise TypeError(f"{plain.__name__} comes back; asked for is a layer, an nn.Module")
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


# -- known-wrong versions ---------------------------------------------------------------------

Silence = Callable[[Any, list[int]], Any]


def checked(silence: Silence, copied: Callable[[Any], Any] = deepcopy) -> Answer:
    """A version that refuses what it should, and silences by `silence(layer, heads)`, in place."""

    def answer(attention: Any, heads: list[int]) -> Any:
        wrong = [m for m in heads if not 0 <= m < attention.num_heads]
        if wrong:
            raise ValueError(f"no heads {wrong} among {attention.num_heads}")
        layer = copied(attention)
        with torch.no_grad():
            silence(layer, heads)
        return layer

    return answer


def columns(layer: Any) -> Tensor:
    """W_o's weight as (out, h, d), a view."""
    return layer.W_o.weight.unflatten(1, (layer.num_heads, -1))


def rows(linear: nn.Linear, h: int) -> Tensor:
    """A projection's weight as (h, d, in), a view."""
    return linear.weight.unflatten(0, (h, -1))


def right(layer: Any, heads: list[int]) -> None:
    """What is asked for."""
    columns(layer)[:, heads] = 0.0


def of_the_queries(layer: Any, heads: list[int]) -> None:
    """Silences the questions, so that the head attends evenly."""
    rows(layer.W_q, layer.num_heads)[heads] = 0.0
    layer.W_q.bias.unflatten(0, (layer.num_heads, -1))[heads] = 0.0


def of_the_values(layer: Any, heads: list[int]) -> None:
    """Silences the values, and forgets their bias."""
    rows(layer.W_v, layer.num_heads)[heads] = 0.0


def with_the_bias(layer: Any, heads: list[int]) -> None:
    """Takes the output's bias away, too."""
    right(layer, heads)
    if heads:
        layer.W_o.bias.zero_()


def of_features(layer: Any, heads: list[int]) -> None:
    """Takes one feature for each head."""
    layer.W_o.weight[:, heads] = 0.0


def interleaved(layer: Any, heads: list[int]) -> None:
    """Takes the features in (d h) order."""
    layer.W_o.weight.unflatten(1, (-1, layer.num_heads))[:, :, heads] = 0.0


def replaced(layer: Any, heads: list[int]) -> None:
    """Puts a new W_o into what may be shared."""
    silent = deepcopy(layer.W_o)
    silent.weight.unflatten(1, (layer.num_heads, -1))[:, heads] = 0.0
    layer.W_o = silent


def others(layer: Any, heads: list[int]) -> list[int]:
    """The heads that are not named."""
    return [m for m in range(layer.num_heads) if m not in heads]


def spread(layer: Any, heads: list[int]) -> None:
    """Lets the other heads speak up for those that are silent."""
    right(layer, heads)
    if heads and len(set(heads)) < layer.num_heads:
        layer.W_o.weight *= layer.num_heads / (layer.num_heads - len(set(heads)))


def in_place_with_gradients(attention: Any, heads: list[int]) -> Any:
    """Clears the columns of the copy head by head, outside of `no_grad`."""
    layer = checked(lambda layer, heads: None)(attention, heads)
    d = layer.W_o.in_features // layer.num_heads
    for m in heads:
        layer.W_o.weight[:, m * d : (m + 1) * d] = 0.0
    return layer


def all_in_place_with_gradients(attention: Any, heads: list[int]) -> Any:
    """Clears all named columns at once, outside of `no_grad`; even when there are none."""
    layer = checked(lambda layer, heads: None)(attention, heads)
    columns(layer)[:, heads] = 0.0
    return layer


def unchecked(attention: Any, heads: list[int]) -> Any:
    """Silences those heads that there are."""
    layer = deepcopy(attention)
    with torch.no_grad():
        right(layer, [m for m in heads if -layer.num_heads <= m < layer.num_heads])
    return layer


def negative_allowed(attention: Any, heads: list[int]) -> Any:
    """Compares with the number of heads alone."""
    if any(m >= attention.num_heads for m in heads):
        raise ValueError(f"there are {attention.num_heads} heads, got {heads}")
    layer = deepcopy(attention)
    with torch.no_grad():
        right(layer, [m for m in heads if m >= -layer.num_heads])
    return layer


def sliced(attention: Any, heads: list[int]) -> Any:
    """Leaves it to slices, which take whatever there is."""
    layer = deepcopy(attention)
    d = layer.W_o.in_features // layer.num_heads
    with torch.no_grad():
        for m in heads:
            layer.W_o.weight[:, m * d : (m + 1) * d] = 0.0
    return layer


def indexed(attention: Any, heads: list[int]) -> Any:
    """Leaves it to the index to complain."""
    layer = deepcopy(attention)
    with torch.no_grad():
        for m in heads:
            columns(layer)[:, m] = 0.0
    if any(m < 0 for m in heads):
        raise IndexError
    return layer


def asserted(attention: Any, heads: list[int]) -> Any:
    """Refuses with an assert."""
    assert all(0 <= m < attention.num_heads for m in heads)
    return ablate_heads(attention, heads)


def without_copy(layer: Any) -> Any:
    """The layer itself."""
    return layer


def only_output_copied(layer: Any) -> Any:
    """A new layer around the old projections, with a W_o of its own."""
    new = MultiHeadAttention(layer.W_o.in_features, layer.num_heads)
    new.W_q, new.W_k, new.W_v = layer.W_q, layer.W_k, layer.W_v
    new.W_o = deepcopy(layer.W_o)
    return new


def of_slices(width: Callable[[int, int], int]) -> Silence:
    """Clears slices of another width than a head's, given the numbers of heads and of features."""

    def silence(layer: Any, heads: list[int]) -> None:
        d = width(layer.num_heads, layer.W_o.in_features // layer.num_heads)
        for m in heads:
            layer.W_o.weight[:, m * d : (m + 1) * d] = 0.0

    return silence


def copied_if_silenced(attention: Any, heads: list[int]) -> Any:
    """Returns the layer itself where nothing is to be done."""
    return ablate_heads(attention, heads) if heads else attention


MISTAKES = (
    Mistake(
        "in-place",
        "The layer that was given is silenced itself. After one ablation the next would start "
        "from a damaged layer. Return a copy that shares no weights with it.",
        checked(right, copied=without_copy),
        also=(
            checked(right, copied=copy),
            checked(replaced, copied=copy),
            checked(replaced, copied=without_copy),
        ),
    ),
    Mistake(
        "shared",
        "What comes back shares weights with the layer that was given, so that training one would "
        "change the other: a projection is taken over as it is, or, with no head to silence, the "
        "layer itself comes back. Return a copy that shares none.",
        copied_if_silenced,
        also=(checked(right, copied=only_output_copied),),
    ),
    Mistake(
        "outputs-for-heads",
        "What is cleared are rows of W_o.weight, features of the output. nn.Linear stores its "
        "weight as (out, in): what comes in, and so the heads, are its columns.",
        checked(lambda layer, heads: rows(layer.W_o, layer.num_heads).__setitem__(heads, 0.0)),
    ),
    Mistake(
        "one-feature-a-head",
        "One column of W_o.weight is cleared for each head. A head is d_model / num_heads columns "
        "wide.",
        checked(of_features),
    ),
    Mistake(
        "number-for-width",
        "The number of heads is taken for the width of a head. A head is d_model / num_heads "
        "columns wide, and the next one begins there.",
        checked(of_slices(lambda h, d: h)),
    ),
    Mistake(
        "features-first",
        "The columns that are cleared lie num_heads apart. In (h d) order a head's columns lie "
        "side by side.",
        checked(interleaved),
    ),
    Mistake(
        "others-silenced",
        "The named heads are kept and the others silenced.",
        checked(lambda layer, heads: right(layer, others(layer, heads))),
    ),
    Mistake(
        "first-only",
        "Only the first of the named heads is silenced.",
        checked(lambda layer, heads: right(layer, heads[:1])),
        also=(checked(lambda layer, heads: right(layer, heads[-1:])),),
    ),
    Mistake(
        "all-silenced",
        "All heads are silenced, whichever are named.",
        checked(lambda layer, heads: right(layer, list(range(layer.num_heads)) if heads else [])),
        also=(checked(lambda layer, heads: right(layer, list(range(layer.num_heads)))),),
    ),
    Mistake(
        "nothing-silenced",
        "No head is silenced: the layer that comes back does what it did before.",
        checked(lambda layer, heads: None),
    ),
    Mistake(
        "counted-from-one",
        "The heads are counted from 1. The first one is head 0.",
        checked(lambda layer, heads: right(layer, [m - 1 for m in heads if m > 0])),
        also=(checked(lambda layer, heads: right(layer, [m - 1 for m in heads])),),
    ),
    Mistake(
        "counted-from-the-end",
        "The heads are counted from the end.",
        checked(lambda layer, heads: right(layer, [-1 - m for m in heads])),
    ),
    Mistake(
        "bias-taken-too",
        "W_o's bias is cleared, too. It belongs to no head, and stays.",
        checked(with_the_bias),
    ),
    Mistake(
        "value-bias-left",
        "The value weights of the head are cleared, but not their bias: it still comes through, "
        "since the weights of attention sum to one.",
        checked(of_the_values),
    ),
    Mistake(
        "query-silenced",
        "The head's queries or keys are cleared. It does not fall silent: with scores that are all "
        "alike it attends to all tokens alike, and it passes on their mean.",
        checked(of_the_queries),
    ),
    Mistake(
        "leaf-in-place",
        "The weights are parameters, and PyTorch keeps account of what is done to them: nobody may "
        "change one in place, unless it is told under `with torch.no_grad():` that this is no part "
        "of what is trained.",
        in_place_with_gradients,
        also=(all_in_place_with_gradients,),
    ),
    Mistake(
        "others-scaled-up",
        "The other heads are scaled up, as dropout does. Here they stay as they are.",
        checked(spread),
    ),
    Mistake(
        "nothing-returned",
        "Nothing comes back. A copy of the layer is asked for.",
        lambda attention, heads: None,
        also=(lambda attention, heads: right(deepcopy(attention).requires_grad_(False), heads),),
    ),
    Mistake(
        "only-the-projection",
        "Only W_o comes back. A copy of the whole layer is asked for.",
        lambda attention, heads: ablate_heads(attention, heads).W_o,
    ),
    Mistake(
        "only-the-weight",
        "A tensor comes back. A copy of the whole layer is asked for.",
        lambda attention, heads: ablate_heads(attention, heads).W_o.weight,
    ),
    Mistake(
        "missing-allowed",
        "A head that there is not is passed over, or counted from the end. Then an experiment "
        "measures nothing, and nothing tells: raise a ValueError that names it.",
        unchecked,
        also=(negative_allowed, sliced),
    ),
    Mistake(
        "asserted",
        "For a head that there is not an assert fails. An assert is left out under `python -O`; a "
        "user's mistake is a ValueError with the numbers.",
        asserted,
    ),
    Mistake(
        "late-error",
        "A head that there is not is refused by the index, which raises an IndexError. Raise a "
        "ValueError that names it and says how many heads there are; below 0, too.",
        indexed,
    ),
)

RETURNED = (
    Output("output of the ablated layer", "b n d"),
    Output("output of the layer given", "b n d"),
)

EXERCISE = Exercise(
    number="5.6",
    reference=ablate_heads,
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
            outputs=(Output("shares no weights with the layer given"),),
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
