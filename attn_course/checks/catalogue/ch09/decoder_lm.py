"""Exercise 9.2, DecoderLM: its stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attn_course.blocks import LayerNorm, PreNormBlock
from attn_course.checks.catalogue.ch09.decoder_lm_mistakes import MISTAKES, Right
from attn_course.checks.exercise import (
    Answer,
    Diagnosis,
    Exercise,
    Output,
    Seen,
    Stage,
    normal,
)
from attn_course.checks.modules import (
    copied,
    drawn,
    normalised,
    part_at,
    passing,
    place,
    put_at,
    repeated_calls,
    repeats,
    require_module,
    require_roles,
    unreached,
)
from attn_course.models import Config, DecoderLM
from attn_course.sentences import say

HEADS, D_FF, LAYERS = 2, 7, 3
ROLES = ("blocks", "embedding", "final_norm", "head")
PLACES = {
    "blocks": "stack.blocks",
    "embedding": "stack.embedding.table",
    "final_norm": "stack.final_norm",
}
"""Where the course's model has its parts."""


def reference(
    vocab_size: int, d_model: int, num_heads: int, d_ff: int, num_layers: int
) -> DecoderLM:
    """The course's model with pre-norm blocks, ReLU and sinusoidal positions."""
    sizes = Config(
        d_model=d_model,
        num_heads=num_heads,
        d_ff=d_ff,
        num_layers=num_layers,
        max_len=32,
        norm="pre",
        activation="relu",
    )
    return DecoderLM(vocab_size, sizes)


# -- how an answer is called ------------------------------------------------------------------


def part(model: Any, role: str) -> Any:
    """The part of a model that plays this role; None if there is none."""
    return part_at(model, place(model, role, PLACES))


def require_parts(model: Any) -> None:
    """Raise TypeError unless the parts are there, under their names."""
    require_module(model)
    blocks, embedding = part(model, "blocks"), part(model, "embedding")
    if not isinstance(blocks, nn.ModuleList):
        words = (
            "self.blocks should be an nn.ModuleList, it is {found}: "
            "in anything else the blocks are neither trained nor saved"
        )
        raise TypeError(say(words, found=type(blocks).__name__))
    if not isinstance(embedding, nn.Embedding):
        words = "self.embedding should be nn.Embedding, it is {found}"
        raise TypeError(say(words, found=type(embedding).__name__))
    require_roles(model, ("final_norm", "head"), part)


PARTS = (
    Output(say("number of blocks")),
    Output(say("number of different blocks")),
    Output(say("head and embedding share their matrix")),
    Output(say("weights besides the parts")),
    Output(say("number of weights")),
)


def parts_of(
    answer: Answer, d_model: int, num_heads: int, d_ff: int, num_layers: int
) -> tuple[int, int, bool, str, int]:
    """What `PARTS` names, of a new model."""
    model = answer(9, d_model, num_heads, d_ff, num_layers)
    require_parts(model)
    blocks = part(model, "blocks")
    different = len({id(block) for block in blocks})
    tied = getattr(model.head, "weight", None) is part(model, "embedding").weight
    total = sum(p.numel() for p in model.parameters())
    return len(blocks), different, tied, ", ".join(further(model)), total


def further(model: Any) -> Iterator[str]:
    """The weights that belong to none of the parts asked for, with their shapes."""
    parts = tuple(place(model, role, PLACES) + "." for role in ROLES)
    for name, weight in model.named_parameters():
        if not name.startswith(parts):
            yield f"{name} {tuple(weight.shape)}"


def besides_the_parts(seen: Sequence[Seen]) -> Diagnosis | None:
    """What weights are for that nobody has asked for: a matrix as wide as a token is a table."""
    for one in seen:
        d_model, besides = one.args[0], one.actual[3]
        if f", {d_model})" in besides:
            known = next(m for m in MISTAKES if m.id == "learned-positions")
            return Diagnosis(known.message, known.id)
        if besides:
            return Diagnosis("The model has weights that were not asked for.")
    return None


@cache
def _parts(d_model: int, dtype: torch.dtype) -> tuple[nn.ModuleList, nn.Module]:
    like = torch.empty(0, dtype=dtype)
    blocks = [drawn(PreNormBlock(d_model, HEADS, D_FF), 50 + k, like) for k in range(LAYERS)]
    return nn.ModuleList(blocks), drawn(LayerNorm(d_model), 60, like)


def built(answer: Answer, table: Tensor) -> Any:
    """A model of the learner's class, with the check's table, blocks and norm in their places."""
    vocab_size, d_model = table.shape
    model = answer(vocab_size, d_model, HEADS, D_FF, LAYERS)
    require_parts(model)
    model = model.to(table.dtype)
    blocks, norm = map(copied, _parts(d_model, table.dtype))
    for role, made in (("blocks", blocks), ("final_norm", norm)):
        put_at(model, place(model, role, PLACES), made)
    with torch.no_grad():
        # in place, so that a head which shares the matrix has it too
        part(model, "embedding").weight.copy_(table)
    return model


def repeated(answer: Answer, ids: Tensor, table: Tensor) -> Any:
    """Whether two calls agree, in training and in evaluation."""
    return repeats(built(answer, table), ids)


def own_blocks(answer: Answer, d_model: int, num_heads: int, d_ff: int, num_layers: int) -> bool:
    """Whether the stream that the model's own blocks leave is normalised."""
    model = answer(9, d_model, num_heads, d_ff, num_layers)
    require_parts(model)
    put_at(model, place(model, "final_norm", PLACES), nn.Identity())
    put_at(model, "head", passing(d_model, bias=False))
    return normalised(model(torch.tensor([[3, 1, 4]])))


def logits_of(answer: Answer, ids: Tensor, table: Tensor) -> Any:
    """The logits of ids; after a call with others, which must not matter."""
    model = built(answer, table)
    model(ids[:, :1])
    return model(ids)


def table_gradient(answer: Answer, ids: Tensor, table: Tensor) -> Any:
    """The gradient that the embedding gets, as what is read and as what is written."""
    model = built(answer, table)
    loss = model(ids).square().sum()
    weight = part(model, "embedding").weight
    (gradient,) = torch.autograd.grad(loss, [weight], allow_unused=True)
    return torch.zeros_like(weight) if gradient is None else gradient


def untrained(answer: Answer, d_model: int, num_heads: int, d_ff: int, num_layers: int) -> str:
    """Which parameters of a new model, with its own parts, no gradient reaches."""
    model = answer(9, d_model, num_heads, d_ff, num_layers)
    require_parts(model)
    return unreached(model, model(torch.tensor([[3, 1, 4]])).square().sum())


# -- probes -----------------------------------------------------------------------------------


def table(rng: Generator, vocab: int = 9, d_model: int = 6) -> Tensor:
    """An embedding's table."""
    return normal(rng, vocab, d_model) / 2


def ids(rng: Generator, vocab: int, b: int, n: int) -> Tensor:
    """Token ids (b, n)."""
    return torch.randint(vocab, (b, n), generator=rng)


def draw_sizes(_: Generator) -> Iterator[tuple]:
    """One layer and three."""
    yield 4, 2, 6, 1
    yield 6, 3, 5, 3


def draw_one_token(rng: Generator) -> Iterator[tuple]:
    """One token: nothing can be seen but itself, and its position is 0."""
    for b in (1, 4):
        yield ids(rng, 9, b, 1), table(rng)


def draw_several(rng: Generator) -> Iterator[tuple]:
    """One sequence, several, and as many as tokens or as the vocabulary has."""
    for b, n in ((1, 3), (2, 5), (4, 4), (9, 9)):
        yield ids(rng, 9, b, n), table(rng)


def draw_repeated(rng: Generator) -> Iterator[tuple]:
    """Enough features for a dropout of any size to show."""
    yield ids(rng, 9, 3, 8), table(rng)


def draw_wide(rng: Generator) -> Iterator[tuple]:
    """Another vocabulary and another width, longer."""
    yield ids(rng, 5, 2, 20), table(rng, 5, 8)


LOGITS = (Output("logits", "b n v"),)
SIZES = ("d_model", "num_heads", "d_ff", "num_layers")

EXERCISE = Exercise(
    number="9.2",
    reference=reference,
    right=Right,
    wire="class",
    alias="DecoderLM",
    outputs=LOGITS,
    difficulty=2,
    minutes=20,
    points=4,
    may_use="torch, your own or the course's PreNormBlock, LayerNorm, causal_mask and "
    "sinusoidal_encoding",
    stages=(
        Stage(
            "parts",
            draw_sizes,
            "A new model should have num_layers different blocks, a final norm, and a head without "
            "a bias that shares the embedding's matrix.",
            call=parts_of,
            outputs=PARTS,
            inputs=SIZES,
            diagnose=besides_the_parts,
        ),
        repeated_calls(MISTAKES, draw_repeated, repeated, ("ids", "table")),
        Stage(
            "one token",
            draw_one_token,
            "For a single token the logits differ: its embedding times √d_model, plus position 0, "
            "then all blocks, the final norm and the head.",
            call=logits_of,
        ),
        Stage(
            "several tokens",
            draw_several,
            "One token comes out right, several do not: look at positions and at the mask.",
            call=logits_of,
        ),
        Stage(
            "other sizes",
            draw_wide,
            "With another width, another vocabulary or a longer text the logits differ.",
            call=logits_of,
        ),
        Stage(
            "gradient",
            draw_several,
            "The logits are right, but the gradient that reaches the embedding is not.",
            call=table_gradient,
            outputs=(Output(say("gradient of the embedding"), "v d"),),
        ),
        Stage(
            "own blocks",
            draw_sizes,
            "The parts are put together right, but the model's own blocks are not pre-norm.",
            call=own_blocks,
            outputs=(Output(say("what leaves the last block is normalised")),),
            inputs=SIZES,
        ),
        Stage(
            "trained",
            draw_sizes,
            "Not every weight of a new model is reached by the gradient.",
            call=untrained,
            outputs=(Output(say("weights without a gradient")),),
            inputs=SIZES,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Follow one token: a row of the table, scaled; its position; the blocks; one more norm; "
        "the head. Only one of these steps lets tokens see each other, and that one has a mask.",
        "self.embedding(ids) * sqrt(d_model) + sinusoidal_encoding(n, d_model). Then x = block(x, "
        "causal_mask(n)) for each block.",
        "Return self.head(self.final_norm(x)). Sharing is one line in __init__: self.head.weight = "
        "self.embedding.weight, the same nn.Parameter under two names.",
    ),
)
