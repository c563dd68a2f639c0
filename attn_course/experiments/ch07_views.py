"""Chapter 07's views: layer norm of one token on sliders, who sees whom, and PyTorch's layer."""

from collections.abc import Callable
from math import log10
from typing import Any

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor, nn

from attn_course.experiments.own_code import BLOCK, Words, shown_or_told
from attn_course.norms import layer_norm
from attn_course.plots import Choices, LiveFigure, Slider, live_figure
from attn_course.plots.picture import COLOURS
from attn_course.sentences import Sentence, say, spoken
from attn_course.torch_layers import attention_pairs, copy_pairs

TOKEN = (1.0, 3.0, 3.0, 9.0)


def reach(function: Callable[[Tensor], Tensor], x: Float[Tensor, "1 n d"]) -> Float[Tensor, "i j"]:
    """Return how much output i moves with input j: the norm of the derivative."""

    def one_sentence(x: Tensor) -> Tensor:
        return function(x[None])[0]

    derivative = torch.autograd.functional.jacobian(one_sentence, x[0])
    return derivative.square().sum(dim=(1, 3)).sqrt()  # (i, d, j, d) -> (i, j)


def norm_view() -> LiveFigure:
    """Return the view of one token and its norm, by shift, scale, gain and epsilon."""
    return live_figure(
        _draw_norm,
        alt=say(
            "Left four bars, the features of a token; right its four features after the norm. "
            "Shift and scale move the left bars and leave the right ones where they are, until the "
            "scale is so small that epsilon counts; the gain stretches the right ones."
        ),
        size=(8.0, 3.4),
        panels=2,
        shift=Slider(say("shift"), -20.0, 20.0, start=0.0, step=1.0),
        scale=Choices(say("scale"), [0.0001, 0.001, 0.01, 0.1, 1, 10], start=1),
        gain=Slider(say("gain"), 0.0, 3.0, start=1.0, step=0.25),
        eps=Choices(say("epsilon"), [1e-5, 1e-3, 0.1], start=1e-5),
    )


def _draw_norm(before: Axes, after: Axes):
    places = range(len(TOKEN))
    left = before.bar(places, [0.0] * len(TOKEN), color=COLOURS[0])
    right = after.bar(places, [0.0] * len(TOKEN), color=COLOURS[1])
    for axes, title in ((before, "x"), (after, spoken("layer norm of x"))):
        axes.set(xlabel=spoken("feature"), title=title)
        axes.set_xticks(places)
        axes.axhline(0, color="0.6", linewidth=0.8)
    after.set_ylim(-5.5, 5.5)

    def update(shift: float, scale: float, gain: float, eps: float) -> Sentence:
        x = torch.tensor(TOKEN, dtype=torch.float64) * scale + shift
        gains = torch.full((len(TOKEN),), gain, dtype=torch.float64)
        found = layer_norm(x, gains, torch.zeros_like(gains), eps)
        for bars, values in ((left, x), (right, found)):
            for bar, value in zip(bars, values.tolist(), strict=True):
                bar.set_height(value)
        largest = max(1e-6, x.abs().max().item())
        before.set_ylim(-1.1 * largest, 1.1 * largest)
        spread = found.std(correction=0).item()
        return say(
            "Variance of x: about 10^{variance}, epsilon 10^{eps}. Spread after the norm: "
            "{spread:.2f}.",
            variance=round(log10(x.var(correction=0).item())),
            eps=round(log10(eps)),
            spread=spread,
        )

    return update


def compared_with_torch(make: Callable[[int, int, int], nn.Module], norm: str) -> Words:
    """Say how far a block is from `nn.TransformerEncoderLayer` with the same weights.

    make: called as make(d_model, num_heads, d_ff); its parts get PyTorch's weights.
    norm: "post" or "pre", the order that the block should have.
    """

    def compare() -> Words:
        rng = torch.Generator().manual_seed(0)
        x, mask = torch.randn(2, 5, 24, generator=rng), torch.ones(5, 5).tril().bool()
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(0)
            theirs = nn.TransformerEncoderLayer(
                24, 4, 50, dropout=0.0, norm_first=norm == "pre", batch_first=True
            )
            yours = make(24, 4, 50)
            with_torchs_weights(yours, theirs)
            # there True hides
            apart = (yours(x, mask) - theirs(x, src_mask=~mask)).abs().max().item()
        if apart < 1e-5:
            agrees = say("With its weights, your block agrees with nn.TransformerEncoderLayer.")
            return Words(agrees)
        return Words(say("With its weights, your block differs by up to {apart:.2g}.", apart=apart))

    return shown_or_told(compare, BLOCK)


def with_torchs_weights(block: Any, theirs: nn.TransformerEncoderLayer) -> None:
    """Copy the weights of PyTorch's layer into a block of the exercises, part by part.

    The norms may be nn.LayerNorm or the course's, which calls its weight a gain.
    """
    pairs = attention_pairs(block.self_attention, theirs.self_attn)
    for ours, other in (
        (block.feed_forward.W_1, theirs.linear1),
        (block.feed_forward.W_2, theirs.linear2),
        (block.norm_1, theirs.norm1),
        (block.norm_2, theirs.norm2),
    ):
        weight = ours.gain if hasattr(ours, "gain") else ours.weight
        pairs += [(weight, other.weight), (ours.bias, other.bias)]
    copy_pairs(pairs)
