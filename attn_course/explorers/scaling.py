"""ScalingExplorer: what dividing the scores by the root of d_k keeps from happening."""

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
import torch
import traitlets
from matplotlib.figure import Figure

from attn_course.attention import attention_entropy, jacobian_sizes, softmax
from attn_course.explorers.base import STATE, Explorer
from attn_course.explorers.data import Numbers, Whole, as_array, normals, show
from attn_course.plots.picture import COLOURS, HATCHES, MARKERS

_N = 16  # queries, and keys, of the random draw
_WIDEST = 1024
_MOST = 128  # queries, and keys, that a browser compares in a moment at every d_k
_MEASURES = ("spread", "entropy", "gradient")


class ScalingExplorer(Explorer):
    """Scaled and unscaled dot products side by side, as d_k goes from 1 to 1024.

    Shown are the spread of the scores, the softmax of the first query, the mean entropy
    of the weights and the mean Frobenius norm of ∂p/∂s, each over d_k.

    Args:
        query, key: (n_query, d) and (n_key, d), numbers of your own, of which the first
            d_k features are taken, up to 128 rows of 1024; None draws 16 of each from the
            standard normal.
        d_k: a power of two up to the number of features, or that number.
        seed: of the random draw.

    Raises:
        TraitError: for a d_k that is not offered, a negative seed, or query and key that
            do not fit each other.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1 and footnote 4.
    """

    module = "scaling"
    size = (9.0, 5.6)

    d_k = Whole(64).tag(**STATE)
    seed = Whole(0).tag(**STATE)
    query = Numbers(allow_none=True, default_value=None).tag(**STATE)
    key = Numbers(allow_none=True, default_value=None).tag(**STATE)

    def __init__(self, query: Any = None, key: Any = None, **state: Any) -> None:
        """Open on random vectors, or on `query` and `key`."""
        if query is not None:
            state.setdefault("d_k", as_array(query, "query", 2).shape[1])
        super().__init__(query=query, key=key, **state)

    @traitlets.validate("d_k", "seed", "query", "key")
    def _valid(self, proposal: Any) -> Any:
        return self._possible(proposal)

    def _check(self, state: Mapping[str, Any]) -> str | None:
        if state["seed"] < 0:
            return self.t("seed_allowed", got=state["seed"])
        problem = self._check_given(state["query"], state["key"])
        if problem:
            return problem
        allowed = _allowed(state)
        if state["d_k"] not in allowed:
            return self.t("d_k_allowed", allowed=", ".join(map(str, allowed)), got=state["d_k"])
        return None

    def _check_given(self, query: list | None, key: list | None) -> str | None:
        if query is None or key is None:
            return None if query is key else self.t("both_or_neither")
        for name, rows in (("query", query), ("key", key)):
            if len(rows) > _MOST or len(rows[0]) > _WIDEST:
                got = (len(rows), len(rows[0]))
                return self.t("too_large", name=name, rows=_MOST, features=_WIDEST, got=got)
        expected, got = f"(n_key, {len(query[0])})", (len(key), len(key[0]))
        if len(query[0]) != len(key[0]):
            return self.t("wrong_shape", name="key", expected=expected, got=got)
        return None

    def numbers(self) -> Mapping[str, np.ndarray]:
        """Spread, entropy and gradient at each size, and the first query's weights at d_k."""
        query, key = self._vectors()
        sizes = _allowed(self.state)
        numbers: dict[str, Any] = {"sizes": sizes, "at": sizes.index(self.d_k)}
        for name in ("scaled", "unscaled"):
            rows = []
            for d_k in sizes:
                scale = 1 / sqrt(d_k) if name == "scaled" else 1.0
                scores = scale * query[:, :d_k] @ key[:, :d_k].mT
                weights = softmax(scores)
                spread = scores.std(correction=0)
                entropy = attention_entropy(weights).mean()
                rows.append((spread, entropy, jacobian_sizes(weights).mean()))
                if d_k == self.d_k:
                    numbers[f"{name}_weights"] = weights[0]
            for what, values in zip(_MEASURES, zip(*rows, strict=True), strict=True):
                numbers[f"{name}_{what}"] = torch.stack(values)
        return {name: np.asarray(values) for name, values in numbers.items()}

    def _vectors(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self.query:
            both = (as_array(self.query, "query", 2), as_array(self.key, "key", 2))
            return torch.tensor(both[0]), torch.tensor(both[1])
        drawn = normals(self.seed, 2 * _N * _WIDEST).reshape(2, _N, _WIDEST)
        return torch.tensor(drawn[0]), torch.tensor(drawn[1])

    def _describe(self, numbers: Mapping[str, np.ndarray]) -> str:
        at = numbers["at"]
        return self.t(
            "described",
            d_k=self.d_k,
            spread=show(numbers["unscaled_spread"][at], 2),
            scaled_spread=show(numbers["scaled_spread"][at], 2),
            largest=show(numbers["unscaled_weights"].max(), 2),
            scaled_largest=show(numbers["scaled_weights"].max(), 2),
            gradient=show(numbers["unscaled_gradient"][at], 2),
            scaled_gradient=show(numbers["scaled_gradient"][at], 2),
        )

    def _draw(self, figure: Figure, numbers: Mapping[str, np.ndarray]) -> None:
        axes = figure.subplots(2, 3)
        grid = axes[0, 0].get_gridspec()
        for left in axes[0]:
            left.remove()
        bars = figure.add_subplot(grid[0, :])
        places = np.arange(len(numbers["scaled_weights"]))
        for k, name in enumerate(("unscaled", "scaled")):
            heights = numbers[f"{name}_weights"]
            bars.bar(
                places + 0.4 * k - 0.2,
                heights,
                0.4,
                color=COLOURS[k],
                hatch=HATCHES[k],
                edgecolor="white",
                label=self.words[name],
            )
            for panel, what in zip(axes[1], _MEASURES, strict=True):
                values = numbers[f"{name}_{what}"]
                panel.plot(numbers["sizes"], values, marker=MARKERS[k], color=COLOURS[k])
        bars.set(ylim=(0, 1), xlabel=self.words["key_axis"], ylabel=self.words["weight"])
        bars.set_title(f"{self.words['weights']}, d_k = {self.d_k}")
        bars.legend()
        for panel, what in zip(axes[1], _MEASURES, strict=True):
            panel.axvline(self.d_k, color="black")
            panel.set_xscale("log")
            panel.set_xlabel(self.words["d_k"])
            panel.set_title(self.words[what], fontsize=9)
        if (numbers["unscaled_spread"] > 0).any():  # NaN is no reason to fail
            axes[1, 0].set_yscale("log")


def _allowed(state: Mapping[str, Any]) -> list[int]:
    widest = len(state["query"][0]) if state["query"] else _WIDEST
    return [2**k for k in range(11) if 2**k < widest] + [widest]
