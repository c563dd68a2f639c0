"""Known mistakes of exercise 8.5, greedy_decode."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attn_course.checks.exercise import Mistake


def written_greedily(
    model: Any, source: Tensor, start_token: int, max_len: int, padding: Tensor | None = None
) -> Tensor:
    """A right answer: what is written is read again for every token."""
    training = model.training
    model.eval()
    with torch.no_grad():
        memory = model.encode(source, padding)
        tokens = torch.full_like(source[:, :1], start_token)
        for _ in range(max_len):
            logits = model.decode(tokens, memory, padding)
            best = logits[:, -1].argmax(dim=-1)
            tokens = torch.cat([tokens, best[:, None]], dim=1)
    model.train(training)
    return tokens[:, 1:]


ENCODED = "encode(source, padding)"
DECODED = "decode(tokens, memory, padding)"
INVERTED = "None if padding is None else ~padding"
STARTS = "torch.full_like(source[:, :1], start_token)"
BEST = "logits[:, -1].argmax(dim=-1)"
GROWN = "tokens = torch.cat([tokens, best[:, None]], dim=1)"
WRITTEN = "tokens[:, 1:]"


def all_at_once(
    model: Any, source: Tensor, start_token: int, max_len: int, padding: Tensor | None = None
) -> Tensor:
    """Decodes a row of start tokens once."""
    training = model.training
    model.eval()
    with torch.no_grad():
        starts = torch.full((len(source), max_len), start_token)
        logits = model.decode(starts, model.encode(source, padding), padding)
    model.train(training)
    return logits.argmax(dim=-1)


MISTAKES = (
    Mistake(
        "padding-guessed",
        "The padding that is given is not used: a mask is made from the ids in its place. What is "
        "padding is said by `padding`; 0 may be a token like others.",
        {ENCODED: "encode(source, source != 0)", DECODED: "decode(tokens, memory, source != 0)"},
    ),
    Mistake(
        "stops-early",
        "The text ends when a certain token has been written. No token ends it here: there are "
        "always max_len.",
        {GROWN: f"{GROWN}\n            if (best == 0).all():\n                break"},
        also=(
            {GROWN: f"{GROWN}\n            if (best == start_token).all():\n                break"},
        ),
    ),
    Mistake(
        "whole-row-read",
        "A row made for the whole text is read, with places that are not written yet, and the "
        "logits are taken at its end. Read what is written, and take the logits after its last "
        "token.",
        {
            STARTS: "torch.full((len(source), max_len + 1), start_token)",
            "for _ in": "for position in",
            GROWN: "tokens[:, position + 1] = best",
        },
    ),
    Mistake(
        "softmax-over-positions",
        "A softmax runs over the positions before the most likely token is looked for. None is "
        "needed; and it would run over the vocabulary, the last axis.",
        {"logits[:, -1]": "logits.softmax(dim=1)[:, -1]"},
    ),
    Mistake(
        "start-kept",
        "The start token stands in front of what is returned. It is read, not written.",
        {WRITTEN: "tokens"},
    ),
    Mistake(
        "start-kept-end-lost",
        "The start token stands in front, and the last token is cut off.",
        {WRITTEN: "tokens[:, :-1]"},
    ),
    Mistake(
        "one-too-few",
        "One token is missing: max_len counts what is written, without the start token.",
        {"range(max_len)": "range(max_len - 1)"},
        also=({WRITTEN: "tokens[:, 1:-1]"},),
    ),
    Mistake(
        "one-too-many",
        "There is one token too many: max_len counts what is written.",
        {"range(max_len)": "range(max_len + 1)"},
    ),
    Mistake(
        "last-token-only",
        "The model reads only the last token, not all that has been written before. It has no "
        "memory between two calls.",
        {"decode(tokens": "decode(tokens[:, -1:]"},
    ),
    Mistake(
        "never-goes-on",
        "The token after the start token is chosen again and again. Is what has been written read "
        "back, and are the logits those of the *last* position?",
        {"logits[:, -1]": "logits[:, 0]"},
        also=({"decode(tokens": "decode(tokens[:, :1]"},),
    ),
    Mistake(
        "start-not-read",
        "The start token is dropped as soon as there is something else to read. It stays in front.",
        {"decode(tokens": "decode(tokens if tokens.shape[1] == 1 else tokens[:, 1:]"},
    ),
    Mistake(
        "all-at-once",
        "All tokens are written at once, from a row of start tokens. Each depends on those before "
        "it.",
        all_at_once,
    ),
    Mistake(
        "position-before",
        "The logits of the position before the last are used: they are for the token that has "
        "just been written.",
        {"logits[:, -1]": "logits[:, -2:][:, 0]"},
    ),
    Mistake(
        "mean-over-positions",
        "The logits of all positions are averaged. Only those after the last token are for the "
        "next one.",
        {"logits[:, -1]": "logits.mean(dim=1)"},
    ),
    Mistake("argmin", "The least likely token is taken.", {"argmax": "argmin"}),
    Mistake(
        "second-best",
        "The second most likely token is taken.",
        {"argmax(dim=-1)": "topk(2, dim=-1).indices[:, 1]"},
    ),
    Mistake(
        "sampled",
        "The tokens are drawn at random. Greedy takes the most likely one each time.",
        {BEST: "torch.multinomial(logits[:, -1].softmax(dim=-1), 1)[:, 0]"},
    ),
    Mistake(
        "argmax-over-the-batch",
        "argmax runs over the batch. It should run over the vocabulary, the last axis.",
        {"argmax(dim=-1)": "argmax(dim=0)[: len(source)]"},
    ),
    Mistake(
        "argmax-over-positions",
        "argmax runs over the positions. It should run over the vocabulary, the last axis.",
        {BEST: "logits.argmax(dim=1)[:, 0]"},
    ),
    Mistake(
        "first-row-for-all",
        "All sources get what is written for the first one.",
        {BEST: "logits[0, -1].argmax().expand(len(source))"},
    ),
    Mistake(
        "grown-in-front",
        "New tokens are put in front of those before them.",
        {"[tokens, best[:, None]]": "[best[:, None], tokens]", WRITTEN: "tokens[:, :-1]"},
        also=({"[tokens, best[:, None]]": "[best[:, None], tokens]"},),
    ),
    Mistake(
        "start-fixed",
        "Writing starts with 0, whatever start_token is.",
        {STARTS: "torch.zeros_like(source[:, :1])"},
    ),
    Mistake(
        "source-as-start",
        "Writing starts with a token of the source. It starts with start_token.",
        {STARTS: "source[:, :1]"},
        also=({STARTS: "source[:, -1:]"},),
    ),
    Mistake(
        "padding-ignored",
        "The padding is not handed on: padded places of the source are read like tokens.",
        {ENCODED: "encode(source)", DECODED: "decode(tokens, memory)"},
    ),
    Mistake(
        "padding-not-to-encode",
        "encode does not get the padding; decode does. Both read the source.",
        {ENCODED: "encode(source)"},
    ),
    Mistake(
        "padding-not-to-decode",
        "decode does not get the padding; encode does. Cross-attention then reads padded places.",
        {DECODED: "decode(tokens, memory)"},
    ),
    Mistake(
        "padding-inverted",
        "The padding is handed on the other way round. True means a token, here and everywhere in "
        "the course; training with one meaning and writing with the other gives nonsense.",
        {
            ENCODED: f"encode(source, {INVERTED})",
            DECODED: f"decode(tokens, memory, {INVERTED})",
        },
        also=(
            {ENCODED: f"encode(source, {INVERTED})"},
            {DECODED: f"decode(tokens, memory, {INVERTED})"},
        ),
    ),
    Mistake(
        "eval-forgotten",
        "The model is not set to eval mode, or only when the source has been encoded: a part of "
        "its features is dropped at random while it reads or writes.",
        {"model.eval()": "pass"},
        also=({"model.eval()": "pass", ENCODED: f"{ENCODED}\n        model.eval()"},),
    ),
    Mistake(
        "mode-not-restored",
        "The model is left in eval mode. Training that goes on afterwards would run without "
        "dropout: note the mode before, and set it again.",
        {"model.train(training)": "pass"},
    ),
    Mistake(
        "training-afterwards",
        "The model is in training mode afterwards, whatever it was before: note the mode, and set "
        "that again.",
        {"model.train(training)": "model.train()"},
    ),
    Mistake(
        "gradients-recorded",
        "The model runs with gradients being recorded: memory grows with every token, for nothing. "
        "Writing needs torch.no_grad().",
        {"no_grad": "enable_grad"},
    ),
    Mistake(
        "batch-last",
        "The result is (n, b). Sequences come batch first, (b, n).",
        {WRITTEN: "tokens[:, 1:].T"},
    ),
    Mistake(
        "last-token-returned",
        "Only the last token comes back.",
        {WRITTEN: "tokens[:, -1:]"},
        also=({WRITTEN: "tokens[:, -1]"},),
    ),
    Mistake(
        "floats",
        "The tokens come back as floats. Token ids are integers.",
        {WRITTEN: "tokens[:, 1:].float()"},
    ),
    Mistake(
        "as-lists",
        "A list comes back. Asked for is a tensor (b, n) of token ids.",
        {WRITTEN: "tokens[:, 1:].tolist()"},
    ),
)
