"""Where something looks: the recurrent copier of chapter 01, and the look-up of chapter 02."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from attn_course.drawings.drawing import Drawing
from attn_course.sentences import say


def recurrent_copying(*, attention: bool) -> Drawing:
    """Return an encoder and a decoder with one state between them, or with all states in view."""
    last = "The decoder is given the encoder's last state, and nothing else of the sequence."
    all_states = "At each step the decoder looks back at all states of the encoder."
    drawing = Drawing(
        230,
        say(
            "An encoder reads four symbols, a decoder writes them. {how}",
            how=say(all_states if attention else last),
        ),
    )
    xs = [70 + 80 * step for step in range(4)]
    ys = [410 + 80 * step for step in range(4)]
    for step, (x, y) in enumerate(zip(xs, ys, strict=True)):
        drawing.box((x, 195), f"x{step + 1}", "token", (50, 30)).arrow((x, 179), (x, 142))
        drawing.box((x, 125), f"h{step + 1}", "key", (50, 30))
        drawing.box((y, 125), f"s{step + 1}", "query", (50, 30)).arrow((y, 109), (y, 72))
        drawing.box((y, 55), f"y{step + 1}", "output", (50, 30))
    for left, right in zip([*xs, *ys][:-1], [*xs, *ys][1:], strict=True):
        drawing.arrow((left + 26, 125), (right - 27, 125), weight=3 if right == ys[0] else 1.5)
    if attention:
        for x, weight in zip(xs, (1, 5, 1.5, 1), strict=True):
            drawing.path([(x, 108), (x, 92), (ys[1] - 20, 92), (ys[1] - 14, 107)], weight=weight)
        drawing.text((190, 78), say("looking back, here for y2"))
    drawing.text((190, 222), say("encoder")).text((530, 222), say("decoder"))
    return drawing


def look_up(words: Sequence[str], weights: Float[Tensor, " j"], asking: int) -> Drawing:
    """Return the way of one word's query to its output: scores, weights, a sum of values.

    words: the sentence, of at most 12 words.
    weights: the share that each word gets of the look.
    asking: the place of the word that asks.
    """
    shares = weights.tolist()
    drawing = Drawing(
        330,
        say(
            "The query of “{word}” meets the key of every word; the scores become weights, drawn "
            "as lines, and the values are summed by them. Most weight lies on “{best}”.",
            word=words[asking],
            best=words[int(weights.argmax())],
        ),
    )
    step = 690 / len(words)
    xs = [15 + step * (place + 0.5) for place in range(len(words))]
    for x, word, share in zip(xs, words, shares, strict=True):
        drawing.box((x, 300), word, "token", (step - 4, 28), 12)
        drawing.box((x, 232), "k", "key", (step / 2 - 6, 24))
        drawing.box((x, 150), "v", "value", (step / 2 - 6, 24))
        drawing.arrow((x, 285), (x, 246)).path([(x, 219), (x, 164)], tip=False, weight=0.7)
        drawing.text((x, 192), f"{share:.2f}", size=13)
        drawing.path([(x, 137), (xs[asking], 72)], tip=False, weight=0.4 + 9 * share)
    drawing.box((xs[asking], 55), say("output"), "output", (76, 28))
    scores = say("the query of “{word}” meets each key k: scores", word=words[asking])
    drawing.text((15, 265), scores, anchor="start", size=13)
    drawing.text((15, 172), say("softmax: weights"), anchor="start", size=13)
    drawing.text((15, 95), say("the values v, each times its weight"), anchor="start", size=13)
    return drawing
