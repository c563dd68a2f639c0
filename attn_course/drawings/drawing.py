"""A drawing: boxes, arrows and words, put together as SVG.

It stands on a ground of its own, light or dark as the reader's system has it, so that it can be
read on any page. Lengths are in units of which a page's text is about 720 wide.
"""

from __future__ import annotations

import base64
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from attn_course.sentences import Spoken, spoken

WIDTH = 720
ROLES = {
    "plain": ("#f1f3f5", "#343a40"),
    "token": ("#fff3bf", "#3b3413"),
    "query": ("#a5d8ff", "#0b2e4f"),
    "key": ("#ffd8a8", "#4d2800"),
    "value": ("#b2f2bb", "#0f3d17"),
    "output": ("#e5c8f0", "#3c1352"),
    "residual": ("#dee2e6", "#212529"),
    "here": ("#0072b2", "#ffffff"),
}
"""The ground and the words of a box, by what it stands for; the same in every drawing."""

_STYLE = """
.ground { fill: #ffffff } .line { stroke: #495057; fill: none } .tip { fill: #495057 }
text { font-family: system-ui, sans-serif; fill: #212529 }
.free { stroke: #ffffff; stroke-width: 4px; paint-order: stroke }
@media (prefers-color-scheme: dark) {
  .ground { fill: #1e1e1e } .line { stroke: #adb5bd } .tip { fill: #adb5bd }
  text { fill: #e9ecef } .free { stroke: #1e1e1e }
}
"""
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="10" '
    'markerHeight="10" markerUnits="userSpaceOnUse" orient="auto-start-reverse">'
    '<path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>'
)

Point = tuple[float, float]


class Drawing:
    """A picture that is put together part by part, and shows itself in a notebook.

    Attributes:
        alt: what it shows, for those who cannot see it, and where no picture can be shown.
        height: of the whole; the width is `WIDTH`.
    """

    def __init__(self, height: float, alt: Spoken) -> None:
        """Begin with an empty ground."""
        self.alt, self.height = spoken(alt), height
        self._parts: list[str] = []

    def box(
        self,
        centre: Point,
        words: Spoken,
        role: str = "plain",
        size: Point = (92, 34),
        letters: float = 14,
    ) -> Drawing:
        """Put words into a box, coloured by its role; `letters` is their size."""
        (x, y), (width, height) = centre, size
        ground, ink = ROLES[role]
        self._parts.append(
            f'<rect x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width:g}" '
            f'height="{height:g}" rx="6" fill="{ground}" stroke="{ink}" stroke-opacity=".35"/>'
        )
        return self._words((x, y), words, f' style="fill:{ink}"', letters)

    def text(
        self, at: Point, words: Spoken, *, size: float = 14, anchor: str = "middle"
    ) -> Drawing:
        """Put words on the ground; `anchor` is start, middle or end."""
        return self._words(at, words, ' class="free"', size, anchor)

    def arrow(
        self, start: Point, end: Point, *, weight: float = 1.5, dashed: bool = False
    ) -> Drawing:
        """Draw a straight arrow, as thick as its weight."""
        return self.path([start, end], weight=weight, dashed=dashed)

    def path(
        self, points: list[Point], *, weight: float = 1.5, dashed: bool = False, tip: bool = True
    ) -> Drawing:
        """Draw a line through points, with an arrow's tip at its end."""
        places = " ".join(f"{x:g},{y:g}" for x, y in points)
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        end = ' marker-end="url(#tip)"' if tip else ""
        self._parts.append(
            f'<polyline class="line" points="{places}" stroke-width="{weight:g}"{dashes}{end}/>'
        )
        return self

    def _words(
        self, at: Point, words: Spoken, style: str, size: float = 14, anchor: str = "middle"
    ) -> Drawing:
        x, y = at
        lines = spoken(words).split("\n")
        first = y - (len(lines) - 1) * 0.6 * size + 0.35 * size
        for number, line in enumerate(lines):
            self._parts.append(
                f'<text x="{x:g}" y="{first + number * 1.2 * size:g}" font-size="{size:g}" '
                f'text-anchor="{anchor}"{style}>{escape(line)}</text>'
            )
        return self

    def as_svg(self) -> str:
        """The whole picture as SVG."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:g}" '
            f'role="img" aria-label={quoteattr(self.alt)}>'
            f"<title>{escape(self.alt)}</title><style>{_STYLE}</style>{_TIP}"
            f'<rect class="ground" width="{WIDTH}" height="{self.height:g}" rx="8"/>'
            f"{''.join(self._parts)}</svg>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        svg = self.as_svg()
        # as an image: a notebook that is not trusted shows no SVG that stands in its page
        data = base64.b64encode(svg.encode()).decode()
        picture = (
            f'<img alt={quoteattr(self.alt)} style="width:100%;max-width:{WIDTH}px" '
            f'src="data:image/svg+xml;base64,{data}">'
        )
        return {"text/html": picture, "image/svg+xml": svg, "text/plain": self.alt}
