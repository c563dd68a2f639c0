"""Exercise 8.5, greedy_decode: the model it is called with, and its stages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attn_course.checks.catalogue.ch08.greedy_decode_mistakes import MISTAKES, written_greedily
from attn_course.checks.exercise import Answer, Exercise, Output, Stage
from attn_course.generation import greedy_decode
from attn_course.masks import padding_mask
from attn_course.sentences import say

Probe = tuple[Any, ...]
SOURCE_VOCAB, TARGET_VOCAB, WIDTH = 9, 7, 5

# -- the model that an answer decodes with ----------------------------------------------------


class Past:
    """The tokens read so far: what the course's own greedy_decode keeps between its calls."""

    def __init__(self) -> None:
        self.tokens: Tensor | None = None


class Scripted(nn.Module):
    """A small model of fixed random numbers: no Transformer, but it depends on what one does.

    Logits at a position depend on all tokens up to it, in their order, and on the mean of the
    memory that is no padding. In training mode a part of both is lost, as under dropout.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        rng = torch.Generator().manual_seed(1000 + seed)

        def numbers(*shape: int) -> Tensor:
            return torch.randn(shape, generator=rng, dtype=torch.float64)

        self.source_table, self.target_table = numbers(SOURCE_VOCAB, WIDTH), numbers(100, WIDTH)
        self.mix, self.out = numbers(WIDTH, WIDTH), nn.Parameter(3 * numbers(WIDTH, TARGET_VOCAB))
        self.encodings = 0
        self.recorded = False

    def encode(self, source: Tensor, padding: Tensor | None = None) -> Tensor:
        """Return the memory, (b, n_source, d); what stands at padding is of no use."""
        self.encodings += 1
        memory = self.source_table[source]
        if self.training:
            memory = memory * torch.tensor([1.0, 0.0]).repeat(WIDTH)[:WIDTH]
        if padding is None:
            return memory + memory.mean(dim=1, keepdim=True)
        visible = padding[..., None]
        mean = (memory * visible).sum(dim=1, keepdim=True) / visible.sum(dim=1, keepdim=True)
        return (memory + mean).masked_fill(~visible, 4.0)

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        padding: Tensor | None = None,
        caches: list[Past] | None = None,
    ) -> Tensor:
        """Return logits for the token after each of `target`, (b, n, vocab)."""
        self.recorded = self.recorded or torch.is_grad_enabled()
        n = target.shape[1]
        if caches:
            past = caches[0].tokens
            target = target if past is None else torch.cat([past, target], dim=1)
            caches[0].tokens = target
        visible = torch.ones(memory.shape[:2]) if padding is None else padding
        weights = (visible / visible.sum(dim=1, keepdim=True)).to(memory.dtype)
        state = (weights[..., None] * memory).sum(dim=1)
        states = []
        for token in target.unbind(dim=1):
            state = torch.tanh(state @ self.mix + self.target_table[token])
            states.append(state)
        logits = torch.stack(states, dim=1) @ self.out
        if self.training:
            logits = logits * torch.tensor([0.0, 1.0]).repeat(TARGET_VOCAB)[:TARGET_VOCAB]
        return logits[:, -n:]

    def forward(self, source: Tensor, target: Tensor, padding: Tensor | None = None) -> Tensor:
        """Encode and decode."""
        return self.decode(target, self.encode(source, padding), padding)

    def new_caches(self, max_len: int) -> list[Past]:
        """Return what `decode` keeps its past in."""
        return [Past()]


def write(
    answer: Answer,
    seed: int,
    source: Tensor,
    start_token: int,
    max_len: int,
    padding: Tensor | None = None,
) -> Any:
    """What is written with a model in eval mode."""
    return answer(Scripted(seed).eval(), source, start_token, max_len, padding)


def write_without_padding(
    answer: Answer, seed: int, source: Tensor, start_token: int, max_len: int
) -> Any:
    """A call that names no padding."""
    return answer(Scripted(seed).eval(), source, start_token, max_len)


def mode_kept(
    answer: Answer, seed: int, source: Tensor, start_token: int, max_len: int, training: bool
) -> Any:
    """What is written, and the model's mode afterwards."""
    model = Scripted(seed).train(training)
    written = answer(model, source, start_token, max_len, None)
    return written, model.training


def recorded(answer: Answer, seed: int, source: Tensor, start_token: int, max_len: int) -> Any:
    """Whether the model was run with gradients being recorded."""
    model = Scripted(seed).eval()
    answer(model, source, start_token, max_len, None)
    return model.recorded


def encodings(answer: Answer, seed: int, source: Tensor, start_token: int, max_len: int) -> Any:
    """How often the source was encoded."""
    model = Scripted(seed).eval()
    answer(model, source, start_token, max_len, None)
    return model.encodings


# -- probes -----------------------------------------------------------------------------------


def sources(rng: Generator, b: int, n: int) -> Tensor:
    """Source tokens 1, 2, … (b, n)."""
    return torch.randint(1, SOURCE_VOCAB, (b, n), generator=rng)


def fresh(rng: Generator) -> int:
    """The number of a model."""
    return int(torch.randint(1000, (1,), generator=rng))


def draw_one(rng: Generator) -> Iterator[Probe]:
    """One token to write."""
    for b in (1, 1, 3, 5, 8):
        yield fresh(rng), sources(rng, b, 4), 0, 1


def draw_several(rng: Generator) -> Iterator[Probe]:
    """Several tokens for one source."""
    for max_len in (3, 6, 8):
        yield fresh(rng), sources(rng, 1, 4), 0, max_len


def draw_batch(rng: Generator) -> Iterator[Probe]:
    """Several sources; as many as tokens, too."""
    for b, max_len in ((2, 3), (3, 6), (5, 5), (7, 7)):
        yield fresh(rng), sources(rng, b, 4), 0, max_len


def draw_start(rng: Generator) -> Iterator[Probe]:
    """Other start tokens."""
    for start in (1, 6, 42):
        yield fresh(rng), sources(rng, 2, 4), start, 5


def draw_padding(rng: Generator) -> Iterator[Probe]:
    """Padding in the source."""
    for lengths, n in (([3, 1], 3), ([5, 2, 1], 5), ([2, 4, 3, 1], 4)):
        padding = padding_mask(torch.tensor(lengths), n)
        yield fresh(rng), sources(rng, len(lengths), n).masked_fill(~padding, 0), 0, 6, padding
    # what is padding is said by the mask: 0 may be a token, and other numbers may stand at padding
    padding = torch.tensor([[True, True, False, True], [False, True, True, True]])
    yield fresh(rng), sources(rng, 2, 4).masked_fill(padding & ~padding.roll(1), 0), 0, 6, padding


def draw_default(rng: Generator) -> Iterator[Probe]:
    """No padding is named."""
    yield fresh(rng), sources(rng, 2, 3), 0, 4


def draw_modes(rng: Generator) -> Iterator[Probe]:
    """A model that is in training mode, and one that is not."""
    for training in (True, False, True):
        yield fresh(rng), sources(rng, 2, 4), 0, 6, training


TOKENS = (Output("tokens", "b n"),)
INPUTS = (say("model number"), "source", "start_token", "max_len")

EXERCISE = Exercise(
    number="8.5",
    reference=greedy_decode,
    right=written_greedily,
    wire="callable",
    outputs=TOKENS,
    difficulty=2,
    minutes=20,
    points=3,
    may_use="torch; the model's encode and decode",
    stages=(
        Stage(
            "one token",
            draw_one,
            "The first token should be the one that the model finds most likely after the start "
            "token.",
            call=write_without_padding,
            inputs=INPUTS,
        ),
        Stage(
            "several tokens",
            draw_several,
            "The first token is right, what follows it is not: each should be the most likely one "
            "after *all* that has been written.",
            call=write_without_padding,
            inputs=INPUTS,
        ),
        Stage(
            "batch",
            draw_batch,
            "One source comes out right, several do not: each is written for itself.",
            call=write_without_padding,
            inputs=INPUTS,
        ),
        Stage(
            "start token",
            draw_start,
            "With another start token the tokens differ.",
            call=write_without_padding,
            inputs=INPUTS,
        ),
        Stage(
            "padding",
            draw_padding,
            "With padding in the source the tokens differ. Both encode and decode want it.",
            call=write,
            inputs=(*INPUTS, "padding"),
        ),
        Stage(
            "mode",
            draw_modes,
            "The model should run in eval mode, and be left in the mode in which it was.",
            call=mode_kept,
            outputs=(*TOKENS, Output(say("model.training afterwards"))),
            inputs=(*INPUTS, "model.training"),
        ),
        Stage(
            "no gradients",
            draw_default,
            "The model runs with gradients being recorded: memory grows with every token, for "
            "nothing.",
            call=recorded,
            outputs=(Output(say("whether gradients were recorded")),),
            inputs=INPUTS,
        ),
        Stage(
            "encoded once",
            draw_default,
            "The source is encoded anew for every token. It does not change: once is enough.",
            call=encodings,
            outputs=(Output(say("number of calls of encode")),),
            inputs=INPUTS,
            remark=True,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "A loop that grows a tensor of tokens. What stands in it before the first token is "
        "written, and what is taken off at the end?",
        "memory = model.encode(source, padding), once. Then in each turn: "
        "model.decode(tokens, memory, padding) gives logits (b, n, vocab); only the last position "
        "is news.",
        "best = logits[:, -1].argmax(dim=-1), and torch.cat([tokens, best[:, None]], dim=1). "
        "Around it torch.no_grad(), model.eval() before, and model.train(mode) after.",
    ),
)
