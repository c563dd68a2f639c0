"""Chapter 04's view: what "bank" reads from its sentence, and how strongly it asks."""

import torch
from matplotlib.axes import Axes

from attn_course.experiments.ch04 import BOTH, LOAN, RIVER, hand_set_attention, hand_set_tokens
from attn_course.plots import Choices, LiveFigure, Slider, live_figure
from attn_course.plots.picture import COLOURS
from attn_course.sentences import Sentence, say, spoken

SENTENCES = {"loan": LOAN, "river": RIVER, "both": BOTH}
_NAMES = {"loan": say("loan"), "river": say("river"), "both": say("both")}

_MOST_TOKENS = max(len(hand_set_tokens(sentence)[0]) for sentence in SENTENCES.values())


def bank_view() -> LiveFigure:
    """Return the view of "bank" in three sentences: its weights, and what comes out for it."""
    return live_figure(
        _draw,
        alt=say(
            "Left: the weights of “bank” over the tokens of its sentence, as bars. Right: money "
            "and water in what comes out for it, as a point that starts in the middle and moves "
            "towards money, towards water, or between them."
        ),
        size=(9.0, 4.2),
        panels=2,
        sentence=Choices(say("sentence"), list(SENTENCES), start="loan", names=_NAMES),
        strength=Slider(say("how strongly it asks"), 0.0, 4.0, start=1.0, step=0.25),
    )


def _draw(bars: Axes, plane: Axes):
    drawn = bars.barh(range(_MOST_TOKENS), [0.0] * _MOST_TOKENS, color=COLOURS[0])
    bars.set(xlim=(0, 1), xlabel=spoken("weight of “bank”"))
    bars.invert_yaxis()
    (before,) = plane.plot([1], [1], "s", color="0.6", markersize=8, label=spoken("bank, before"))
    (after,) = plane.plot(
        [0], [0], "o", color=COLOURS[1], markersize=9, label=spoken("bank, after")
    )
    plane.set(xlim=(-0.1, 3.2), ylim=(-0.1, 3.2), aspect="equal")
    plane.set(xlabel=spoken("money"), ylabel=spoken("water"))
    plane.legend(handles=[before, after], frameon=False, loc="upper right")

    def update(sentence: str, strength: float) -> Sentence:
        tokens, x = hand_set_tokens(SENTENCES[sentence])
        output, weights = hand_set_attention(strength)(x)
        bank = tokens.index("bank")
        row = torch.zeros(_MOST_TOKENS)
        row[: len(tokens)] = weights[bank]
        bars.set_yticks(range(len(tokens)), tokens)
        for bar, weight in zip(drawn, row.tolist(), strict=True):
            bar.set_width(weight)
        money, water = output[bank].tolist()
        after.set_data([money], [water])
        return say(
            "{sentence} What comes out: money {money:.1f}, water {water:.1f}.",
            sentence=SENTENCES[sentence],
            money=money,
            water=water,
        )

    return update
