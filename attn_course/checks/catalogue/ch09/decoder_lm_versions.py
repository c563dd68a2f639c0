"""Exercise 9.2, DecoderLM: ways to build the model, right and wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from attn_course.blocks import EncoderBlock, LayerNorm, PreNormBlock
from attn_course.checks.exercise import Answer
from attn_course.masks import causal_mask
from attn_course.positions import sinusoidal_encoding


@cache
def _blocks(*sizes: int) -> nn.ModuleList:
    *sizes_of_one, num_layers = sizes
    return nn.ModuleList(PreNormBlock(*sizes_of_one) for _ in range(num_layers))


class Right(nn.Module):
    """The model asked for; each version changes one of its methods."""

    def __init__(
        self, vocab_size: int, d_model: int, num_heads: int, d_ff: int, num_layers: int
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.make_blocks(d_model, num_heads, d_ff, num_layers)
        self.final_norm = self.make_norm(d_model, vocab_size)
        self.make_head(d_model, vocab_size)

    def make_blocks(self, *sizes: int) -> None:
        """Make the blocks."""
        # nobody trains these versions, so they may share what takes long to make
        self.blocks = _blocks(*sizes)

    def make_norm(self, d_model: int, vocab_size: int) -> nn.Module:
        """Return the final norm."""
        return LayerNorm(d_model)

    def make_head(self, d_model: int, vocab_size: int) -> None:
        """Make the output projection, which shares its matrix with the embedding."""
        self.head = nn.Linear(d_model, vocab_size, bias=False)
        self.head.weight = self.embedding.weight

    def embed(self, ids: Tensor) -> Tensor:
        """Scale the embeddings and add positions."""
        x = self.embedding(ids)
        return self.scaled(x) + self.places(ids, x)

    def scaled(self, x: Tensor) -> Tensor:
        """Scale the embeddings."""
        return x * sqrt(x.shape[-1])

    def places(self, ids: Tensor, x: Tensor) -> Tensor:
        """Return what is added."""
        return sinusoidal_encoding(ids.shape[1], x.shape[-1]).to(x)

    def mask(self, n: int) -> Tensor | None:
        """Return the mask of every block."""
        return causal_mask(n)

    def through(self, x: Tensor) -> Tensor:
        """Run the blocks."""
        for block in self.blocks:
            x = block(x, self.mask(x.shape[1]))
        return x

    def finish(self, x: Tensor) -> Any:
        """Return logits."""
        return self.head(self.final_norm(x))

    def forward(self, ids: Tensor) -> Any:
        """Return the logits for the token after each position."""
        return self.finish(self.through(self.embed(ids)))


def version(**methods: Callable[..., Any]) -> Answer:
    """The right model with these methods in the place of its own."""
    return type("Model", (Right,), methods)


def in_a_list(self: Any, *sizes: int) -> None:
    """Blocks that nn.Module does not see."""
    *sizes_of_one, num_layers = sizes
    self.blocks = [PreNormBlock(*sizes_of_one) for _ in range(num_layers)]


def repeated(self: Any, *sizes: int) -> None:
    """One block, several times."""
    *sizes_of_one, num_layers = sizes
    self.blocks = nn.ModuleList([PreNormBlock(*sizes_of_one)] * num_layers)


def only_one(self: Any, *sizes: int) -> None:
    """One block, whatever num_layers is."""
    self.blocks = nn.ModuleList([PreNormBlock(*sizes[:-1])])


def not_tied(self: Any, d_model: int, vocab_size: int) -> None:
    """A matrix of its own."""
    self.head = nn.Linear(d_model, vocab_size, bias=False)


def copied_once(self: Any, d_model: int, vocab_size: int) -> None:
    """The same numbers at the start, in two places."""
    self.head = nn.Linear(d_model, vocab_size, bias=False)
    self.head.weight = nn.Parameter(self.embedding.weight.detach().clone())


def same_numbers(self: Any, d_model: int, vocab_size: int) -> None:
    """Two parameters over the same memory: each is trained and saved for itself."""
    self.head = nn.Linear(d_model, vocab_size, bias=False)
    self.head.weight.data = self.embedding.weight.data


def with_bias(self: Any, d_model: int, vocab_size: int) -> None:
    """A bias that nobody asked for."""
    self.head = nn.Linear(d_model, vocab_size)
    self.head.weight = self.embedding.weight


def chained(last: int | None, first: int = 0) -> Callable[[Any, Tensor], Tensor]:
    """Runs some of the blocks."""

    def through(self: Any, x: Tensor) -> Tensor:
        for block in list(self.blocks)[first:last]:
            x = block(x, self.mask(x.shape[1]))
        return x

    return through


def masked_at(which: int) -> Callable[[Any, Tensor], Tensor]:
    """Hides the future from one block only."""

    def through(self: Any, x: Tensor) -> Tensor:
        hiding = self.blocks[which]
        for block in self.blocks:
            x = block(x, self.mask(x.shape[1]) if block is hiding else None)
        return x

    return through


def sequence_first(self: Any, x: Tensor) -> Tensor:
    """Exchanges sequences and positions on the way into the blocks."""
    x = x.transpose(0, 1)
    for block in self.blocks:
        x = block(x, self.mask(x.shape[1]))
    return x.transpose(0, 1)


def made_anew(self: Any, x: Tensor) -> Tensor:
    """Makes the blocks in each call."""
    for _ in self.blocks:
        x = PreNormBlock(x.shape[-1], 2, 7).to(x.dtype)(x, self.mask(x.shape[1]))
    return x


def post_norm(self: Any, *sizes: int) -> None:
    """Blocks of the other kind."""
    *sizes_of_one, num_layers = sizes
    self.blocks = nn.ModuleList(EncoderBlock(*sizes_of_one) for _ in range(num_layers))


def not_chained(self: Any, x: Tensor) -> Tensor:
    """Every block reads the embeddings."""
    found = x
    for block in self.blocks:
        found = block(x, self.mask(x.shape[1]))
    return found


def summed(self: Any, x: Tensor) -> Tensor:
    """A residual round each block, which has its own."""
    for block in self.blocks:
        x = x + block(x, self.mask(x.shape[1]))
    return x


def embedding_added_again(self: Any, x: Tensor) -> Tensor:
    """A residual round all blocks together."""
    return x + Right.through(self, x)


def places_in_every_block(self: Any, x: Tensor) -> Tensor:
    """The positions once more, before each further block."""
    for number, block in enumerate(self.blocks):
        x = block(x + places_of(x) if number else x, self.mask(x.shape[1]))
    return x


def places_of(x: Tensor) -> Tensor:
    """The positions of the tokens in x (b, n, d)."""
    return sinusoidal_encoding(x.shape[1], x.shape[-1]).to(x)


def mask_of_the_batch(self: Any, x: Tensor) -> Tensor:
    """Takes the number of sequences for that of tokens."""
    for block in self.blocks:
        x = block(x, self.mask(len(x)))
    return x


def trained_places(self: Any, *sizes: int) -> None:
    """A table of positions that is trained."""
    Right.make_blocks(self, *sizes)
    self.positions = nn.Embedding(64, sizes[0])


def trained_places_of_its_own(self: Any, *sizes: int) -> None:
    """The same as a bare parameter."""
    Right.make_blocks(self, *sizes)
    self.positions = nn.Parameter(torch.zeros(1, 32, sizes[0]))


def norm_between(self: Any, x: Tensor) -> Tensor:
    """The final norm after every block."""
    for block in self.blocks:
        x = self.final_norm(block(x, self.mask(x.shape[1])))
    return x


def shifted(self: Any, ids: Tensor) -> Any:
    """Moves the tokens, which are already what is to be read."""
    moved = torch.cat([torch.zeros_like(ids[:, :1]), ids[:, :-1]], dim=1)
    return self.finish(self.through(self.embed(moved)))


def last_dropped(self: Any, ids: Tensor) -> Any:
    """Cuts the targets off itself."""
    return self.finish(self.through(self.embed(ids)))[:, :-1]
