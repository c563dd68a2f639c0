"""Views with sliders: artists are made once and only their data change, so a step is quick."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from typing import Any

from attn_course.notebook.cells import shown
from attn_course.plots.picture import image_html, new_figure, render_png, style
from attn_course.plots.words import WORDS, Text
from attn_course.sentences import joined, say

Update = Callable[..., Text | None]


@dataclass(frozen=True)
class Slider:
    """A slider from `low` to `high` in steps of `step`; whole numbers if all of them are."""

    label: Text
    low: float
    high: float
    start: float
    step: float = 1

    def __post_init__(self) -> None:
        """Refuse a start outside the range and a step that leads nowhere."""
        if not self.low <= self.start <= self.high or self.low == self.high or self.step <= 0:
            impossible = say(
                "slider '{label}': need low <= start <= high, low < high and step > 0, got "
                "low={low}, start={start}, high={high}, step={step}",
                label=self.label,
                low=self.low,
                start=self.start,
                high=self.high,
                step=self.step,
            )
            raise ValueError(impossible)

    @property
    def extremes(self) -> tuple[float, float]:
        """The values at both ends."""
        return self.low, self.high

    def named(self, value: float) -> Text:
        """A value as people read it."""
        return str(value)

    def widget(self) -> Any:
        """Return a new ipywidgets slider."""
        import ipywidgets

        whole = all(isinstance(x, int) for x in (self.low, self.high, self.start, self.step))
        kind = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
        return kind(
            min=self.low,
            max=self.high,
            value=self.start,
            step=self.step,
            description=str(self.label),
        )


@dataclass(frozen=True)
class Choices:
    """A slider over listed values, such as powers of two; `names` has what is no number in words.

    A value is handed to the view as it is, and shown by its name where it has one.
    """

    label: Text
    options: Sequence[Any]
    start: Any
    names: Mapping[Any, Text] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a start that is not among the options."""
        if self.start not in self.options or len(self.options) < 2:
            impossible = say(
                "slider '{label}': need two options or more with start={start} among them, got "
                "{options}",
                label=self.label,
                start=repr(self.start),
                options=list(self.options),
            )
            raise ValueError(impossible)

    @property
    def extremes(self) -> tuple[Any, Any]:
        """The first and the last option."""
        return self.options[0], self.options[-1]

    def named(self, value: Any) -> Text:
        """A value as people read it."""
        return self.names.get(value, str(value))

    def widget(self) -> Any:
        """Return a new ipywidgets slider."""
        import ipywidgets

        options: list[Any] = list(self.options)
        if self.names:
            options = [(str(self.named(option)), option) for option in options]
        return ipywidgets.SelectionSlider(
            options=options, value=self.start, description=str(self.label)
        )


class LiveFigure:
    """What `live_figure` returns: shows itself with sliders, or as a picture without a kernel.

    `figure` and `axes` are matplotlib's, `values` the settings, `caption` the
    words under the picture, `error` what the last redrawing raised, or None.
    """

    def __init__(
        self,
        draw: Callable[..., Update],
        sliders: dict[str, Slider | Choices],
        alt: Text,
        size: tuple[float, float],
        panels: int,
    ) -> None:
        """Make the artists and draw the start; whatever `draw` raises is raised here."""
        self.alt = " ".join(str(alt).split())
        self.sliders = sliders
        self.values = {name: slider.start for name, slider in sliders.items()}
        self.caption = ""
        self.error: Exception | None = None
        self.png = b""
        self._view: _View | None = None
        with style():
            self.figure = new_figure(*size)
            self.axes = list(self.figure.subplots(1, panels, squeeze=False).ravel())
            self._update = draw(*self.axes)
        if not callable(self._update):
            no_function = say(
                "draw must return the function that redraws for new slider values, got {kind}",
                kind=type(self._update).__name__,
            )
            raise ValueError(no_function)
        self.set()
        # the layout of the start is kept: laying out anew takes longer than drawing
        self.figure.set_layout_engine("none")
        _alive.add(self)

    def set(self, **values: Any) -> None:
        """Redraw with these slider values, the others as they are.

        Raises:
            ValueError: for a name that no slider has. Whatever the redrawing
                raises is raised here too; moving a slider shows it in the view.
        """
        unknown = sorted(values.keys() - self.sliders.keys())
        if unknown:
            there = ", ".join(self.sliders)
            raise ValueError(
                say("no slider {name!r}; there are {there}", name=unknown[0], there=there)
            )
        with style():  # to the end: what another thread sets comes before or after as a whole
            self.values |= values
            self.error = None
            try:
                said = self._update(**self.values)
                self.caption = "" if said is None else str(said)
                self.png = render_png(self.figure, fast=True)
            except Exception as error:
                self.error = error
                raise
            finally:
                if self._view is not None:
                    self._view.refresh()

    def visit_extremes(self) -> None:
        """Redraw at both ends of each slider, then as before; what goes wrong is raised."""
        before = dict(self.values)
        for name, slider in self.sliders.items():
            for value in slider.extremes:
                self.set(**(before | {name: value}))
        self.set(**before)

    def __repr__(self) -> str:
        """Return the text alternative at the present setting."""
        settings = [
            say(WORDS["setting"], label=slider.label, value=slider.named(self.values[name]))
            for name, slider in self.sliders.items()
        ]
        static = say(WORDS["slider_static"], settings=joined(settings, ", "))
        return f"{self.alt} {static} {self.caption}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        if self._view is not None:
            self._view.close()
        self._view = _View(self)
        shown(self._view)
        return {
            "text/plain": repr(self),
            "text/html": image_html(self.png, repr(self)),
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self._view.box.model_id,
            },
        }


def live_figure(
    draw: Callable[..., Update],
    *,
    alt: Text,
    size: tuple[float, float] = (6.0, 3.6),
    panels: int = 1,
    **sliders: Slider | Choices,
) -> LiveFigure:
    """Return a picture that is redrawn while its sliders move.

    draw: called once with the axes (as many as `panels`, side by side). It
        makes the artists and returns `update(**values)`, which is called with
        the value of each slider, changes the artists' data (`set_ydata`,
        `set_data`, `set_text`), and may return a sentence that says what is to be
        seen at this setting. It stands under the picture, so a number in it
        must be rounded far from an edge.
    alt: what the picture shows, whatever the setting.
    sliders: a `Slider` or `Choices` for each name that `update` takes.

    Raises:
        ValueError: if there is no slider, no text, or draw returns no function.
    """
    if not sliders or panels < 1:
        raise ValueError(
            say("a live figure needs a slider and a panel, got panels={panels}", panels=panels)
        )
    if not str(alt).strip():
        raise ValueError(say("a live figure needs a text alternative: alt is empty"))
    return LiveFigure(draw, sliders, alt, size, panels)


def live_figures() -> list[LiveFigure]:
    """Return the live figures that exist now, so that a test can visit their extremes."""
    return list(_alive)


class _View:
    """The widgets of a live figure."""

    def __init__(self, live: LiveFigure) -> None:
        import ipywidgets  # only a notebook that shows the figure pays for it

        self.live = live
        self.sliders = {name: slider.widget() for name, slider in live.sliders.items()}
        # its box would stretch the picture to the width of the page
        layout = {"align_self": "flex-start", "max_width": "100%"}
        # ipywidgets would cut a longer label off at 80 pixels
        widest = max(len(str(slider.label)) for slider in live.sliders.values())
        for widget in self.sliders.values():
            widget.style.description_width = f"{0.6 * widest + 1:.1f}em"
            widget.layout = ipywidgets.Layout(width="32em", max_width="100%")
        self.image = ipywidgets.Image(format="png", value=live.png, layout=layout)
        self.message = ipywidgets.HTML()
        self.box = ipywidgets.VBox([*self.sliders.values(), self.image, self.message])
        self.refresh()
        for name, widget in self.sliders.items():
            widget.observe(partial(self._moved, name), names="value")

    def refresh(self) -> None:
        """Show the live figure's present state."""
        for name, widget in self.sliders.items():
            widget.value = self.live.values[name]
        self.image.value = self.live.png
        text = escape(self.live.caption)
        if self.live.error is not None:
            error = f"{type(self.live.error).__name__}: {self.live.error}"
            told = escape(str(say(WORDS["slider_error"], error=error)))
            text = f'<strong style="color: var(--jp-error-color1, #b00020)">{told}</strong>'
        # ipywidgets' Image has no alternative text, and a tooltip on it breaks its view.
        alt = f'<span role="img" aria-label="{escape(self.live.alt)}"></span>'
        self.message.value = f'{alt}<span role="status">{text}</span>'

    def close(self) -> None:
        """Take the widgets out of the page and of ipywidgets' registry."""
        for widget in (*self.box.children, self.box):
            widget.close()

    def _moved(self, name: str, change: Any) -> None:
        if change["new"] == self.live.values[name]:
            return
        try:
            self.live.set(**{name: change["new"]})
        except Exception as error:
            # refresh has shown it in the view; raised here it would end in a log nobody reads
            self.live.error = error


_alive: "weakref.WeakSet[LiveFigure]" = weakref.WeakSet()
