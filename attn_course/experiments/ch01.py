"""Chapter 01: how far back a gradient reaches, and how many steps must wait for each other."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor, nn

from attn_course.attention import additive_attention
from attn_course.device import device_reasons, pick_device
from attn_course.experiments.devices import wait_for
from attn_course.plots import LiveFigure, Slider, live_figure
from attn_course.plots.picture import COLOURS
from attn_course.recurrent import gradient_by_distance, run_rnn
from attn_course.sentences import Sentence, say, spoken
from attn_course.training import torch_threads

Run = Callable[[Tensor], Tensor]

# -- how far back a gradient reaches ----------------------------------------------------------


def fresh_readers(d: int, seed: int) -> dict[str, Run]:
    """Return three untrained readers of width d: what each makes of inputs (b, n, d).

    The vanilla RNN and the GRU are PyTorch's, as PyTorch starts them. "attention" is the last
    position alone looking back at all n inputs by additive attention, with weights of variance
    1/d; its only output is (b, 1, d).
    """
    device = pick_device()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        rnn, gru = (kind(d, d, batch_first=True).to(device) for kind in (nn.RNN, nn.GRU))
        shapes = ((d, d), (d, d), (d,))
        W_q, W_k, w = ((torch.randn(*shape) * d**-0.5).to(device) for shape in shapes)
    return {
        "vanilla RNN": lambda x: rnn(x)[0],
        "GRU": lambda x: gru(x)[0],
        "attention": lambda x: additive_attention(x[:, -1:], x, x, W_q, W_k, w)[0],
    }


def gradient_curves(
    n: int, d: int, *, seeds: Sequence[int], batch: int = 32
) -> dict[str, Float[Tensor, "seeds n"]]:
    """Return `gradient_by_distance` of each fresh reader, one row a seed, on random inputs."""
    rows: dict[str, list[Tensor]] = {}
    for seed in seeds:
        inputs = torch.randn(batch, n, d, generator=torch.Generator().manual_seed(seed))
        inputs = inputs.to(pick_device())
        for name, run in fresh_readers(d, seed).items():
            rows.setdefault(name, []).append(gradient_by_distance(run, inputs).cpu())
    return {name: torch.stack(curves) for name, curves in rows.items()}


def memory_view(n: int = 40, d: int = 32) -> LiveFigure:
    """Return the view in which the learner sets the size of W_h and of the inputs.

    W_h is a random rotation times the gain, so that a step without tanh would lengthen or
    shorten every vector by exactly that factor.
    """
    return live_figure(
        partial(_draw_memory, n, d),
        alt=say(
            "The gradient of the last state by distance on a logarithmic scale, and beside it "
            "the gain to the power of the distance as a straight line."
        ),
        size=(6.6, 3.8),
        gain=Slider(say("gain of W_h"), 0.5, 1.5, start=0.9, step=0.05),
        drive=Slider(say("size of the inputs"), 0.0, 2.0, start=0.0, step=0.1),
    )


def _draw_memory(n: int, d: int, axes: Axes):
    generator = torch.Generator().manual_seed(0)
    rotation = torch.linalg.qr(torch.randn(d, d, generator=generator)).Q
    W_x = torch.randn(d, d, generator=generator) * d**-0.5
    inputs = torch.randn(16, n, d, generator=generator)
    b, h0 = torch.zeros(d), torch.zeros(16, d)
    distances = range(n)
    (measured,) = axes.plot(distances, [1.0] * n, "o-", color=COLOURS[0], markersize=4)
    (power,) = axes.plot(distances, [1.0] * n, "--", color=COLOURS[1])
    measured.set_label(spoken("measured"))
    power.set_label(spoken("gain to the power of the distance"))
    axes.set(yscale="log", ylim=(1e-13, 1e9))
    axes.set(xlabel=spoken("distance"), ylabel=spoken("gradient (1 at distance 0)"))
    axes.legend(frameon=False, loc="upper left")

    def update(gain: float, drive: float) -> Sentence:
        curve = gradient_by_distance(
            lambda x: run_rnn(x, h0, W_x, gain * rotation, b), drive * inputs
        )
        shares = (curve / curve[0]).clamp(min=1e-30)  # a logarithm cannot show an exact 0
        measured.set_ydata(shares.tolist())
        power.set_ydata([gain**k for k in distances])
        exponent = round(shares[-1].log10().item())
        return say(
            "At distance {distance} the gradient is about 10^{exponent} of that at distance 0.",
            distance=n - 1,
            exponent=exponent,
        )

    return update


# -- steps that must wait ---------------------------------------------------------------------


def longest_chain(output: Tensor) -> int:
    """Return how many operations lie one behind the other on the way to `output`.

    Each of them needs the result of the one before, so no machine can do them at the same
    time. Counted in torch's graph of the computation, along its longest path.

    Raises ValueError if `output` has no such graph.
    """
    if output.grad_fn is None:
        raise ValueError("output was computed without a graph: its inputs want no gradient")
    depth: dict[object, int] = {}
    waiting = [output.grad_fn]
    while waiting:
        node = waiting[-1]
        before = [other for other, _ in node.next_functions if other is not None]
        unknown = [other for other in before if other not in depth]
        if unknown:
            waiting += unknown
        else:
            depth[waiting.pop()] = 1 + max((depth[other] for other in before), default=0)
    return depth[output.grad_fn]


def rival_layers(d: int, device: torch.device | str = "cpu") -> dict[str, Run]:
    """Return PyTorch's own recurrent layer and its own attention layer, both of width d."""
    gru = nn.GRU(d, d, batch_first=True).to(device)
    attention = nn.MultiheadAttention(d, num_heads=1, batch_first=True).to(device)
    return {
        "recurrent (nn.GRU)": lambda x: gru(x)[0],
        "attention (nn.MultiheadAttention)": lambda x: attention(x, x, x, need_weights=False)[0],
    }


def forward_milliseconds(run: Run, x: Tensor, repeats: int = 5) -> float:
    """Return the shortest time of `run(x)` on one thread, without gradients, in milliseconds."""
    with torch.no_grad():
        return _shortest(lambda: run(x), x.device, repeats)


def step_milliseconds(
    sizes: Sequence[tuple[int, int]], batch_size: int = 8, repeats: int = 3
) -> dict[str, list[float]]:
    """Return for each device that exists here the time of attention forward and backward.

    sizes: pairs (n, d) of a sequence's length and the layer's width; one time for each. The CPU
        computes on one thread.
    """
    found: dict[str, list[float]] = {}
    for name in (name for name, reason in device_reasons().items() if reason is None):
        found[name] = []
        for n, d in sizes:
            layer = nn.MultiheadAttention(d, num_heads=1, batch_first=True).to(name)
            x = torch.randn(batch_size, n, d).to(name)
            step = partial(_forward_and_backward, layer, x)
            found[name].append(_shortest(step, x.device, repeats))
    return found


def _forward_and_backward(layer: nn.MultiheadAttention, x: Tensor) -> None:
    layer(x, x, x, need_weights=False)[0].sum().backward()


def _shortest(run: Callable[[], object], device: torch.device, repeats: int) -> float:
    """The shortest of several times in milliseconds: what else the machine does only adds to it."""
    times = []
    with torch_threads(1):
        for _ in range(1 + repeats):
            start = time.perf_counter()
            run()
            wait_for(device)
            times.append(time.perf_counter() - start)
    return 1e3 * min(times[1:])  # the first call also sets things up
