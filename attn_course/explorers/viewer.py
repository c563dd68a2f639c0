"""AttentionViewer: layers × heads × tokens of a model, and two sentences side by side."""

from collections.abc import Mapping, Sequence
from functools import cache
from math import ceil
from typing import Any

import numpy as np
import torch
import traitlets
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn

from attn_course.attention import softmax
from attn_course.explorers.attention_maps import (
    NAN_CODE,
    amount,
    are_sentences,
    check_amount,
    codes_of,
    dequantise,
    entropies_of,
    recorded,
    sentences_of,
)
from attn_course.explorers.base import STATE, Explorer
from attn_course.explorers.data import Whole
from attn_course.plots.fonts import note_missing
from attn_course.plots.maps import draw_map
from attn_course.plots.picture import COLOURS, SEQUENTIAL
from attn_course.sentences import say

_FEW_KEYS = 24  # with more of them, colours from 0 to 1 would show little
_READABLE = 40  # tokens along an axis of the still picture
_THUMBNAIL = 32  # points along a side in the still picture
_PANES = ("", "beside_")
_POSITIONS = ("sentence", "beside", "layer", "head", "row", "column", "beside_row", "beside_column")


class AttentionViewer(Explorer):
    """All attention maps of a model: thumbnails of every head, and one of them large.

    Weights travel as a byte each, within √w / 254 + 1 / 254² of their value
    (`attention_maps.quantise`); entropies, as float32, are those of the exact weights.

    Args:
        maps: (layers, h, i, j), or a list with (h, i, j) for each layer, or what
            `multihead.record_attention` collects. None opens on heads made by rule.
        tokens: those of the queries, as strings; None numbers them.
        key_tokens: those of the keys where they are others: the source of a translation.
        compare: (maps, tokens) or (maps, tokens, key_tokens) of a sentence to stand beside.
        sentence, beside: which sentences are shown; None beside: only one.
        kind: "self", "encoder", "decoder", "cross", or the name of the modules.
        layer, head, row, column: what is looked at; a smaller map shows its last.
        beside_row, beside_column: the same in the sentence beside.
        stretch: colours reach up to the largest weight of a map and not to 1; from the
            start where there are more than 24 keys.

    Raises:
        TraitError: for maps that hold no attention weights, tokens that do not fit them,
            more than 2.9 million weights, and positions that do not exist.
    """

    module = "viewer"
    size = (9.0, 4.6)

    sentences = traitlets.List(traitlets.Dict()).tag(**STATE)
    sentence = Whole(0).tag(**STATE)
    beside = Whole(None, allow_none=True).tag(**STATE)
    kind = traitlets.Unicode().tag(**STATE)
    layer = Whole(0).tag(**STATE)
    head = Whole(0).tag(**STATE)
    row = Whole(0).tag(**STATE)
    column = Whole(0).tag(**STATE)
    beside_row = Whole(0).tag(**STATE)
    beside_column = Whole(0).tag(**STATE)
    stretch = traitlets.Bool(False).tag(**STATE)

    def __init__(
        self,
        maps: Any = None,
        tokens: Any = None,
        key_tokens: Any = None,
        *,
        compare: tuple[Any, ...] | None = None,
        **state: Any,
    ) -> None:
        """Open on the maps of a model, or on heads made by rule."""
        if maps is None and "sentences" not in state:
            if tokens is not None or key_tokens is not None or compare is not None:
                bare = say("tokens and compare need maps that they belong to")
                raise traitlets.TraitError(bare)
            state = {"row": 5, "column": 4} | state | {"sentences": _examples()}
        elif maps is not None:
            state["sentences"] = sentences_of(maps, tokens, key_tokens)
            if compare is not None:
                state["sentences"] += sentences_of(*compare)
                state.setdefault("beside", 1)
        super().__init__(**_with_defaults(state))

    @classmethod
    def from_model(
        cls,
        model: nn.Module,
        *inputs: Any,
        tokens: Any = None,
        key_tokens: Any = None,
        named: Mapping[str, Any] | None = None,
        **state: Any,
    ) -> "AttentionViewer":
        """Run `model(*inputs, **named)` and show the weights of all its attention.

        The sentences of the batch can be chosen, and of two or more the first two stand
        side by side. tokens, key_tokens: a list for each sentence, or of a single one the
        list itself; shorter lists leave padding out.

        Raises:
            TraitError: as the constructor; and for a model without `MultiHeadAttention`.
        """
        maps = recorded(model, *inputs, **(named or {}))
        sentences = sentences_of(maps, tokens, key_tokens)
        if len(sentences) > 1:
            state.setdefault("beside", 1)
        return cls(sentences=sentences, **state)

    @traitlets.validate("sentences", "kind", *_POSITIONS)
    def _valid(self, proposal: Any) -> Any:
        return self._possible(proposal)

    def _check(self, state: Mapping[str, Any]) -> str | None:
        sentences = state["sentences"]
        if not are_sentences(sentences):
            return self.t("no_sentences")
        check_amount(amount(sentences))
        for name, size in _sizes(sentences).items():
            got = state[name]
            if not (got is None or 0 <= got < size):
                return self.t("index_allowed", name=name, last=size - 1, got=got)
        kinds = [group["kind"] for group in sentences[0]["groups"]]
        if state["kind"] not in kinds:
            return self.t("kind_allowed", allowed=", ".join(kinds), got=state["kind"])
        return None

    def numbers(self) -> Mapping[str, np.ndarray]:
        """Weights of the map, of its row and column, and the mean entropy of every head.

        The weights are those that the bytes stand for: see `attention_maps`.
        """
        numbers: dict[str, np.ndarray] = {}
        for pane in _PANES[: 1 if self.beside is None else 2]:
            group, layer, head, row, column = self._place(pane)
            at = sum(group["heads"][:layer]) + head
            weights = dequantise(codes_of(group)[at])
            entropies = entropies_of(group)
            numbers |= {
                f"{pane}weights": weights,
                f"{pane}attends": weights[row],
                f"{pane}attended": weights[:, column],
                f"{pane}entropy": entropies.mean(axis=1),
                f"{pane}row_entropy": entropies[at, row],
            }
        return numbers

    def _sentence(self, pane: str) -> dict[str, Any]:
        beside = self.sentence if self.beside is None else self.beside
        return self.sentences[beside if pane else self.sentence]

    def _place(self, pane: str) -> tuple[dict[str, Any], int, int, int, int]:
        """Return the group shown in a pane, and layer, head, row and column within it."""
        groups = {group["kind"]: group for group in self._sentence(pane)["groups"]}
        group = groups[self.kind]
        layer = min(self.layer, len(group["heads"]) - 1)
        head = min(self.head, group["heads"][layer] - 1)
        row = min(getattr(self, f"{pane}row"), len(group["rows"]) - 1)
        column = min(getattr(self, f"{pane}column"), len(group["columns"]) - 1)
        return group, layer, head, row, column

    def _describe(self, numbers: Mapping[str, np.ndarray]) -> str:
        """Name sizes and places only: the weights of a trained model differ elsewhere."""
        parts = []
        for pane in _PANES[: 1 if self.beside is None else 2]:
            group, layer, head, _, _ = self._place(pane)
            sizes = {"layers": len(group["heads"]), "heads": max(group["heads"])}
            sizes |= {"rows": len(group["rows"]), "columns": len(group["columns"])}
            name = self._sentence(pane)["name"]
            kind = self.words.get(f"kind_{self.kind}", self.kind)
            parts.append(self.t("drawn", name=name, kind=kind, layer=layer, head=head, **sizes))
        return " ".join(parts)

    def _draw(self, figure: Figure, numbers: Mapping[str, np.ndarray]) -> None:
        panes = _PANES[: 1 if self.beside is None else 2]
        figure.set_size_inches(self.size[0], self.size[1] * len(panes))
        axes = figure.subplots(len(panes), 2, squeeze=False, width_ratios=(1, 1.2))
        for (thumbnails, large), pane in zip(axes, panes, strict=True):
            group, layer, head, _, _ = self._place(pane)
            draw_thumbnails(thumbnails, group, layer, head, self.words, stretch=self.stretch)
            draw_map_of(figure, large, group, layer, head, self.words, stretch=self.stretch)


def draw_map_of(
    figure: Figure,
    axes: Axes,
    group: Mapping[str, Any],
    layer: int,
    head: int,
    words: Mapping[str, str],
    *,
    stretch: bool,
) -> None:
    """Draw the map of one head large, with its tokens if there are not too many."""
    weights = dequantise(codes_of(group)[sum(group["heads"][:layer]) + head])
    few = max(weights.shape) <= _READABLE
    rows, columns = (_short(group[side]) if few else None for side in ("rows", "columns"))
    top = float(np.nanmax(weights, initial=0)) if stretch else 1.0
    image = draw_map(axes, weights, (0.0, top or 1.0), rows, columns)
    axes.set_title(words["map_title"].format(layer=layer, head=head))
    axes.set(xlabel=words["key_axis"], ylabel=words["query_axis"])
    figure.colorbar(image, ax=axes, label=words["weight"], shrink=0.9)
    note_missing(figure, [*(rows or ()), *(columns or ())])


def draw_thumbnails(
    axes: Axes,
    group: Mapping[str, Any],
    layer: int,
    head: int,
    words: Mapping[str, str],
    *,
    stretch: bool,
) -> None:
    """Draw the maps of all heads as one image, a row for each layer, and outline one."""
    codes = codes_of(group)
    codes = np.where(codes == NAN_CODE, 0, codes)
    tops = dequantise(codes.max(axis=(1, 2))) if stretch else np.ones(len(codes))
    thumbnails = [
        dequantise(_shrunk(one)) / (top or 1) for one, top in zip(codes, tops, strict=True)
    ]
    n, m = thumbnails[0].shape
    gap = 1 + max(n, m) // 16
    heads = group["heads"]
    sheet = np.full((len(heads) * (n + gap), max(heads) * (m + gap)), np.nan)
    places = [(number, place) for number, count in enumerate(heads) for place in range(count)]
    for (number, place), thumbnail in zip(places, thumbnails, strict=True):
        top, left = number * (n + gap), place * (m + gap)
        sheet[top : top + n, left : left + m] = thumbnail
    axes.imshow(sheet, cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    corner = (head * (m + gap) - 0.5, layer * (n + gap) - 0.5)
    axes.add_patch(Rectangle(corner, m, n, fill=False, edgecolor=COLOURS[1], linewidth=2.5))
    axes.set_xticks([k * (m + gap) + m / 2 for k in range(max(heads))], map(str, range(max(heads))))
    axes.set_yticks([k * (n + gap) + n / 2 for k in range(len(heads))], map(str, range(len(heads))))
    axes.set(xlabel=words["heads_axis"], ylabel=words["layers_axis"])
    axes.set_title(words["thumbnails"])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _shrunk(codes: np.ndarray) -> np.ndarray:
    """Return the largest of every few cells, so that a picture keeps single bright ones."""
    n, m = codes.shape
    step = ceil(max(n, m) / _THUMBNAIL)
    padded = np.pad(codes, ((0, -n % step), (0, -m % step)))
    blocks = padded.reshape(padded.shape[0] // step, step, padded.shape[1] // step, step)
    return blocks.max(axis=(1, 3))


def _short(tokens: Sequence[str]) -> list[str]:
    return [token if len(token) <= 14 else f"{token[:13]}…" for token in tokens]


def _with_defaults(state: dict[str, Any]) -> dict[str, Any]:
    """Fill in the kind and the colours, if nobody has, from what there is to show."""
    if are_sentences(state["sentences"]):
        groups = state["sentences"][0]["groups"]
        state.setdefault("kind", groups[-1]["kind"])
        keys = max(len(group["columns"]) for group in groups)
        state.setdefault("stretch", keys > _FEW_KEYS)
    return state


def _sizes(sentences: list[Any]) -> dict[str, int]:
    """Return how many values each position may take, in the largest map there is."""
    groups = [group for one in sentences for group in one["groups"]]
    rows = max(len(group["rows"]) for group in groups)
    columns = max(len(group["columns"]) for group in groups)
    layers = max(len(group["heads"]) for group in groups)
    heads = max(max(group["heads"]) for group in groups)
    sizes = (len(sentences), len(sentences), layers, heads, rows, columns, rows, columns)
    return dict(zip(_POSITIONS, sizes, strict=True))


@cache
def _examples() -> list[dict[str, Any]]:
    """Two sentences through heads whose habits are those that trained models show."""
    texts = ("the cat saw the dog and the dog saw the cat", "the dog saw the cat and the cat ran")
    return [one for text in texts for one in sentences_of(_ruled(text.split()), text.split())]


def _ruled(tokens: Sequence[str], sharpness: float = 4.0) -> list[Tensor]:
    """Return (h, i, j) of two layers: scores are high where a rule says so, low elsewhere."""
    n = len(tokens)
    i, j = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
    same = torch.tensor([[a == b for b in tokens] for a in tokens])
    before = torch.tensor([[j > 0 and tokens[j - 1] == a for j in range(n)] for a in tokens])
    rules = [
        [j == i - 1, j == i + 1, same & (i != j), j == 0],
        [-(i - j).abs() / 4, torch.zeros(n, n), before & (j <= i), same],
    ]
    return [softmax(torch.stack([rule * sharpness for rule in layer])) for layer in rules]
