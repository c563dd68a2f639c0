"""Heat maps: one matrix, or one for each head."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from attn_course.plots.fonts import family_for, laid_out, note_missing
from attn_course.plots.picture import DIVERGING, SEQUENTIAL, Picture, new_figure, style
from attn_course.plots.words import WORDS, Text, described
from attn_course.sentences import say

Labels = Sequence[str] | None
Limits = tuple[float, float] | None

_QUERY_AXIS, _KEY_AXIS, _WEIGHT = (
    say(WORDS[name]) for name in ("query_axis", "key_axis", "weight")
)
_ROW_MISFIT = "{got} row labels for {count} rows"
_COLUMN_MISFIT = "{got} column labels for {count} columns"
_MAX_NUMBERS = 64  # more cells than this and the numbers no longer fit
_MAX_TICKS = 40


def heat_map(
    matrix: Any,
    *,
    row_labels: Labels = None,
    column_labels: Labels = None,
    row_axis: Text = _QUERY_AXIS,
    column_axis: Text = _KEY_AXIS,
    value: Text = _WEIGHT,
    title: str = "",
    limits: Limits = (0.0, 1.0),
    numbers: bool | None = None,
    alt: str = "",
) -> Picture:
    """Draw a matrix (rows, columns) as a heat map, by default attention weights (i, j).

    row_labels, column_labels: one string each, such as tokens, in any script.
    value: what the colours mean. limits: the values at the ends of the colour
    map; None takes the matrix's own, and a signed matrix then gets a map with
    its middle at 0. numbers: write the values (None: where they fit).
    alt: what is to be seen, added to the text alternative, which says by
    itself only what stands on the axes.

    Raises:
        ValueError: if the matrix is not 2-D or the labels do not fit it.
    """
    values = as_array(matrix, ndim=2)
    rows, columns = values.shape
    _check_labels(row_labels, rows, _ROW_MISFIT)
    _check_labels(column_labels, columns, _COLUMN_MISFIT)
    write = values.size <= _MAX_NUMBERS if numbers is None else numbers
    cell = 0.55 if write else 0.34
    highest = 9.0 if write or row_labels else 5.0  # rows without words need no room for them
    with style():
        figure = new_figure(_fit(columns * cell + 2.2), _fit(rows * cell + 1.2, high=highest))
        axes = figure.add_subplot()
        image = draw_map(axes, values, limits, row_labels, column_labels)
        axes.set(xlabel=str(column_axis), ylabel=str(row_axis))
        axes.set_title(laid_out(title), family=family_for([title]))
        figure.colorbar(image, ax=axes, label=str(value), shrink=0.9)
        if write:
            _write_numbers(axes, image, values)
        note_missing(figure, [*(row_labels or ()), *(column_labels or ()), title])
    names = {"value": value, "row_axis": row_axis, "column_axis": column_axis}
    told = [say(WORDS["map_alt"], rows=rows, columns=columns, **names)]
    for word, labels in (("rows_read", row_labels), ("columns_read", column_labels)):
        if labels is not None:
            told.append(say(WORDS[word], labels=" ".join(labels)))
    return Picture(figure, described(title, told, alt))


def head_maps(
    weights: Any,
    *,
    row_labels: Labels = None,
    column_labels: Labels = None,
    titles: Labels = None,
    row_axis: Text = _QUERY_AXIS,
    column_axis: Text = _KEY_AXIS,
    value: Text = _WEIGHT,
    limits: Limits = (0.0, 1.0),
    alt: str = "",
) -> Picture:
    """Draw attention weights (h, i, j), one small map for each head, all on one colour scale.

    Raises:
        ValueError: if `weights` is not 3-D or labels or titles do not fit it.
    """
    values = as_array(weights, ndim=3)
    heads, rows, columns = values.shape
    _check_labels(row_labels, rows, _ROW_MISFIT)
    _check_labels(column_labels, columns, _COLUMN_MISFIT)
    _check_labels(titles, heads, "{got} head labels for {count} heads")
    titles = titles or [str(say(WORDS["head"], number=number)) for number in range(heads)]
    wide = min(heads, 4)
    high = ceil(heads / wide)
    limits = limits or (float(values.min()), float(values.max()))
    with style():
        size = _fit(max(rows, columns) * 0.2 + 0.8, low=2.2, high=3.6)
        figure = new_figure(wide * size + 1, high * size + 0.4)
        grid = figure.subplots(high, wide, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, head, title in zip(grid, values, titles, strict=False):
            image = draw_map(axes, head, limits, row_labels, column_labels)
            axes.set_title(laid_out(title), family=family_for([title]))
        for axes in grid[heads:]:
            axes.set_axis_off()
        figure.supxlabel(str(column_axis), fontsize=10)
        figure.supylabel(str(row_axis), fontsize=10)
        figure.colorbar(image, ax=list(grid), label=str(value))
        note_missing(figure, [*(row_labels or ()), *(column_labels or ()), *titles])
    told = say(
        WORDS["maps_alt"],
        count=heads,
        titles=", ".join(titles),
        value=value,
        rows=rows,
        columns=columns,
        row_axis=row_axis,
        column_axis=column_axis,
    )
    return Picture(figure, described("", [told], alt))


def draw_map(
    axes: Axes,
    values: np.ndarray,
    limits: Limits = (0.0, 1.0),
    row_labels: Labels = None,
    column_labels: Labels = None,
) -> AxesImage:
    """Draw a matrix into `axes` and return the image, whose `set_data` redraws it quickly."""
    low, high = limits or _own_limits(values)
    signed = low < 0 < high
    image = axes.imshow(
        values, cmap=DIVERGING if signed else SEQUENTIAL, vmin=low, vmax=high, aspect="auto"
    )
    for axis, labels, count in (
        (axes.xaxis, column_labels, values.shape[1]),
        (axes.yaxis, row_labels, values.shape[0]),
    ):
        if labels is not None:
            turned = axis is axes.xaxis and max(map(len, labels)) > 2
            rotation = 90 if turned else 0
            shown = [laid_out(label) for label in labels]
            axis.set_ticks(range(count), shown, family=family_for(labels), rotation=rotation)
        elif count <= _MAX_TICKS:
            axis.set_ticks(range(0, count, 1 + count // 12))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image


def as_array(values: Any, ndim: int) -> np.ndarray:
    """Return a tensor, array or nested list as a float array of `ndim` axes.

    Raises:
        ValueError: for another number of axes, or an empty axis.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    array = np.asarray(values, dtype=float)
    if array.ndim != ndim or array.size == 0:
        misfit = say(
            "expected {ndim} axes, none of them empty, got shape {shape}",
            ndim=ndim,
            shape=array.shape,
        )
        raise ValueError(misfit)
    return array


def _own_limits(values: np.ndarray) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    if low < 0 < high:
        reach = max(-low, high)
        return -reach, reach
    return low, high if high > low else low + 1.0


def _write_numbers(axes: Axes, image: AxesImage, values: np.ndarray) -> None:
    for (i, j), number in np.ndenumerate(values):
        red, green, blue, _ = image.cmap(image.norm(number))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        text = f"{number:.2f}" if np.isfinite(number) else f"{number:g}"
        axes.text(
            j, i, text, ha="center", va="center", fontsize=8, color="white" if dark else "black"
        )


def _check_labels(labels: Labels, count: int, words: str) -> None:
    if labels is not None and len(labels) != count:
        raise ValueError(say(words, got=len(labels), count=count))


def _fit(inches: float, low: float = 2.6, high: float = 9.0) -> float:
    return min(max(inches, low), high)
