"""Pictures of a whole model: the entropy of its heads, the gradients of its layers."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

from attn_course.plots.fonts import family_for, laid_out, note_missing
from attn_course.plots.maps import as_array, heat_map
from attn_course.plots.picture import COLOURS, MARKERS, Picture, new_figure, style
from attn_course.plots.words import WORDS, described
from attn_course.sentences import say


def entropy_by_head(weights: Sequence[Any], *, title: str = "", alt: str = "") -> Picture:
    """Draw how widely each head of each layer spreads its attention.

    weights: for each layer a tensor (b, h, i, j) or (h, i, j), all with the
    same number of heads. A cell is the mean over batch and queries of the
    entropy −Σ p log p in nats; the colours reach from 0 (one key takes all) to
    log n_key (all alike).

    Raises:
        ValueError: if there is no layer, or the layers do not fit together.
    """
    # here, so that drawing alone does not load torch
    import torch

    from attn_course.attention import attention_entropy

    layers = [torch.as_tensor(layer).detach() for layer in weights]
    shapes = [tuple(layer.shape) for layer in layers]
    if not layers or any(len(s) not in (3, 4) or s[-3] != shapes[0][-3] for s in shapes):
        raise ValueError(
            say(
                "need weights ((b,) h, i, j) with one h for all layers, got {shapes}", shapes=shapes
            )
        )
    rows = []
    for layer in layers:
        entropy = attention_entropy(layer.double())
        rows.append(entropy.reshape(-1, *entropy.shape[-2:]).mean(dim=(0, 2)))
    return heat_map(
        torch.stack(rows),
        row_axis=say(WORDS["layer_axis"]),
        column_axis=say(WORDS["head_axis"]),
        value=say(WORDS["entropy"]),
        limits=(0.0, max(log(max(shape[-1] for shape in shapes)), 1e-9)),
        title=title,
        alt=alt,
    )


def gradient_norms(model: Any) -> dict[str, float]:
    """Return the norm of the gradient of each layer of `model`, in the order of its parameters.

    A layer is a numbered part (`blocks.3`) or else a direct child (`embedding`).

    Raises:
        ValueError: if no parameter has a gradient: call `loss.backward()` first.
    """
    squares: dict[str, float] = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            layer = _layer_of(name)
            squares[layer] = squares.get(layer, 0.0) + float(parameter.grad.double().square().sum())
    if not squares:
        raise ValueError(say("no parameter has a gradient: call loss.backward() first"))
    return {layer: square**0.5 for layer, square in squares.items()}


def gradient_flow(
    models: Mapping[str, Any], *, log_scale: bool = True, title: str = "", alt: str = ""
) -> Picture:
    """Draw the gradient norm of each layer, one line for each model.

    models: models after `loss.backward()`, or what `gradient_norms` returned
    for them, under the names that the legend shows; all with the same layers.

    Raises:
        ValueError: if there is no model, one has no gradients, or their layers differ.
    """
    norms = {
        name: dict(model) if isinstance(model, Mapping) else gradient_norms(model)
        for name, model in models.items()
    }
    if not norms:
        raise ValueError(say("models is empty: there is nothing to draw"))
    x_label, y_label = say(WORDS["layer_axis"]), say(WORDS["gradient_norm"])
    layers = list(next(iter(norms.values())))
    for name, by_layer in norms.items():
        if list(by_layer) != layers:
            differ = say(
                "the layers of {name!r} are {got}, not {expected}",
                name=name,
                got=list(by_layer),
                expected=layers,
            )
            raise ValueError(differ)
    with style():
        figure = new_figure(min(max(3.5, 0.5 * len(layers) + 2), 9.0), 3.8)
        axes = figure.add_subplot()
        for number, (name, by_layer) in enumerate(norms.items()):
            axes.plot(
                range(len(layers)),
                as_array(list(by_layer.values()), ndim=1),
                color=COLOURS[number % len(COLOURS)],
                marker=MARKERS[number % len(MARKERS)],
                label=laid_out(name),
            )
        axes.set_xticks(range(len(layers)), layers, rotation=90)
        axes.set(xlabel=str(x_label), ylabel=str(y_label))
        axes.set_yscale("log" if log_scale else "linear")
        axes.set_title(laid_out(title), family=family_for([title]))
        if len(norms) > 1:
            axes.legend(frameon=False, prop={"family": family_for(norms)})
        note_missing(figure, [*norms, title])
    names = ", ".join(norms)
    told = [say(WORDS["lines_alt"], y_label=y_label, x_label=x_label, names=names)]
    if log_scale:
        told.append(say(WORDS["lines_alt_log"], axis=y_label))
    return Picture(figure, described(title, told, alt))


def _layer_of(name: str) -> str:
    parts = name.split(".")
    numbered = next((place for place, part in enumerate(parts) if part.isdecimal()), 0)
    return ".".join(parts[: numbered + 1])
