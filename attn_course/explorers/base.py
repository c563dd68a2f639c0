"""What all explorers share on the Python side: one module for the browser, stills, state."""

import base64
import gzip
import json
import re
import sys
from collections.abc import Mapping
from functools import cache
from html import escape
from io import BytesIO
from pathlib import Path
from string import Template
from typing import Any, ClassVar

import anywidget
import numpy as np
import traitlets
from matplotlib.figure import Figure
from PIL import Image

from attn_course.explorers.words import filled, words_of
from attn_course.notebook.cells import shown
from attn_course.plots.picture import image_html, new_figure, render_image, style
from attn_course.sentences import say

STATE = {"sync": True, "state": True}
"""Tag of a trait that is part of an explorer's state: `Whole(4).tag(**STATE)`."""

_HERE = Path(__file__).parent
_PARTS = ("check", "compute", "describe", "tables", "view")


class Explorer(anywidget.AnyWidget):
    """An interactive view. Its arithmetic and drawing run in the browser.

    A subclass names its module and gives its state as plain JSON traits tagged with
    `STATE`, checks them (`_check`), and computes the same numbers as the browser with the
    package (`numbers`), which also draw the still picture (`_draw`).

    Attributes:
        fields: the names of the traits that make up the state.
        words: the texts of the view, from one table (`attn_course.explorers.words`).
    """

    module: ClassVar[str]
    size: ClassVar[tuple[float, float]] = (8.0, 4.0)

    fields = traitlets.List(traitlets.Unicode()).tag(sync=True)
    words = traitlets.Dict().tag(sync=True)
    about = traitlets.Dict().tag(sync=True)

    _has_own_layout = False

    # ipywidgets 7 would show itself by this method and leave the still picture out
    _ipython_display_ = None

    def __init__(self, **state: Any) -> None:
        """Take values of the state by name; raise TraitError for what cannot be."""
        name = type(self).__name__
        unknown = state.keys() - set(self.trait_names())
        if unknown:
            known = ", ".join(self.trait_names(state=True))
            got = repr(sorted(unknown)[0])
            strange = say("{name} has no {got}; it has {known}", name=name, got=got, known=known)
            raise traitlets.TraitError(strange)
        words = words_of(name)
        self._esm = browser_module(self.module)
        super().__init__(
            words=words,
            about={"name": name, "title": words["title"]},
            fields=list(self.trait_names(state=True)),
            **state,
        )
        self._has_own_layout = "layout" not in state

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what the browser sends, or send back what holds instead.

        The browser checks before it sends. It still may ask for what has become impossible
        here on the way; kept by one side alone, that value would part the two for good.

        Raises:
            TraitError: for what cannot be taken; all that came with it is left as it was.
        """
        try:
            super().set_state(sync_data)
        except traitlets.TraitError:
            self.send_state([name for name in sync_data if name in self.keys])
            raise

    def close(self) -> None:
        """Take the view out of the page and out of the registry of widgets."""
        layout = self.layout if self._has_own_layout else None
        super().close()
        if layout is not None:  # a widget of its own, which ipywidgets leaves behind
            layout.close()

    @property
    def state(self) -> dict[str, Any]:
        """The state as plain data."""
        return {name: getattr(self, name) for name in self.fields}

    def t(self, key: str, /, **values: Any) -> str:
        """A text of the table, with {names} filled in."""
        return filled(self.words[key], values)

    def numbers(self) -> Mapping[str, np.ndarray]:
        """Compute, with the package, the numbers that the browser shows at this state."""
        raise NotImplementedError

    def _check(self, state: Mapping[str, Any]) -> str | None:
        """Say what is impossible in a state, in the words of the view; None if nothing is."""
        return None

    def _draw(self, figure: Figure, numbers: Mapping[str, np.ndarray]) -> None:
        """Draw the still picture of the state, whose `numbers()` these are."""
        raise NotImplementedError

    def _describe(self, numbers: Mapping[str, np.ndarray]) -> str:
        """Say in words what the still picture shows, rounded so that it holds elsewhere."""
        raise NotImplementedError

    def _possible(self, proposal: Any) -> Any:
        """Validate a trait in the light of the others; a subclass calls it for all its state.

        Traits set together, in the constructor or under `hold_trait_notifications`, are
        judged when all of them are in place.
        """
        trait, value = proposal["trait"], proposal["value"]
        problem = self._check(self.state | {trait.name: value})
        if problem:
            raise traitlets.TraitError(problem)
        return value

    # -- how it is shown ------------------------------------------------------------------

    def png(self) -> bytes:
        """Draw the state with matplotlib."""
        return self._png(self.numbers())

    def alt(self) -> str:
        """What the picture shows, in words."""
        return self._alt(self.numbers())

    def _png(self, numbers: Mapping[str, np.ndarray]) -> bytes:
        with style():
            figure = new_figure(*self.size)
            self._draw(figure, numbers)
        return _few_colours(render_image(figure))

    def _alt(self, numbers: Mapping[str, np.ndarray]) -> str:
        return f"{self.words['title']}. {self._describe(numbers)}"

    def html(self, png: bytes | None = None) -> str:
        """The view for a page without a kernel: a picture that the module replaces.

        Picture, module and state are data addresses, which the comparison of stored
        outputs leaves out (tests/nbval_sanitize.cfg): they differ in bytes that mean nothing.
        """
        numbers = self.numbers()
        return self._html(png or self._png(numbers), self._alt(numbers))

    def _html(self, png: bytes, alt: str) -> str:
        state = self.state | {name: getattr(self, name) for name in ("fields", "words", "about")}
        page = Template((_HERE / "still.html").read_text(encoding="utf-8"))
        return page.substitute(
            name=escape(type(self).__name__),
            image=self._still(png, alt),
            module=_packed_module(self.module),
            state=_packed(json.dumps(state, ensure_ascii=False), level=3),
        )

    def _still(self, png: bytes, alt: str) -> str:
        """HTML of what is shown until the module runs, and where it never does."""
        return image_html(png, f"{alt} {self.words['still']}")

    def __repr__(self) -> str:
        """Return the text alternative."""
        return self.alt()

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> dict[str, Any] | tuple[dict[str, Any], dict[str, Any]]:
        shown(self)
        metadata = self._metadata()
        return (self._bundle(), metadata) if metadata else self._bundle()

    def _metadata(self) -> dict[str, Any]:
        """What Google Colab has to be told with a view, to load a widget that is not its own."""
        if "google.colab.output" not in sys.modules:
            return {}
        bundle = super()._repr_mimebundle_()
        return bundle[1] if bundle else {}

    def _bundle(self) -> dict[str, Any]:
        """The view in every form that a front end may want, its numbers computed once."""
        numbers = self.numbers()
        png, alt = self._png(numbers), self._alt(numbers)
        return {
            "text/plain": alt,
            "image/png": base64.b64encode(png).decode("ascii"),
            "text/html": self._html(png, alt),
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self.model_id,
            },
        }


@cache
def browser_module(name: str) -> str:
    """Join the shared files, what else it imports and an explorer's own into one module.

    anywidget loads its module from an address of no folder, where a relative import fails.
    """
    texts: dict[str, str] = {}
    _gather("core.mjs", texts)
    _gather(f"{name}.mjs", texts)
    bare = [_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts.values()]
    parts = ", ".join(_PARTS)
    ends = f"export {{ {parts}, stillModel }};\nexport default explorer({{ {parts} }});\n"
    return "\n".join([*bare, ends])


def _gather(file: str, texts: dict[str, str]) -> None:
    """Add a file's text behind the texts of what it imports."""
    if file in texts:
        return
    text = (_HERE / file).read_text(encoding="utf-8")
    for other in _IMPORTED.findall(text):
        _gather(other, texts)
    texts[file] = text


_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./\w+\.mjs\";\n", re.MULTILINE)
_IMPORTED = re.compile(r"^import \{[^}]*\} from \"\./(\w+\.mjs)\";$", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const|function|class|async)", re.MULTILINE)


def _few_colours(image: Image.Image) -> bytes:
    """The picture with 128 colours of its own: a third of the bytes, and stored twice."""
    target = BytesIO()
    image.quantize(128, dither=Image.Dither.NONE).save(target, "png", compress_level=6)
    return target.getvalue()


@cache
def _packed_module(name: str) -> str:
    return _packed(browser_module(name), level=9)


def _packed(text: str, level: int) -> str:
    """Text as a data address, compressed; the same bytes each time.

    Above level 3 a large state takes twice the time, for 0.2 % of its size.
    """
    raw = gzip.compress(text.encode("utf-8"), compresslevel=level, mtime=0)
    return f"data:application/gzip;base64,{base64.b64encode(raw).decode('ascii')}"
