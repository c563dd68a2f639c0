"""PositionExplorer: order must be put in, and four ways to do it."""

from collections.abc import Mapping, Sequence
from functools import cache
from math import sqrt
from typing import Any

import numpy as np
import torch
import traitlets
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from attn_course.attention import scaled_dot_product_attention
from attn_course.explorers.base import STATE, Explorer
from attn_course.explorers.data import Numbers, Whole, as_array, cut, normals, show, to_plain
from attn_course.plots.picture import COLOURS, HATCHES
from attn_course.positions import alibi_bias, alibi_slopes, apply_rope
from attn_course.sentences import say

KINDS = ("sinusoidal", "learned", "rope", "alibi")
_LONGEST = 128  # positions, and features
_TOKENS = ("the", "dog", "bit", "the", "man")


class PositionExplorer(Explorer):
    """Positions that are added, turned or subtracted, and a token to move among them.

    Shown are the table of encodings (for RoPE the cosines and sines of its turns, for ALiBi
    the bias of one head), two of its waves, how alike two positions are against their
    distance, the row of the chosen token, and its attention: without positions, where it
    stood at first, and where it stands now. Queries and keys are the tokens' vectors
    themselves, q = k = x.

    Args:
        x: (tokens, d_model), the tokens' vectors; None draws one for each word.
        tokens: the words, "the dog bit the man" if left out.
        table: (max_len, d_model), learned positions of your own; None draws them.
        kind: "sinusoidal", "learned", "rope" or "alibi".
        n: positions that there are; max_len: those seen in training. Learned positions have
            no row from there on.
        d_model, base: of the encodings; d_model even, since RoPE turns pairs.
        token, position: the chosen token, by number, and where it stands.
        places: where the tokens stood at first; whoever stands at `position` swaps with the
            chosen token.
        dimension: whose wave is shown, the last one if there are fewer; num_heads, head: of ALiBi.

    Raises:
        TraitError: for sizes outside 2 … 128, an odd d_model, places that do not exist or
            meet, vectors or a table that do not fit.

    Sources: Vaswani et al. 2017, section 3.5; Gehring et al. 2017, section 3.1; Su et al.
    2021, equation 34; Press et al. 2022, section 3.
    """

    module = "position"
    size = (9.0, 6.0)

    kind = traitlets.Unicode("sinusoidal").tag(**STATE)
    n = Whole(48).tag(**STATE)
    max_len = Whole(32).tag(**STATE)
    d_model = Whole(32).tag(**STATE)
    base = traitlets.Float(10000.0).tag(**STATE)
    token = Whole(1).tag(**STATE)
    position = Whole(1).tag(**STATE)
    dimension = Whole(4).tag(**STATE)
    num_heads = Whole(8).tag(**STATE)
    head = Whole(2).tag(**STATE)
    tokens = traitlets.List(traitlets.Unicode()).tag(**STATE)
    places = traitlets.List(Whole()).tag(**STATE)
    x = Numbers(allow_none=True, default_value=None).tag(**STATE)
    table = Numbers(allow_none=True, default_value=None).tag(**STATE)

    def __init__(
        self,
        x: Any = None,
        tokens: Sequence[str] | None = None,
        *,
        table: Any = None,
        **state: Any,
    ) -> None:
        """Open on a sentence in which one word comes twice, or on data of your own."""
        if x is not None:
            state["x"] = to_plain(as_array(x, "x", 2))
        if table is not None:
            state["table"] = to_plain(as_array(table, "table", 2))
            state = {"kind": "learned", "max_len": len(state["table"])} | state
        given = state.get("x") or state.get("table")
        if given:
            state.setdefault("d_model", len(given[0]))
        words = _words(tokens, state.get("x"))
        state.setdefault("places", list(range(len(words))))
        state.setdefault("n", min(max(48, len(words), state.get("max_len", 0)), _LONGEST))
        state.setdefault("token", min(1, len(words) - 1))
        _choose(state, len(words))
        super().__init__(tokens=words, **state)

    @traitlets.validate("kind", "n", "max_len", "d_model", "base", "token", "position", "dimension")
    def _valid(self, proposal: Any) -> Any:
        return self._possible(proposal)

    @traitlets.validate("num_heads", "head", "tokens", "places", "x", "table")
    def _fits(self, proposal: Any) -> Any:
        return self._possible(proposal)

    def _check(self, state: Mapping[str, Any]) -> str | None:
        if state["kind"] not in KINDS:
            return self.t("kind_allowed", allowed=", ".join(KINDS), got=state["kind"])
        if not 1 < state["base"] <= 1e9:
            return self.t("base_allowed", got=_short(state["base"]))
        if state["d_model"] % 2:
            return self.t("even", got=state["d_model"])
        bounds = {
            "n": (2, _LONGEST),
            "d_model": (2, _LONGEST),
            "max_len": (1, _LONGEST),
            "num_heads": (1, 64),
            "head": (0, state["num_heads"] - 1),
            "token": (0, len(state["tokens"]) - 1),
            "position": (0, state["n"] - 1),
            "dimension": (0, _LONGEST - 1),
        }
        for name, (low, high) in bounds.items():
            if not low <= state[name] <= high:
                return self.t("within", name=name, low=low, high=high, got=state[name])
        return self._misfit(state) or self._misplaced(state)

    def _misfit(self, state: Mapping[str, Any]) -> str | None:
        """What of the learner's own data does not go with the sizes."""
        for name, rows in (("x", len(state["tokens"])), ("table", state["max_len"])):
            given = state[name]
            if given and (len(given), len(given[0])) != (rows, state["d_model"]):
                expected, got = (rows, state["d_model"]), (len(given), len(given[0]))
                return self.t("wrong_shape", name=name, expected=expected, got=got)
        return None

    def _misplaced(self, state: Mapping[str, Any]) -> str | None:
        places = state["places"]
        if len(places) != len(state["tokens"]):
            return self.t("places_count", count=len(state["tokens"]), got=len(places))
        for k, place in enumerate(places):
            if not 0 <= place < state["n"] or places.index(place) != k:
                return self.t("places_allowed", last=state["n"] - 1, got=place)
        return None

    # -- the numbers ----------------------------------------------------------------------

    def standing(self) -> list[int]:
        """Where each token stands now."""
        home = self.places[self.token]
        swapped = [home if place == self.position else place for place in self.places]
        swapped[self.token] = self.position
        return swapped

    def numbers(self) -> Mapping[str, np.ndarray]:
        """The table, waves, rows and similarities at both places, three sets of weights."""
        table = self._table()
        home, now = self.places[self.token], self.standing()
        lost = [place for place in now if self.kind == "learned" and place >= self.max_len]
        numbers = {
            "home": home,
            "now": now,
            "table": table,
            "waves": self._waves(table),
            "row": table[self.position],
            "row_home": table[home],
            "similarity": self._similarity(table, self.position),
            "similarity_home": self._similarity(table, home),
            "attention": self._attend(now),
            "attention_home": self._attend(self.places),
            "attention_without": self._attend(None),
            "lost": lost,
            "beyond": max(0, self.n - self.max_len),
        }
        return {name: np.asarray(values) for name, values in numbers.items()}

    def _table(self) -> Tensor:
        places = torch.arange(self.n)
        if self.kind == "alibi":
            return alibi_bias(self.num_heads, self.n, self.n)[self.head].double()
        if self.kind == "learned":
            rows = torch.full((self.n, self.d_model), torch.nan, dtype=torch.float64)
            learned = self._learned()[: self.n]
            rows[: len(learned)] = learned
            return rows
        if self.kind == "rope":  # (1, 0) turned by θ is (cos θ, sin θ)
            return apply_rope(_pairs(1.0, 0.0, self.n, self.d_model), places, self.base)
        return self._sinusoids(places)

    def _sinusoids(self, places: Tensor) -> Tensor:
        """`sinusoidal_encoding` at any base: (0, 1) turned back by θ is (sin θ, cos θ)."""
        return apply_rope(_pairs(0.0, 1.0, len(places), self.d_model), -places, self.base)

    def _learned(self) -> Tensor:
        """Rows of the learner's own, else drawn as large as the sinusoids are on average."""
        if self.table:
            return torch.tensor(as_array(self.table, "table", 2))
        return sqrt(0.5) * _drawn(1, _LONGEST)[: self.max_len, : self.d_model]

    def _content(self) -> Tensor:
        """The tokens' vectors: the same word has the same, half its own and a whole of all."""
        if self.x:
            return torch.tensor(as_array(self.x, "x", 2))
        drawn = _drawn(0, len(self.tokens) + 1)[:, : self.d_model]
        own = [1 + self.tokens.index(word) for word in self.tokens]
        return drawn[0] + 0.5 * drawn[own]

    def _waves(self, table: Tensor) -> Tensor:
        if self.kind == "alibi":
            heads = [self.head, 0, self.num_heads - 1]
            return alibi_bias(self.num_heads, self.n, self.n)[heads, self.position].double()
        dimension = min(self.dimension, self.d_model - 1)
        return table[:, [dimension, dimension ^ 1]].mT

    def _similarity(self, table: Tensor, place: int) -> Tensor:
        if self.kind == "alibi":
            return table[place]
        lengths = table.norm(dim=-1)
        return table @ table[place] / (lengths * lengths[place])

    def _attend(self, places: Sequence[int] | None) -> Tensor:
        """The weights of the chosen token over all tokens; without places, by content alone."""
        x = self._content()
        if places is None:
            return self._weights(x)
        if self.kind == "learned" and max(places) >= self.max_len:
            return torch.full((len(x),), torch.nan)  # the look-up fails
        at = torch.tensor(places)
        if self.kind == "alibi":
            distance = (at[self.token] - at).abs()
            return self._weights(x, -alibi_slopes(self.num_heads)[self.head] * distance)
        if self.kind == "rope":
            return self._weights(apply_rope(x, at, self.base))
        rows = self._sinusoids(at) if self.kind == "sinusoidal" else self._learned()[at]
        return self._weights(x + rows)

    def _weights(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        query = x[self.token][None]
        bias = None if bias is None else bias[None]
        _, weights = scaled_dot_product_attention(query, x, x, bias=bias)
        return torch.empty(0) if weights is None else weights[0]

    def _describe(self, numbers: Mapping[str, np.ndarray]) -> str:
        word = cut(self.tokens[self.token])
        key = "described_home" if self.position == numbers["home"] else "described"
        said = self.t(key, word=word, position=self.position, home=numbers["home"])
        values = {
            "last": self.max_len - 1,
            "max_len": self.max_len,
            "places": ", ".join(map(str, numbers["lost"])),
        }
        if len(numbers["lost"]) > 0:
            return f"{said} {self.t('lost', **values)}"
        own = self.x is not None or self.table is not None  # what was trained differs elsewhere
        looks = "" if own or len(self.tokens) < 2 else self._looks(numbers)
        unseen = self.kind != "learned" and max(numbers["now"]) >= self.max_len
        parts = (said, looks, self.t("unseen", **values) if unseen else "")
        return " ".join(part for part in parts if part)

    def _looks(self, numbers: Mapping[str, np.ndarray]) -> str:
        """Whom the chosen token attends to besides itself."""
        values: dict[str, Any] = {}
        for end, places in (("", numbers["now"]), ("_home", self.places)):
            weights = numbers[f"attention{end}"]
            others = [k for k in range(len(self.tokens)) if k != self.token]
            to = max(others, key=lambda k, weights=weights: weights[k])
            values |= {f"own{end}": show(weights[self.token], 2), f"top{end}": show(weights[to], 2)}
            values |= {f"to{end}": cut(self.tokens[to]), f"at{end}": places[to]}
        key = "looks_home" if self.position == numbers["home"] else "looks"
        return self.t(key, **values)

    # -- the still picture ----------------------------------------------------------------

    def _draw(self, figure: Figure, numbers: Mapping[str, np.ndarray]) -> None:
        (table, waves), (similarity, attention) = figure.subplots(2, 2)
        self._draw_table(table, numbers)
        for k, wave in enumerate(numbers["waves"]):
            waves.plot(wave, color=COLOURS[k], linestyle=("-", "--", ":")[k])
        waves.set(title=self.words[f"waves_{self.kind}"], xlabel=self.words["position"])
        for k, (name, place) in enumerate(
            (("similarity_home", numbers["home"]), ("similarity", self.position))
        ):
            distances = np.arange(self.n) - place
            similarity.plot(distances, numbers[name], color=COLOURS[k], linestyle=("--", "-")[k])
        similarity.set(title=self.words[f"similarity_{self.kind}"], xlabel=self.words["distance"])
        self._draw_attention(attention, numbers)

    def _draw_table(self, axes: Axes, numbers: Mapping[str, np.ndarray]) -> None:
        table = numbers["table"]
        top = float(np.nanmax(np.abs(table))) if np.isfinite(table).any() else 1.0
        axes.imshow(table, cmap="coolwarm", vmin=-top, vmax=top, aspect="auto")
        axes.axhline(self.position, color="black")
        if self.max_len < self.n:
            axes.axhline(self.max_len - 0.5, color="black", linestyle="--")
        across = "key_position" if self.kind == "alibi" else "dimension"
        axes.set(xlabel=self.words[across], ylabel=self.words["position"])
        axes.set_title(self.words[f"table_{self.kind}"])

    def _draw_attention(self, axes: Axes, numbers: Mapping[str, np.ndarray]) -> None:
        names = {
            "attention_without": self.words["without"],
            "attention_home": self.t("at_home", home=numbers["home"]),
            "attention": self.t("at_now", position=self.position),
        }
        places = np.arange(len(self.tokens))
        for k, (name, label) in enumerate(names.items()):
            look: dict[str, Any] = {"color": COLOURS[k], "hatch": HATCHES[k], "edgecolor": "white"}
            axes.bar(places + 0.27 * (k - 1), numbers[name], 0.27, label=label, **look)
        axes.set_xticks(places, self.tokens)
        axes.set(title=self.words["attention"], ylabel=self.words["weight"], ylim=(0, 1))
        axes.legend(fontsize=8)


@cache
def _drawn(seed: int, rows: int) -> Tensor:
    """`rows` vectors of the widest size, of which d_model takes the first features."""
    return torch.tensor(normals(seed, rows * _LONGEST).reshape(rows, _LONGEST))


def _pairs(even: float, odd: float, n: int, d_model: int) -> Tensor:
    return torch.tensor([even, odd], dtype=torch.float64).repeat(n, d_model // 2)


def _words(tokens: Sequence[str] | None, x: list | None) -> list[str]:
    """The words; numbers where vectors came without any."""
    if tokens is None:
        tokens = _TOKENS if x is None else [str(k) for k in range(len(x))]
    words = [str(token) for token in tokens]
    if not 1 <= len(words) <= _LONGEST:
        wrong = say("tokens must be 1 to {most} words, got {got}", most=_LONGEST, got=len(words))
        raise traitlets.TraitError(wrong)
    return words


def _choose(state: dict[str, Any], count: int) -> None:
    """Let the chosen token stand where it stood at first, unless told otherwise."""
    token, places = state["token"], state["places"]
    if isinstance(token, int) and 0 <= token < min(count, len(places)):
        state.setdefault("position", places[token])


def _short(number: float) -> str:
    """A number as JavaScript writes it: 1 where Python has 1.0."""
    return str(int(number)) if number.is_integer() else str(number)
