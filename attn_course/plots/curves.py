"""Lines and bars: measured quantities against n, learning curves, gradients by layer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter, ScalarFormatter

from attn_course.plots.fonts import family_for, laid_out, note_missing
from attn_course.plots.maps import as_array
from attn_course.plots.picture import COLOURS, MARKERS, Picture, new_figure, style
from attn_course.plots.words import WORDS, described
from attn_course.sentences import say, spoken


def line_plot(
    x: Any,
    series: Mapping[str, Any],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    log_x: bool = False,
    log_y: bool = False,
    y_limits: tuple[float, float] | None = None,
    alt: str = "",
) -> Picture:
    """Draw measured quantities against x (n,), one line for each entry of `series`.

    Each series is (n,), or (runs, n): then the line is the mean and the band
    reaches from the smallest to the largest run. Lines differ in marker as
    well as in colour. `alt` says what is to be seen.

    Raises:
        ValueError: if there is no series, or one does not fit x.
    """
    positions = as_array(x, ndim=1)
    if not series:
        raise ValueError(say("series is empty: there is no line to draw"))
    with style():
        figure = new_figure(6.0, 3.6)
        axes = figure.add_subplot()
        for number, (name, values) in enumerate(series.items()):
            _draw_line(axes, positions, values, name, number)
        axes.set(xlabel=x_label, ylabel=y_label)
        axes.set_title(laid_out(title), family=family_for([title]))
        _scale(axes, positions, log_x, log_y)
        if y_limits is not None:
            axes.set_ylim(*y_limits)
        if len(series) > 1:
            axes.legend(frameon=False, prop={"family": family_for(series)})
        note_missing(figure, [*series, title])
    names = ", ".join(series)
    told = [say(WORDS["lines_alt"], y_label=y_label, x_label=x_label, names=names)]
    for label, logarithmic in ((x_label, log_x), (y_label, log_y)):
        if logarithmic:
            told.append(say(WORDS["lines_alt_log"], axis=label))
    return Picture(figure, described(title, told, alt))


def learning_curves(
    histories: Mapping[str, Any],
    *,
    metric: str = "loss",
    title: str = "",
    log_y: bool = False,
    smooth: int = 1,
    alt: str = "",
) -> Picture:
    """Draw one curve for each run of `training.fit`, by training step.

    metric: "loss", "lr", "gradient_norm", or the name of a held-out measure.
    smooth: average the last that many steps (1: as measured).

    Raises:
        ValueError: if there is no run, or one did not measure `metric`.
    """
    if not histories:
        raise ValueError(say("histories is empty: there is no curve to draw"))
    with style():
        figure = new_figure(6.0, 3.6)
        axes = figure.add_subplot()
        for number, (name, history) in enumerate(histories.items()):
            steps, values = _curve(name, history, metric, smooth)
            axes.plot(
                steps,
                values,
                color=COLOURS[number % len(COLOURS)],
                label=laid_out(name),
                linewidth=1.4,
            )
        x_label = spoken(WORDS["steps"])
        y_label = spoken(WORDS[metric]) if metric in WORDS else metric
        axes.set(xlabel=x_label, ylabel=y_label)
        axes.set_title(laid_out(title), family=family_for([title]))
        axes.set_yscale("log" if log_y else "linear")
        axes.legend(frameon=False, prop={"family": family_for(histories)})
        note_missing(figure, [*histories, title])
    names = ", ".join(histories)
    told = say(WORDS["lines_alt"], y_label=y_label, x_label=x_label, names=names)
    return Picture(figure, described(title, [told], alt))


def _draw_line(axes: Axes, x: np.ndarray, values: Any, name: str, number: int) -> None:
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values, dtype=float)
    if array.ndim not in (1, 2) or array.shape[-1] != len(x) or array.size == 0:
        misfit = say(
            "series {name!r} has shape {got}, expected ({n},) or (runs, {n})",
            name=name,
            got=array.shape,
            n=len(x),
        )
        raise ValueError(misfit)
    runs = np.atleast_2d(array)
    colour = COLOURS[number % len(COLOURS)]
    marker = MARKERS[number % len(MARKERS)] if len(x) <= 40 else None
    axes.plot(x, runs.mean(axis=0), color=colour, marker=marker, markersize=5, label=laid_out(name))
    if len(runs) > 1:
        axes.fill_between(x, runs.min(axis=0), runs.max(axis=0), color=colour, alpha=0.2, lw=0)


def _scale(axes: Axes, x: np.ndarray, log_x: bool, log_y: bool) -> None:
    if log_y:
        axes.set_yscale("log")
    if log_x:
        axes.set_xscale("log", base=2)
    if log_x and len(x) <= 12:
        axes.set_xticks(x)
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())


def _curve(
    name: str, history: Any, metric: str, smooth: int
) -> tuple[Sequence[int] | np.ndarray, np.ndarray]:
    if metric in ("loss", "lr", "gradient_norm"):
        values, steps = getattr(history, metric), np.arange(1, history.steps + 1)
    elif metric in history.metrics:
        values, steps = history.metrics[metric], np.array(history.eval_steps)
    else:
        known = ", ".join(["loss", "lr", "gradient_norm", *history.metrics])
        unmeasured = say(
            "run {name!r} did not measure {metric!r}; it has {known}",
            name=name,
            metric=metric,
            known=known,
        )
        raise ValueError(unmeasured)
    if smooth < 1 or not values:
        too_few = say(
            "run {name!r}: {count} values, smooth={smooth} must be at least 1",
            name=name,
            count=len(values),
            smooth=smooth,
        )
        raise ValueError(too_few)
    sums = np.cumsum([0.0, *values])
    window = np.minimum(np.arange(1, len(values) + 1), smooth)
    ends = np.arange(1, len(values) + 1)
    return steps, (sums[ends] - sums[ends - window]) / window
