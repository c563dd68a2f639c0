"""AttentionStepper: one small example through every step of attention, number by number."""

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from math import inf, sqrt
from typing import Any, SupportsFloat

import numpy as np
import torch
import traitlets
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attn_course.attention import attention_scores, scaled_dot_product_attention
from attn_course.explorers.base import STATE, Explorer
from attn_course.explorers.data import Flags, Numbers, Whole, cut
from attn_course.plots.fonts import family_for, laid_out
from attn_course.sentences import say

_STAGES: tuple[str, ...] = ("dot", "scale", "mask", "softmax", "sum")
_PACES = ("number", "row", "stage")
_LIMIT = 8  # tokens, and features, of which every number can still be read
_RESULTS: dict[str, str] = dict(
    zip(_STAGES, ("scores", "scaled", "masked", "weights", "output"), strict=True)
)

# d_k = 4, so that the scale is a half; "it" finds its noun
_TOKENS = ["the", "cat", "ate", "it"]
_QUERY = [[1.0, 0.0, 0.0, 0.5], [0.0, 1.0, 1.5, 0.0], [1.5, 0.5, 0.0, -1.0], [2.0, 0.5, 0.0, -1.0]]
_KEY = [[0.0, 1.0, 0.0, 0.5], [2.0, 0.0, 1.0, 0.0], [0.0, 0.5, 2.0, -1.0], [1.0, 0.0, 0.5, 1.0]]
_VALUE = [[0.5, 0.0], [2.0, 1.0], [-1.0, 3.0], [0.0, -1.0]]


class AttentionStepper(Explorer):
    """One small example carried through attention, every number in view.

    Five stages: dot product, scale, mask, softmax, weighted sum. A step is the next number,
    row or stage (`pace`); the formula's term, the line of code, the shapes and the cells
    that take part are lit together. Numbers and mask can be edited in place, a click on a
    number unfolds how it came about, and `predict` asks for the next one before showing it.

    Args:
        query, key, value: (n_query, d_k), (n_key, d_k), (n_key, d_v), at most 8 tokens of
            8 features; give all three or none.
        mask: (n_query, n_key), True where the query may attend to the key; None hides
            nothing. The example opens with a causal mask.
        tokens: names of the keys, and of the queries unless `query_tokens` has them.
        stage: "dot", "scale", "mask", "softmax" or "sum".
        i, j, d: query, key and output feature of the number in view.
        pace: what one step is: "number", "row" or "stage".
        predict: whether the next number is asked for.

    Raises:
        TraitError: for shapes that do not fit or are too large to read, and for a stage,
            pace or place that does not exist.

    Source: Vaswani et al. 2017, "Attention Is All You Need", equation 1.
    """

    module = "stepper"
    size = (9.0, 4.6)

    query = Numbers().tag(**STATE)
    key = Numbers().tag(**STATE)
    value = Numbers().tag(**STATE)
    mask = Flags().tag(**STATE)
    tokens = traitlets.List(traitlets.Unicode()).tag(**STATE)
    query_tokens = traitlets.List(traitlets.Unicode()).tag(**STATE)
    stage = traitlets.Unicode("dot").tag(**STATE)
    i = Whole(0).tag(**STATE)
    j = Whole(0).tag(**STATE)
    d = Whole(0).tag(**STATE)
    pace = traitlets.Unicode("number").tag(**STATE)
    predict = traitlets.Bool(False).tag(**STATE)

    def __init__(
        self,
        query: Any = None,
        key: Any = None,
        value: Any = None,
        mask: Any = None,
        tokens: Any = None,
        query_tokens: Any = None,
        **state: Any,
    ) -> None:
        """Open on the example, or on `query`, `key` and `value`."""
        missing = [name is None for name in (query, key, value)]
        if any(missing) and not all(missing):
            incomplete = say("give all of query, key and value, or none of them")
            raise traitlets.TraitError(incomplete)
        if query is None:
            query, key, value = _QUERY, _KEY, _VALUE
            tokens = _TOKENS if tokens is None else tokens
            mask = np.tri(len(_QUERY), dtype=bool) if mask is None else mask
        n_query, n_key = _count(query), _count(key)
        mask = np.ones((n_query, n_key), dtype=bool) if mask is None else mask
        tokens = _numbered(n_key) if tokens is None else list(tokens)
        if query_tokens is None:
            query_tokens = tokens if n_query == len(tokens) else _numbered(n_query)
        super().__init__(
            query=query,
            key=key,
            value=value,
            mask=mask,
            tokens=tokens,
            query_tokens=list(query_tokens),
            **state,
        )

    @traitlets.validate(
        "query", "key", "value", "mask", "tokens", "query_tokens", "stage", "i", "j", "d", "pace"
    )
    def _valid(self, proposal: Any) -> Any:
        return self._possible(proposal)

    def _check(self, state: Mapping[str, Any]) -> str | None:
        return self._check_shapes(state) or self._check_place(state)

    def _check_shapes(self, state: Mapping[str, Any]) -> str | None:
        names = ("query", "key", "value", "mask")
        shapes = {name: (len(state[name]), len(state[name][0])) for name in names}
        for name, shape in shapes.items():
            if max(shape) > _LIMIT:
                return self.t("too_large", limit=_LIMIT, name=name, got=shape)
        (n_query, d_k), n_key = shapes["query"], shapes["key"][0]
        wanted = {
            "key": (n_key, d_k),
            "value": (n_key, shapes["value"][1]),
            "mask": (n_query, n_key),
        }
        for name, expected in wanted.items():
            if shapes[name] != expected:
                return self.t("wrong_shape", name=name, expected=expected, got=shapes[name])
        for name, expected in (("tokens", n_key), ("query_tokens", n_query)):
            if len(state[name]) != expected:
                return self.t("tokens_count", name=name, expected=expected, got=len(state[name]))
        return None

    def _check_place(self, state: Mapping[str, Any]) -> str | None:
        for name, allowed in (("stage", _STAGES), ("pace", _PACES)):
            if state[name] not in allowed:
                return self.t(f"{name}_allowed", allowed=", ".join(allowed), got=state[name])
        sizes = {"i": len(state["query"]), "j": len(state["key"]), "d": len(state["value"][0])}
        for name, count in sizes.items():
            if not 0 <= state[name] < count:
                return self.t("place_allowed", name=name, last=count - 1, got=state[name])
        return None

    def numbers(self) -> Mapping[str, np.ndarray]:
        """What each stage makes of the numbers: scores, scaled, masked, weights, output."""
        query, key, value = (
            torch.tensor(np.asarray(rows, dtype=np.float64))
            for rows in (self.query, self.key, self.value)
        )
        mask = torch.tensor(self.mask)
        scores = attention_scores(query, key)
        scaled = scores / sqrt(query.shape[-1])
        output, weights = scaled_dot_product_attention(query, key, value, mask)
        stages = (scores, scaled, scaled.masked_fill(~mask, -inf), weights, output)
        return {
            name: np.asarray(numbers)
            for name, numbers in zip(_RESULTS.values(), stages, strict=True)
        }

    def _describe(self, numbers: Mapping[str, np.ndarray]) -> str:
        column = self.d if self.stage == "sum" else self.j
        return self.t(
            f"described_{self.stage}",
            query=cut(self.query_tokens[self.i]),
            key=cut(self.tokens[self.j]),
            d=self.d,
            d_k=len(self.query[0]),
            value=_fixed(numbers[_RESULTS[self.stage]][self.i, column]),
            before=_fixed(numbers["scores"][self.i, self.j]),
            total=_fixed(numbers["weights"][self.i].sum()),
        )

    def _draw(self, figure: Figure, numbers: Mapping[str, np.ndarray]) -> None:
        given = {name: np.asarray(getattr(self, name), dtype=float) for name in _GIVEN}
        panels = figure.subplots(2, 5).ravel()
        for axes, name in zip(panels, (*_GIVEN, "", *_RESULTS.values()), strict=True):
            axes.set_axis_off()
            if name:
                self._draw_numbers(axes, name, given.get(name, numbers.get(name)))
        result = panels[5 + _STAGES.index(self.stage)]
        column = self.d if self.stage == "sum" else self.j
        result.add_patch(Rectangle((column - 0.5, self.i - 0.5), 1, 1, fill=False, linewidth=2.5))

    def _draw_numbers(self, axes: Axes, name: str, values: Any) -> None:
        rows = self.tokens if name in ("key", "value") else self.query_tokens
        axes.set(xlim=(-1.6, values.shape[1] - 0.4), ylim=(len(values) - 0.4, -0.6))
        axes.set_title(self.words[name])
        for i, row in enumerate(values):
            label = laid_out(rows[i])
            axes.text(-0.6, i, label, ha="right", va="center", family=family_for([rows[i]]))
            for j, value in enumerate(row):
                if name == "mask":
                    text = "✓" if value else "✗"
                else:
                    text = f"{value:g}" if name in _GIVEN else _fixed(value)
                axes.text(j, i, text, ha="center", va="center", fontsize=8)


_GIVEN = ("query", "key", "value", "mask")


def _fixed(number: SupportsFloat) -> str:
    """A computed number, as the view writes it."""
    value = float(number)
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "∞" if value > 0 else "−∞"
    if abs(value) >= 1000:
        return f"{value:.4g}".replace("-", "−")
    # halves away from zero, as the browser rounds them
    text = str(Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP))
    return text.replace("-0.00", "0.00").replace("-", "−")


def _count(data: Any) -> int:
    """How many rows data has; what has none is refused when it is taken."""
    return len(data) if hasattr(data, "__len__") and getattr(data, "ndim", 1) > 0 else 0


def _numbered(count: int) -> list[str]:
    return [str(position) for position in range(count)]
