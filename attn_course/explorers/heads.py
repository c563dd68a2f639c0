"""HeadsExplorer: several views at the same cost, and the matrix that mixes them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
import traitlets
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import nn

from attn_course.attention import scaled_dot_product_attention
from attn_course.explorers.base import STATE, Explorer
from attn_course.explorers.data import Whole, pack, show, unpack
from attn_course.explorers.heads_data import (
    TOKENS,
    are_tensors,
    by_hand,
    drawn_weights,
    projected,
)
from attn_course.masks import causal_mask
from attn_course.memory import attention_memory
from attn_course.multihead import merge_heads, split_heads
from attn_course.plots.maps import draw_map
from attn_course.plots.picture import COLOURS
from attn_course.sentences import say

_FEW = 8  # heads that are named one by one
_DRAWN = 16  # heads in the still picture
_MOST_WEIGHTS = 2**20  # of all heads together: a browser needs longer than a frame for more
_SOURCES = ("by_hand", "random", "own")


class HeadsExplorer(Explorer):
    """The path through multi-head self-attention while the number of heads changes.

    Shown are the shapes from project through split, attend and merge to W_o, the map of
    each head, the parameters, multiply-adds and bytes of weights, and how far the output
    moves when heads are switched off. A count that does not divide d_model is shown with
    what would be lost, and nothing is computed beyond the cut.

    Args:
        module: anything with W_q, W_k, W_v, W_o (`nn.Linear`, d_model to d_model) and
            num_heads, or a mapping of these four names to tensors (in, out), with their
            biases as b_q … b_o if there are any. None: queries, keys and values set by hand
            for four heads; with `d_model` or `x`, weights drawn at random.
        x: (n, d_model) or (1, n, d_model), the tokens' vectors; drawn if left out.
        tokens: n words to write at the maps.
        d_model: the width, to draw weights of that size; of given weights it must be theirs.
        num_heads: heads to begin with: the module's own, else 4, or as many below that divide.
        causal, head, off: whether a token sees later ones; the head that is shown large;
            the heads that are switched off (numbers from num_heads on wait).

    Raises:
        TraitError: for weights or vectors that do not fit together, a module that shares
            key heads or puts positions in, a head count outside 1 … d_model, or more than
            2**20 attention weights: 64 heads of 128 tokens.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2; heads are
    switched off as in Michel et al. 2019, "Are Sixteen Heads Really Better than One?".
    """

    module = "heads"
    size = (9.0, 5.2)

    num_heads = Whole(4).tag(**STATE)
    d_model = Whole().tag(**STATE)
    head = Whole(0).tag(**STATE)
    off = traitlets.List(Whole()).tag(**STATE)
    causal = traitlets.Bool(False).tag(**STATE)
    tokens = traitlets.List(traitlets.Unicode()).tag(**STATE)
    tensors = traitlets.Dict().tag(**STATE)
    biases = Whole(0).tag(**STATE)
    source = traitlets.Unicode().tag(**STATE)

    def __init__(
        self,
        module: nn.Module | Mapping[str, Any] | None = None,
        x: Any = None,
        tokens: Sequence[str] | None = None,
        **state: Any,
    ) -> None:
        """Open on an example set by hand, or on weights and vectors of your own."""
        d_model = state.pop("d_model", None)
        if module is None and x is None and d_model is None:
            tensors, biases, source = by_hand(), 4, "by_hand"
            tokens = TOKENS if tokens is None else tokens
        else:
            source = "random" if module is None else "own"
            weights = drawn_weights(x, d_model) if module is None else module
            tensors, biases = projected(weights, x, tokens)
            if isinstance(module, nn.Module):
                state.setdefault("num_heads", module.num_heads)
        n, width = tensors["query"].shape
        state.setdefault("num_heads", max(h for h in range(1, 5) if width % h == 0))
        super().__init__(
            tensors={name: pack(tensor.numpy()) for name, tensor in tensors.items()},
            tokens=_words(tokens, n),
            d_model=width if d_model is None else d_model,
            biases=biases,
            source=source,
            **state,
        )

    @traitlets.validate(
        "num_heads", "d_model", "head", "off", "tokens", "tensors", "biases", "source"
    )
    def _valid(self, proposal: Any) -> Any:
        return self._possible(proposal)

    def _check(self, state: Mapping[str, Any]) -> str | None:
        if not are_tensors(state["tensors"]):
            return self.t("tensors_allowed")
        (n, width), d_model = state["tensors"]["query"]["shape"], state["d_model"]
        if d_model != width:
            return self.t("d_model_fixed", width=width, got=d_model)
        if len(state["tokens"]) != n:
            return self.t("tokens_count", n=n, got=len(state["tokens"]))
        if state["source"] not in _SOURCES or not 0 <= state["biases"] <= 4:
            return self.t("origin_allowed", got=f"{state['source']}, {state['biases']}")
        return self._check_heads(state, n, d_model)

    def _check_heads(self, state: Mapping[str, Any], n: int, d_model: int) -> str | None:
        if not 1 <= state["num_heads"] <= d_model:
            return self.t("num_heads_allowed", d_model=d_model, got=state["num_heads"])
        most = _MOST_WEIGHTS // n**2
        if state["num_heads"] > most:
            return self.t("too_many_weights", n=n, most=most, got=state["num_heads"])
        for head in (state["head"], *state["off"]):
            if not 0 <= head < d_model:
                return self.t("head_allowed", last=d_model - 1, got=head)
        return None

    def numbers(self) -> Mapping[str, np.ndarray]:
        """Sizes and costs; weights (h, i, j), output (n, d_model), its change if they exist."""
        d_model, num_heads, n = self.d_model, self.num_heads, len(self.tokens)
        d_k, left_over = divmod(d_model, num_heads)
        numbers: dict[str, Any] = {
            "n": n,
            "d_k": d_k,
            "left_over": left_over,
            "divisors": [count for count in range(1, d_model + 1) if d_model % count == 0],
            "parameters": 4 * d_model**2 + self.biases * d_model,
            "multiply_adds": 4 * n * d_model**2 + 2 * n * n * d_model,
        }
        if left_over == 0:
            weights, output, moved = self._attend()
            memory = attention_memory(d_model, num_heads, n)
            numbers |= {"weight_bytes": memory.weights, "weights": weights}
            numbers |= {"output": output, "change": moved}
        return {name: np.asarray(values) for name, values in numbers.items()}

    def _attend(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The weights, the output of the heads that are on, how far the others would move it."""
        tensors = {name: torch.tensor(unpack(packed)) for name, packed in self.tensors.items()}
        tensors = {name: tensor.double() for name, tensor in tensors.items()}
        q, k, v = (
            split_heads(tensors[name][None], self.num_heads) for name in ("query", "key", "value")
        )
        mask = causal_mask(len(self.tokens)) if self.causal else None
        heads, weights = scaled_dot_product_attention(q, k, v, mask)
        merged, W_o, b_o = merge_heads(heads)[0], tensors["W_o"], tensors["b_o"]
        head_of = torch.arange(self.d_model) * self.num_heads // self.d_model
        off = torch.isin(head_of, torch.tensor(self._present(), dtype=torch.long))
        output = merged[:, ~off] @ W_o[~off] + b_o
        lost = merged[:, off] @ W_o[off]
        moved = lost.norm(dim=-1) / (merged @ W_o + b_o).norm(dim=-1)
        return (
            cast(torch.Tensor, weights)[0],
            output,
            moved if off.any() else torch.zeros(len(merged)),
        )

    def _present(self) -> list[int]:
        return sorted(head for head in set(self.off) if head < self.num_heads)

    def _off(self) -> str:
        """The heads that are off, by name if they are few."""
        off = self._present()
        if len(off) > _FEW:
            return self.t("off_count", count=len(off), num_heads=self.num_heads)
        return ", ".join(map(str, off)) or self.words["none"]

    def _described(self) -> dict[str, Any]:
        """What the sentences say of a head count, whether it divides or not."""
        d_k, left_over = divmod(self.d_model, self.num_heads)
        divisors = [count for count in range(1, self.d_model + 1) if self.d_model % count == 0]
        return {
            "d_model": self.d_model,
            "num_heads": self.num_heads,
            "d_k": d_k,
            "used": d_k * self.num_heads,
            "left_over": left_over,
            "quotient": show(self.d_model / self.num_heads, 4),
            "divisors": ", ".join(map(str, divisors)),
        }

    def _describe(self, numbers: Mapping[str, np.ndarray]) -> str:
        values = self._described()
        if values["left_over"]:
            return self.t("does_not_divide", **values)
        values["parameters"] = f"{numbers['parameters']:,}"
        off = self._off()
        if self.source == "own":  # weights that were trained differ elsewhere in any digit
            return self.t("drawn_own", **values, n=numbers["n"], off=off)
        head = min(self.head, self.num_heads - 1)
        weights = np.nan_to_num(numbers["weights"][head], nan=-1.0)
        i, j = np.unravel_index(weights.argmax(), weights.shape)
        said = self.t(
            "described_nan" if np.isnan(numbers["weights"][head]).all() else "described",
            **values,
            head=head,
            weight=show(numbers["weights"][head][i, j], 2),
            from_token=self.tokens[i],
            to_token=self.tokens[j],
        )
        if not self._present():
            return said
        percent = show(100 * numbers["change"].mean(), 2)
        return f"{said} {self.t('described_off', off=off, percent=percent)}"

    def _draw(self, figure: Figure, numbers: Mapping[str, np.ndarray]) -> None:
        top, below = figure.add_gridspec(2, 1, height_ratios=(1, 6))
        self._draw_strip(figure.add_subplot(top), numbers)
        if "weights" not in numbers:
            axes = figure.add_subplot(below)
            axes.set_axis_off()
            axes.text(0.5, 0.9, self._describe(numbers), ha="center", va="top", wrap=True)
            return
        shown = numbers["weights"][:_DRAWN]
        wide = min(len(shown), 4 if len(shown) <= 8 else 8)
        grid = below.subgridspec(-(-len(shown) // wide), wide).subplots(squeeze=False).ravel()
        for axes in grid:
            axes.set_axis_off()
        for head, (axes, weights) in enumerate(zip(grid, shown, strict=False)):
            off = head in self._present()
            draw_map(axes, weights, (0.0, 1.0)).set_alpha(0.25 if off else 1)
            axes.set_aspect("equal")
            axes.set_title(self.t("head_off" if off else "head_on", head=head))
        figure.supxlabel(self.words["key_axis"], fontsize=9)
        figure.supylabel(self.words["query_axis"], fontsize=9)

    def _draw_strip(self, axes: Axes, numbers: Mapping[str, Any]) -> None:
        d_k = int(numbers["d_k"])
        for head in range(self.num_heads):
            axes.barh(0, d_k, left=head * d_k, color=COLOURS[head % 2], edgecolor="white")
            if self.num_heads <= 24:
                axes.text((head + 0.5) * d_k, 0, str(head), ha="center", va="center", color="white")
        left_over = int(numbers["left_over"])
        used = self.d_model - left_over
        axes.barh(0, left_over, left=used, color="white", edgecolor="black", hatch="//")
        axes.set(xlim=(0, self.d_model), yticks=[], title=self.words["strip"])


def _words(tokens: Sequence[str] | None, n: int) -> list[str]:
    """The words at the maps; positions in their stead."""
    words = [str(token) for token in (range(n) if tokens is None else tokens)]
    if len(words) != n:
        misfit = say("x has {n} tokens, {got} words were given", n=n, got=len(words))
        raise traitlets.TraitError(misfit)
    return words
