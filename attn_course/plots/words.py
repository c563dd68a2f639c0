"""Every word that the package's pictures show by themselves, as constants for the door.

What the caller of a picture gives, titles, axes, series, is a text that is drawn as it is, or a
`Sentence`, which comes out in the reader's language.
"""

from attn_course.sentences import Sentence, say

Text = str | Sentence
"""What a caller may give to be drawn: a text as it is, or a sentence."""

WORDS = {
    "titled": "{title}.",
    "query_axis": "query position i",
    "key_axis": "key position j",
    "weight": "attention weight",
    "head": "head {number}",
    "layer_axis": "layer",
    "head_axis": "head",
    "entropy": "mean entropy (nats)",
    "steps": "training steps",
    "loss": "loss",
    "gradient_norm": "gradient norm",
    "map_alt": "Heat map of {value}: {rows} rows ({row_axis}) by {columns} columns "
    "({column_axis}).",
    "rows_read": "Rows: {labels}.",
    "columns_read": "Columns: {labels}.",
    "maps_alt": "{count} heat maps of {value} ({titles}), {rows} rows ({row_axis}) by "
    "{columns} columns ({column_axis}) each.",
    "lines_alt": "Line plot of {y_label} against {x_label}: {names}.",
    "lines_alt_log": "{axis} has a logarithmic scale.",
    "slider_static": "A view with sliders; move them in a running notebook. "
    "This is the view at {settings}.",
    "setting": "{label} {value}",
    "slider_error": "This setting could not be drawn: {error}",
    "confidence": "confidence (%)",
    "share_right": "predictions that held (%)",
    "well_calibrated": "as often as you said",
    "right_of": "{right} of {asked}",
    "calibration_alt": "Share of predictions that held against confidence. {points}.",
    "calibration_point": "at {confidence} % sure {right} of {asked}",
    "no_font": "□: no installed font has {missing}. Debian, Ubuntu, Colab: apt install "
    "fonts-noto-cjk fonts-noto-core, then restart the kernel",
}


def described(title: str, sentences: list[Sentence], alt: str) -> str:
    """The text alternative: the title, what is drawn, and what the caller says is to be seen."""
    heading = say(WORDS["titled"], title=title) if title else ""
    return " ".join(str(part) for part in (heading, *sentences, alt))
