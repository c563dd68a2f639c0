"""Chapter 01: copying a sequence through one fixed state, against looking back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from torch import Tensor, nn

from attn_course.device import pick_device
from attn_course.experiments.devices import seeded
from attn_course.plots import LiveFigure, Slider, draw_map, live_figure
from attn_course.plots.picture import COLOURS
from attn_course.recurrent import RecurrentSeq2Seq, gradient_by_distance
from attn_course.sentences import Sentence, say, spoken
from attn_course.tasks import START, Batch, Task, copy_task, shift_right
from attn_course.training import History, StepInfo, fit, torch_threads
from attn_course.training.progress_bar import training_bar

_NAMES = {False: say("fixed state"), True: say("attention")}
_HEADINGS = (
    say("N"),
    say("model"),
    say("parameters"),
    say("steps"),
    say("CPU-s"),
    say("told"),
    say("alone"),
)
_WIDTHS = (2, 11, 10, 5, 5, 5, 5)  # of the table's columns; a longer heading widens its own
_SIDES = "><>>>>>"  # numbers end below each other, names begin so


@dataclass(frozen=True)
class CopySettings:
    """What both models are given alike, and the widths that give them equally many parameters.

    The learning rate is the one, of 3e-3, 1e-2 and 2e-2, at which the model *without* attention
    did best at N = 8, so that the baseline is not beaten by a bad setting.
    """

    num_symbols: int = 8
    steps: int = 300
    batch_size: int = 32
    lr: float = 1e-2
    warmup: int = 20
    width_fixed: int = 50
    width_attention: int = 48
    d_attention: int = 16
    test_size: int = 256


@dataclass(frozen=True)
class CopyRun:
    """A trained copier and what it does on sequences that training never drew.

    Attributes:
        n: the number of symbols.
        attention: whether the decoder looks back.
        seed: of the weights and of the task.
        settings: the budget and the widths.
        model: the trained model.
        history: what was measured during training.
        test: the test sequences.
        told: share of right symbols by position (n,) when the true symbols before it are given.
        alone: the same when the model reads back what it has written itself.
        alignment: where it looked, (b, n, n), told what came before; None without attention.
    """

    n: int
    attention: bool
    seed: int
    settings: CopySettings
    model: RecurrentSeq2Seq
    history: History
    test: Batch
    told: Float[Tensor, " n"]
    alone: Float[Tensor, " n"]
    alignment: Float[Tensor, "b n n"] | None

    @property
    def parameters(self) -> int:
        """How many numbers were trained."""
        return sum(parameter.numel() for parameter in self.model.parameters())


def train_copier(
    n: int,
    *,
    attention: bool,
    seed: int = 0,
    settings: CopySettings | None = None,
    label: str | None = None,
    on_step: Callable[[StepInfo], None] | None = None,
) -> CopyRun:
    """Train a GRU encoder and decoder to write n symbols down again, and test it.

    With attention the decoder looks back at all encoder states (additive attention); without
    it, all it has of the sequence is the encoder's last state. For one seed both see the same
    batches. The progress bar says `label`; an empty one draws none.
    """
    settings = settings or CopySettings()
    task = copy_task(n, settings.num_symbols, seed=seed)
    model = _fresh_model(task, attention, seed, settings)
    history = fit(
        model,
        _loss,
        task.batches(settings.batch_size, pick_device()),
        steps=settings.steps,
        lr=settings.lr,
        warmup=settings.warmup,
        on_step=on_step,
        label=spoken("copying") if label is None else label,
    )
    test = task.test_set(settings.test_size, pick_device())
    with torch.no_grad(), torch_threads(1):
        logits, alignment = model(test.inputs, shift_right(test.targets))
        written, _ = model.generate(test.inputs, n, START)
    told, alone = (
        (symbols == test.targets).float().mean(dim=0).cpu()
        for symbols in (logits.argmax(-1), written)
    )
    return CopyRun(n, attention, seed, settings, model, history, test, told, alone, alignment)


def compare_copiers(
    lengths: Sequence[int], seeds: Sequence[int], settings: CopySettings | None = None
) -> list[CopyRun]:
    """Train both models at each length and seed, under one progress bar.

    Raises KeyboardInterrupt when a run is stopped: half a comparison says nothing.
    """
    settings = settings or CopySettings()
    plan = [(n, attention, seed) for n in lengths for attention in (False, True) for seed in seeds]
    runs = []
    label = spoken(say("{n} runs", n=len(plan)))
    with training_bar(label, len(plan) * settings.steps, None) as bar:

        def advance(info: StepInfo) -> None:
            bar.update(1)

        for n, attention, seed in plan:
            run = train_copier(
                n, attention=attention, seed=seed, settings=settings, label="", on_step=advance
            )
            if run.history.stopped == "interrupted":
                raise KeyboardInterrupt
            runs.append(run)
    return runs


def accuracy_by_length(
    runs: Sequence[CopyRun], *, attention: bool, told: bool
) -> Float[Tensor, "seeds lengths"]:
    """Return the share of right symbols, one row a seed, one column a length, as trained."""
    chosen = [run for run in runs if run.attention == attention]
    lengths = list(dict.fromkeys(run.n for run in chosen))
    seeds = list(dict.fromkeys(run.seed for run in chosen))
    found = {(r.n, r.seed): (r.told if told else r.alone).mean() for r in chosen}
    return torch.stack([torch.stack([found[n, seed] for n in lengths]) for seed in seeds])


def accuracy_by_position(
    runs: Sequence[CopyRun], n: int, *, attention: bool, told: bool
) -> Float[Tensor, "seeds n"]:
    """Return the share of right symbols at each of the n positions, one row a seed."""
    chosen = [run for run in runs if run.attention == attention and run.n == n]
    return torch.stack([run.told if told else run.alone for run in chosen])


def comparison_table(runs: Sequence[CopyRun]) -> str:
    """Return one line for each length, model and number of steps: what it took, what it reached.

    CPU-seconds and accuracies are means over the seeds.
    """
    rows = [tuple(map(spoken, _HEADINGS))]
    for key in dict.fromkeys(map(_row, runs)):
        n, attention, steps = key
        group = [run for run in runs if _row(run) == key]
        seconds = sum(run.history.seconds[-1] for run in group) / len(group)
        told = torch.stack([run.told for run in group]).mean()
        alone = torch.stack([run.alone for run in group]).mean()
        counts = (str(n), spoken(_NAMES[attention]), str(group[0].parameters), str(steps))
        rows.append((*counts, f"{seconds:.1f}", f"{told:.3f}", f"{alone:.3f}"))
    return _in_columns(rows)


def _in_columns(rows: Sequence[tuple[str, ...]]) -> str:
    """The rows as lines, each column as wide as its widest cell."""
    columns = zip(*rows, strict=True)
    widths = [max(least, *map(len, cells)) for least, cells in zip(_WIDTHS, columns, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, _SIDES, widths, strict=True)
        lines.append("  ".join(f"{cell:{side}{width}}" for cell, side, width in cells))
    return "\n".join(lines)


def encoder_gradients(runs: Sequence[CopyRun], *, trained: bool) -> Float[Tensor, "seeds n"]:
    """Return `gradient_by_distance` of each run's encoder, after training or as it started.

    The inputs are the embedded test sequences.
    """
    curves = []
    for run in runs:
        model = run.model if trained else _as_started(run)
        inputs = model.source_embedding(run.test.inputs)
        curves.append(gradient_by_distance(lambda x, m=model: m.encoder(x)[0], inputs).cpu())
    return torch.stack(curves)


def kept_share(run: CopyRun, *, trained: bool) -> float:
    """Return the mean update gate of a run's encoder: the share of the old state that steps keep.

    Over the test sequences, after training or as it started. `nn.GRU` stores its gates in the
    order reset, update, new.
    """
    model = run.model if trained else _as_started(run)
    inputs = model.source_embedding(run.test.inputs)
    W_input, W_state, b_input, b_state = model.encoder.parameters()
    with torch.no_grad():
        before = F.pad(model.encoder(inputs)[0][:, :-1], (0, 0, 1, 0))  # the state before each step
        sums = F.linear(inputs, W_input, b_input) + F.linear(before, W_state, b_state)
    _, update, _ = sums.chunk(3, dim=-1)
    return update.sigmoid().mean().item()


def alignment_of(model: nn.Module, symbols: Int[Tensor, "1 n"]) -> list[Float[Tensor, "1 i j"]]:
    """Return what a copier looks at while it is told one sequence: one layer, one head."""
    _, alignment = model(symbols, shift_right(symbols))
    return [alignment]


def letters(symbols: Tensor) -> list[str]:
    """Return symbols 1, 2, 3, … as a, b, c, …; for pictures."""
    return [chr(ord("a") + symbol - 1) for symbol in symbols.tolist()]


def alignment_view(run: CopyRun, row: int = 0) -> LiveFigure:
    """Return the view of where the decoder looks, for one test sequence, position by position.

    Raises ValueError for a run without attention.
    """
    if run.alignment is None:
        raise ValueError("this run has no alignment: its model does not look back")
    symbols = letters(run.test.inputs[row])
    return live_figure(
        partial(_draw_alignment, run.alignment[row].cpu(), symbols),
        alt=say(
            "Left: the alignment as a map, rows written, columns read. Right: the row of the "
            "position that the slider chooses, as bars over the symbols read."
        ),
        size=(9.0, 4.2),
        panels=2,
        position=Slider(say("position that is written"), 0, run.n - 1, start=run.n // 2),
    )


def _draw_alignment(weights: Tensor, symbols: list[str], chart: Axes, bars: Axes):
    n = len(symbols)
    draw_map(chart, weights.numpy(), (0.0, 1.0), symbols, symbols)
    chart.set(xlabel=spoken("read"), ylabel=spoken("written"))
    (upper,) = chart.plot([-0.5, n - 0.5], [0, 0], color=COLOURS[1], linewidth=2)
    (lower,) = chart.plot([-0.5, n - 0.5], [0, 0], color=COLOURS[1], linewidth=2)
    drawn = bars.bar(range(n), [0.0] * n, color=COLOURS[0])
    bars.set(ylim=(0, 1), xlabel=spoken("read"), ylabel=spoken("weight"))
    bars.set_xticks(range(n), symbols)

    def update(position: int) -> Sentence:
        upper.set_ydata([position - 0.5] * 2)
        lower.set_ydata([position + 0.5] * 2)
        for bar, weight in zip(drawn, weights[position].tolist(), strict=True):
            bar.set_height(weight)
        best = int(weights[position].argmax())
        return say(
            "Writing position {position} it looks most at position {best}.",
            position=position,
            best=best,
        )

    return update


def _loss(model: RecurrentSeq2Seq, batch: Batch) -> Tensor:
    logits, _ = model(batch.inputs, shift_right(batch.targets))
    return F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())


def _row(run: CopyRun) -> tuple[int, bool, int]:
    return run.n, run.attention, run.history.steps


def _fresh_model(
    task: Task, attention: bool, seed: int, settings: CopySettings
) -> RecurrentSeq2Seq:
    width = settings.width_attention if attention else settings.width_fixed
    return seeded(
        seed,
        lambda: RecurrentSeq2Seq(
            task.vocab_size,
            task.num_classes,
            width,
            attention=attention,
            d_attention=settings.d_attention,
        ),
    )


def _as_started(run: CopyRun) -> RecurrentSeq2Seq:
    task = copy_task(run.n, run.settings.num_symbols, seed=run.seed)
    return _fresh_model(task, run.attention, run.seed, run.settings)
