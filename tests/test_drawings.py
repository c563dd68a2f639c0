"""Drawings are SVG that can be read, by eye and aloud, and show what they are made from."""

from xml.etree import ElementTree

import pytest
import torch

from attn_course import drawings
from attn_course.course import CHAPTERS
from attn_course.drawings.course import PARTS
from attn_course.drawings.drawing import ROLES, WIDTH, Drawing

SVG = "{http://www.w3.org/2000/svg}"
WORDS = "The animal didn't cross the street because it was too tired .".split()  # noqa: SIM905
DRAWN = {
    **{f"map {chapter.number}": drawings.course_map(chapter.number) for chapter in CHAPTERS},
    "recurrence": drawings.recurrence(),
    "fixed state": drawings.recurrent_copying(attention=False),
    "attention": drawings.recurrent_copying(attention=True),
    "look up": drawings.look_up(WORDS, torch.full((12,), 1 / 12), asking=7),
    "heads": drawings.heads(),
    "block": drawings.block(),
    "encoder and decoder": drawings.encoder_decoder(),
    "masks": drawings.masks(),
    "families": drawings.families(),
    "positions": drawings.positions(),
}


def parts(drawing: Drawing, kind: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(drawing.as_svg()).iter(SVG + kind))


@pytest.mark.parametrize("name", DRAWN)
def test_everything_lies_inside_the_picture(name):
    drawing = DRAWN[name]
    for text in parts(drawing, "text"):
        x, y, letters = float(text.get("x")), float(text.get("y")), len(text.text or "")
        width = 0.56 * float(text.get("font-size")) * letters
        left = x - {"start": 0, "middle": width / 2, "end": width}[text.get("text-anchor")]
        assert left >= 0
        assert left + width <= WIDTH
        assert 0 < y < drawing.height
    for box in parts(drawing, "rect"):
        x, y = float(box.get("x", 0)), float(box.get("y", 0))
        assert min(x, y) >= 0
        assert x + float(box.get("width")) <= WIDTH
        assert y + float(box.get("height")) <= drawing.height


@pytest.mark.parametrize("name", DRAWN)
def test_it_can_be_read_aloud_and_is_an_image_where_no_svg_may_stand(name):
    drawing = DRAWN[name]
    shown = drawing._repr_mimebundle_()
    assert shown["text/plain"] == drawing.alt
    assert parts(drawing, "title")[0].text == drawing.alt
    assert shown["text/html"].startswith("<img alt=")
    assert "data:image/svg+xml;base64," in shown["text/html"]


@pytest.mark.parametrize("role", ROLES)
def test_words_stand_out_from_their_box(role):
    light, dark = sorted(map(luminance, ROLES[role]), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.1)."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_map_has_every_chapter_once_and_marks_one():
    assert [number for _, numbers in PARTS for number in numbers] == [c.number for c in CHAPTERS]
    marked = [
        box for box in parts(drawings.course_map("03"), "rect") if box.get("fill") == "#0072b2"
    ]
    assert len(marked) == 1
    with pytest.raises(ValueError, match="99"):
        drawings.course_map("99")


def test_a_look_up_draws_the_weights_that_it_is_given():
    weights = torch.tensor([0.7, 0.1, 0.2])
    drawing = drawings.look_up(["a", "b", "c"], weights, asking=2)
    words = [text.text for text in parts(drawing, "text")]
    assert [word for word in words if word in ("0.70", "0.10", "0.20")] == ["0.70", "0.10", "0.20"]
    widths = [float(line.get("stroke-width")) for line in parts(drawing, "polyline")]
    to_the_output = widths[2::3]
    assert to_the_output == sorted(to_the_output, key=lambda w: -w)[:1] + to_the_output[1:]
    assert to_the_output[0] - to_the_output[1] == pytest.approx(9 * 0.6)


def test_masks_are_those_of_the_package():
    filled = [box for box in parts(drawings.masks(4), "rect") if box.get("fill") == "#0072b2"]
    # causal 10, a window of three 9, two columns of padding 8, both 7
    assert len(filled) == 10 + 9 + 8 + 7
