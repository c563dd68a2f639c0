"""The tensors behind HeadsExplorer: an example set by hand, drawn weights, a learner's own."""

from collections.abc import Mapping, Sequence
from math import ceil, pi, prod, sqrt
from typing import Any

import torch
import traitlets
from einops import einsum
from torch import Tensor, nn

from attn_course.explorers.data import as_array
from attn_course.sentences import say

_SENTENCE = (
    ("The", "article"),
    ("animal", "noun"),
    ("did", "verb"),
    ("not", "other"),
    ("cross", "verb"),
    ("the", "article"),
    ("street", "noun"),
    ("because", "other"),
    ("it", "pronoun"),
    ("was", "verb"),
    ("too", "other"),
    ("tired", "adjective"),
)
TOKENS = [word for word, _ in _SENTENCE]
"""The sentence of the example set by hand."""

_ROLES = ("W_q", "W_k", "W_v", "W_o")
_MOST_TOKENS, _WIDEST = 128, 1024  # a browser still answers at once, and its page stays small

_KINDS = ("article", "noun", "verb", "pronoun", "adjective", "other")
_ASKS = {  # which kind of word looks for which
    "article": "noun",
    "noun": "verb",
    "verb": "noun",
    "pronoun": "noun",
    "adjective": "pronoun",
    "other": "verb",
}


def by_hand() -> dict[str, Tensor]:
    """Return queries, keys, values and W_o in which four heads of 6 features differ plainly.

    Features 0–5 look for the word before, 6–11 for the word after, 12–17 for a kind of word
    that goes with one's own, 18–23 for words of one's own kind.
    """
    place = torch.arange(len(TOKENS), dtype=torch.float64)
    one_hot = torch.eye(len(_KINDS), dtype=torch.float64)
    kind = one_hot[[_KINDS.index(name) for _, name in _SENTENCE]]
    asked = one_hot[[_KINDS.index(_ASKS[name]) for _, name in _SENTENCE]]
    waves, strength = 2 * _waves(place), 3.0
    query = [2 * _waves(place - 1), 2 * _waves(place + 1), strength * asked, strength * kind]
    key = [waves, waves, strength * kind, strength * kind]
    generator = torch.Generator().manual_seed(0)
    tensors = {
        "query": torch.cat(query, dim=-1),
        "key": torch.cat(key, dim=-1),
        "value": torch.cat([kind] * 4, dim=-1),
        "W_o": torch.randn(24, 24, generator=generator, dtype=torch.float64) / sqrt(24),
        "b_o": torch.zeros(24, dtype=torch.float64),
    }
    return {name: tensor.float() for name, tensor in tensors.items()}


def _waves(place: Tensor) -> Tensor:
    """Three turns of a circle on which no two of the sentence's places meet, (n, 6)."""
    angles = 2 * pi / (len(place) + 1) * einsum(place, torch.arange(1.0, 4.0), "n, turn -> n turn")
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def drawn_weights(x: Any, d_model: int | None) -> dict[str, Tensor]:
    """Return four random projections (in, out) for vectors of this width, with zero biases.

    Glorot's variance for equal widths is 1 / d_model. Raises TraitError for a width that is
    not within 1 … 1024.
    """
    if d_model is None:
        d_model = _vectors(x).shape[-1]
    if not isinstance(d_model, int) or not 1 <= d_model <= _WIDEST:
        beyond = say("d_model must be within 1 … {most}, got {got}", most=_WIDEST, got=d_model)
        raise traitlets.TraitError(beyond)
    generator = torch.Generator().manual_seed(d_model)
    drawn = {
        name: torch.randn(d_model, d_model, generator=generator) / sqrt(d_model) for name in _ROLES
    }
    return drawn | {f"b_{name[-1]}": torch.zeros(d_model) for name in _ROLES}


def projected(
    module: nn.Module | Mapping[str, Any], x: Any, tokens: Sequence[str] | None
) -> tuple[dict[str, Tensor], int]:
    """Return queries, keys, values (n, d_model), W_o and b_o, and how many biases there are.

    Projected here, once, since none of it depends on the number of heads.
    Raises TraitError for weights or vectors that do not fit.
    """
    weights = _weights_of(module) if isinstance(module, nn.Module) else _given(module)
    d_model = len(weights["W_q"])
    if x is None:
        n = len(TOKENS) if tokens is None else len(tokens)
        x = torch.randn(n, d_model, generator=torch.Generator().manual_seed(n))
    vectors = _vectors(x)
    if vectors.shape[-1] != d_model:
        shape = tuple(vectors.shape)
        misfit = say("x must be (n, {d_model}), got {got}", d_model=d_model, got=shape)
        raise traitlets.TraitError(misfit)
    none = torch.zeros(d_model, dtype=torch.float64)
    tensors = {
        name: vectors @ weights[role] + weights.get(f"b_{role[-1]}", none)
        for name, role in (("query", "W_q"), ("key", "W_k"), ("value", "W_v"))
    }
    tensors |= {"W_o": weights["W_o"], "b_o": weights.get("b_o", none)}
    biases = sum(f"b_{role[-1]}" in weights for role in _ROLES)
    return {name: tensor.float() for name, tensor in tensors.items()}, biases


def are_tensors(packed: Any) -> bool:
    """Whether plain data are the packed tensors of `projected`: sizes that fit, and all bytes."""
    try:
        n, d_model = packed["query"]["shape"]
        shapes = {name: [n, d_model] for name in ("query", "key", "value")}
        shapes |= {"W_o": [d_model, d_model], "b_o": [d_model]}
        fit = packed.keys() == shapes.keys() and all(
            list(packed[name]["shape"]) == shape
            and len(packed[name]["data"]) == 4 * ceil(4 * prod(shape) / 3)
            for name, shape in shapes.items()
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return fit and 1 <= n <= _MOST_TOKENS and 1 <= d_model <= _WIDEST


def _vectors(x: Any) -> Tensor:
    """One sequence of vectors, (n, d_model)."""
    if isinstance(x, Tensor):
        x = x.detach().cpu()
    axes = getattr(x, "ndim", None)
    if axes == 3 and len(x) == 1:
        x = x[0]
    elif axes == 3:
        several = say("x must be one sequence, got {got}: give x[0]", got=len(x))
        raise traitlets.TraitError(several)
    vectors = as_array(x, "x", 2)
    if len(vectors) > _MOST_TOKENS:
        many = say("x may hold {most} tokens, got {got}", most=_MOST_TOKENS, got=len(vectors))
        raise traitlets.TraitError(many)
    return torch.tensor(vectors)


def _weights_of(module: nn.Module) -> dict[str, Tensor]:
    """The weights of a module by role, (in, out)."""
    name = type(module).__name__
    linears = {role: getattr(module, role, None) for role in _ROLES}
    missing = [role for role, linear in linears.items() if not isinstance(linear, nn.Linear)]
    if missing or not isinstance(getattr(module, "num_heads", None), int):
        wanted = ", ".join(missing) or "num_heads"
        lacking = say(
            "{name} must have W_q, W_k, W_v, W_o as nn.Linear and num_heads; it lacks {wanted}",
            name=name,
            wanted=wanted,
        )
        raise traitlets.TraitError(lacking)
    if getattr(module, "position", None) is not None:
        positioned = say(
            "{name} puts positions into each head, which would have to be cut anew: not shown here",
            name=name,
        )
        raise traitlets.TraitError(positioned)
    given = {}
    for role, linear in linears.items():
        if isinstance(linear, nn.Linear):
            given[role] = linear.weight.mT  # nn.Linear stores (out, in)
            if linear.bias is not None:
                given[f"b_{role[-1]}"] = linear.bias
    return _given(given)


def _given(weights: Mapping[str, Any]) -> dict[str, Tensor]:
    """Four square matrices of one width, and biases of that width, as float64."""
    if not isinstance(weights, Mapping) or not set(_ROLES) <= weights.keys():
        names = sorted(weights) if isinstance(weights, Mapping) else type(weights).__name__
        unknown = say("expected a module or W_q, W_k, W_v, W_o, got {got}", got=names)
        raise traitlets.TraitError(unknown)
    arrays = {
        name: torch.tensor(as_array(tensor, name, 2 if name in _ROLES else 1))
        for name, tensor in weights.items()
        if name in _ROLES or name in ("b_q", "b_k", "b_v", "b_o")
    }
    d_model = len(arrays["W_q"])
    for name, array in arrays.items():
        expected = (d_model, d_model) if name in _ROLES else (d_model,)
        if array.shape != expected:
            misfit = say(
                "{name} must be {expected} as W_q's {d_model} rows say, got {got}",
                name=name,
                expected=expected,
                d_model=d_model,
                got=tuple(array.shape),
            )
            raise traitlets.TraitError(misfit)
    if d_model > _WIDEST:
        beyond = say("d_model may be up to {most}, got {got}", most=_WIDEST, got=d_model)
        raise traitlets.TraitError(beyond)
    return arrays
