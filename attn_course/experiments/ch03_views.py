"""Chapter 03's view of the learner's own attention."""

from collections.abc import Callable
from typing import Any, cast

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from torch import Tensor

from attn_course.attention import attention_entropy, scaled_dot_product_attention
from attn_course.experiments.ch03 import random_vectors
from attn_course.experiments.own_code import told
from attn_course.plots import Choices, LiveFigure, Slider, live_figure
from attn_course.plots.picture import COLOURS
from attn_course.sentences import Sentence, say, spoken

NUM_KEYS = 16
WIDTHS = [2**k for k in range(11)]
"""The widths d_k on the sliders, 1 to 1024."""

UNWRITTEN = say(
    "Your function is not written yet: it raises NotImplementedError. Write it, run its "
    "cell, and move a slider."
)

Attend = Callable[[Tensor, Tensor, Tensor, Tensor], Any]


def own_attention_view(attend: Attend) -> LiveFigure:
    """Return the view in which the learner's own attention responds to d_k and to a mask.

    attend: called as attend(query, key, value, mask). Give a lambda that looks the learner's
        function up by its name, and the view follows each new version of it. What it raises
        or gets wrong is said under the picture, and never raised.
    """
    query, key = random_vectors(WIDTHS[-1], sets=1, n=NUM_KEYS, seed=3)
    value = random_vectors(3, sets=1, n=NUM_KEYS, seed=4)[0]
    return live_figure(
        lambda axes: _draw_own(attend, query[0, :1], key[0], value[0], axes),
        alt=say(
            "Bars: the weights that your function gives one query over 16 random keys. Circles: "
            "those of the course. Keys from the number of open keys on are hidden by the mask."
        ),
        size=(7.0, 3.4),
        d_k=Choices("d_k", WIDTHS, start=64),
        open_keys=Slider(say("open keys"), 0, NUM_KEYS, start=NUM_KEYS),
    )


def _draw_own(attend: Attend, query: Tensor, key: Tensor, value: Tensor, axes: Axes):
    bars = _empty_bars(axes, COLOURS[0])
    bars.set_label(spoken("yours"))
    (circles,) = axes.plot(range(NUM_KEYS), [0.0] * NUM_KEYS, "o", mfc="none", color=COLOURS[1])
    circles.set_label(spoken("the course's"))
    axes.set(ylabel=spoken("attention weight"))
    axes.legend(frameon=False)

    def update(d_k: int, open_keys: int) -> Sentence:
        mask = (torch.arange(NUM_KEYS) < open_keys)[None]
        inputs = query[:, :d_k], key[:, :d_k], value, mask
        # with need_weights, as by default, there are weights
        expected = cast(tuple[Tensor, Tensor], scaled_dot_product_attention(*inputs))
        circles.set_ydata(expected[1][0].numpy())
        _set_heights(bars, torch.zeros(NUM_KEYS))
        try:
            found = attend(*(tensor.clone() for tensor in inputs))
        except Exception as error:  # the learner's code may raise anything, and sees it here
            return told(error, UNWRITTEN)
        problem = _form_problem(found, expected)
        if problem:
            return problem
        weights = found[1].detach().to(torch.float32)
        _set_heights(bars, weights[0].nan_to_num(0.0, 0.0, 0.0))
        return _verdict((found[0], weights), expected)

    return update


def _form_problem(found: Any, expected: tuple[Tensor, Tensor]) -> Sentence | None:
    """What keeps the result from being drawn, in words."""
    if not isinstance(found, tuple | list) or len(found) != 2:
        return say(
            "Your function must return (output, weights), it returned {kind}.",
            kind=type(found).__name__,
        )
    for name, value, wanted in zip(("output", "weights"), found, expected, strict=True):
        shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        if shape != tuple(wanted.shape):
            return say(
                "Your {name} should have shape {expected}, it is {got}.",
                name=name,
                expected=tuple(wanted.shape),
                got=shape,
            )
    return None


def _verdict(
    found: tuple[Tensor, Float[Tensor, "1 j"]], expected: tuple[Tensor, Float[Tensor, "1 j"]]
) -> Sentence:
    output, weights = found
    if not bool(output.isfinite().all() and weights.isfinite().all()):
        return say(
            "Your result has NaN or infinity here. Which step makes it? The check above says."
        )
    apart = max(float((f - e).abs().max()) for f, e in zip(found, expected, strict=True))
    if apart > 1e-3:
        return say(
            "Yours differs from the course's by up to {apart:.2g} here; your weights sum to "
            "{total:.2f}. The check above names the cause.",
            apart=apart,
            total=weights.sum().item(),
        )
    return say(
        "Yours agrees with the course's. Largest weight {largest:.2f}, sum {total:.2f}, entropy "
        "{entropy:.1f} nats.",
        largest=weights.max().item(),
        total=weights.sum().item(),
        entropy=abs(attention_entropy(expected[1]).item()),
    )


def _empty_bars(axes: Axes, colour: str) -> BarContainer:
    axes.set(xlim=(-0.7, NUM_KEYS - 0.3), ylim=(0, 1.05), xlabel=spoken("key position j"))
    axes.set_xticks(range(0, NUM_KEYS, 3))
    return axes.bar(range(NUM_KEYS), [0.0] * NUM_KEYS, color=colour)


def _set_heights(bars: BarContainer, weights: Float[Tensor, " j"]) -> None:
    for bar, weight in zip(bars, weights.tolist(), strict=True):
        bar.set_height(weight)
