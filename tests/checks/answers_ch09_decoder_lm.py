"""Answers to exercise 9.2 that the check has to judge right: correct variants and wrong ones."""

import math

import torch
from torch import nn

from attn_course.blocks import EncoderBlock, LayerNorm, PreNormBlock
from attn_course.masks import causal_mask
from attn_course.positions import sinusoidal_encoding


class Plain(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.final_norm = LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)
        self.head.weight = self.embedding.weight
        self.blocks = nn.ModuleList(
            [PreNormBlock(d_model, num_heads, d_ff) for _ in range(num_layers)]
        )

    def forward(self, ids):
        n = ids.shape[1]
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        x = x + sinusoidal_encoding(n, x.size(-1)).to(x)
        for block in self.blocks:
            x = block(x, causal_mask(n))
        return self.head(self.final_norm(x))


class HeadFirst(Plain):
    """Shares the other way round, adds before it looks up, and makes its mask by hand."""

    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers):
        super().__init__(vocab_size, d_model, num_heads, d_ff, num_layers)
        self.head = nn.Linear(d_model, vocab_size, bias=False)
        self.embedding.weight = self.head.weight
        self.blocks = nn.ModuleList()
        for _ in range(num_layers):
            self.blocks.append(EncoderBlock(d_model, num_heads, d_ff, norm="pre"))
        self.final_norm = nn.LayerNorm(d_model)

    def forward(self, ids):
        n, width = ids.shape[1], self.embedding.weight.shape[1]
        places = sinusoidal_encoding(n, width).to(self.embedding.weight)[None]
        x = places.expand(len(ids), -1, -1) + width**0.5 * self.embedding.weight[ids]
        mask = torch.ones(n, n).tril().bool()[None, None]
        for number in range(len(self.blocks)):
            x = self.blocks[number](x, mask=mask)
        return self.head(self.final_norm(x))


class FixedTable(Plain):
    """Keeps a table of positions, long enough."""

    def __init__(self, vocab_size, d_model, *sizes):
        super().__init__(vocab_size, d_model, *sizes)
        self.register_buffer("places", sinusoidal_encoding(64, d_model).double())

    def forward(self, ids):
        x = self.embedding(ids) * self.embedding.embedding_dim**0.5
        x = x + self.places[: ids.shape[1]].to(x)
        for block in self.blocks:
            x = block(x, causal_mask(ids.shape[1]))
        return self.head(self.final_norm(x))


class KeptMask(Plain):
    """Keeps a mask, long enough, and reads sequences one by one."""

    def __init__(self, vocab_size, d_model, *sizes):
        super().__init__(vocab_size, d_model, *sizes)
        self.register_buffer("mask", causal_mask(64), persistent=False)

    def forward(self, ids):
        if len(ids) > 1:
            return torch.cat([self(row[None]) for row in ids])
        n, d_model = ids.shape[1], self.embedding.embedding_dim
        x = self.embedding(ids).mul(d_model**0.5).add_(sinusoidal_encoding(n, d_model)[None])
        for block in self.blocks:
            x = block(x, mask=self.mask[:n, :n].expand(1, 1, n, n))
        return self.head(self.final_norm(x))


class FunctionalHead(Plain):
    def forward(self, ids):
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        x = x + sinusoidal_encoding(ids.shape[1], x.size(-1)).to(x)
        mask = causal_mask(ids.shape[1])
        for block in self.blocks:
            x = block(x, mask)
        return self.final_norm(x) @ self.embedding.weight.T


class Untied(Plain):
    def __init__(self, vocab_size, d_model, *sizes):
        super().__init__(vocab_size, d_model, *sizes)
        self.head = nn.Linear(d_model, vocab_size, bias=False)


class PostNorm(Plain):
    """Right parts under the wrong names."""

    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers):
        super().__init__(vocab_size, d_model, num_heads, d_ff, num_layers)
        self.layers = self.blocks
        del self.blocks


class NoMask(Plain):
    def forward(self, ids):
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        x = x + sinusoidal_encoding(ids.shape[1], x.size(-1)).to(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.final_norm(x))


class FixedLength(Plain):
    def __init__(self, vocab_size, d_model, *sizes):
        super().__init__(vocab_size, d_model, *sizes)
        self.places = sinusoidal_encoding(3, d_model)

    def forward(self, ids):
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim) + self.places
        return self.head(self.final_norm(x))


class Loss(Plain):
    def forward(self, ids):
        logits = super().forward(ids)
        return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


class NormInForward(Plain):
    """A norm of its own in each call, in the place of the trained one."""

    def forward(self, ids):
        d_model = self.embedding.embedding_dim
        x = self.embedding(ids) * math.sqrt(d_model) + sinusoidal_encoding(ids.shape[1], d_model)
        for block in self.blocks:
            x = block(x, causal_mask(ids.shape[1]))
        return self.head(LayerNorm(d_model)(x))


class LearnedPositions(Plain):
    def __init__(self, vocab_size, d_model, *sizes):
        super().__init__(vocab_size, d_model, *sizes)
        self.position_embedding = nn.Embedding(64, d_model)

    def forward(self, ids):
        places = self.position_embedding(torch.arange(ids.shape[1]))
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim) + places
        for block in self.blocks:
            x = block(x, causal_mask(ids.shape[1]))
        return self.head(self.final_norm(x))


class WiderWindow(Plain):
    """Nobody foresaw this one: a token sees the three before it."""

    def forward(self, ids):
        n, d_model = ids.shape[1], self.embedding.embedding_dim
        x = self.embedding(ids) * math.sqrt(d_model) + sinusoidal_encoding(n, d_model)
        for block in self.blocks:
            x = block(x, causal_mask(n).triu(-3))
        return self.head(self.final_norm(x))


class BlindFirstToken(Plain):
    """One token comes out as without its diagonal, several do not: no name would be true."""

    def forward(self, ids):
        n, d_model = ids.shape[1], self.embedding.embedding_dim
        x = self.embedding(ids) * math.sqrt(d_model) + sinusoidal_encoding(n, d_model)
        mask = causal_mask(n)
        mask[0] = False
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.final_norm(x))


class ScalesItsTable(Plain):
    """Scales the table itself, again with every call."""

    def forward(self, ids):
        d_model = self.embedding.embedding_dim
        with torch.no_grad():
            self.embedding.weight.mul_(math.sqrt(d_model))
        x = self.embedding(ids) + sinusoidal_encoding(ids.shape[1], d_model)
        for block in self.blocks:
            x = block(x, causal_mask(ids.shape[1]))
        return self.head(self.final_norm(x))


def a_function(vocab_size, d_model, num_heads, d_ff, num_layers):
    return lambda ids: ids


RIGHT = {"DecoderLM": [Plain, HeadFirst, FixedTable, KeptMask, FunctionalHead]}
WRONG = {
    "DecoderLM": [
        (Untied, "not-tied", "share one"),
        (PostNorm, None, "self.blocks should be an nn.ModuleList"),
        (NoMask, "no-mask", "future"),
        (FixedLength, None, "RuntimeError"),
        (Loss, None, ""),
        (NormInForward, "norm-unused", "not self.final_norm"),
        (LearnedPositions, "learned-positions", "position_embedding.weight (64, 4)"),
        (ScalesItsTable, None, "changes the layer's own weights"),
        (WiderWindow, None, "only the last position (4) is wrong"),
        (BlindFirstToken, None, "For a single token"),
        (a_function, None, "no nn.Module"),
    ]
}
