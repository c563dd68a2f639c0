"""How an answer to exercise 8.6, Seq2Seq, is called, and what with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attn_course.checks.catalogue.ch07.block_parts import heads_in
from attn_course.checks.catalogue.ch08.parts import decoder_block, encoder_block
from attn_course.checks.exercise import Answer, normal
from attn_course.checks.modules import (
    copied,
    normalised,
    part_at,
    passing,
    place,
    put_at,
    repeats,
    require_module,
    unreached,
)
from attn_course.masks import padding_mask
from attn_course.sentences import say

HEADS, D_FF, LAYERS = 2, 7, 2
PLACES = {
    "encoder_blocks": "encoder.blocks",
    "decoder_blocks": "blocks",
    "source_embedding": "encoder.embedding.table",
    "target_embedding": "embedding.table",
}
"""Where the course's model has its parts."""


# -- how an answer is called ------------------------------------------------------------------


def part(model: Any, role: str) -> Any:
    """The part of a model that plays this role; None if there is none."""
    return part_at(model, place(model, role, PLACES))


def blocks_of(model: Any) -> tuple[Any, Any]:
    """The two lists of blocks."""
    return part(model, "encoder_blocks"), part(model, "decoder_blocks")


def require_lists(model: Any) -> None:
    """Raise TypeError unless there are two lists of modules that nn.Module knows of."""
    require_module(model)
    for side, blocks in zip(("encoder", "decoder"), blocks_of(model), strict=True):
        if not isinstance(blocks, nn.ModuleList):
            words = (
                "self.{side}_blocks should be an nn.ModuleList, it is {found}: in anything else "
                "the blocks are neither trained nor saved"
            )
            raise TypeError(say(words, side=side, found=type(blocks).__name__))


def parts_of(answer: Answer, d_model: int, num_heads: int, d_ff: int, num_layers: int) -> str:
    """How many blocks there are, all of them different, and how many numbers are trained."""
    model = answer(9, 7, d_model, num_heads, d_ff, num_layers)
    require_lists(model)
    counts = []
    for side, blocks in zip(("encoder", "decoder"), blocks_of(model), strict=True):
        different = len({id(block) for block in blocks})
        counts.append(f"{len(blocks)} {side} blocks, {different} different")
    attentions = [part_at(block, "self_attention") for side in blocks_of(model) for block in side]
    heads = {heads_in(attention, d_model) for attention in attentions}
    total = sum(p.numel() for p in model.parameters())
    return (
        f"{'; '.join(counts)}; heads in each {' or '.join(sorted(heads))}; weights in all {total}"
    )


@cache
def _blocks(d_model: int, dtype: torch.dtype) -> tuple[nn.ModuleList, nn.ModuleList, nn.Linear]:
    like = torch.empty(0, dtype=dtype)
    numbers = range(LAYERS)
    encoder = [encoder_block(d_model, HEADS, D_FF, 20 + k, like) for k in numbers]
    decoder = [decoder_block(d_model, HEADS, D_FF, 30 + k, like) for k in numbers]
    generator = torch.Generator().manual_seed(40)
    head = nn.Linear(d_model, 7).to(dtype)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return nn.ModuleList(encoder), nn.ModuleList(decoder), head


def built(answer: Answer, source_table: Tensor, target_table: Tensor) -> Any:
    """A model of the learner's class, with the check's tables, blocks and head in their places."""
    d_model = source_table.shape[-1]
    model = answer(len(source_table), len(target_table), d_model, HEADS, D_FF, LAYERS)
    require_lists(model)
    encoder, decoder, head = map(copied, _blocks(d_model, source_table.dtype))
    tables = {"source_embedding": source_table, "target_embedding": target_table}
    for role, table in tables.items():
        embedding = part(model, role)
        if not isinstance(embedding, nn.Embedding):
            found = type(embedding).__name__
            words = "self.{role} should be nn.Embedding, it is {found}"
            raise TypeError(say(words, role=role, found=found))
        embedding.weight = nn.Parameter(table.clone())
    for role, made in (("encoder_blocks", encoder), ("decoder_blocks", decoder), ("head", head)):
        put_at(model, place(model, role, PLACES), made)
    return model.to(source_table.dtype)


def repeated(
    answer: Answer, source: Tensor, target: Tensor, source_table: Tensor, target_table: Tensor
) -> Any:
    """Whether two calls agree, in training and in evaluation."""
    return repeats(built(answer, source_table, target_table), source, target)


def own_blocks(
    answer: Answer, d_model: int, num_heads: int, d_ff: int, num_layers: int
) -> tuple[bool, bool]:
    """Whether what leaves the model's own blocks is normalised: the memory, and the features."""
    model = answer(9, 7, d_model, num_heads, d_ff, num_layers)
    require_lists(model)
    put_at(model, "head", passing(d_model))
    memory = model.encode(torch.tensor([[3, 1, 4, 1]]), None)
    return normalised(memory), normalised(model.decode(torch.tensor([[2, 5]]), memory, None))


def encode(
    answer: Answer,
    source: Tensor,
    source_table: Tensor,
    target_table: Tensor,
    padding: Tensor | None = None,
) -> Any:
    """The memory of a source."""
    return built(answer, source_table, target_table).encode(source, padding)


def decode(
    answer: Answer,
    target: Tensor,
    memory: Tensor,
    source_table: Tensor,
    target_table: Tensor,
    padding: Tensor | None = None,
) -> Any:
    """The logits of a target, given a memory; after a call with another one."""
    model = built(answer, source_table, target_table)
    model.decode(target[:, :1], memory[:, ::2] + 1)
    return model.decode(target, memory, padding)


def forward(
    answer: Answer,
    source: Tensor,
    target: Tensor,
    source_table: Tensor,
    target_table: Tensor,
    padding: Tensor | None = None,
) -> Any:
    """The logits of a target, given a source."""
    return built(answer, source_table, target_table)(source, target, padding)


def untrained(answer: Answer, d_model: int, num_heads: int, d_ff: int, num_layers: int) -> str:
    """Which parameters of a new model, with its own parts, no gradient reaches."""
    model = answer(9, 7, d_model, num_heads, d_ff, num_layers)
    require_lists(model)
    logits = model(torch.tensor([[3, 1, 4]]), torch.tensor([[2, 5]]), None)
    return unreached(model, logits.square().sum())


# -- probes -----------------------------------------------------------------------------------


def tables(rng: Generator, d_model: int = 6) -> tuple[Tensor, Tensor]:
    """Embedding tables for 9 source and 7 target tokens."""
    return normal(rng, 9, d_model) / 2, normal(rng, 7, d_model) / 2


def ids(rng: Generator, vocab: int, b: int, n: int) -> Tensor:
    """Token ids (b, n)."""
    return torch.randint(vocab, (b, n), generator=rng)


def draw_sizes(rng: Generator) -> Iterator[tuple]:
    """One layer and three."""
    yield 4, 2, 6, 1
    yield 6, 3, 5, 3


def draw_repeated(rng: Generator) -> Iterator[tuple]:
    """Enough features for a dropout of any size to show."""
    yield ids(rng, 9, 3, 8), ids(rng, 7, 3, 8), *tables(rng)


def draw_encode(rng: Generator) -> Iterator[tuple]:
    """One source, and as many as tokens."""
    for b, n in ((1, 3), (4, 4)):
        yield ids(rng, 9, b, n), *tables(rng)


def draw_encode_padded(rng: Generator) -> Iterator[tuple]:
    """Sources of unequal lengths."""
    for lengths, n in (([4, 2], 4), ([3, 1, 2], 3)):
        padding = padding_mask(torch.tensor(lengths), n)
        yield ids(rng, 9, len(lengths), n), *tables(rng), padding


def draw_decode(rng: Generator) -> Iterator[tuple]:
    """A memory that is longer than the target, and one as long."""
    for b, n, n_source in ((3, 4, 6), (2, 4, 4)):
        yield ids(rng, 7, b, n), normal(rng, b, n_source, 6), *tables(rng)


def draw_decode_padded(rng: Generator) -> Iterator[tuple]:
    """Padding in the memory, at unequal lengths and at equal ones."""
    for lengths, n_source, n in (([5, 2], 5, 3), ([3, 1, 2], 3, 3)):
        padding = padding_mask(torch.tensor(lengths), n_source)
        b = len(lengths)
        yield ids(rng, 7, b, n), normal(rng, b, n_source, 6), *tables(rng), padding


def draw_forward(rng: Generator) -> Iterator[tuple]:
    """Both together, without padding and with it."""
    yield ids(rng, 7, 2, 5), ids(rng, 7, 2, 3), *tables(rng)
    padding = padding_mask(torch.tensor([4, 2, 1]), 4)
    yield ids(rng, 7, 3, 4), ids(rng, 7, 3, 4), *tables(rng), padding
