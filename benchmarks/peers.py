"""What ours is held against where PyTorch has no part of its own."""

from math import sqrt

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def textbook_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """softmax(q kᵀ / √d) v as books write it: scores and weights stand in memory."""
    scores = query @ key.transpose(-2, -1) / sqrt(query.shape[-1])
    return torch.softmax(scores, dim=-1) @ value


class TextbookMultiHead(nn.Module):
    """Multi-head attention by view and transpose, with the weights built."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        heads = (
            linear(x).view(b, n, self.num_heads, d // self.num_heads).transpose(1, 2)
            for linear in (self.q, self.k, self.v)
        )
        merged = textbook_attention(*heads).transpose(1, 2).contiguous().view(b, n, d)
        return self.out(merged)


class TorchDecoderLM(nn.Module):
    """A decoder-only model from `nn.TransformerEncoder` under a causal mask, pre-norm, tied."""

    def __init__(self, vocab: int, d_model: int, num_heads: int, num_layers: int, n: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            d_model,
            num_heads,
            4 * d_model,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.embedding = nn.Embedding(vocab, d_model)
        self.positions = nn.Embedding(n, d_model)
        self.stack = nn.TransformerEncoder(
            layer, num_layers, nn.LayerNorm(d_model), enable_nested_tensor=False
        )
        self.head = nn.Linear(d_model, vocab, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        x = self.embedding(ids) + self.positions(torch.arange(n, device=ids.device))
        mask = nn.Transformer.generate_square_subsequent_mask(n, device=ids.device)
        return self.head(self.stack(x, mask=mask, is_causal=True))


def language_loss(model: nn.Module, ids: Tensor) -> Tensor:
    """Cross-entropy of each next token."""
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
