"""Known-wrong versions of exercise 8.6, Seq2Seq."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from attn_course.blocks import DecoderBlock, EncoderBlock
from attn_course.checks.exercise import Answer, Mistake
from attn_course.masks import causal_mask, combine_masks
from attn_course.positions import sinusoidal_encoding

EXERCISES = ()


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


LIFT = "combine_masks(padding=padding) makes (b, 1, 1, j) of it."

MISTAKES = (
    Mistake(
        "in-a-list",
        "The blocks stand in a plain Python list, where nn.Module does not see them: they would be "
        "neither trained nor saved. nn.ModuleList is a list that it sees.",
        version(make_blocks=in_lists),
    ),
    Mistake(
        "one-block-repeated",
        "It is one block, several times: [block] * n repeats the same object, and so its weights. "
        "Make a new one for each layer.",
        version(make_blocks=repeated),
    ),
    Mistake(
        "one-block",
        "There is one block on each side, whatever num_layers is.",
        version(make_blocks=only_one),
    ),
    Mistake(
        "encoder-blocks-twice",
        "The decoder is made of encoder blocks: they have no attention to the memory.",
        version(make_blocks=encoders_twice),
    ),
    Mistake(
        "no-scale",
        "The embeddings are not multiplied by √d_model.",
        version(embed=no_scale),
    ),
    Mistake(
        "scale-divides",
        "The embeddings are divided by √d_model. They should be multiplied by it.",
        version(embed=divided),
    ),
    Mistake(
        "scale-of-d-model",
        "The embeddings are multiplied by d_model. It should be its root.",
        version(embed=scaled_fully),
    ),
    Mistake(
        "positions-scaled",
        "The positions are multiplied by √d_model as well: they are added after the scale.",
        version(embed=scaled_with_places),
    ),
    Mistake(
        "no-positions",
        "No positions are added: source and target are bags of tokens.",
        version(places=lambda self, ids, x: torch.zeros_like(x)),
    ),
    Mistake(
        "positions-by-batch",
        "Each *sequence* gets a position, the same for all of its tokens: the axis of the batch is "
        "taken for that of positions.",
        version(
            places=lambda self, ids, x: sinusoidal_encoding(len(ids), x.shape[-1]).to(x)[:, None]
        ),
    ),
    Mistake(
        "positions-from-one",
        "The positions start at 1. The first is 0.",
        version(
            places=lambda self, ids, x: sinusoidal_encoding(ids.shape[1] + 1, x.shape[-1]).to(x)[1:]
        ),
    ),
    Mistake(
        "source-reads-target-table",
        "The source is embedded with the table of the target.",
        version(encode=encode_with("target_embedding")),
    ),
    Mistake(
        "encoder-not-run",
        "The encoder's blocks are not run: the memory is the embeddings.",
        version(encode=encode_with(last=0)),
    ),
    Mistake(
        "encoder-block-missing",
        "Not all of the encoder's blocks are run.",
        version(encode=encode_with(last=1)),
        also=(version(encode=encode_with(last=-1)),),
    ),
    Mistake(
        "blocks-not-chained",
        "Every encoder block reads the embeddings. Each should read what the one before gave.",
        version(encode=not_chained),
    ),
    Mistake(
        "causal-source",
        "The encoder hides its future. The source is complete: every token may see both sides.",
        version(encode=causal_source),
    ),
    Mistake(
        "source-padding-ignored",
        "Padding in the source is attended to in the encoder.",
        version(source_mask=ignored),
        also=(version(source_mask=ignored, memory_mask=ignored),),
    ),
    Mistake(
        "padding-inverted",
        "The padding works the other way round: True means a token.",
        version(source_mask=inverted, memory_mask=inverted),
        also=(version(source_mask=inverted), version(memory_mask=inverted)),
    ),
    Mistake(
        "padding-not-lifted",
        "The padding (b, j) is handed to a block as it is, and is taken for a mask (i, j). " + LIFT,
        version(source_mask=not_lifted, memory_mask=not_lifted),
        also=(version(source_mask=not_lifted), version(memory_mask=not_lifted)),
    ),
    Mistake(
        "padding-on-the-queries",
        "The padding lies along the axis of the queries: real tokens still read padding. " + LIFT,
        version(source_mask=on_queries, memory_mask=on_queries),
        also=(version(source_mask=on_queries), version(memory_mask=on_queries)),
    ),
    Mistake(
        "target-reads-source-table",
        "The target is embedded with the table of the source.",
        version(decode=decode_with("source_embedding")),
    ),
    Mistake(
        "no-causal-mask",
        "The decoder sees its own future, and with it the token that it is to predict.",
        version(target_mask=ignored),
    ),
    Mistake(
        "causal-inverted",
        "The decoder sees its future, and not its past: the mask works the other way round.",
        version(target_mask=lambda self, n: ~causal_mask(n)),
        also=(version(target_mask=lambda self, n: causal_mask(n).T),),
    ),
    Mistake(
        "causal-without-itself",
        "A target token may not see itself: the mask should be open on its diagonal.",
        version(target_mask=lambda self, n: causal_mask(n).tril(-1)),
    ),
    Mistake(
        "memory-padding-ignored",
        "Padding in the memory is attended to in the decoder.",
        version(memory_mask=ignored),
    ),
    Mistake(
        "masks-exchanged",
        "The two masks of the decoder are exchanged: the causal one is for its own attention, the "
        "padding for the memory.",
        version(decode=masks_exchanged),
    ),
    Mistake(
        "padding-on-target",
        "The padding of the *source* hides tokens of the target. It is for the memory alone.",
        version(decode=both_on_target),
    ),
    Mistake(
        "shifted-again",
        "decode moves the target to the right. It is given what the decoder reads, with the start "
        "token already in front.",
        version(decode=decode_with(prepare=shifted_again)),
    ),
    Mistake(
        "memory-not-read",
        "The decoder's blocks get x in the place of the memory: the source is never read.",
        version(decode=decode_with(read=lambda x, memory: x)),
    ),
    Mistake(
        "decoder-block-missing",
        "Not all of the decoder's blocks are run.",
        version(decode=decode_with(last=1)),
        also=(version(decode=decode_with(last=-1)), version(decode=decode_with(last=0))),
    ),
    Mistake(
        "no-head",
        "The features come back, not logits: the head is missing.",
        version(decode=decode_with(finish=lambda self, x: x)),
    ),
    Mistake(
        "softmax",
        "Probabilities come back. Asked for are logits: the loss takes the softmax itself.",
        version(decode=decode_with(finish=lambda self, x: self.head(x).softmax(dim=-1))),
        also=(
            version(decode=decode_with(finish=lambda self, x: self.head(x).log_softmax(dim=-1))),
        ),
    ),
    Mistake(
        "last-position-only",
        "Only the last position's logits come back. All are needed: training asks for every one.",
        version(decode=decode_with(finish=lambda self, x: self.head(x)[:, -1])),
        also=(version(decode=decode_with(finish=lambda self, x: self.head(x)[:, -1:])),),
    ),
    Mistake(
        "target-encoded",
        "forward encodes the target, or decodes the source.",
        version(
            forward=lambda self, source, target, padding=None: self.decode(
                source, self.encode(target, padding), padding
            )
        ),
        also=(
            version(
                forward=lambda self, source, target, padding=None: self.decode(
                    target, self.encode(target), None
                )
            ),
        ),
    ),
    Mistake(
        "forward-drops-padding",
        "forward does not hand the padding to both encode and decode.",
        version(
            forward=lambda self, source, target, padding=None: self.decode(
                target, self.encode(source)
            )
        ),
        also=(
            version(
                forward=lambda self, source, target, padding=None: self.decode(
                    target, self.encode(source, padding)
                )
            ),
            version(
                forward=lambda self, source, target, padding=None: self.decode(
                    target, self.encode(source), padding
                )
            ),
        ),
    ),
    Mistake(
        "memory-detached",
        "No gradient reaches the encoder: the memory is detached on its way to the decoder.",
        version(
            forward=lambda self, source, target, padding=None: self.decode(
                target, self.encode(source, padding).detach(), padding
            )
        ),
    ),
)
