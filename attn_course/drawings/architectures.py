"""How networks are built: the unrolled recurrence, heads, the block, encoder and decoder."""

from __future__ import annotations

from typing import Literal

from attn_course.drawings.drawing import Drawing, Point
from attn_course.sentences import say

Order = Literal["post", "pre"]


def recurrence() -> Drawing:
    """Return a recurrent network, unrolled over four steps."""
    drawing = Drawing(
        200,
        say(
            "A recurrent network unrolled over four steps. Each step is given an input and the "
            "state of the step before it, and hands on a new state; the weights are the same."
        ),
    )
    xs = [140 + 140 * step for step in range(4)]
    drawing.text((30, 80), "h0")
    for step, x in enumerate(xs, start=1):
        drawing.box((x, 80), say("step"), "plain", (70, 40))
        drawing.box((x, 160), f"x{step}", "token", (50, 30)).arrow((x, 144), (x, 103))
        drawing.arrow((x - 140 + 36 if step > 1 else 45, 80), (x - 37, 80))
        drawing.text((x + 70, 66), f"h{step}")
    drawing.arrow((xs[-1] + 36, 80), (xs[-1] + 110, 80))
    return drawing.text((350, 24), say("the same W_x, W_h and b in every step"), size=13)


def heads() -> Drawing:
    """Return multi-head attention: project, cut, attend, lay side by side, mix."""
    drawing = Drawing(
        290,
        say(
            "Tokens are projected to queries, keys and values; these are cut into heads; each head "
            "attends by itself; the outputs are laid side by side, and W_o mixes them."
        ),
    )
    drawing.box((60, 140), "x", "token", (60, 34))
    for y, name, role in ((60, "W_q", "query"), (140, "W_k", "key"), (220, "W_v", "value")):
        drawing.arrow((91, 140), (148, y)).box((180, y), name, role, (60, 34))
        for head in range(3):
            drawing.box((258 + 26 * head, y), str(head + 1), role, (24, 34))
        drawing.arrow((211, y), (244, y))
    for head, y in enumerate((60, 140, 220), start=1):
        drawing.box((430, y), say("head {head}\nattends", head=head), "plain", (90, 44))
        drawing.box((576, 140 + 34 * (head - 2)), str(head), "output", (40, 34))
        drawing.arrow((476, y), (554, 140 + 34 * (head - 2)))
        for source in (60, 140, 220):
            drawing.path([(324, source), (384, y)], weight=0.8)
    drawing.arrow((597, 140), (634, 140)).box((668, 140), "W_o", "output", (60, 34))
    for x, words in (
        (180, say("project")),
        (284, say("cut")),
        (430, say("attend")),
        (576, say("side by side")),
        (668, say("mix")),
    ):
        drawing.text((x, 268), words, size=13)
    return drawing


def block() -> Drawing:
    """Return the post-norm and the pre-norm block beside each other, along the residual stream."""
    drawing = Drawing(
        430,
        say(
            "Two blocks from bottom to top along the residual stream. Post-norm: attention is "
            "added to the stream, which is then normalised, and so is feed-forward. Pre-norm: the "
            "norm stands before each sublayer, beside the stream, on which nothing stands but "
            "two sums."
        ),
    )
    for left, order in ((30, "post"), (390, "pre")):
        drawing.text((left + 130, 20), say("post-norm") if order == "post" else say("pre-norm"))
        _stream(drawing, left + 60, order)
    return drawing


def _stream(drawing: Drawing, x: float, order: str) -> None:
    """Draw one block from its input below to its output above; x is where the stream runs."""
    drawing.text((x, 415), "x (b, n, d_model)").path([(x, 400), (x, 34)], weight=4)
    for start, words in ((380, say("attention")), (210, say("feed-forward"))):
        plus = start - 110
        side = x + 150
        if order == "pre":
            drawing.path([(x, start), (side, start), (side, start - 14)])
            drawing.box((side, start - 28), say("norm"), "residual", (80, 26))
            drawing.arrow((side, start - 42), (side, start - 56))
        else:
            drawing.path([(x, start), (side, start), (side, start - 56)])
            drawing.box((x, plus - 34), say("norm"), "residual", (80, 26))
        drawing.box((side, start - 74), words, "value", (120, 34))
        drawing.path([(side, start - 92), (side, plus), (x + 14, plus)])
        drawing.box((x, plus), "+", "plain", (26, 26))


def encoder_decoder() -> Drawing:
    """Return the Transformer of chapter 08, with the ways of training and of writing."""
    drawing = Drawing(
        400,
        say(
            "Left the encoder: source, embedding with positions, blocks of self-attention and "
            "feed-forward, memory. Right the decoder: the target shifted right, blocks of causal "
            "self-attention, cross-attention into the memory and feed-forward, logits. In training "
            "the shifted target is read; in writing what was written comes back as input."
        ),
    )
    left, right, size = 170.0, 480.0, (170.0, 36.0)
    _tower(
        drawing,
        left,
        size,
        ["source", "embedding + positions", "self-attention", "feed-forward", "memory"],
    )
    _tower(
        drawing,
        right,
        size,
        [
            "target, shifted right",
            "embedding + positions",
            "causal self-attention",
            "cross-attention",
            "feed-forward",
            "logits",
        ],
    )
    drawing.path([(left + 86, 112), (325, 112), (325, 182), (right - 87, 182)], weight=3)
    drawing.text((325, 98), say("keys and values"), size=13)
    drawing.text((325, 372), say("training: the true\ntokens before"), size=12)
    drawing.text((left - 96, 207), say("× N"), size=13).text(
        (right + 104, 182), say("× N"), size=13
    )
    drawing.path([(right + 86, 42), (670, 42), (670, 372), (right + 87, 372)], dashed=True)
    return drawing.text((606, 342), say("writing: the token\njust written"), size=12)


def _tower(drawing: Drawing, x: float, size: Point, names: list[str]) -> None:
    """Draw boxes above each other, the first one lowest."""
    gap = {5: 65.0, 6: 66.0}[len(names)]
    for number, name in enumerate(names):
        y = 372 - gap * number
        role = {"memory": "key", "logits": "output"}.get(name, "token" if number == 0 else "plain")
        drawing.box((x, y), say(name), role, size)
        if number:
            drawing.arrow((x, y + gap - 19), (x, y + 20))


def positions() -> Drawing:
    """Return where each kind of position enters a model."""
    drawing = Drawing(
        300,
        say(
            "From bottom to top: tokens, embeddings, queries and keys, scores, weights. Sinusoids "
            "and learned vectors are added to the embeddings, RoPE rotates queries and keys, ALiBi "
            "and a relative bias are added to the scores, and a causal mask hides the future."
        ),
    )
    stages = (say("tokens"), say("embeddings"), say("queries and keys"), say("scores"))
    entering = (
        None,
        (say("sinusoids, learned vectors: added"), "token"),
        (say("RoPE: rotates them"), "query"),
        (say("ALiBi, relative bias: added\na causal mask: hides"), "key"),
    )
    for number, (name, enters) in enumerate(zip(stages, entering, strict=True)):
        y = 260 - 70 * number
        drawing.box((200, y), name, "plain", (170, 36))
        if number:
            drawing.arrow((200, y + 51), (200, y + 20))
        if enters is not None:
            words, role = enters
            drawing.box((510, y), words, role, (290, 42)).arrow((364, y), (287, y))
    return drawing.arrow((200, 31), (200, 10))
