"""A matplotlib figure with a text alternative, made without pyplot and shown once."""

import base64
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from io import BytesIO
from pathlib import Path
from threading import RLock
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from attn_course.sentences import say

SEQUENTIAL = "viridis"  # perceptually uniform, readable with any colour vision
DIVERGING = "coolwarm"
# Okabe and Ito's eight colours less yellow, which is too light for a line
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = "osD^vPX"
HATCHES = ("", "///", "...")  # of bars, which without colour are told apart by them

_DPI = 120
_STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11.0,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


class Picture:
    """A figure and the words that say what is to be seen in it.

    As the last line of a cell it shows itself, with the words as alternative
    text. `figure` and `axes` are matplotlib's own, for whoever wants more.
    """

    def __init__(self, figure: Figure, alt: str) -> None:
        """Pair `figure` with `alt`; raise ValueError if there are no words."""
        if not alt.strip():
            raise ValueError(say("a picture needs a text alternative: alt is empty"))
        self.figure = figure
        self.alt = " ".join(alt.split())

    @property
    def axes(self) -> list[Axes]:
        """The axes of the figure."""
        return self.figure.axes

    def png(self) -> bytes:
        """Return the picture as PNG."""
        return render_png(self.figure)

    def save(self, path: str | Path) -> None:
        """Write the picture to `path` as PNG, with the words as its description."""
        Path(path).write_bytes(self.png())

    def __repr__(self) -> str:
        """Return the text alternative."""
        return self.alt

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/html": image_html(self.png(), self.alt), "text/plain": self.alt}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches, which belongs to nobody's pyplot state."""
    return Figure(figsize=(width, height), dpi=_DPI, layout="constrained")


@contextmanager
def style() -> Iterator[None]:
    """Give figures the course's fonts and lines, and let one thread draw at a time.

    JupyterLab has a slider's moves handled in a thread of their own, beside the cell that runs.
    Matplotlib is not made for that: two threads that draw the same figure leave it blank for good.
    """
    with _drawing, matplotlib.rc_context(_STYLE):
        yield


_drawing = RLock()


def render_png(figure: Figure, *, fast: bool = False) -> bytes:
    """Draw the figure. `fast` spends bytes to save time, for views that are redrawn."""
    buffer = BytesIO()
    with style(), quiet_fonts():
        level = 1 if fast else 9
        figure.savefig(buffer, format="png", pil_kwargs={"compress_level": level})
    return buffer.getvalue()


def render_image(figure: Figure) -> Image.Image:
    """Draw the figure into an image: `savefig` draws twice, first to ask for its size."""
    canvas = FigureCanvasAgg(figure)
    with style(), quiet_fonts():
        canvas.draw()
        return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


@contextmanager
def quiet_fonts() -> Iterator[None]:
    """Keep matplotlib's remarks on fonts out of the cell's output.

    What matters of them, a glyph that no font has, stands in the figure itself.
    """
    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"Glyph .* missing", category=UserWarning)
            yield
    finally:
        log.setLevel(level)


def image_html(png: bytes, alt: str) -> str:
    """Return an <img> with its alternative text.

    HTML and not image/png alone: JupyterLab gives a PNG output no alternative text.
    """
    data = base64.b64encode(png).decode("ascii")
    return (
        f'<img alt="{escape(alt, quote=True)}" style="max-width: 100%" '
        f'src="data:image/png;base64,{data}">'
    )
