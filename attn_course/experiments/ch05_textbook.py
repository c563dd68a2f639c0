"""Chapter 05: a multi-head module as many tutorials have it, to be read critically.

Written after the pattern that they share, faults included. Do not use it.
"""

import math

import torch
from torch import Tensor, nn

from attn_course.sentences import say, spoken


class TextbookAttention(nn.Module):
    """Multi-head attention as found in many tutorials. Read it critically."""

    def __init__(self, heads, d_model, dropout=0.1):
        super().__init__()
        self.d_k = d_model // heads
        self.h = heads
        self.q_linear = nn.Linear(d_model, d_model)
        self.k_linear = nn.Linear(d_model, d_model)
        self.v_linear = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, q, k, v, mask=None):
        """Return the output alone."""
        bs = q.size(0)
        q = self.q_linear(q).view(bs, -1, self.h, self.d_k).transpose(1, 2)
        k = self.k_linear(k).view(bs, -1, self.h, self.d_k).transpose(1, 2)
        v = self.v_linear(v).view(bs, -1, self.h, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            mask = mask.unsqueeze(1)
            scores = scores.masked_fill(mask == 0, -1e9)
        self.attn = self.dropout(torch.softmax(scores, dim=-1))
        x = torch.matmul(self.attn, v).transpose(1, 2).contiguous()
        return self.out(x.view(bs, -1, self.h * self.d_k))


def same_weights(textbook: TextbookAttention, attention: nn.Module) -> None:
    """Copy the weights of `MultiHeadAttention` into the textbook's module, role by role."""
    names = {"q_linear": "W_q", "k_linear": "W_k", "v_linear": "W_v", "out": "W_o"}
    for theirs, ours in names.items():
        textbook.get_submodule(theirs).load_state_dict(attention.get_submodule(ours).state_dict())


def outcome(call, *inputs) -> str:
    """Say in a few words what a call gives: an error, NaN, or finite numbers of a shape."""
    try:
        with torch.no_grad():
            found = call(*inputs)
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:70]}"
    output: Tensor = found[0] if isinstance(found, tuple) else found
    shape = tuple(output.shape)
    if output.isnan().any():
        return spoken(say("NaN, {shape}", shape=shape))
    return spoken(say("finite, {shape}", shape=shape))
