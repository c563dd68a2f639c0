"""MaskExplorer: who may attend to whom, and what the softmax makes of it."""

import json
from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
import torch
import traitlets
from matplotlib.figure import Figure
from torch import Tensor

from attn_course.attention import scaled_dot_product_attention
from attn_course.explorers.base import STATE, Explorer
from attn_course.explorers.data import Flags, Numbers, Whole, normals
from attn_course.masks import causal_mask, combine_masks, padding_mask, sliding_window_mask
from attn_course.plots.maps import draw_map

_LARGEST = 16  # queries, and keys, whose names can still be read
_ALIGNMENTS = ("bottom-right", "top-left")
_FILLS = ("zeros", "-inf", "-1e9")
_SENTENCE = "the cat ate the fish that the dog had left on the floor last night ."


class MaskExplorer(Explorer):
    """Causal, padding and window masks, their combination, and any cell painted over.

    Beside the mask stand the weights that the softmax makes of it, a row that sees nothing
    among them, and the tokens: who sees whom, and which rule hides what.

    Args:
        mask: (n_query, n_key), a mask of your own, True where the query may attend to the
            key. The rules, all off at first, come on top.
        scores: (n_query, n_key), the scores before the softmax; None takes an example's.
        tokens: names of the keys; a query is called by the key at whose position it stands.
        n_query, n_key: how many, 1 to 16.
        causal: whether later keys are hidden.
        window: how many keys, its own the last of them, a query sees; 0 for all.
        padding: how many keys at the end are padding.
        align: where the queries stand when their number is not that of the keys:
            "bottom-right", the last query at the last key, as the course has it, or
            "top-left", the first query at the first key.
        fill: what hidden scores become before the softmax: "-inf", "-1e9", or "zeros",
            which is -inf with the rows that see nothing cleared, as the course does.
        painted: [i, j, may attend] for each cell that is painted over the rules.
        i, j: the query and the key in view.

    Raises:
        TraitError: for sizes out of range, data that does not fit them, and a causal mask
            or window aligned bottom-right with more queries than keys.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3; the window is
    that of Beltagy et al. 2020, "Longformer", section 3.1.
    """

    module = "mask"
    size = (9.0, 4.2)

    mask = Flags(allow_none=True, default_value=None).tag(**STATE)
    scores = Numbers(allow_none=True, default_value=None).tag(**STATE)
    tokens = traitlets.List(traitlets.Unicode()).tag(**STATE)
    n_query = Whole(6).tag(**STATE)
    n_key = Whole(6).tag(**STATE)
    causal = traitlets.Bool(True).tag(**STATE)
    window = Whole(0).tag(**STATE)
    padding = Whole(0).tag(**STATE)
    align = traitlets.Unicode("bottom-right").tag(**STATE)
    fill = traitlets.Unicode("zeros").tag(**STATE)
    painted = traitlets.List(traitlets.List()).tag(**STATE)
    i = Whole(2).tag(**STATE)
    j = Whole(1).tag(**STATE)

    def __init__(
        self, mask: Any = None, scores: Any = None, tokens: Any = None, **state: Any
    ) -> None:
        """Open on the example, or on a mask, scores or tokens of your own."""
        given = mask if mask is not None else scores
        rows = _count(given)
        columns = _count(given[0]) if rows else 0
        if rows and columns:
            state = {"n_query": rows, "n_key": columns} | state
        elif tokens is not None:
            state = {"n_query": len(tokens), "n_key": len(tokens)} | state
        if mask is not None:
            state = {"causal": False} | state
        n_query, n_key = (state.get(name, 6) for name in ("n_query", "n_key"))
        state = {"i": _within(2, n_query), "j": _within(1, n_key)} | state
        super().__init__(
            mask=mask,
            scores=scores,
            tokens=_SENTENCE.split() if tokens is None else list(tokens),
            **state,
        )

    @traitlets.validate(
        "mask", "scores", "tokens", "n_query", "n_key", "window", "padding", "causal",
        "align", "fill", "painted", "i", "j",
    )  # fmt: skip
    def _valid(self, proposal: Any) -> Any:
        return self._possible(proposal)

    def _check(self, state: Mapping[str, Any]) -> str | None:
        return self._check_sizes(state) or self._check_rules(state) or self._check_given(state)

    def _check_sizes(self, state: Mapping[str, Any]) -> str | None:
        n_query, n_key = state["n_query"], state["n_key"]
        ranges = {
            "n_query": (1, _LARGEST),
            "n_key": (1, _LARGEST),
            "window": (0, _LARGEST),
            "padding": (0, n_key),
            "i": (0, n_query - 1),
            "j": (0, n_key - 1),
        }
        for name, (low, high) in ranges.items():
            if not low <= state[name] <= high:
                return self.t("size_allowed", name=name, low=low, high=high, got=state[name])
        return None

    def _check_rules(self, state: Mapping[str, Any]) -> str | None:
        for name, allowed in (("align", _ALIGNMENTS), ("fill", _FILLS)):
            if state[name] not in allowed:
                return self.t("one_of", name=name, allowed=", ".join(allowed), got=state[name])
        n_query, n_key = state["n_query"], state["n_key"]
        ordered = state["causal"] or state["window"] > 0
        if ordered and state["align"] == "bottom-right" and n_query > n_key:
            return self.t("needs_fewer", n_query=n_query, n_key=n_key)
        return None

    def _check_given(self, state: Mapping[str, Any]) -> str | None:
        expected = (state["n_query"], state["n_key"])
        for name in ("mask", "scores"):
            rows = state[name]
            if rows is not None and (len(rows), len(rows[0])) != expected:
                got = (len(rows), len(rows[0]))
                return self.t("wrong_shape", name=name, expected=expected, got=got)
        if len(state["tokens"]) < expected[1]:
            return self.t("tokens_count", expected=expected[1], got=len(state["tokens"]))
        for cell in state["painted"]:
            if not _is_painted(cell):
                got = json.dumps(cell, separators=(",", ":"))
                return self.t("painted_allowed", last=_LARGEST - 1, got=got)
        return None

    def numbers(self) -> Mapping[str, np.ndarray]:
        """The mask of each rule, what all allow together with the paint, and the weights."""
        rules = self._rules()
        combined = combine_masks(rules["mask"], rules["causal"], rules["window"])
        assert combined is not None
        allowed = combined[0, 0] & rules["padding"]
        for i, j, may in self.painted:
            if i < self.n_query and j < self.n_key:
                allowed[i, j] = may
        weights = self._weights(allowed)
        return {
            name: np.asarray(values, dtype=np.float64)
            for name, values in (rules | {"allowed": allowed, "weights": weights}).items()
        }

    def _rules(self) -> dict[str, Tensor]:
        sizes = (self.n_query, self.n_key)
        everything = torch.ones(sizes, dtype=torch.bool)
        # from the first corner: the corner of the square mask
        square = (max(sizes), max(sizes)) if self.align == "top-left" else sizes
        causal = causal_mask(*square) if self.causal else everything
        window = sliding_window_mask(*square, window=self.window) if self.window else everything
        keys = padding_mask(torch.tensor([self.n_key - self.padding]), self.n_key)
        return {
            "mask": everything if self.mask is None else torch.tensor(self.mask),
            "causal": causal[: self.n_query, : self.n_key],
            "window": window[: self.n_query, : self.n_key],
            "padding": keys.expand(sizes),
        }

    def _weights(self, allowed: Tensor) -> Tensor:
        scores = self._scores()
        if self.fill != "zeros":
            fill = -inf if self.fill == "-inf" else -1e9
            return scores.masked_fill(~allowed, fill).softmax(dim=-1)
        # queries and keys of zeros leave the scores to the bias
        query, key = torch.zeros(self.n_query, 1).double(), torch.zeros(self.n_key, 1).double()
        weights = scaled_dot_product_attention(query, key, key, allowed, bias=scores)[1]
        assert weights is not None
        return weights

    def _scores(self) -> Tensor:
        if self.scores is not None:
            return torch.tensor(np.asarray(self.scores, dtype=np.float64))
        example = normals(0, _LARGEST * _LARGEST).reshape(_LARGEST, _LARGEST)
        return torch.tensor(example[: self.n_query, : self.n_key])

    def _describe(self, numbers: Mapping[str, np.ndarray]) -> str:
        allowed = numbers["allowed"].astype(int)
        said = self.t(
            "described",
            open=allowed.sum(),
            all=allowed.size,
            i=self.i,
            n_key=self.n_key,
            count=allowed[self.i].sum(),
        )
        empty = np.flatnonzero(allowed.sum(axis=1) == 0)
        if len(empty) == 0:
            return said
        key = "described_one_empty" if len(empty) == 1 else "described_empty"
        outcome = self.t(f"outcome_{self.fill}")
        return f"{said} {self.t(key, count=len(empty), first=empty[0], outcome=outcome)}"

    def _draw(self, figure: Figure, numbers: Mapping[str, np.ndarray]) -> None:
        keys = self.tokens[: self.n_key]
        shift = 0 if self.align == "top-left" else self.n_key - self.n_query
        places = [i + shift for i in range(self.n_query)]
        queries = [
            keys[place] if 0 <= place < self.n_key else self.t("query_name", i=i)
            for i, place in enumerate(places)
        ]
        panels = figure.subplots(1, 2)
        for axes, name, title in zip(
            panels, ("allowed", "weights"), ("mask", "weights"), strict=True
        ):
            draw_map(axes, numbers[name], row_labels=queries, column_labels=keys)
            axes.set(title=self.words[title], ylabel=self.words["query_axis"])
            axes.set_xlabel(self.words["key_axis"])
            for i, j in np.ndindex(numbers[name].shape):
                self._mark(axes, i, j, name, numbers)

    @staticmethod
    def _mark(axes: Any, i: int, j: int, name: str, numbers: Mapping[str, np.ndarray]) -> None:
        value, empty = numbers[name][i, j], not numbers["allowed"][i].any()
        if numbers["allowed"][i, j] or (empty and name == "weights"):
            text = f"{value:.2g}".replace("nan", "NaN")
        else:
            text = "×"  # hidden, told by more than a colour
        # 4.5 to 1 at least, on any colour of the scale
        ink = "white" if value < 0.43 else "black"  # NaN has no colour below it but the paper's
        axes.text(j, i, text, ha="center", va="center", fontsize=7, color=ink)


def _count(data: Any) -> int:
    """How many rows data has; what has none is refused when it is taken."""
    return len(data) if hasattr(data, "__len__") and getattr(data, "ndim", 1) > 0 else 0


def _within(place: int, count: Any) -> int:
    return max(0, min(place, count - 1)) if isinstance(count, int) else 0


def _is_painted(cell: Any) -> bool:
    if len(cell) != 3 or not isinstance(cell[2], bool):
        return False
    return all(type(at) is int and 0 <= at < _LARGEST for at in cell[:2])
