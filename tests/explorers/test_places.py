"""Where a view stands: hidden and shown later, grown, in a row with others, on a sharp screen."""

import pytest

import attn_course.explorers as explorers
from attn_course.explorers import (
    AttentionStepper,
    HeadsExplorer,
    MaskExplorer,
    ScalingExplorer,
)

# of each canvas that can be seen: how large it stands, and what is drawn on it
PICTURES = """() => Array.from(document.querySelectorAll(".attn-ex canvas"))
    .filter((canvas) => canvas.clientWidth)
    .map((canvas) => [canvas.clientWidth, canvas.clientHeight, canvas.toDataURL()])"""
# the first frame ends before the second begins
SHOW_AND_LOOK = f"""(style) => new Promise((done) => {{
    document.querySelector("#place").style = style;
    requestAnimationFrame(() => requestAnimationFrame(() => done(({PICTURES})())));
}})"""
SET_BY_PYTHON = """([name, value]) => [...attnCourseViews][0].model.set(name, value)"""
WIDTHS = """() => Array.from(document.querySelectorAll(".attn-ex"), (one) => one.offsetWidth)"""


@pytest.fixture(params=explorers.__all__)
def widget(request, monkeypatch):
    """Each explorer, as it opens without arguments."""
    monkeypatch.setenv("ATTN_COURSE_PROGRESS", ":memory:")
    return getattr(explorers, request.param)()


# kills: a canvas that stays blank, or as small as it was where nobody saw it or at the width
# at which it was shown first; a view that asks for the width at which it was drawn last
def test_a_view_takes_the_room_that_there_is_in_its_first_frame(widget, opened):
    shown, hidden = opened(widget, sharp=2), opened(widget, sharp=2, place="display: none")
    assert hidden.page.evaluate(PICTURES) == []
    assert hidden.page.evaluate(SHOW_AND_LOOK, "") == shown.page.evaluate(PICTURES)
    hidden.page.evaluate(SHOW_AND_LOOK, "display: none")
    narrow = "display: flex; width: 400px"
    pictures = hidden.page.evaluate(SHOW_AND_LOOK, narrow)
    assert pictures == shown.page.evaluate(SHOW_AND_LOOK, narrow)
    assert hidden.page.evaluate(WIDTHS) == [400]
    assert hidden.page.evaluate("document.querySelector('#place').scrollWidth") == 400


# kills: a view that was built at no width and stays so
@pytest.mark.parametrize("nowhere", ["width: 0; overflow: hidden", "height: 0; overflow: hidden"])
def test_a_view_that_was_folded_away_unfolds(opened, nowhere):
    expected = opened(MaskExplorer()).page.evaluate(PICTURES)
    folded = opened(MaskExplorer(), place=nowhere)
    assert folded.page.evaluate(SHOW_AND_LOOK, "") == expected


# kills: a view that draws what held when it was hidden
def test_what_is_set_while_a_view_is_hidden_is_seen_when_it_appears(opened):
    expected = opened(ScalingExplorer(d_k=4)).page.evaluate(PICTURES)
    hidden = opened(ScalingExplorer(), place="display: none")
    hidden.page.evaluate(SET_BY_PYTHON, ["d_k", 4])
    hidden.settle()
    assert hidden.page.evaluate(SHOW_AND_LOOK, "") == expected


# kills: views that fall together to a line, and views that push each other out
@pytest.mark.parametrize("kind", [MaskExplorer, AttentionStepper, HeadsExplorer])
def test_two_views_share_a_row(kind, opened):
    view = opened(kind(), kind(), place="display: flex; width: 980px", sharp=2)
    for _ in range(3):
        view.settle()
        first, second = view.page.evaluate(WIDTHS)
        assert 980 - 2 <= first + second <= 980
        assert abs(first - second) <= 1


# kills: room for sentences that goes by the window, though the view has half of it
def test_the_height_stays_in_half_a_row(opened):
    view = opened(MaskExplorer(), HeadsExplorer(), place="display: flex; width: 720px")
    heights = set()
    for mask_map in view.root.get_by_role("application").all():
        mask_map.focus()
        for key in 6 * ["ArrowRight", "ArrowDown", "Enter"]:
            heights.add(view.root.evaluate("(root) => root.querySelector('.caption').offsetTop"))
            view.press(key)
    assert len(heights) == 1
