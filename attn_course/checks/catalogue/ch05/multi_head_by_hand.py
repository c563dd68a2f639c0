"""Multi-head attention by hand, and the edits of it that several mistakes of exercise 5.3 share."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn

from attn_course.attention import scaled_dot_product_attention  # noqa: F401, an edit calls it
from attn_course.checks.edits import Edits
from attn_course.masks import lift_mask


class ManyHeads(nn.Module):
    """The layer asked for."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"{d_model} features, {num_heads} heads")
        self.num_heads = num_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
        """The pair (output, weights)."""
        if mask is not None:
            mask = lift_mask(mask)
        q = self.split(self.W_q(query))
        k = self.split(self.W_k(key))
        v = self.split(self.W_v(value))
        output, weights = self.attend(q, k, v, mask)
        return self.W_o(self.merge(output)), weights

    def split(self, x: Tensor) -> Tensor:
        """(b, h, n, d)."""
        return rearrange(x, "b n (h d) -> b h n d", h=self.num_heads)

    def merge(self, x: Tensor) -> Tensor:
        """(b, n, d_model)."""
        return rearrange(x, "b h n d -> b n (h d)")

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Any:
        """Attention on the last two axes."""
        scores = query / sqrt(query.shape[-1]) @ key.mT
        hidden = torch.zeros_like(scores, dtype=torch.bool) if mask is None else ~mask
        empty = hidden.all(dim=-1, keepdim=True)
        scores = scores.masked_fill(hidden & ~empty, -inf)
        weights = scores.softmax(dim=-1).masked_fill(empty, 0.0)
        output = weights @ value
        return output, weights


# -- its parts --------------------------------------------------------------------------------

ROLES = ("W_q", "W_k", "W_v", "W_o")
Q_K_V = ROLES[:3]


def made(part: str, *roles: str) -> Edits:
    """These projections are made like this."""
    return {_made(role): f"self.{role} = {part}" for role in roles}


def made_instead(line: str, *roles: str) -> Edits:
    """This is made in the place of these projections."""
    return {_made(role): line if role == roles[0] else "" for role in roles}


def made_besides(line: str) -> Edits:
    """This is made besides the projections."""
    return {"self.num_heads = num_heads": f"self.num_heads = num_heads\n        {line}"}


def renamed(*names: str) -> Edits:
    """The projections have these names."""
    return {f"self.{role} =": f"self.{name} =" for role, name in zip(ROLES, names, strict=True)}


def _made(role: str) -> str:
    return f"self.{role} = nn.Linear(d_model, d_model)"


# -- its forward pass -------------------------------------------------------------------------

SPLIT = 'rearrange(x, "b n (h d) -> b h n d", h=self.num_heads)'
MERGED = 'rearrange(x, "b h n d -> b n (h d)")'
PROJECTED = {"W_q": "query", "W_k": "key", "W_v": "value", "W_o": "self.merge(output)"}
RETURNED = "return self.W_o(self.merge(output)), weights"


def called(projection: str, *roles: str) -> Edits:
    """These projections, W, are used like this on what they are given, x."""
    return {
        f"self.{role}({PROJECTED[role]})": projection.format(W=f"self.{role}", x=PROJECTED[role])
        for role in roles
    }


COURSES_ATTENTION = {"self.attend(": "scaled_dot_product_attention("}


def lifted(mask: str) -> Edits:
    """The mask gets its four axes like this."""
    return {"lift_mask(mask)": mask}
