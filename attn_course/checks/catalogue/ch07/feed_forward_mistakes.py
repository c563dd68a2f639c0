"""Known-wrong versions of exercise 7.2, FeedForward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attn_course.checks.exercise import Answer, Mistake

Forward = Callable[[Any, Tensor], Any]
Make = Callable[[Any, int, int], None]


def both(layer: Any, d_model: int, d_ff: int) -> None:
    """The two projections asked for."""
    layer.W_1, layer.W_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)


def right(layer: Any, x: Tensor) -> Tensor:
    """The forward pass asked for."""
    return layer.W_2(torch.relu(layer.W_1(x)))


def version(forward: Forward = right, make: Make = both) -> Answer:
    """A layer with this forward pass, and made in this way."""

    class Layer(nn.Module):
        def __init__(self, d_model: int, d_ff: int) -> None:
            super().__init__()
            make(self, d_model, d_ff)

        def forward(self, x: Tensor) -> Any:
            return forward(self, x)

    return Layer


def hidden(function: Callable[[Tensor], Tensor]) -> Answer:
    """Another function between the projections."""
    return version(lambda layer, x: layer.W_2(function(layer.W_1(x))))


def linears(*shapes: Callable[[int, int], tuple[int, int]], bias: bool = True) -> Make:
    """Projections of other shapes, as W_1, W_2, W_3."""

    def make(layer: Any, d_model: int, d_ff: int) -> None:
        for number, shape in enumerate(shapes, start=1):
            setattr(layer, f"W_{number}", nn.Linear(*shape(d_model, d_ff), bias=bias))

    return make


def extra(name: str, module: Callable[[int, int], nn.Module]) -> Make:
    """The two projections and something else."""

    def make(layer: Any, d_model: int, d_ff: int) -> None:
        both(layer, d_model, d_ff)
        setattr(layer, name, module(d_model, d_ff))

    return make


def one_bias_missing(first: bool) -> Make:
    """One of the two projections has no bias."""

    def make(layer: Any, d_model: int, d_ff: int) -> None:
        layer.W_1 = nn.Linear(d_model, d_ff, bias=not first)
        layer.W_2 = nn.Linear(d_ff, d_model, bias=first)

    return make


def in_a_list(layer: Any, d_model: int, d_ff: int) -> None:
    """Projections that the module does not know of."""
    layer.layers = [nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)]


def from_the_list(layer: Any, x: Tensor) -> Tensor:
    """The forward pass with them."""
    return layer.layers[1](torch.relu(layer.layers[0](x)))


def made_in_forward(layer: Any, x: Tensor) -> Tensor:
    """A projection drawn anew in each call."""
    return nn.Linear(layer.W_2.in_features, x.shape[-1]).to(x.dtype)(torch.relu(layer.W_1(x)))


def over_tokens(layer: Any, x: Tensor) -> Tensor:
    """Each token gets the mean of the hidden features of all."""
    h = torch.relu(layer.W_1(x))
    axis = -2 if x.ndim > 1 else -1
    return layer.W_2(h.mean(dim=axis, keepdim=True).expand_as(h))


def flattened(layer: Any, x: Tensor) -> Tensor:
    """Leading axes are not put back."""
    return right(layer, x.reshape(-1, x.shape[-1]))


def in_place(layer: Any, x: Tensor) -> Tensor:
    """The caller's numbers are put to zero."""
    return layer.W_2(torch.relu(layer.W_1(x.relu_())))


def transposed(layer: Any, x: Tensor) -> Tensor:
    """The weights as nn.Linear stores them, used as if they were (in, out)."""
    return torch.relu(x @ layer.W_1.weight + layer.W_1.bias) @ layer.W_2.weight + layer.W_2.bias


def without_biases(layer: Any, x: Tensor) -> Tensor:
    """The weights only."""
    return torch.relu(x @ layer.W_1.weight.T) @ layer.W_2.weight.T


def detached(layer: Any, x: Tensor) -> Tensor:
    """Runs without a graph."""
    with torch.no_grad():
        return right(layer, x)


MISTAKES = (
    Mistake(
        "no-parameters",
        "The layer knows of no parameters: projections in a Python list are not registered, so "
        "that no optimizer sees them. Set them as attributes.",
        version(from_the_list, in_a_list),
    ),
    Mistake(
        "no-bias",
        "A bias is missing: the formula has b_1 and b_2.",
        version(make=linears(lambda d, f: (d, f), lambda d, f: (f, d), bias=False)),
        also=(version(make=one_bias_missing(True)), version(make=one_bias_missing(False))),
    ),
    Mistake(
        "widths-exchanged",
        "The widths are exchanged: W_1 goes from d_model to d_ff features, W_2 back.",
        version(
            lambda layer, x: layer.W_1(torch.relu(layer.W_2(x))),
            linears(lambda d, f: (f, d), lambda d, f: (d, f)),
        ),
    ),
    Mistake(
        "width-fixed",
        "The hidden layer has a width of its own. It has d_ff features.",
        version(make=linears(lambda d, f: (d, 4 * d), lambda d, f: (4 * d, d))),
        also=(
            version(make=linears(lambda d, f: (d, d), lambda d, f: (d, d))),
            version(make=linears(lambda d, f: (d, d * f), lambda d, f: (d * f, d))),
            version(make=linears(lambda d, f: (d, 2048), lambda d, f: (2048, d))),
        ),
    ),
    Mistake(
        "stays-wide",
        "What comes out has d_ff features. The block adds it to x, so it must have d_model again.",
        version(make=linears(lambda d, f: (d, f), lambda d, f: (f, f))),
        also=(version(lambda layer, x: torch.relu(layer.W_1(x)), linears(lambda d, f: (d, f))),),
    ),
    Mistake(
        "three-projections",
        "There are three projections. Asked for are two; a third, as a gate, is SwiGLU.",
        version(
            make=linears(lambda d, f: (d, f), lambda d, f: (f, d), lambda d, f: (d, f)),
        ),
        also=(
            version(make=linears(lambda d, f: (d, f), lambda d, f: (f, d), lambda d, f: (d, d))),
            version(make=extra("W_gate", lambda d, f: nn.Linear(d, f))),
        ),
    ),
    Mistake(
        "norm-within",
        "There is a norm within the layer. It stands around the layer, in the block.",
        version(make=extra("norm", lambda d, f: nn.LayerNorm(d))),
        also=(
            version(make=extra("norm_1", lambda d, f: nn.LayerNorm(d))),
            version(make=extra("layer_norm", lambda d, f: nn.LayerNorm(d))),
        ),
    ),
    Mistake(
        "other-names",
        "The projections have other names. The check copies its weights in by name: self.W_1 and "
        "self.W_2.",
        examples=(
            version(
                lambda layer, x: layer.fc2(torch.relu(layer.fc1(x))),
                lambda layer, d, f: (
                    setattr(layer, "fc1", nn.Linear(d, f)),
                    setattr(layer, "fc2", nn.Linear(f, d)),
                )[0],
            ),
            version(
                lambda layer, x: layer.net(x),
                lambda layer, d, f: setattr(
                    layer, "net", nn.Sequential(nn.Linear(d, f), nn.ReLU(), nn.Linear(f, d))
                ),
            ),
        ),
    ),
    Mistake(
        "random",
        "Two calls of the same layer disagree: something is dropped, by a dropout or a functional "
        "call that does not know about eval(), or weights are made in forward.",
        version(lambda layer, x: F.dropout(right(layer, x), 0.1)),
        also=(
            version(lambda layer, x: layer.W_2(F.dropout(torch.relu(layer.W_1(x)), 0.1))),
            version(made_in_forward),
        ),
    ),
    Mistake(
        "drops-in-training",
        "In training something is dropped. Here the layer drops nothing; dropout is its own part "
        "of the lesson.",
        version(lambda layer, x: F.dropout(right(layer, x), 0.1, layer.training)),
        also=(
            version(
                lambda layer, x: layer.W_2(F.dropout(torch.relu(layer.W_1(x)), 0.1, layer.training))
            ),
        ),
    ),
    Mistake(
        "input-altered",
        "x is altered in place. The block adds x to the output, so it still needs it.",
        version(in_place),
    ),
    Mistake(
        "no-nonlinearity",
        "Nothing stands between the projections. Two linear maps in a row are one linear map: "
        "the wide hidden layer would be for nothing.",
        hidden(lambda h: h),
    ),
    Mistake(
        "relu-last",
        "The ReLU stands at the end, so that nothing negative is ever added to a token. It stands "
        "between the projections.",
        version(lambda layer, x: torch.relu(layer.W_2(layer.W_1(x)))),
    ),
    Mistake(
        "relu-twice",
        "There is a second ReLU at the end, so that nothing negative is ever added to a token.",
        version(lambda layer, x: torch.relu(right(layer, x))),
    ),
    Mistake(
        "relu-first",
        "The ReLU is applied to x, before the first projection: half of what a token says is lost.",
        version(lambda layer, x: layer.W_2(layer.W_1(torch.relu(x)))),
        also=(version(lambda layer, x: right(layer, torch.relu(x))),),
    ),
    Mistake(
        "gelu",
        "The function between is a GELU. Later models have it; asked for is the ReLU of the first.",
        hidden(F.gelu),
        also=(hidden(lambda h: F.gelu(h, approximate="tanh")),),
    ),
    Mistake(
        "other-function",
        "The function between the projections is another one. Asked for is the ReLU, max(0, x).",
        hidden(torch.sigmoid),
        also=(
            hidden(torch.tanh),
            hidden(F.silu),
            hidden(F.leaky_relu),
            hidden(F.softplus),
            hidden(F.elu),
            hidden(lambda h: h.softmax(dim=-1)),
            hidden(lambda h: h.clamp(0, 1)),
            hidden(F.relu6),
            hidden(lambda h: torch.relu(h).square()),
        ),
    ),
    Mistake(
        "sign",
        "The ReLU keeps the wrong half, or keeps both: negative numbers become zero, others stay.",
        hidden(lambda h: h.clamp(max=0)),
        also=(hidden(torch.abs), hidden(lambda h: torch.relu(-h))),
    ),
    Mistake(
        "residual",
        "x is added to the output. The residual belongs to the block, not to this layer.",
        version(lambda layer, x: x + right(layer, x)),
    ),
    Mistake(
        "normalised",
        "The output, or the input, is normalised. The norm stands around the layer, in the block.",
        version(lambda layer, x: F.layer_norm(right(layer, x), x.shape[-1:])),
        also=(version(lambda layer, x: right(layer, F.layer_norm(x, x.shape[-1:]))),),
    ),
    Mistake(
        "tokens-mixed",
        "Tokens are mixed: the hidden features are averaged over them. This layer looks at each "
        "token alone; mixing is what attention is for.",
        version(over_tokens),
    ),
    Mistake(
        "biases-unused",
        "The biases are made and not used.",
        version(without_biases),
    ),
    Mistake(
        "weights-transposed",
        "The weights are used as (in, out). nn.Linear stores them as (out, in), which shows "
        "nothing while d_ff is d_model.",
        version(transposed),
    ),
    Mistake(
        "one-projection-twice",
        "One projection serves twice, which goes unnoticed while d_ff is d_model.",
        version(lambda layer, x: layer.W_1(torch.relu(layer.W_1(x)))),
        also=(version(lambda layer, x: layer.W_2(torch.relu(layer.W_2(x)))),),
    ),
    Mistake(
        "order-exchanged",
        "W_2 comes before W_1, which goes unnoticed while d_ff is d_model.",
        version(lambda layer, x: layer.W_1(torch.relu(layer.W_2(x)))),
    ),
    Mistake(
        "hidden-returned",
        "The hidden features come back. They still have to go through W_2.",
        version(lambda layer, x: torch.relu(layer.W_1(x))),
        also=(version(lambda layer, x: layer.W_1(x)),),
    ),
    Mistake(
        "flattened",
        "The axes before the features are made one and not put back.",
        version(flattened),
    ),
    Mistake(
        "no-gradient",
        "No gradient comes through: the layer runs under no_grad, or detaches.",
        version(detached),
    ),
    Mistake(
        "input-detached",
        "No gradient reaches x, so that nothing before this layer would be trained.",
        version(lambda layer, x: right(layer, x.detach())),
    ),
    Mistake(
        "hidden-detached",
        "No gradient comes past the hidden features: W_1 would not be trained.",
        version(lambda layer, x: layer.W_2(torch.relu(layer.W_1(x)).detach())),
    ),
)
