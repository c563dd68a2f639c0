"""Chapter 05's views: what attention holds in memory, and the learner's own module explored."""

from collections.abc import Callable
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

from attn_course.experiments.own_code import MODULE, Words, shown_or_told, told
from attn_course.memory import AttentionMemory, attention_memory
from attn_course.multihead import MultiHeadAttention
from attn_course.plots import Choices, LiveFigure, live_figure
from attn_course.plots.picture import COLOURS
from attn_course.sentences import Sentence, say, spoken

D_MODEL = 512
HEADS = [1, 2, 4, 8, 16, 32]
LENGTHS = [64, 128, 256, 512, 1024, 2048, 4096]
ROLES = ("W_q", "W_k", "W_v", "W_o")
PARTS = ("parameters", "projected", "merged", "weights")
_KERNELS = {"built": say("built"), "never_built": say("never built")}

Account = Callable[[int, int, int], Any]


def memory_view() -> LiveFigure:
    """Return the view of what attention holds in memory, by heads, length and kernel."""
    return live_figure(
        _draw_memory,
        alt=say(
            "Four bars on a logarithmic scale: the bytes of parameters, of queries, keys and "
            "values, of the merged heads, and of the weights. Only the last changes with the "
            "number of heads, and it grows fastest with the length."
        ),
        size=(7.0, 3.6),
        heads=Choices(say("heads"), HEADS, start=8),
        n=Choices("n", LENGTHS, start=512),
        weights=Choices(say("weights"), list(_KERNELS), start="built", names=_KERNELS),
    )


def own_memory_view(account: Account) -> LiveFigure:
    """Return the same view with the learner's own account as bars, the course's as circles.

    account: called as account(d_model, num_heads, n). Give a lambda that looks the learner's
        function up by its name, and the view follows each new version of it. What it raises
        or gets wrong is said under the picture, and never raised.
    """
    return live_figure(
        lambda axes: _draw_own(account, axes),
        alt=say(
            "Bars: the bytes that your function gives for parameters, queries, keys and values, "
            "merged heads, and weights. Circles: those of the course."
        ),
        size=(7.0, 3.6),
        heads=Choices(say("heads"), HEADS, start=8),
        n=Choices("n", LENGTHS, start=512),
    )


def own_heads_explorer(make: Callable[[int, int], nn.Module], num_heads: int = 4) -> Any:
    """Return HeadsExplorer on a module of the learner's, or words on why there is none yet.

    The view computes with the module's weights; so it is shown only if the module itself does with
    them what the view says.

    make: called as make(d_model, num_heads).
    """
    from attn_course.explorers import HeadsExplorer

    def explore() -> Any:
        x = torch.randn(8, 24, generator=torch.Generator().manual_seed(0))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            module = make(24, num_heads)
        view = HeadsExplorer(module, x, [str(say("token {place}", place=j)) for j in range(8)])
        apart = _from_its_weights(module, x[None])
        if apart < 1e-4:
            return view
        differs = say(
            "The view shows what heads with your module's weights should do. Your module itself "
            "differs from that by up to {apart:.2g}. The check above names the cause.",
            apart=apart,
        )
        return Words(differs)

    return shown_or_told(explore, MODULE)


def _from_its_weights(module: nn.Module, x: Tensor) -> float:
    """How far a module's output and weights are from those of the course's with its weights."""
    course = MultiHeadAttention(x.shape[-1], module.num_heads)  # pyright: ignore[reportArgumentType]
    for role in ROLES:
        course.get_submodule(role).load_state_dict(module.get_submodule(role).state_dict())
    with torch.no_grad():
        return _apart(module(x, x, x), course(x, x, x))


def _apart(found: Any, expected: tuple[Tensor, Tensor]) -> float:
    """The largest difference between two pairs (output, weights).

    Raises:
        TypeError: if `found` is no such pair.
        ValueError: for other shapes.
    """
    if not isinstance(found, tuple | list) or len(found) != 2:
        wrong = say(
            "forward should return the pair (output, weights), it returned a {kind}",
            kind=type(found).__name__,
        )
        raise TypeError(wrong)
    for name, one, other in zip(("output", "weights"), found, expected, strict=True):
        if one.shape != other.shape:
            wrong = say(
                "{name}: shape {got}, expected {expected}",
                name=name,
                got=tuple(one.shape),
                expected=tuple(other.shape),
            )
            raise ValueError(wrong)
    return max(float((f - e).abs().max()) for f, e in zip(found, expected, strict=True))


def compared_with_torch(make: Callable[[int, int], nn.Module]) -> Words:
    """Say how far a module is from `nn.MultiheadAttention` with the same weights.

    make: called as make(d_model, num_heads); its W_q, W_k, W_v and W_o get PyTorch's weights.
    """

    def compare() -> Words:
        rng = torch.Generator().manual_seed(0)
        query, key, value = (torch.randn(2, n, 24, generator=rng) for n in (3, 5, 5))
        mask = torch.rand(3, 5, generator=rng) < 0.6
        mask[:, 0] = True
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(0)
            theirs, yours = nn.MultiheadAttention(24, 4, batch_first=True), make(24, 4)
            _copy_by_role(yours, theirs)
            # there True hides, and the weights are averaged unless it is told otherwise
            expected = theirs(query, key, value, attn_mask=~mask, average_attn_weights=False)
            found = yours(query, key, value, mask)
        apart = _apart(found, expected)
        if apart < 1e-5:
            return Words(say("With its weights, your module agrees with nn.MultiheadAttention."))
        return Words(
            say("With its weights, your module differs by up to {apart:.2g}.", apart=apart)
        )

    return shown_or_told(compare, MODULE)


def _copy_by_role(yours: nn.Module, theirs: nn.MultiheadAttention) -> None:
    """Copy PyTorch's weights, of which three matrices are stored as one, into the four parts."""
    weights = [*theirs.in_proj_weight.chunk(3), theirs.out_proj.weight]
    biases = [*theirs.in_proj_bias.chunk(3), theirs.out_proj.bias]
    for role, weight, bias in zip(ROLES, weights, biases, strict=True):
        linear = yours.get_submodule(role)
        linear.load_state_dict({"weight": weight, "bias": bias})


def _draw_memory(axes: Axes):
    bars = _empty_bars(axes)

    def update(heads: int, n: int, weights: str) -> Sentence:
        found = attention_memory(D_MODEL, heads, n, fused=weights == "never_built")
        _set_heights(bars, found)
        return say(
            "{heads} heads of {d_k} features, n = {n}: activations {activations:.1f} MiB, "
            "{share:.0%} of them attention weights.",
            heads=heads,
            d_k=D_MODEL // heads,
            n=n,
            activations=found.activations / 2**20,
            share=found.weights / found.activations,
        )

    return update


def _draw_own(account: Account, axes: Axes):
    bars = _empty_bars(axes)
    bars.set_label(spoken("yours"))
    (circles,) = axes.plot(range(len(PARTS)), [1.0] * len(PARTS), "o", mfc="none", color=COLOURS[1])
    circles.set_label(spoken("course's"))
    axes.legend(frameon=False)

    def update(heads: int, n: int) -> Sentence:
        expected = attention_memory(D_MODEL, heads, n)
        circles.set_ydata([getattr(expected, part) for part in PARTS])
        for bar in bars:
            bar.set_height(0.0)
        try:
            found = account(D_MODEL, heads, n)
            numbers = {part: float(getattr(found, part)) for part in PARTS}
        except Exception as error:  # the learner's code may raise anything, and sees it here
            if isinstance(error, AttributeError):
                return say(
                    "Your function must return an AttentionMemory with four numbers. {error}.",
                    error=str(error),
                )
            return told(error)
        for bar, part in zip(bars, PARTS, strict=True):
            bar.set_height(max(numbers[part], 0.0))
        wrong = [part for part in PARTS if numbers[part] != getattr(expected, part)]
        if wrong:
            return say("Yours differs from the course's in: {parts}.", parts=", ".join(wrong))
        return say(
            "Yours agrees with the course's: weights {weights:.1f} MiB.",
            weights=expected.weights / 2**20,
        )

    return update


def _empty_bars(axes: Axes) -> Any:
    axes.set_yscale("log")
    axes.set(ylim=(1e4, 1e10), ylabel=spoken("bytes"))
    return axes.bar(PARTS, [1.0] * len(PARTS), color=COLOURS[0])


def _set_heights(bars: Any, found: AttentionMemory) -> None:
    for bar, part in zip(bars, PARTS, strict=True):
        bar.set_height(getattr(found, part))
