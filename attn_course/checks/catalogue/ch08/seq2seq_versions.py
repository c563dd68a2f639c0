"""What the known-wrong versions of exercise 8.6, Seq2Seq, are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import sqrt
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attn_course.blocks import DecoderBlock, EncoderBlock, PreNormBlock
from attn_course.checks.exercise import Answer
from attn_course.masks import causal_mask, combine_masks
from attn_course.positions import sinusoidal_encoding


@cache
def _blocks(*sizes: int) -> Any:
    *sizes_of_one, num_layers = sizes
    return tuple(
        nn.ModuleList(kind(*sizes_of_one) for _ in range(num_layers))
        for kind in (EncoderBlock, DecoderBlock)
    )


class Right(nn.Module):
    """The model asked for; each version changes one of its methods."""

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        d_model: int,
        num_heads: int,
        d_ff: int,
        num_layers: int,
    ) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(source_vocab, d_model)
        self.target_embedding = nn.Embedding(target_vocab, d_model)
        self.make_blocks(d_model, num_heads, d_ff, num_layers)
        self.head = nn.Linear(d_model, target_vocab)

    def make_blocks(self, *sizes: int) -> None:
        """Make the blocks of both sides."""
        # nobody trains these versions, so they may share what takes long to make
        self.encoder_blocks, self.decoder_blocks = _blocks(*sizes)

    def embed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        """Scale the embeddings and add positions."""
        x = table(ids) * sqrt(table.embedding_dim)
        return x + self.places(ids, x)

    def places(self, ids: Tensor, x: Tensor) -> Tensor:
        """Return what is added."""
        return sinusoidal_encoding(ids.shape[1], x.shape[-1]).to(x)

    def source_mask(self, padding: Tensor | None) -> Tensor | None:
        """Return the mask of the encoder."""
        return combine_masks(padding=padding)

    def memory_mask(self, padding: Tensor | None) -> Tensor | None:
        """Return the mask of cross-attention."""
        return combine_masks(padding=padding)

    def target_mask(self, n: int) -> Tensor | None:
        """Return the mask of the decoder's own attention."""
        return causal_mask(n)

    def encode(self, source: Tensor, padding: Tensor | None = None) -> Tensor:
        """Return the memory."""
        x = self.embed(self.source_embedding, source)
        for block in self.encoder_blocks:
            x = block(x, self.source_mask(padding))
        return x

    def decode(self, target: Tensor, memory: Tensor, padding: Tensor | None = None) -> Any:
        """Return the logits of a target."""
        x = self.embed(self.target_embedding, target)
        for block in self.decoder_blocks:
            x = block(x, memory, self.target_mask(target.shape[1]), self.memory_mask(padding))
        return self.head(x)

    def forward(self, source: Tensor, target: Tensor, padding: Tensor | None = None) -> Any:
        """Encode and decode."""
        return self.decode(target, self.encode(source, padding), padding)


def version(**methods: Callable[..., Any]) -> Answer:
    """The right model with these methods in the place of its own."""
    return type("Model", (Right,), methods)


def in_lists(self: Any, *sizes: int) -> None:
    """Blocks that nn.Module does not see."""
    *sizes_of_one, num_layers = sizes
    self.encoder_blocks = [EncoderBlock(*sizes_of_one) for _ in range(num_layers)]
    self.decoder_blocks = [DecoderBlock(*sizes_of_one) for _ in range(num_layers)]


def repeated(self: Any, *sizes: int) -> None:
    """One block, several times."""
    *sizes_of_one, num_layers = sizes
    self.encoder_blocks = nn.ModuleList([EncoderBlock(*sizes_of_one)] * num_layers)
    self.decoder_blocks = nn.ModuleList([DecoderBlock(*sizes_of_one)] * num_layers)


def only_one(self: Any, *sizes: int) -> None:
    """One block on each side, whatever num_layers is."""
    Right.make_blocks(self, *sizes[:-1], 1)


def one_head(self: Any, *sizes: int) -> None:
    """Blocks with a number of heads of their own."""
    Right.make_blocks(self, sizes[0], 1, *sizes[2:])


def encoders_twice(self: Any, *sizes: int) -> None:
    """Encoder blocks on both sides."""
    Right.make_blocks(self, *sizes)
    self.decoder_blocks = nn.ModuleList(EncoderBlock(*sizes[:-1]) for _ in range(sizes[-1]))


def no_scale(self: Any, table: nn.Embedding, ids: Tensor) -> Tensor:
    """Embeddings as they are."""
    x = table(ids)
    return x + self.places(ids, x)


def scaled_with_places(self: Any, table: nn.Embedding, ids: Tensor) -> Tensor:
    """Positions are scaled, too."""
    x = table(ids)
    return (x + self.places(ids, x)) * sqrt(table.embedding_dim)


def divided(self: Any, table: nn.Embedding, ids: Tensor) -> Tensor:
    """Divides where it should multiply."""
    x = table(ids) / sqrt(table.embedding_dim)
    return x + self.places(ids, x)


def scaled_fully(self: Any, table: nn.Embedding, ids: Tensor) -> Tensor:
    """Multiplies by d_model."""
    x = table(ids) * table.embedding_dim
    return x + self.places(ids, x)


def encode_with(table: str = "source_embedding", last: int | None = None) -> Callable[..., Tensor]:
    """An encoder that reads another table, or stops before its last block."""

    def encode(self: Any, source: Tensor, padding: Tensor | None = None) -> Tensor:
        x = self.embed(getattr(self, table), source)
        for block in self.encoder_blocks[:last]:
            x = block(x, self.source_mask(padding))
        return x

    return encode


def not_chained(self: Any, source: Tensor, padding: Tensor | None = None) -> Tensor:
    """Each block reads the embeddings: only the last one counts."""
    embedded = self.embed(self.source_embedding, source)
    x = embedded
    for block in self.encoder_blocks:
        x = block(embedded, self.source_mask(padding))
    return x


def decoder_not_chained(
    self: Any, target: Tensor, memory: Tensor, padding: Tensor | None = None
) -> Tensor:
    """The same in the decoder."""
    embedded = self.embed(self.target_embedding, target)
    x = embedded
    for block in self.decoder_blocks:
        x = block(embedded, memory, self.target_mask(target.shape[1]), self.memory_mask(padding))
    return self.head(x)


def decode_with(
    table: str = "target_embedding",
    last: int | None = None,
    finish: Callable[[Any, Tensor], Tensor] = lambda self, x: self.head(x),
    read: Callable[[Tensor, Tensor], Tensor] = lambda x, memory: memory,
    prepare: Callable[[Tensor], Tensor] = lambda target: target,
) -> Callable[..., Tensor]:
    """A decoder of which one thing is changed."""

    def decode(self: Any, target: Tensor, memory: Tensor, padding: Tensor | None = None) -> Tensor:
        x = self.embed(getattr(self, table), prepare(target))
        for block in self.decoder_blocks[:last]:
            masks = self.target_mask(target.shape[1]), self.memory_mask(padding)
            x = block(x, read(x, memory), *masks)
        return finish(self, x)

    return decode


def masks_exchanged(
    self: Any, target: Tensor, memory: Tensor, padding: Tensor | None = None
) -> Tensor:
    """The causal mask for the memory, the padding for the target."""
    x = self.embed(self.target_embedding, target)
    for block in self.decoder_blocks:
        x = block(x, memory, self.memory_mask(padding), self.target_mask(target.shape[1]))
    return self.head(x)


def both_on_target(
    self: Any, target: Tensor, memory: Tensor, padding: Tensor | None = None
) -> Tensor:
    """Padding of the source joined with the causal mask."""
    x = self.embed(self.target_embedding, target)
    mask = combine_masks(causal_mask(target.shape[1]), padding=padding)
    for block in self.decoder_blocks:
        x = block(x, memory, mask, self.memory_mask(padding))
    return self.head(x)


def not_lifted(self: Any, padding: Tensor | None) -> Tensor | None:
    """Padding (b, j) as it is."""
    return padding


def on_queries(self: Any, padding: Tensor | None) -> Tensor | None:
    """Padding along the axis of the queries."""
    return None if padding is None else padding[:, None, :, None]


def inverted(self: Any, padding: Tensor | None) -> Tensor | None:
    """Padding the other way round."""
    return None if padding is None else combine_masks(padding=~padding)


def ignored(self: Any, *_: Any) -> None:
    """No mask."""


def causal_source(self: Any, source: Tensor, padding: Tensor | None = None) -> Tensor:
    """An encoder that sees the past only."""
    x = self.embed(self.source_embedding, source)
    mask = combine_masks(causal_mask(source.shape[1]), padding=padding)
    for block in self.encoder_blocks:
        x = block(x, mask)
    return x


def shifted_again(target: Tensor) -> Tensor:
    """Moves the target, which already begins with a start token."""
    return torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], dim=1)


def further_norm(self: Any, *sizes: int) -> None:
    """A norm behind the blocks."""
    Right.make_blocks(self, *sizes)
    self.norm = nn.LayerNorm(sizes[0])


def pre_norm(self: Any, *sizes: int) -> None:
    """Encoder blocks of the other kind."""
    Right.make_blocks(self, *sizes)
    self.encoder_blocks = nn.ModuleList(PreNormBlock(*sizes[:-1]) for _ in range(sizes[-1]))


def pre_norm_decoder(self: Any, *sizes: int) -> None:
    """Decoder blocks of the other kind."""
    Right.make_blocks(self, *sizes)
    blocks = (DecoderBlock(*sizes[:-1], norm="pre") for _ in range(sizes[-1]))
    self.decoder_blocks = nn.ModuleList(blocks)


def causal_memory(
    align: Callable[[int, int], Tensor], *, padded: bool = True
) -> Callable[..., Tensor]:
    """A decoder that sees the memory only as far as it has written."""

    def decode(self: Any, target: Tensor, memory: Tensor, padding: Tensor | None = None) -> Tensor:
        x, n = self.embed(self.target_embedding, target), target.shape[1]
        hidden = align(n, memory.shape[1])
        mask = combine_masks(hidden, padding=padding if padded else None)
        for block in self.decoder_blocks:
            x = block(x, memory, causal_mask(n), mask)
        return self.head(x)

    return decode


def from_the_top(n: int, n_memory: int) -> Tensor:
    """A triangle that begins at the top left."""
    return torch.ones(n, n_memory, dtype=torch.bool).tril()


def where_it_fits(n: int, n_memory: int) -> Tensor:
    """A triangle where there are as many tokens on both sides, and nothing hidden elsewhere."""
    return causal_mask(n) if n == n_memory else torch.ones(n, n_memory, dtype=torch.bool)


def memory_zeroed(
    self: Any, target: Tensor, memory: Tensor, padding: Tensor | None = None
) -> Tensor:
    """Sets padded tokens of the memory to zeros, and attends to them."""
    memory = memory if padding is None else memory * padding[..., None]
    return Right.decode(self, target, memory, None)


def memory_written_into(
    self: Any, target: Tensor, memory: Tensor, padding: Tensor | None = None
) -> Tensor:
    """Sets padded tokens to zeros in the caller's memory."""
    if padding is not None:
        memory *= padding[..., None]
    return Right.decode(self, target, memory, padding)


def zero_hidden(self: Any, target: Tensor, memory: Tensor, padding: Tensor | None = None) -> Tensor:
    """Takes 0 in the target for padding."""
    x = self.embed(self.target_embedding, target)
    mask = combine_masks(self.target_mask(target.shape[1]), padding=target != 0)
    for block in self.decoder_blocks:
        x = block(x, memory, mask, self.memory_mask(padding))
    return self.head(x)


def side_by_side(
    self: Any, source: Tensor, target: Tensor, padding: Tensor | None = None
) -> Tensor:
    """Each decoder block reads the encoder block of its own height."""
    memory, x = self.embed(self.source_embedding, source), self.embed(self.target_embedding, target)
    for encoder, decoder in zip(self.encoder_blocks, self.decoder_blocks, strict=True):
        memory = encoder(memory, self.source_mask(padding))
        x = decoder(x, memory, self.target_mask(target.shape[1]), self.memory_mask(padding))
    return self.head(x)


def one_position(self: Any, ids: Tensor, x: Tensor) -> Tensor:
    """A table of positions, indexed with the length."""
    return sinusoidal_encoding(ids.shape[1] + 1, x.shape[-1])[ids.shape[1]].to(x)


def dropping(self: Any, table: nn.Embedding, ids: Tensor) -> Tensor:
    """Drops features in training."""
    return F.dropout(Right.embed(self, table, ids), 0.1, self.training)


def block_made_anew(self: Any, source: Tensor, padding: Tensor | None = None) -> Tensor:
    """Makes a block in each call."""
    x = self.embed(self.source_embedding, source)
    for _ in self.encoder_blocks:
        x = EncoderBlock(x.shape[-1], 2, 7).to(x.dtype)(x, self.source_mask(padding))
    return x


def head_made_anew(
    self: Any, target: Tensor, memory: Tensor, padding: Tensor | None = None
) -> Tensor:
    """Makes the head in each call."""
    x = self.embed(self.target_embedding, target)
    for block in self.decoder_blocks:
        x = block(x, memory, self.target_mask(target.shape[1]), self.memory_mask(padding))
    return nn.Linear(x.shape[-1], 7).to(x.dtype)(x)
