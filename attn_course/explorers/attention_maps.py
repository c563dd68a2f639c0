"""Attention maps on their way to the browser: named, checked and packed, a byte a weight."""

import base64
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil, prod
from typing import Any

import numpy as np
import torch
import traitlets
from torch import Tensor, nn

from attn_course.attention import attention_entropy
from attn_course.explorers.data import as_array, pack, unpack
from attn_course.multihead import record_attention
from attn_course.sentences import say

MAX_WEIGHTS = 2_900_000
"""So many weights go to the browser at once: 3.9 MB as base64."""

NAN_CODE = 255
_STEPS = 254
_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")
_EMPTY = say("maps is empty: there is no layer to show")
_MISFITS = {
    "queries": "{count} tokens for {length} queries of {kind}",
    "keys": "{count} tokens for {length} keys of {kind}",
}
_ENDS = {" ": "␣", "\t": "⇥", "\n": "⏎", "\r": "␍"}


def quantise(weights: np.ndarray) -> np.ndarray:
    """Return the code 254 √w of each weight in [0, 1], as uint8; 255 for NaN.

    The root makes the steps fine where weights are small, as most of them are: what
    `dequantise` gives back is within `quantisation_step` of the weight. Only a weight of
    exactly 0 gets the code 0, so what a mask hides stays apart from what is hardly seen.
    """
    unknown = np.isnan(weights)
    known = np.where(unknown, 0.0, weights)
    codes = np.rint(_STEPS * np.sqrt(np.clip(known, 0, 1)))
    codes = np.where(known > 0, np.maximum(codes, 1), codes)
    return np.where(unknown, NAN_CODE, codes).astype(np.uint8)


def dequantise(codes: np.ndarray) -> np.ndarray:
    """Return the weights that codes stand for, (code / 254)²."""
    weights = (codes.astype(np.float64) / _STEPS) ** 2
    return np.where(codes == NAN_CODE, np.nan, weights)


def quantisation_step(weights: Any) -> Any:
    """Return how far a weight may move on its way: √w / 254 + 1 / 254², at most 0.004."""
    return np.sqrt(weights) / _STEPS + 1 / _STEPS**2


def recorded(model: nn.Module, *inputs: Any, **named: Any) -> dict[str, Tensor]:
    """Return the weights (b, h, i, j) of every attention while the model reads its inputs.

    Without dropout and without gradients; the model's modes are as before afterwards.

    Raises:
        TraitError: if no `MultiHeadAttention` took part.
    """
    with reading(model), record_attention(model) as maps:
        model(*inputs, **named)
    if not maps:
        unused = say(
            "{name} used no attn_course.multihead.MultiHeadAttention: give its maps as a list of "
            "(h, i, j) instead",
            name=type(model).__name__,
        )
        raise traitlets.TraitError(unused)
    return maps


@contextmanager
def reading(model: nn.Module) -> Iterator[None]:
    """Let a model be run without dropout and gradients, and leave its modes as they were."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def sentences_of(maps: Any, tokens: Any = None, key_tokens: Any = None) -> list[dict[str, Any]]:
    """Return the maps of each sentence as plain data, packed.

    maps: (layers, h, i, j); or a list with (h, i, j) for each layer; or, as
        `record_attention` collects them, a mapping of names to (b, h, i, j) or (h, i, j).
    tokens, key_tokens: those of the queries and, where they differ, of the keys: the source
        of an encoder and decoder. With b > 1 sentences, a list for each; a list may then
        be shorter than its map, which is cut where nothing is seen of what is left out.

    A sentence is {name, groups}, a group the maps of one kind of attention: {kind, rows and
    columns: tokens, heads: how many each layer has, shape: (heads in all, i, j), data:
    codes as base64, entropy: of each query, packed}.

    Raises:
        TraitError: for maps that are no weights, tokens that do not fit them, or too much.
    """
    kinds = _by_kind(maps)
    count = len(next(iter(kinds.values()))[0])
    for kind, layers in kinds.items():
        _check_sizes(kind, layers, count)
    queries = _for_each(tokens, count, "tokens")
    keys = _for_each(key_tokens, count, "key_tokens")
    check_amount(sum(layer.size for layers in kinds.values() for layer in layers))
    sentences = []
    for number, (ours, theirs) in enumerate(zip(queries, keys, strict=True)):
        groups = []
        for kind, layers in kinds.items():
            rows, columns = _sides(kind, ours, theirs)
            arrays = [_cut(layer[number], rows, columns, kind, count > 1) for layer in layers]
            groups.append(_group(kind, arrays, rows, columns))
        sentences.append({"name": _name(groups[-1]["rows"]), "groups": groups})
    return sentences


def amount(sentences: Sequence[Mapping[str, Any]]) -> int:
    """Return how many weights packed sentences have."""
    return sum(prod(group["shape"]) for one in sentences for group in one["groups"])


def check_amount(total: int) -> None:
    """Raise TraitError for more weights than a page should be asked to hold."""
    if total > MAX_WEIGHTS:
        too_many = say(
            "{total} weights are more than the {most} that a page should hold: show fewer layers, "
            "heads, tokens or sentences",
            total=total,
            most=MAX_WEIGHTS,
        )
        raise traitlets.TraitError(too_many)


def codes_of(group: Mapping[str, Any]) -> np.ndarray:
    """Return the codes (heads in all, i, j) of a packed group."""
    raw = base64.b64decode(group["data"])
    return np.frombuffer(raw, dtype=np.uint8).reshape(group["shape"])


def entropies_of(group: Mapping[str, Any]) -> np.ndarray:
    """Return the entropy (heads in all, i) of each query, in nats."""
    return unpack(group["entropy"]).astype(np.float64)


def visible(token: Any) -> str:
    """Return a token so that spaces at its ends and control characters can be seen."""
    text = str(token)
    if not text:
        return "∅"
    inner = text.strip(" ")
    start = len(text) - len(text.lstrip(" "))
    text = "␣" * start + inner + "␣" * (len(text) - len(inner) - start)
    return "".join(_ENDS.get(c, _shown(c)) if c != " " else c for c in text)


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cs":  # half of a pair, which no message can carry
        return "\ufffd"
    return f"\\x{ord(character):02x}" if category == "Cc" else character


def _by_kind(maps: Any) -> dict[str, list[np.ndarray]]:
    """Return the layers of each kind of attention, each (b, h, i, j)."""
    if not isinstance(maps, Mapping):
        if isinstance(maps, list | tuple):
            layers = [as_array(layer, f"maps[{k}]", 3) for k, layer in enumerate(maps)]
        else:
            wanted = 3 if getattr(maps, "ndim", 4) == 3 else 4  # (h, i, j): a single layer
            layers = list(as_array(maps, "maps", wanted).reshape(-1, *maps.shape[-3:]))
        if not layers:
            raise traitlets.TraitError(_EMPTY)
        return {"attention": [layer[None] for layer in layers]}
    if not maps:
        raise traitlets.TraitError(_EMPTY)
    layers_of: dict[str, list[np.ndarray]] = {}
    for name, layer in maps.items():
        batched = getattr(layer, "ndim", 3) == 4
        array = as_array(layer, f"maps[{name!r}]", 4 if batched else 3)
        pattern = _NUMBER.sub("*", name)
        layers_of.setdefault(pattern, []).append(array if batched else array[None])
    return dict(zip(_kinds(list(layers_of)), layers_of.values(), strict=True))


def _kinds(patterns: list[str]) -> list[str]:
    """Name the kinds of attention by what the course calls them; else by their modules."""
    across = any(pattern.endswith("cross_attention") for pattern in patterns)

    def kind(pattern: str) -> str:
        if pattern.endswith("cross_attention"):
            return "cross"
        if not pattern.endswith("self_attention"):
            return pattern or "attention"
        if pattern.startswith("encoder."):
            return "encoder"
        return "decoder" if across else "self"

    kinds = [kind(pattern) for pattern in patterns]
    return kinds if len(set(kinds)) == len(kinds) else patterns


def _check_sizes(kind: str, layers: list[np.ndarray], count: int) -> None:
    for number, layer in enumerate(layers):
        if layer.shape[2:] != layers[0].shape[2:] or len(layer) != count:
            other = say(
                "all maps of {kind} must be of {count} sentences and of shape {shape}, layer "
                "{layer} has {got_count} of {got_shape}",
                kind=kind,
                count=count,
                shape=layers[0].shape[2:],
                layer=number,
                got_count=len(layer),
                got_shape=layer.shape[2:],
            )
            raise traitlets.TraitError(other)
        known = layer[~np.isnan(layer)]
        if known.size and (known.min() < -1e-6 or known.max() > 1 + 1e-3):
            no_weights = say(
                "weights must lie between 0 and 1, those of {kind}, layer {layer}, go from "
                "{low:.3g} to {high:.3g}: are they scores, before the softmax?",
                kind=kind,
                layer=number,
                low=known.min(),
                high=known.max(),
            )
            raise traitlets.TraitError(no_weights)


def _for_each(tokens: Any, count: int, name: str) -> list[list[str] | None]:
    """Return a list of tokens, or None, for each of `count` sentences."""
    if tokens is None:
        return [None] * count
    lists = list(tokens)
    nested = bool(lists) and all(isinstance(one, list | tuple) for one in lists)
    if count == 1 and not nested:
        lists = [lists]
    elif len(lists) != count or isinstance(tokens, str):
        too_few = say(
            "{name} must hold a list for each of {count} sentences, got {got}",
            name=name,
            count=count,
            got=len(lists),
        )
        raise traitlets.TraitError(too_few)
    return [[visible(token) for token in one] for one in lists]


def _sides(
    kind: str, tokens: list[str] | None, key_tokens: list[str] | None
) -> tuple[list[str] | None, list[str] | None]:
    if kind == "encoder" and key_tokens is not None:
        return key_tokens, key_tokens
    if kind == "decoder" or key_tokens is None:
        return tokens, None if kind == "cross" else tokens
    return tokens, key_tokens


def _cut(
    weights: np.ndarray,
    rows: list[str] | None,
    columns: list[str] | None,
    kind: str,
    padded: bool,
) -> np.ndarray:
    """Leave out of (h, i, j) what stands beyond the tokens, if that is padding."""
    sides = (("queries", rows, weights.shape[1]), ("keys", columns, weights.shape[2]))
    for side, tokens, length in sides:
        if tokens is not None and (len(tokens) > length or (len(tokens) < length and not padded)):
            misfit = say(_MISFITS[side], count=len(tokens), length=length, kind=kind)
            raise traitlets.TraitError(misfit)
    n, m = (length if tokens is None else len(tokens) for _, tokens, length in sides)
    if not n or not m or np.any(weights[:, :n, m:] > 0):
        no_padding = say(
            "{rows} and {columns} tokens for {queries} queries and {keys} keys of {kind}, but keys "
            "beyond them are attended to: they are no padding",
            rows=n,
            columns=m,
            queries=weights.shape[1],
            keys=weights.shape[2],
            kind=kind,
        )
        raise traitlets.TraitError(no_padding)
    return weights[:, :n, :m]


def _group(
    kind: str, layers: list[np.ndarray], rows: list[str] | None, columns: list[str] | None
) -> dict[str, Any]:
    weights = np.concatenate(layers)
    _, n, m = weights.shape
    codes = np.ascontiguousarray(quantise(weights))
    entropy = attention_entropy(torch.from_numpy(np.clip(weights, 0, None)))
    return {
        "kind": kind,
        "rows": rows or [str(i) for i in range(n)],
        "columns": columns or [str(j) for j in range(m)],
        "heads": [len(layer) for layer in layers],
        "shape": list(weights.shape),
        "data": base64.b64encode(codes.tobytes()).decode("ascii"),
        "entropy": pack(entropy.numpy()),
    }


def _name(tokens: list[str], letters: int = 40) -> str:
    text = " ".join(tokens)
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def are_sentences(data: Sequence[Any]) -> bool:
    """Whether plain data are what `sentences_of` gives, with the same kinds in each sentence."""
    try:
        kinds = [[group["kind"] for group in one["groups"]] for one in data]
        whole = all(isinstance(one["name"], str) for one in data)
        whole = whole and all(map(_is_group, (group for one in data for group in one["groups"])))
    except (KeyError, TypeError, ValueError):
        return False
    return bool(whole and kinds and kinds[0] and all(names == kinds[0] for names in kinds))


def _is_group(group: Mapping[str, Any]) -> bool:
    heads, n, m = group["shape"]
    return (
        sum(group["heads"]) == heads
        and (len(group["rows"]), len(group["columns"])) == (n, m)
        and len(group["data"]) == 4 * ceil(heads * n * m / 3)
        and group["entropy"]["shape"] == [heads, n]
        and len(group["entropy"]["data"]) == 4 * ceil(4 * heads * n / 3)
    )
