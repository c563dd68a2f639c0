"""Answers to exercise 8.6 that the check has to judge right: correct variants and wrong ones."""

import math

import torch
from torch import nn

from attn_course.blocks import DecoderBlock, EncoderBlock
from attn_course.masks import causal_mask, combine_masks
from attn_course.positions import sinusoidal_encoding


class Skeleton(nn.Module):
    def __init__(self, source_vocab, target_vocab, d_model, num_heads, d_ff, num_layers):
        super().__init__()
        sizes = d_model, num_heads, d_ff
        self.head = nn.Linear(d_model, target_vocab)
        self.decoder_blocks = nn.ModuleList([DecoderBlock(*sizes) for _ in range(num_layers)])
        self.encoder_blocks = nn.ModuleList([EncoderBlock(*sizes) for _ in range(num_layers)])
        self.target_embedding = nn.Embedding(target_vocab, d_model)
        self.source_embedding = nn.Embedding(source_vocab, d_model)

    def embed(self, table, ids):
        n, d_model = ids.size(1), table.embedding_dim
        return sinusoidal_encoding(n, d_model)[None].to(table.weight) + math.sqrt(d_model) * table(
            ids
        )


class Plain(Skeleton):
    def encode(self, source, padding=None):
        x = self.embed(self.source_embedding, source)
        mask = combine_masks(padding=padding)
        for block in self.encoder_blocks:
            x = block(x, mask)
        return x

    def decode(self, target, memory, padding=None):
        x = self.embed(self.target_embedding, target)
        visible, mask = causal_mask(target.shape[1]), combine_masks(padding=padding)
        for block in self.decoder_blocks:
            x = block(x, memory, visible, mask)
        return self.head(x)

    def forward(self, source, target, padding=None):
        return self.decode(target, self.encode(source, padding), padding)


class MasksByHand(Plain):
    def encode(self, source, padding=None):
        x = self.embed(self.source_embedding, source)
        mask = None if padding is None else padding.unsqueeze(1).unsqueeze(2)
        for number in range(len(self.encoder_blocks)):
            x = self.encoder_blocks[number](x, mask)
        return x

    def decode(self, target, memory, padding=None):
        n = target.shape[1]
        x = self.embed(self.target_embedding, target)
        mask = None if padding is None else padding[:, None, :].expand(-1, n, -1)
        for block in self.decoder_blocks:
            x = block(x, memory, mask=torch.ones(n, n).tril().bool()[None, None], memory_mask=mask)
        return self.head(x)


class NoEncode(Skeleton):
    def forward(self, source, target, padding=None):
        return self.head(self.embed(self.target_embedding, target))


class OneTable(Plain):
    def __init__(self, source_vocab, target_vocab, *sizes):
        super().__init__(source_vocab, target_vocab, *sizes)
        self.target_embedding = self.source_embedding


class OwnNames(nn.Module):
    def __init__(self, source_vocab, target_vocab, d_model, num_heads, d_ff, num_layers):
        super().__init__()
        self.encoder = nn.ModuleList(EncoderBlock(d_model, num_heads, d_ff) for _ in range(2))


class Lists(Plain):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.decoder_blocks = list(self.decoder_blocks)


class NoEmbeddingScale(Plain):
    def embed(self, table, ids):
        return table(ids) + sinusoidal_encoding(ids.shape[1], table.embedding_dim).to(table.weight)


class NoCausalMask(Plain):
    def decode(self, target, memory, padding=None):
        x = self.embed(self.target_embedding, target)
        for block in self.decoder_blocks:
            x = block(x, memory, None, combine_masks(padding=padding))
        return self.head(x)


class ArgmaxInside(Plain):
    def decode(self, target, memory, padding=None):
        return super().decode(target, memory, padding).argmax(-1)


class ExtraNorm(Plain):
    def __init__(self, source_vocab, target_vocab, d_model, *sizes):
        super().__init__(source_vocab, target_vocab, d_model, *sizes)
        self.norm = nn.LayerNorm(d_model)


class OnlyForward(Plain):
    def forward(self, source, target):
        return super().forward(source, target)


class CausalMaskTwice(Plain):
    def decode(self, target, memory, padding=None):
        x, mask = self.embed(self.target_embedding, target), causal_mask(target.shape[1])
        for block in self.decoder_blocks:
            x = block(x, memory, mask, mask)
        return self.head(x)


class PreNormEncoder(Plain):
    def __init__(self, source_vocab, target_vocab, d_model, num_heads, d_ff, num_layers):
        super().__init__(source_vocab, target_vocab, d_model, num_heads, d_ff, num_layers)
        self.encoder_blocks = nn.ModuleList(
            EncoderBlock(d_model, num_heads, d_ff, norm="pre") for _ in range(num_layers)
        )


RIGHT = {"Seq2Seq": [Plain, MasksByHand]}
WRONG = {
    "Seq2Seq": [
        (NoEncode, None, "AttributeError", "encode"),
        (OneTable, None, "different blocks"),
        (OwnNames, None, "self.encoder_blocks should be an nn.ModuleList"),
        (Lists, None, "TypeError", "cannot assign"),
        (NoEmbeddingScale, "no-scale", "√d_model"),
        (NoCausalMask, "no-causal-mask", "future"),
        (ArgmaxInside, None, "logits"),
        (ExtraNorm, "further-norm", "a further norm"),
        (CausalMaskTwice, "causal-memory", "only its padding is hidden"),
        (PreNormEncoder, "pre-norm-blocks", "not post-norm"),
        (OnlyForward, None, "TypeError"),
    ]
}
