"""What each mask lets through, and the three families that differ by it."""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Tensor

from attn_course.drawings.drawing import Drawing
from attn_course.masks import causal_mask, padding_mask, sliding_window_mask
from attn_course.sentences import Spoken, say

CELL = 20


def masks(n: int = 6) -> Drawing:
    """Return four masks beside each other: causal, window, padding, causal and padding."""
    padding = padding_mask(torch.tensor([n - 2]), n)
    shown = (
        (say("causal"), causal_mask(n)),
        (say("window of 3"), sliding_window_mask(n, window=3)),
        (say("padding"), padding.expand(n, n)),
        (say("causal and padding"), (causal_mask(n) & padding)),
    )
    drawing = Drawing(
        200,
        say(
            "Four masks as squares, a row for each query and a column for each key. Filled: may "
            "attend. Causal: the lower triangle. Window: a band below the diagonal. Padding: the "
            "last two columns are empty. Causal and padding: the triangle without these columns."
        ),
    )
    for number, (name, mask) in enumerate(shown):
        _grid(drawing, 30 + 172 * number, 44, name, mask)
    return drawing.text((360, 186), say("rows ask, columns are asked"), size=13)


def families(n: int = 4) -> Drawing:
    """Return the three families side by side: what each reads, and the masks that it needs."""
    full, causal = causal_mask(n) | True, causal_mask(n)
    drawing = Drawing(
        250,
        say(
            "Encoder-only: all tokens see all, a vector for each comes out. Decoder-only: each "
            "token sees the past, the next token comes out. Encoder–decoder: the source sees all "
            "of itself, the target its past and all of the source."
        ),
    )
    columns = (
        (say("encoder-only"), say("a vector for each token"), [full]),
        (say("decoder-only"), say("the next token"), [causal]),
        (say("encoder–decoder"), say("the next token of the target"), [full, causal, full]),
    )
    for x, (name, gives, shown) in zip((60, 230, 400), columns, strict=True):
        middle = x + 52 * len(shown)
        drawing.text((middle, 24), name).text((middle, 226), gives, size=13)
        for place, mask in enumerate(shown):
            words = (say("tokens"), say("target"), say("target to\nsource"))[place]
            words = say("source") if len(shown) > 1 and place == 0 else words
            _grid(drawing, x + 104 * place, 88, words, mask)
    return drawing


def _grid(drawing: Drawing, x: float, y: float, name: Spoken, mask: Bool[Tensor, "i j"]) -> None:
    """Draw a mask as squares, filled where it lets through, with its name above."""
    drawing.text((x + CELL * mask.shape[1] / 2, y - 22), name, size=13)
    for i, row in enumerate(mask.tolist()):
        for j, may_attend in enumerate(row):
            role = "here" if may_attend else "plain"
            centre = (x + CELL * (j + 0.5), y + CELL * (i + 0.5))
            drawing.box(centre, "", role, (CELL - 2, CELL - 2))
