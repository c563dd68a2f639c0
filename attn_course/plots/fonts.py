"""Fonts for labels in any script: what is installed is searched for the glyphs that are needed."""

import re
from collections.abc import Iterable
from functools import cache

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font

from attn_course.plots.words import WORDS
from attn_course.sentences import say

_BASE = "DejaVu Sans"  # comes with matplotlib
_PREFERRED = ("Noto Sans", "WenQuanYi", "PingFang", "Hiragino", "Microsoft YaHei", "Arial Unicode")

# From 3.11 on matplotlib lays out text itself (libraqm); before it sets one character after
# another from left to right.
_LAYS_OUT = matplotlib.__version_info__ >= (3, 11)
_RTL = "[\u0590-\u065f\u066e-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+"  # but for digits
_STRETCH = re.compile(rf"{_RTL}(?:\W+{_RTL})*")
_LETTER = re.compile(r".[\u0300-\u036f\u0591-\u05c7\u064b-\u065f]*", re.DOTALL)


def family_for(texts: Iterable[str]) -> list[str]:
    """Return a list of font families that together have every glyph of `texts`, if any has."""
    families = [_BASE]
    for character in sorted(_needed(texts)):
        family = _family_with(character)
        if family is not None and family not in families:
            families.append(family)
    return families


def laid_out(text: str, *, by_matplotlib: bool = _LAYS_OUT) -> str:
    """Return a label so that it reads rightly also where matplotlib does not order it.

    Stretches of right-to-left script are turned round, each base letter together
    with its marks. Arabic letters stay unjoined then; matplotlib 3.11 joins them.
    """
    if by_matplotlib:
        return text
    return _STRETCH.sub(lambda stretch: "".join(_LETTER.findall(stretch[0])[::-1]), text)


def missing_glyphs(texts: Iterable[str]) -> str:
    """Return the characters of `texts` that no installed font has."""
    return "".join(c for c in sorted(_needed(texts)) if _family_with(c) is None)


def note_missing(figure: Figure, texts: Iterable[str]) -> None:
    """Write under the figure which glyphs are missing and how to get them, if any are."""
    missing = missing_glyphs(texts)
    if missing:
        shown = " ".join(f"U+{ord(c):04X}" for c in missing[:3])
        note = say(WORDS["no_font"], missing=shown)
        figure.supxlabel(f"{figure.get_supxlabel()}\n{note}".strip(), fontsize=8)


def _needed(texts: Iterable[str]) -> set[str]:
    return {c for text in texts for c in text if c.isprintable() and ord(c) not in _base_glyphs()}


@cache
def _base_glyphs() -> frozenset[int]:
    return frozenset(FT2Font(font_manager.findfont(_BASE)).get_charmap())


@cache
def _family_with(character: str) -> str | None:
    for path, family in _installed():
        if ord(character) in _glyphs(path):
            return family
    return None


@cache
def _installed() -> tuple[tuple[str, str], ...]:
    """Return (path, family) of the installed fonts, those first that are known to look well."""
    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in font_manager.findSystemFonts():
        # matplotlib's own list is cached on disk: a font installed since then is not in it
        if path not in known:
            font_manager.fontManager.addfont(path)
    entries = [
        entry
        for entry in font_manager.fontManager.ttflist
        # "Last Resort" has a box for every character there is
        if entry.style == "normal" and not entry.name.startswith("Last Resort")
    ]

    def rank(entry: font_manager.FontEntry) -> tuple[bool, int, str]:
        liked = entry.name.startswith(_PREFERRED)
        return not liked, abs(int(entry.weight) - 400), entry.name

    return tuple((entry.fname, entry.name) for entry in sorted(entries, key=rank))


@cache
def _glyphs(path: str) -> frozenset[int]:
    return frozenset(FT2Font(path).get_charmap())
