"""Chapter 00: the softmax and the descent with sliders, and three spirals to tell apart."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from torch import Tensor, nn

from attn_course.experiments.devices import device_of
from attn_course.plots import LiveFigure, Picture, Slider, live_figure
from attn_course.plots.picture import COLOURS, MARKERS, new_figure, style
from attn_course.sentences import Sentence, joined, say, spoken

WORDS = {
    "class": "class",
    "class_number": "class {number}",
    "logit": "logit",
    "probability": "probability",
    "logit_of_last": "logit of class 2",
    "temperature": "temperature",
    "softmax_alt": "Two bar charts, side by side: three logits, and the probabilities that "
    "their softmax gives at this temperature.",
    "softmax_told": "Class {best} is the likeliest; its probability is about {largest:.1f}.",
    "rate": "learning rate",
    "x": "x",
    "loss": "loss (x − 3)²",
    "step": "step",
    "distance": "distance from 3",
    "descent_alt": "Left: the parabola (x − 3)² with the points that gradient descent visits "
    "from x = 0. Right: the distance from 3 after each step, on a logarithmic scale.",
    "steady": "It comes nearer from one side.",
    "one_step": "It arrives in one step.",
    "overshoots": "It overshoots each time and still comes nearer.",
    "bounces": "It bounces between two points for ever.",
    "diverges": "Each step leads farther away.",
    "first_axis": "first coordinate",
    "second_axis": "second coordinate",
    "spirals_alt": "{count} points of {classes} spirals in the plane.",
    "regions_alt": "Behind them, in lighter colours, the regions in which the model decides for "
    "each class.",
}
"""All words on these pictures, as constants for the door."""

LOWEST, START, DESCENT_STEPS = 3.0, 0.0, 20
"""Where (x − 3)² is smallest, where the descent begins, and how many steps it takes."""


def spirals(
    n_per_class: int, *, classes: int = 3, noise: float = 0.15, seed: int = 0
) -> tuple[Float[Tensor, "n 2"], Int[Tensor, " n"]]:
    """Draw points on interleaved spiral arms, and the number of each point's arm.

    Along an arm the radius grows from 0.1 to 1 and the angle by 4 radians; `noise` is the
    standard deviation of the angle, in radians. The arms are the same turned by 1/classes of
    a circle, so no straight line separates them. Points come in random order.

    Raises:
        ValueError: for fewer than two classes, one point a class, or a negative noise.
    """
    if classes < 2 or n_per_class < 1 or noise < 0:
        raise ValueError(
            "need classes >= 2, n_per_class >= 1 and noise >= 0, got "
            f"classes={classes}, n_per_class={n_per_class}, noise={noise}"
        )
    rng = torch.Generator().manual_seed(seed)
    targets = torch.arange(classes).repeat_interleave(n_per_class)
    along = torch.rand(len(targets), generator=rng)
    radius = 0.1 + 0.9 * along
    angle = 4 * along + 2 * torch.pi * targets / classes
    angle = angle + noise * torch.randn(len(targets), generator=rng)
    points = radius[:, None] * torch.stack([angle.cos(), angle.sin()], dim=1)
    order = torch.randperm(len(targets), generator=rng)
    return points[order], targets[order]


def spirals_picture(
    points: Float[Tensor, "n 2"], targets: Int[Tensor, " n"], model: nn.Module | None = None
) -> Picture:
    """Draw the points, each class with a colour and a marker of its own.

    With a `model`, a function from points (n, 2) to logits (n, classes) on any device, the
    plane behind them shows which class it decides for.
    """
    classes = int(targets.max()) + 1
    with style():
        figure = new_figure(4.6, 4.4)
        axes = figure.add_subplot()
        if model is not None:
            _draw_regions(axes, model, classes)
        for number in range(classes):
            x, y = points[targets == number].cpu().numpy().T
            axes.scatter(
                x,
                y,
                s=16,
                color=COLOURS[number],
                marker=MARKERS[number],
                edgecolors="white",
                linewidths=0.4,
                label=str(say(WORDS["class_number"], number=number)),
            )
        axes.set(xlabel=spoken(WORDS["first_axis"]), ylabel=spoken(WORDS["second_axis"]))
        axes.set_aspect("equal")
        axes.legend(loc="upper right", fontsize=8)
    told = [say(WORDS["spirals_alt"], count=len(points), classes=classes)]
    if model is not None:
        told.append(say(WORDS["regions_alt"]))
    return Picture(figure, spoken(joined(told)))


def softmax_view() -> LiveFigure:
    """Three logits, 0, 1 and one on a slider, and their softmax at a temperature on another."""
    return live_figure(
        _draw_softmax,
        alt=say(WORDS["softmax_alt"]),
        size=(7.0, 3.0),
        panels=2,
        logit=Slider(say(WORDS["logit_of_last"]), -4.0, 6.0, start=2.0, step=0.1),
        temperature=Slider(say(WORDS["temperature"]), 0.1, 5.0, start=1.0, step=0.1),
    )


def descent_view() -> LiveFigure:
    """Gradient descent on (x − 3)² from x = 0, its learning rate on a slider."""
    return live_figure(
        _draw_descent,
        alt=say(WORDS["descent_alt"]),
        size=(7.6, 3.2),
        panels=2,
        rate=Slider(say(WORDS["rate"]), 0.02, 1.1, start=0.1, step=0.02),
    )


def descent(rate: float, steps: int = DESCENT_STEPS) -> Float[np.ndarray, " n"]:
    """Return the steps + 1 points that gradient descent on (x − 3)² visits, from 0 on."""
    visited = [START]
    for _ in range(steps):
        visited.append(visited[-1] - rate * 2 * (visited[-1] - LOWEST))
    return np.array(visited)


def _draw_softmax(left: Axes, right: Axes) -> Callable[..., Sentence]:
    names = ["0", "1", "2"]
    logit_bars = left.bar(names, [0.0] * 3, color=COLOURS[:3])
    left.axhline(0, color="black", linewidth=0.8)
    left.set(xlabel=spoken(WORDS["class"]), ylabel=spoken(WORDS["logit"]), ylim=(-4.5, 6.5))
    bars = right.bar(names, [0.0] * 3, color=COLOURS[:3])
    right.set(xlabel=spoken(WORDS["class"]), ylabel=spoken(WORDS["probability"]), ylim=(0, 1))

    def update(logit: float, temperature: float) -> Sentence:
        logits = torch.tensor([0.0, 1.0, logit], dtype=torch.float64)
        probs = (logits / temperature).softmax(dim=-1).tolist()
        for bar, height in zip([*logit_bars, *bars], [*logits.tolist(), *probs], strict=True):
            bar.set_height(height)
        return say(WORDS["softmax_told"], best=int(np.argmax(probs)), largest=max(probs))

    return update


def _draw_descent(left: Axes, right: Axes) -> Callable[..., Sentence]:
    around = np.linspace(-3, 9, 121)
    left.plot(around, (around - LOWEST) ** 2, color="0.6", linewidth=1.2)
    (path,) = left.plot([], [], "o-", color=COLOURS[1], markersize=4, linewidth=0.8)
    left.set(xlabel=spoken(WORDS["x"]), ylabel=spoken(WORDS["loss"]), xlim=(-3, 9), ylim=(-1, 36))
    steps = np.arange(DESCENT_STEPS + 1)
    (distances,) = right.plot(steps, steps, "o-", color=COLOURS[0], markersize=4)
    right.set(xlabel=spoken(WORDS["step"]), ylabel=spoken(WORDS["distance"]))
    right.set(yscale="log", ylim=(1e-4, 1e3))

    def update(rate: float) -> Sentence:
        visited = descent(rate)
        path.set_data(visited, (visited - LOWEST) ** 2)
        distances.set_ydata(np.maximum(abs(visited - LOWEST), 1e-4))
        return say(WORDS[_behaviour(rate)])

    return update


def _behaviour(rate: float) -> str:
    """What the factor 1 − 2·rate does to the distance, a slider's rounding allowed for."""
    factor = 1 - 2 * rate
    if abs(factor) < 1e-6:
        return "one_step"
    if abs(factor + 1) < 1e-6:
        return "bounces"
    return "steady" if factor > 0 else "overshoots" if factor > -1 else "diverges"


def _draw_regions(axes: Axes, model: nn.Module, classes: int) -> None:
    line = torch.linspace(-1.3, 1.3, 160)
    plane = torch.cartesian_prod(line, line)
    with torch.no_grad():
        chosen = model(plane.to(device_of(model))).argmax(dim=-1).cpu().numpy()
    axes.imshow(
        chosen.reshape(160, 160).T,
        origin="lower",
        extent=(-1.3, 1.3, -1.3, 1.3),
        cmap=ListedColormap(COLOURS[:classes]),
        vmin=-0.5,
        vmax=classes - 0.5,
        alpha=0.3,
    )
