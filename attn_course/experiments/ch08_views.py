"""Chapter 08's pictures: one date as two maps, and a slider that hides its characters."""

import torch
from matplotlib.axes import Axes
from torch import Tensor

from attn_course.experiments.ch08 import ISO_LENGTH, write
from attn_course.experiments.ch08_maps import cross_weights, knife
from attn_course.experiments.devices import device_of
from attn_course.generation import greedy_decode
from attn_course.models import Seq2Seq
from attn_course.plots import LiveFigure, Slider, live_figure
from attn_course.plots.picture import COLOURS
from attn_course.sentences import Sentence, say, spoken
from attn_course.tasks import START, DateTask


class DateReading:
    """One date with what the model makes of it.

    Attributes:
        written: the ISO date that the model writes.
        characters: what it has read: the language, then each character.
        map, knife: (i, j), for each character of `written` and each that was read.
        late_knife: the knife that hides a character in cross-attention alone.
        heads: (layer, h, i, j), the weights of which the map is the mean.
    """

    def __init__(self, model: Seq2Seq, task: DateTask, text: str, language: str) -> None:
        """Read a date; ValueError for a language or a character that the task does not have."""
        ids = task.encode(text, language)
        self.source = torch.tensor([ids[: len(text) + 1]]).to(device_of(model))
        self.model, self.task = model, task
        target = write(model, self.source)
        self.written = task.decode_target(target[0])
        self.characters = [language, *(c if c.strip() else "␣" for c in text)]
        self.heads = cross_weights(model, self.source, target)[:, 0].cpu()
        self.map = self.heads.mean(dim=(0, 1))
        self.knife = knife(model, self.source, target)[0].cpu()
        self.late_knife = knife(model, self.source, target, in_encoder=False)[0].cpu()

    def written_without(self, j: int) -> str:
        """Return what the model writes if character j is hidden."""
        visible = self.source != START
        visible[:, j] = False
        target = greedy_decode(self.model, self.source, START, ISO_LENGTH, visible)
        return self.task.decode_target(target[0])


def hiding_view(reading: DateReading) -> LiveFigure:
    """Return the view of one hidden character: its weight in the map, and what hiding it does."""

    def draw(left: Axes, right: Axes):
        places = range(len(reading.written))
        weights = left.bar(places, [0.0] * len(places), color=COLOURS[0])
        losses = right.bar(places, [0.0] * len(places), color=COLOURS[1])
        most = max(1.0, float(reading.knife.max()))
        left.set(ylim=(0, 1), ylabel=spoken("weight in the map"))
        right.set_ylim(min(0.0, float(reading.knife.min())), most)
        right.set_ylabel(spoken("loss when hidden, nats"))
        for axes in (left, right):
            axes.set_xticks(places, list(reading.written))
            axes.set_xlabel(spoken("written"))

        def update(hidden: int) -> Sentence:
            _set_heights(weights, reading.map[:, hidden])
            _set_heights(losses, reading.knife[:, hidden])
            return say(
                "Hidden: “{character}”. The model now writes {written}.",
                character=reading.characters[hidden],
                written=reading.written_without(hidden),
            )

        return update

    return live_figure(
        draw,
        alt=say(
            "Two rows of bars over the ten characters written. Left: the weight of the chosen "
            "source character in the attention map. Right: the log-probability that is lost when "
            "it is hidden."
        ),
        size=(9.0, 3.4),
        panels=2,
        hidden=Slider(say("character"), 0, len(reading.characters) - 1, start=1),
    )


def _set_heights(bars, heights: Tensor) -> None:
    for bar, height in zip(bars, heights.tolist(), strict=True):
        bar.set_height(height)
