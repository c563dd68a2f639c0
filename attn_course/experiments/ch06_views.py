"""Chapter 06's view: how a pair of features turns as positions go by, and what a shift does."""

import torch
from matplotlib.axes import Axes

from attn_course.plots import LiveFigure, Slider, live_figure
from attn_course.plots.picture import COLOURS
from attn_course.positions import relative_shift, sinusoidal_encoding
from attn_course.sentences import Sentence, say, spoken

_D_MODEL = 16
_LAST = 60


def shift_view() -> LiveFigure:
    """Return the view of one pair: its clock hand at a position and after a shift.

    Left the pair (sin, cos) as a hand on a circle, right its two waves over all positions.
    """
    return live_figure(
        _draw,
        alt=say(
            "Left: a circle with two hands, one for a position and one for the position after the "
            "shift; the angle between them depends on the shift and the pair alone. Right: the "
            "sine and the cosine of the pair over 60 positions, with both positions marked; the "
            "waves grow longer from pair to pair."
        ),
        size=(9.0, 4.0),
        panels=2,
        position=Slider(say("position"), 0, _LAST // 2, start=5),
        shift=Slider(say("shift"), 0, _LAST // 2, start=3),
        pair=Slider(say("pair i"), 0, _D_MODEL // 2 - 1, start=1),
    )


def _draw(circle: Axes, waves: Axes):
    encoding = sinusoidal_encoding(_LAST + 1, _D_MODEL)
    turns = torch.linspace(0, 2 * torch.pi, 100)
    circle.plot(turns.cos(), turns.sin(), color="0.8")
    (before,) = circle.plot([], [], "-o", color=COLOURS[0], label=spoken("position"))
    (after,) = circle.plot([], [], "-s", color=COLOURS[1], label=spoken("after the shift"))
    circle.set(xlim=(-1.3, 1.3), ylim=(-1.2, 1.8), aspect="equal")
    circle.set(xlabel=spoken("cosine"), ylabel=spoken("sine"))
    circle.legend(handles=[before, after], frameon=False, loc="upper left", fontsize="small")
    (sine,) = waves.plot(range(_LAST + 1), encoding[:, 0], color=COLOURS[2])
    sine.set_label(spoken("sine"))
    (cosine,) = waves.plot(range(_LAST + 1), encoding[:, 1], color=COLOURS[3], linestyle="--")
    cosine.set_label(spoken("cosine"))
    marks = [waves.axvline(0, color=colour, linewidth=1) for colour in COLOURS[:2]]
    waves.set(ylim=(-1.2, 1.8), xlabel=spoken("position"), ylabel=spoken("feature"))
    waves.legend(handles=[sine, cosine], frameon=False, loc="upper right", fontsize="small")

    def update(position: int, shift: int, pair: int) -> Sentence:
        features = slice(2 * pair, 2 * pair + 2)
        matrix = relative_shift(shift, _D_MODEL)
        there = encoding[position] @ matrix
        for hand, (s, c) in ((before, encoding[position, features]), (after, there[features])):
            hand.set_data([0, float(c)], [0, float(s)])
        sine.set_ydata(encoding[:, 2 * pair])
        cosine.set_ydata(encoding[:, 2 * pair + 1])
        for mark, at in zip(marks, (position, position + shift), strict=True):
            mark.set_xdata([at, at])
        angle = shift / 10000 ** (2 * pair / _D_MODEL)
        apart = (there - encoding[position + shift]).abs().max()
        numbers = {"position": position, "shift": shift, "shifted": position + shift}
        if apart < 1e-4:
            return say(
                "Pair {pair} turns by {angle:.2g} radians in {shift} positions, wherever it "
                "starts. The encoding of {position}, times the matrix, is equal to that of "
                "{shifted}.",
                pair=pair,
                angle=angle,
                **numbers,
            )
        return say(
            "Pair {pair} turns by {angle:.2g} radians in {shift} positions, wherever it starts. "
            "The encoding of {position}, times the matrix, is different from that of {shifted}.",
            pair=pair,
            angle=angle,
            **numbers,
        )

    return update
