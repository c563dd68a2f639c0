"""The opaque layers on which exercises 4.2 and 4.4 judge a learner's test.

Each maps (b, n, d) to (b, n, d), for any n, and is differentiable. Numbers are float64 throughout,
so that rounding stays near 1e-16; what a layer truly does shows in the third decimal at least.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attn_course.checks.exercise import Answer, Diagnosis, Seen
from attn_course.sentences import constant, joined, say

Function = Callable[[Tensor], Tensor]


class Opaque(nn.Module):
    """A layer that shows nothing but what comes out of it."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._function = (function,)

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output, (b, n, d)."""
        return self._function[0](x)

    def __repr__(self) -> str:
        """Return a name that gives nothing away."""
        return "Layer()"


# -- what the layers are made of --------------------------------------------------------------


def drawn(name: str, *shape: int) -> Tensor:
    """Normal weights with variance 1 / rows, always the same for one name and shape."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return torch.randn(shape, generator=generator, dtype=torch.float64) / sqrt(shape[0])


def attend(x: Tensor, allowed: Tensor | None = None, bias: Tensor | float = 0.0) -> Tensor:
    """Self-attention with scores large enough to be uneven; an empty row gives zeros."""
    d = x.shape[-1]
    query, key, value = (x @ drawn(role, d, d) for role in ("query", "key", "value"))
    scores = 2 * query @ key.mT / sqrt(d) + bias
    if allowed is None:
        return scores.softmax(dim=-1) @ value
    scores = scores.masked_fill(~(allowed | ~allowed.any(dim=-1, keepdim=True)), -torch.inf)
    return (scores.softmax(dim=-1) * allowed) @ value


def apart(x: Tensor) -> Tensor:
    """How far query i stands behind key j: i − j."""
    place = torch.arange(x.shape[1])
    return place[:, None] - place


def normalised(x: Tensor, *dims: int) -> Tensor:
    """Mean 0 and variance 1 over these axes."""
    mean = x.mean(dim=dims, keepdim=True)
    # a small epsilon: a token twice as large must come out the same far below the tolerances
    return (x - mean) / ((x - mean).square().mean(dim=dims, keepdim=True) + 1e-12).sqrt()


def mlp(x: Tensor) -> Tensor:
    """A feed-forward network on each token by itself."""
    d = x.shape[-1]
    return (x @ drawn("in", d, 4 * d)).tanh() @ drawn("out", 4 * d, d)


def convolve(x: Tensor, kernel: Sequence[float], before: int, *, circular: bool = False) -> Tensor:
    """Σ_m kernel[m] · x at position t − before + m; zeros, or the other end, beyond the ends."""
    after = len(kernel) - 1 - before
    if circular:
        places = torch.arange(-before, x.shape[1] + after) % x.shape[1]
        padded = x[:, places]
    else:
        padded = F.pad(x, (0, 0, before, after))
    return sum(c * padded[:, m : m + x.shape[1]] for m, c in enumerate(kernel))  # type: ignore


def shift(x: Tensor, by: int) -> Tensor:
    """x at position t − by; zeros beyond the ends."""
    return convolve(x, [1.0] + [0.0] * abs(by), by) if by > 0 else F.pad(x, (0, 0, 0, -by))[:, -by:]


def recurrent(x: Tensor) -> Tensor:
    """A state that is carried from position to position."""
    state, states = x.new_zeros(x.shape[0], x.shape[2]), []
    for token in x.unbind(dim=1):
        state = (token + state @ drawn("state", *state.shape[1:] * 2)).tanh()
        states.append(state)
    return torch.stack(states, dim=1)


def heads_by_view(x: Tensor) -> Tensor:
    """Two heads cut by a view alone, which mixes tokens with features."""
    b, n, d = x.shape
    heads = x.reshape(b * 2, n, d // 2)
    return attend(heads).reshape(b, n, d)


def at(x: Tensor, *places: int) -> Tensor:
    """(n, 1): one at these positions, else zero."""
    marks = x.new_zeros(x.shape[1], 1)
    marks[[place for place in places if place < x.shape[1]]] = 1.0
    return marks


def in_one_sample(x: Tensor, changed: Tensor) -> Tensor:
    """`changed` in the last sequence of the batch, x in all others."""
    return torch.cat([x[:-1], changed[-1:]])


def in_the_second_sample(x: Tensor, changed: Tensor) -> Tensor:
    """`changed` in the second sequence of the batch, if there is one, and x in all others."""
    return torch.cat([x[:1], changed[1:2], x[2:]])


def in_one_feature(x: Tensor, changed: Tensor) -> Tensor:
    """`changed` in the last feature, x in all others."""
    return torch.cat([x[..., :-1], changed[..., -1:]], dim=-1)


class Sometimes:
    """Doubles a token at the first place, but for few of the orders that it is shown.

    A single shuffle never shows it, nor does the last of several: the first two orders of the
    same tokens are treated alike, the next two not, and all further ones alike again. Of tokens
    that come later than the first batch, every order counts.
    """

    def __init__(self) -> None:
        self._orders: dict[bytes, list[bytes]] = {}
        self._first_batch = 0

    def __call__(self, x: Tensor) -> Tensor:
        """Return the tokens, (b, n, d), the first one doubled where the order is minded."""
        self._first_batch = self._first_batch or len(x)
        minded = torch.tensor([self._minds(sequence.detach()) for sequence in x])
        return x * (1 + minded[:, None, None] * at(x, 0))

    def _minds(self, sequence: Tensor) -> bool:
        tokens = sequence.numpy().round(12)
        kind = tokens[np.lexsort(tokens.T)].tobytes()
        orders = self._orders.setdefault(kind, [])
        if tokens.tobytes() not in orders:
            orders.append(tokens.tobytes())
        is_new = list(self._orders).index(kind) >= self._first_batch
        return is_new or orders.index(tokens.tobytes()) in (2, 3)


Layer = Function | type[Sometimes]
"""A layer of the catalogue: a function, or a class that is made anew for each test of it."""


def unused(layer: Layer) -> Function:
    """The layer as a test should get it: one that remembers has been shown nothing."""
    return layer() if isinstance(layer, type) else layer


# -- how an answer is called and what is read off its verdicts --------------------------------


def verdict(layers: dict[str, Any]) -> Callable[..., Any]:
    """Return the call of a stage whose probes are (the name of a layer, x)."""

    def call(answer: Answer, layer: str, x: Tensor) -> Any:
        result = answer(Opaque(unused(layers[layer])), x)
        # a truth value of torch or numpy says the same as Python's
        alike = isinstance(result, np.bool_) or (
            isinstance(result, Tensor) and result.dtype == torch.bool and result.numel() == 1
        )
        return bool(result) if alike else result

    return call


def read_verdicts(
    reasons: dict[str, str], alone: dict[str, str]
) -> Callable[[Sequence[Seen]], Diagnosis | None]:
    """Return the diagnosis that tells of the first layer misjudged what fools a test there.

    alone: the mistake that a test has made which misjudges no other layers than this one and
        those with the same mistake.
    """

    def read(seen: Sequence[Seen]) -> Diagnosis | None:
        names = sorted({probe.args[0] for probe in seen}, key=list(reasons).index)
        if not names:
            return None
        told = say(
            "Your test says {verdict} for {layer}. {reason}",
            verdict=_said(seen, names[0]),
            layer=constant(names[0]),
            reason=constant(reasons[names[0]]),
        )
        others = len(names) - 1
        more = say("It misjudges {n} more of the layers.", n=others) if others else ""
        causes = {alone.get(name) for name in names}
        mistake = causes.pop() if len(causes) == 1 else None
        return Diagnosis(joined([told, more]), mistake)

    return read


def _said(seen: Sequence[Seen], name: str) -> Any:
    return next(probe.actual for probe in seen if probe.args[0] == name)
