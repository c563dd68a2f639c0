"""Values that Python or a browser may send: taken and shown, or refused by a TraitError."""

import math

import numpy as np
import pytest
import torch
import traitlets

import attn_course.explorers as explorers
from attn_course.explorers import AttentionViewer, HeadsExplorer, Quiz, ScalingExplorer
from attn_course.explorers.base import Explorer
from attn_course.explorers.words import filled

PLAIN = [
    None, -1, 0, 1, 2, 10**9, 2.5, math.nan, math.inf, True, "", "x", [], [[]], [1, 2],
    [[1.0, 2.0]], [["a"]], [[1, 2], [3]], {}, {"a": 1}, [{}], [None], [[None]], [[0, 1, True]],
    ["a"] * 20, [{"name": "x", "groups": []}], {"steps": [1], "loss": ["a"]},
    {"steps": [1, 2], "loss": [1]},
]  # fmt: skip
OBJECTS = [object(), b"x", torch.ones(2, 2), np.full((3, 4), np.nan), np.array(3)]


@pytest.fixture(params=explorers.__all__)
def kind(request, monkeypatch) -> type:
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", ":memory:")
    return getattr(explorers, request.param)


def shown(widget: Explorer) -> None:
    """What a display needs of a state."""
    widget.numbers()
    assert widget.alt()


# kills: a KeyError out of the arithmetic, a view that stands still, a state that was half taken
def test_any_value_from_python_is_taken_whole_or_refused(kind):
    widget = kind()
    before = widget.state
    for name in widget.fields:
        for value in (*PLAIN, *OBJECTS):
            try:
                setattr(widget, name, value)
            except traitlets.TraitError:
                assert repr(widget.state) == repr(before), (name, value)
                continue
            shown(widget)
            widget.close()
            widget = kind()


def test_any_value_from_a_browser_is_taken_whole_or_refused(kind):
    widget = kind()
    before = widget.state
    for name in widget.fields:
        for value in PLAIN:
            try:
                widget.set_state({name: value})
            except traitlets.TraitError:
                assert repr(widget.state) == repr(before), (name, value)
                continue
            shown(widget)
            widget.close()
            widget = kind()


@pytest.mark.parametrize("name", ["prompt", "options", "question"])
def test_a_question_stays_as_it_was_asked(name, monkeypatch):
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", ":memory:")
    quiz = Quiz()
    with pytest.raises(traitlets.TraitError, match=f"{name} belongs to the question"):
        setattr(quiz, name, type(getattr(quiz, name))())


def test_what_a_step_could_not_draw_in_a_frame_is_refused_with_what_could(refusals):
    widget = HeadsExplorer(x=torch.ones(128, 128), num_heads=64)
    said = refusals(widget, num_heads=128)
    assert said[0] == said[1]
    assert "at most 64 heads, got 128" in said[0]


def test_tokens_name_every_row(refusals):
    said = refusals(HeadsExplorer(), tokens=["a"])
    assert said == ("tokens must name the 12 rows of x, got 1",) * 2


# -- one display, one computation ---------------------------------------------------------


def test_a_display_computes_its_numbers_once(kind, monkeypatch):
    widget, counted = kind(), []
    numbers = kind.numbers
    monkeypatch.setattr(kind, "numbers", lambda self: counted.append(self) or numbers(self))
    widget._bundle()
    assert counted == [widget]


# -- counts in words --------------------------------------------------------------------


@pytest.mark.parametrize(("count", "said"), [(1, "1 head"), (2, "2 heads"), (0, "0 heads")])
def test_the_word_goes_with_the_count_on_both_sides(modules, count, said):
    text = "{h} {h:head|heads}"
    assert filled(text, {"h": count}) == modules.core("filled", text, {"h": count}) == said


def test_a_name_without_a_value_stays_as_it_stands(modules):
    for text in ("{a} and {b}", "{b:one|more}"):
        expected = text.replace("{a}", "1")
        assert filled(text, {"a": 1}) == modules.core("filled", text, {"a": 1}) == expected


def test_one_of_a_kind_is_not_many():
    assert "1 head of d_k = 24 makes 24 features" in HeadsExplorer(num_heads=1).alt()
    alone = AttentionViewer(torch.ones(1, 1, 1, 1))
    assert "1 layer of 1 head, 1 query by 1 key" in alone.alt()
    assert "NaN" not in ScalingExplorer(d_k=1).alt()
