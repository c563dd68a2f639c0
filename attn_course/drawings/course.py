"""The map of the course, with where the reader stands."""

from attn_course.course import CHAPTERS, find_chapter
from attn_course.drawings.drawing import Drawing
from attn_course.sentences import say

PARTS = (
    ("why look back", ("00", "01")),
    ("one look", ("02", "03", "04")),
    ("many looks, in order", ("05", "06")),
    ("the model", ("07", "08", "09")),
    ("at work", ("10", "11", "12")),
)
"""The parts of the course, and the chapters of each."""


def course_map(number: str) -> Drawing:
    """Return the map of all chapters, with the one that the reader is in marked.

    number: the chapter's, as "03".

    Raises ValueError if there is no such chapter.
    """
    here = find_chapter(number)
    drawing = Drawing(
        190,
        say(
            "A map of the course in five columns from left to right; you are in chapter {number}, "
            "{title}.",
            number=here.number,
            title=here.title,
        ),
    )
    titles = {chapter.number: chapter.title for chapter in CHAPTERS}
    for column, (part, numbers) in enumerate(PARTS):
        x = 74 + 143 * column
        drawing.text((x, 22), say(part), size=13)
        for row, each in enumerate(numbers):
            role = "here" if each == here.number else "plain"
            words = say("{number} {title}", number=each, title=_in_two_lines(titles[each]))
            drawing.box((x, 62 + 48 * row), words, role, (134, 40), 11.5)
        if column:
            drawing.path([(x - 76, 62), (x - 67, 62)], tip=False)
    return drawing


def _in_two_lines(title: str) -> str:
    """A title, broken at the space nearest to its middle where it is long."""
    spaces = [place for place, letter in enumerate(title) if letter == " "]
    if len(title) < 13 or not spaces:
        return title
    middle = min(spaces, key=lambda place: abs(place - len(title) / 2 + 2))
    return f"{title[:middle]}\n{title[middle + 1 :]}"
