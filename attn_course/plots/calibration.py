"""How often predictions held, against how sure the learner was of them."""

from collections.abc import Sequence

from attn_course.plots.picture import COLOURS, Picture, new_figure, style
from attn_course.plots.words import WORDS
from attn_course.sentences import joined, say, spoken


def calibration_plot(rows: Sequence[tuple[int, int, int]]) -> Picture:
    """Draw the share of right predictions at each confidence, with the line of good calibration.

    rows: (confidence in percent, right, asked), as `attn_course.calibration` returns them.
    A disc's area grows with the number of predictions, which stands beside it.

    Raises:
        ValueError: if there is no row, or one has no predictions.
    """
    if not rows or any(asked < 1 for _, _, asked in rows):
        raise ValueError(
            say("calibration needs rows with at least one prediction each, got {got}", got=rows)
        )
    with style():
        figure = new_figure(4.6, 4.0)
        axes = figure.add_subplot()
        axes.plot([50, 100], [50, 100], "--", color="gray", label=spoken(WORDS["well_calibrated"]))
        for confidence, right, asked in rows:
            share = 100 * right / asked
            axes.scatter(confidence, share, s=40 * asked, color=COLOURS[0], zorder=2)
            axes.annotate(
                str(say(WORDS["right_of"], right=right, asked=asked)),
                (confidence, share),
                textcoords="offset points",
                xytext=(0, 10 if share < 90 else -16),
                ha="center",
            )
        axes.set(xlim=(45, 105), ylim=(-8, 108))
        axes.set(xlabel=spoken(WORDS["confidence"]), ylabel=spoken(WORDS["share_right"]))
        axes.legend(frameon=False, loc="lower right")
    points = [
        say(WORDS["calibration_point"], confidence=confidence, right=right, asked=asked)
        for confidence, right, asked in rows
    ]
    return Picture(figure, str(say(WORDS["calibration_alt"], points=joined(points, "; "))))
