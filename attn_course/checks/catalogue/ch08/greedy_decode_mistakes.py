"""Known-wrong versions of exercise 8.5, greedy_decode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attn_course.checks.exercise import Answer, Mistake

Choose = Callable[[Tensor], Tensor]
Read = Callable[[Tensor], Tensor]


def likeliest(logits: Tensor) -> Tensor:
    """The token asked for, (b,)."""
    return logits[:, -1].argmax(dim=-1)


def version(
    *,
    choose: Choose = likeliest,
    read: Read = lambda tokens: tokens,
    first: Callable[[Tensor, int], Tensor] = lambda source, start: torch.full_like(
        source[:, :1], start
    ),
    grow: Callable[[Tensor, Tensor], Tensor] = lambda tokens, best: torch.cat(
        [tokens, best], dim=1
    ),
    finish: Callable[[Tensor], Any] = lambda tokens: tokens[:, 1:],
    steps: int = 0,
    to_encode: Callable[[Tensor | None], Tensor | None] = lambda padding: padding,
    to_decode: Callable[[Tensor | None], Tensor | None] = lambda padding: padding,
    mode: Callable[[Any, bool], Any] = lambda model, training: model.train(training),
    evaluate: bool = True,
    gradients: bool = False,
) -> Answer:
    """A version of which one thing is changed."""

    def answer(
        model: Any, source: Tensor, start_token: int, max_len: int, padding: Tensor | None = None
    ) -> Any:
        training = model.training
        if evaluate:
            model.eval()
        with torch.set_grad_enabled(gradients):
            memory = model.encode(source, to_encode(padding))
            tokens = first(source, start_token)
            for _ in range(max_len + steps):
                logits = model.decode(read(tokens), memory, to_decode(padding))
                tokens = grow(tokens, choose(logits)[:, None])
        mode(model, training)
        return finish(tokens)

    return answer


def inverted(padding: Tensor | None) -> Tensor | None:
    """The mask the other way round."""
    return None if padding is None else ~padding


def evaluated_late(
    model: Any, source: Tensor, start_token: int, max_len: int, padding: Tensor | None = None
) -> Tensor:
    """Sets eval mode when the source has been encoded."""
    training = model.training
    with torch.no_grad():
        memory = model.encode(source, padding)
        model.eval()
        tokens = torch.full_like(source[:, :1], start_token)
        for _ in range(max_len):
            best = likeliest(model.decode(tokens, memory, padding))
            tokens = torch.cat([tokens, best[:, None]], dim=1)
    model.train(training)
    return tokens[:, 1:]


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


def stops_together(
    model: Any, source: Tensor, start_token: int, max_len: int, padding: Tensor | None = None
) -> Tensor:
    """Writes what the first source says for all of them."""
    training = model.training
    model.eval()
    with torch.no_grad():
        memory = model.encode(source, padding)
        tokens = torch.full((len(source), 1), start_token)
        for _ in range(max_len):
            best = model.decode(tokens, memory, padding)[0, -1].argmax()
            tokens = torch.cat([tokens, best.expand(len(source), 1)], dim=1)
    model.train(training)
    return tokens[:, 1:]


def fed_with_the_source(source: Tensor, start: int) -> Tensor:
    """The first token of the source in the place of the start token."""
    return source[:, :1]


def by_chance(logits: Tensor) -> Tensor:
    """Draws the token."""
    return torch.multinomial(logits[:, -1].softmax(dim=-1), 1)[:, 0]


def guesses_padding(
    model: Any, source: Tensor, start_token: int, max_len: int, padding: Tensor | None = None
) -> Tensor:
    """Makes its own mask, from the ids."""
    return version()(model, source, start_token, max_len, source != 0)


def stopping(at: Callable[[int], int]) -> Answer:
    """Ends the text when every sequence has written one token at once."""

    def answer(
        model: Any, source: Tensor, start_token: int, max_len: int, padding: Tensor | None = None
    ) -> Tensor:
        written = version()(model, source, start_token, max_len, padding)
        ended = (written == at(start_token)).all(dim=0).nonzero()
        return written[:, : int(ended[0]) + 1] if len(ended) else written

    return answer


def whole_row(
    model: Any, source: Tensor, start_token: int, max_len: int, padding: Tensor | None = None
) -> Tensor:
    """Reads a row made for the whole text, and takes the logits at its very end."""
    training = model.training
    model.eval()
    with torch.no_grad():
        memory = model.encode(source, padding)
        tokens = torch.full((len(source), max_len + 1), start_token)
        for position in range(max_len):
            tokens[:, position + 1] = likeliest(model.decode(tokens, memory, padding))
    model.train(training)
    return tokens[:, 1:]


MISTAKES = (
    Mistake(
        "padding-guessed",
        "The padding that is given is not used: a mask is made from the ids in its place. What is "
        "padding is said by `padding`; 0 may be a token like others.",
        guesses_padding,
    ),
    Mistake(
        "stops-early",
        "The text ends when a certain token has been written. No token ends it here: there are "
        "always max_len.",
        stopping(lambda start: 0),
        also=(stopping(lambda start: start),),
    ),
    Mistake(
        "whole-row-read",
        "A row made for the whole text is read, with places that are not written yet, and the "
        "logits are taken at its end. Read what is written, and take the logits after its last "
        "token.",
        whole_row,
    ),
    Mistake(
        "softmax-over-positions",
        "A softmax runs over the positions before the most likely token is looked for. None is "
        "needed; and it would run over the vocabulary, the last axis.",
        version(choose=lambda logits: likeliest(logits.softmax(dim=1))),
    ),
    Mistake(
        "start-kept",
        "The start token stands in front of what is returned. It is read, not written.",
        version(finish=lambda tokens: tokens),
    ),
    Mistake(
        "start-kept-end-lost",
        "The start token stands in front, and the last token is cut off.",
        version(finish=lambda tokens: tokens[:, :-1]),
    ),
    Mistake(
        "one-too-few",
        "One token is missing: max_len counts what is written, without the start token.",
        version(steps=-1),
        also=(version(finish=lambda tokens: tokens[:, 1:-1]),),
    ),
    Mistake(
        "one-too-many",
        "There is one token too many: max_len counts what is written.",
        version(steps=1),
    ),
    Mistake(
        "last-token-only",
        "The model reads only the last token, not all that has been written before. It has no "
        "memory between two calls.",
        version(read=lambda tokens: tokens[:, -1:]),
    ),
    Mistake(
        "never-goes-on",
        "The token after the start token is chosen again and again. Is what has been written read "
        "back, and are the logits those of the *last* position?",
        version(choose=lambda logits: logits[:, 0].argmax(dim=-1)),
        also=(version(read=lambda tokens: tokens[:, :1]),),
    ),
    Mistake(
        "start-not-read",
        "The start token is dropped as soon as there is something else to read. It stays in front.",
        version(read=lambda tokens: tokens if tokens.shape[1] == 1 else tokens[:, 1:]),
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
        version(choose=lambda logits: logits[:, -2:][:, 0].argmax(dim=-1)),
    ),
    Mistake(
        "mean-over-positions",
        "The logits of all positions are averaged. Only those after the last token are for the "
        "next one.",
        version(choose=lambda logits: logits.mean(dim=1).argmax(dim=-1)),
    ),
    Mistake(
        "argmin",
        "The least likely token is taken.",
        version(choose=lambda logits: logits[:, -1].argmin(dim=-1)),
    ),
    Mistake(
        "second-best",
        "The second most likely token is taken.",
        version(choose=lambda logits: logits[:, -1].topk(2, dim=-1).indices[:, 1]),
    ),
    Mistake(
        "sampled",
        "The tokens are drawn at random. Greedy takes the most likely one each time.",
        version(choose=by_chance),
    ),
    Mistake(
        "argmax-over-the-batch",
        "argmax runs over the batch. It should run over the vocabulary, the last axis.",
        version(choose=lambda logits: logits[:, -1].argmax(dim=0)[: len(logits)]),
    ),
    Mistake(
        "argmax-over-positions",
        "argmax runs over the positions. It should run over the vocabulary, the last axis.",
        version(choose=lambda logits: logits.argmax(dim=1)[:, 0]),
    ),
    Mistake(
        "first-row-for-all",
        "All sources get what is written for the first one.",
        stops_together,
    ),
    Mistake(
        "grown-in-front",
        "New tokens are put in front of those before them.",
        version(
            grow=lambda tokens, best: torch.cat([best, tokens], dim=1),
            finish=lambda tokens: tokens[:, :-1],
        ),
        also=(
            version(
                grow=lambda tokens, best: torch.cat([best, tokens], dim=1),
                finish=lambda tokens: tokens[:, 1:],
            ),
        ),
    ),
    Mistake(
        "start-fixed",
        "Writing starts with 0, whatever start_token is.",
        version(first=lambda source, start: torch.zeros_like(source[:, :1])),
    ),
    Mistake(
        "source-as-start",
        "Writing starts with a token of the source. It starts with start_token.",
        version(first=fed_with_the_source),
        also=(version(first=lambda source, start: source[:, -1:]),),
    ),
    Mistake(
        "padding-ignored",
        "The padding is not handed on: padded places of the source are read like tokens.",
        version(to_encode=lambda padding: None, to_decode=lambda padding: None),
    ),
    Mistake(
        "padding-not-to-encode",
        "encode does not get the padding; decode does. Both read the source.",
        version(to_encode=lambda padding: None),
    ),
    Mistake(
        "padding-not-to-decode",
        "decode does not get the padding; encode does. Cross-attention then reads padded places.",
        version(to_decode=lambda padding: None),
    ),
    Mistake(
        "padding-inverted",
        "The padding is handed on the other way round. True means a token, here and everywhere in "
        "the course; training with one meaning and writing with the other gives nonsense.",
        version(to_encode=inverted, to_decode=inverted),
        also=(version(to_encode=inverted), version(to_decode=inverted)),
    ),
    Mistake(
        "eval-forgotten",
        "The model is not set to eval mode, or only when the source has been encoded: a part of "
        "its features is dropped at random while it reads or writes.",
        version(evaluate=False),
        also=(evaluated_late,),
    ),
    Mistake(
        "mode-not-restored",
        "The model is left in eval mode. Training that goes on afterwards would run without "
        "dropout: note the mode before, and set it again.",
        version(mode=lambda model, training: None),
    ),
    Mistake(
        "training-afterwards",
        "The model is in training mode afterwards, whatever it was before: note the mode, and set "
        "that again.",
        version(mode=lambda model, training: model.train()),
    ),
    Mistake(
        "gradients-recorded",
        "The model runs with gradients being recorded: memory grows with every token, for nothing. "
        "Writing needs torch.no_grad().",
        version(gradients=True),
    ),
    Mistake(
        "batch-last",
        "The result is (n, b). Sequences come batch first, (b, n).",
        version(finish=lambda tokens: tokens[:, 1:].T),
    ),
    Mistake(
        "last-token-returned",
        "Only the last token comes back.",
        version(finish=lambda tokens: tokens[:, -1:]),
        also=(version(finish=lambda tokens: tokens[:, -1]),),
    ),
    Mistake(
        "floats",
        "The tokens come back as floats. Token ids are integers.",
        version(finish=lambda tokens: tokens[:, 1:].float()),
    ),
    Mistake(
        "as-lists",
        "A list comes back. Asked for is a tensor (b, n) of token ids.",
        version(finish=lambda tokens: tokens[:, 1:].tolist()),
    ),
)
