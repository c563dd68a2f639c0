"""Pictures with words: heat maps, curves and views with sliders, without pyplot."""

from attn_course.plots.calibration import calibration_plot
from attn_course.plots.curves import learning_curves, line_plot
from attn_course.plots.live import Choices, LiveFigure, Slider, live_figure, live_figures
from attn_course.plots.maps import draw_map, head_maps, heat_map
from attn_course.plots.model import entropy_by_head, gradient_flow, gradient_norms
from attn_course.plots.picture import Picture
from attn_course.plots.words import WORDS

__all__ = [
    "WORDS",
    "Choices",
    "LiveFigure",
    "Picture",
    "Slider",
    "calibration_plot",
    "draw_map",
    "entropy_by_head",
    "gradient_flow",
    "gradient_norms",
    "head_maps",
    "heat_map",
    "learning_curves",
    "line_plot",
    "live_figure",
    "live_figures",
]
