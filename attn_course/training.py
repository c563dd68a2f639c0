"""One training loop for all experiments; it knows nothing about the model or the data."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from math import cos, inf, isfinite, pi
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from attn_course.checkpoints import load_checkpoint, save_checkpoint
from attn_course.training_guard import TrainingDiverged, deferred_interrupt, likely_reasons

__all__ = ["History", "StepInfo", "TrainingDiverged", "fit", "lr_factor", "torch_threads"]

Loss = Callable[[Any, Any], Tensor]
Batches = Callable[[int], Any] | Iterable[Any]
Evaluate = Callable[[Any], Mapping[str, float] | float]
Precision = Literal["float32", "bfloat16", "float16", "auto"]
Schedule = Literal["cosine", "constant"]


@dataclass
class History:
    """What a training run measured, as plain lists: entry k belongs to step k + 1.

    loss, lr, gradient_norm (before clipping) and seconds (CPU time of the
    process since the start) have one entry a step. `metrics[name][m]` was
    measured after `eval_steps[m]` steps. `stopped` says why the run ended:
    "finished", "interrupted" (Ctrl-C, the stop button) or "asked" (`on_step`).
    """

    loss: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    eval_steps: list[int] = field(default_factory=list)
    metrics: dict[str, list[float]] = field(default_factory=dict)
    stopped: str = ""

    @property
    def steps(self) -> int:
        """Return the number of steps taken."""
        return len(self.loss)

    def __repr__(self) -> str:
        """Name the shape of the run; figures differ between machines, so none stand here."""
        measured = f", measured: {', '.join(self.metrics)}" if self.metrics else ""
        return f"History({self.steps} steps, {self.stopped or 'running'}{measured})"


@dataclass(frozen=True)
class StepInfo:
    """What an observer is told after each step: `step` of about `total` are done.

    `metrics` is what was measured after this very step, if anything was;
    `history` and `model` are the live ones, to be read only.
    """

    step: int
    total: float
    metrics: Mapping[str, float] | None
    history: History
    model: nn.Module


def lr_factor(step: int, total: float, *, warmup: int = 0, schedule: Schedule = "cosine") -> float:
    """Return the share of the peak learning rate at `step` (from 0) of `total`.

    It rises linearly over the first `warmup` steps, from 1/warmup at step 0 to
    1 at step warmup - 1. Then "cosine" falls to 0 at `total` (Loshchilov and
    Hutter 2017, eq. 5), "constant" stays.
    """
    if schedule not in ("cosine", "constant"):
        raise ValueError(f"schedule={schedule!r} is neither 'cosine' nor 'constant'")
    if warmup < 0:
        raise ValueError(f"warmup={warmup} must not be negative")
    if step < warmup:
        return (step + 1) / warmup
    if schedule == "constant" or total <= warmup:
        return 1.0
    done = min((step - warmup) / (total - warmup), 1.0)
    return 0.5 * (1 + cos(pi * done))


@contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    """Run torch on `number` threads inside the block (None: leave them), as before after it.

    Small models on two busy threads are several times slower than on one.
    """
    if number is not None and number < 1:
        raise ValueError(f"threads={number} must be at least 1")
    before = torch.get_num_threads()
    torch.set_num_threads(before if number is None else number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def fit(
    model: nn.Module,
    loss: Loss,
    batches: Batches,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    lr: float = 1e-3,
    warmup: int = 0,
    schedule: Schedule = "cosine",
    weight_decay: float = 0.01,
    clip: float | None = 1.0,
    evaluate: Evaluate | None = None,
    eval_every: int | None = None,
    on_step: Callable[[StepInfo], bool | None] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 100,
    precision: Precision = "float32",
    threads: int | None = 1,
    label: str = "training",
) -> History:
    """Train `model` in place until the budget is spent, and return what was measured.

    loss: `loss(model, batch)`, one number that depends on the parameters.
    batches: `step -> batch` (steps count from 0), or an iterable, read again
        from its start when it ends.
    steps, seconds: the budget in steps, in CPU-seconds of this process, or
        both (what is spent first ends the run).
    lr, warmup, schedule: AdamW's peak rate and its course, see `lr_factor`.
    weight_decay: on matrices only, not on biases and gains.
    clip: the largest norm of the whole gradient (None: no clipping).
    evaluate: `evaluate(model)` in eval mode without gradients, every
        `eval_every` steps and at the end; one number or a mapping of them.
    on_step: an observer, called after each step; returning True ends the run.
    checkpoint: a file, written every `checkpoint_every` steps and at the end.
        If it exists the run goes on from it and gets the numbers that it would
        have got uninterrupted; delete it to start afresh.
    precision: "auto" computes in half precision where a GPU has it. It pays
        for large models; those of the course are too small to gain.
    threads: torch's threads during the run (None: leave them).
    label: the word before the progress bar, which is drawn in notebooks and
        terminals unless ATTN_COURSE_PROGRESS_BAR is 0.

    Ctrl-C, or the notebook's stop button, ends the run after the current step
    and keeps what was learnt.

    Raises:
        ValueError: for a budget, loss, batches or checkpoint that cannot be used.
        TrainingDiverged: when loss or gradient is not finite, before the
            weights are touched: the step and the likely reasons.
    """
    _check_settings(steps, seconds, lr, clip, eval_every, checkpoint_every)
    trainer = _Trainer(model, loss, lr, weight_decay, clip, precision)
    history = trainer.history
    if checkpoint is not None and Path(checkpoint).exists():
        trainer.resume(Path(checkpoint))
    clock = _Clock(steps, seconds, history)
    lr_factor(0, inf, warmup=warmup, schedule=schedule)  # a misspelt schedule: now, not later
    history.stopped = "finished" if clock.is_spent() else ""
    feed = _feed(batches, history.steps)
    mode, bar = model.training, _progress_bar(label, steps, seconds)
    with torch_threads(threads), bar, deferred_interrupt() as interrupted:
        try:
            while not history.stopped:
                total = clock.total_steps()
                factor = lr_factor(history.steps, total, warmup=warmup, schedule=schedule)
                trainer.step(next(feed), lr * factor, clock)
                spent = clock.is_spent()
                due = spent or (eval_every is not None and history.steps % eval_every == 0)
                metrics = trainer.evaluate(evaluate) if evaluate is not None and due else None
                bar.update(clock.position() - bar.n)
                bar.set_postfix_str(f"loss {history.loss[-1]:.3g}", refresh=False)
                info = StepInfo(history.steps, total, metrics, history, model)
                asked = on_step is not None and on_step(info) is True
                history.stopped = (
                    "interrupted" if interrupted() else "asked" if asked else "finished" * spent
                )
                if checkpoint and (history.stopped or history.steps % checkpoint_every == 0):
                    trainer.save(Path(checkpoint))
        except KeyboardInterrupt:
            history.stopped = "interrupted"
        finally:
            model.train(mode)
    return history


class _Trainer:
    """One step, one evaluation, one checkpoint: what `fit` repeats."""

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        lr: float,
        weight_decay: float,
        clip: float | None,
        precision: Precision,
    ) -> None:
        self.model, self.loss, self.clip = model, loss, clip
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        if not self.parameters:
            raise ValueError(f"{type(model).__name__} has no parameters to train")
        device = self.parameters[0].device.type
        self.dtype = _compute_dtype(precision, device)
        self.device = device
        self.scaler = torch.amp.GradScaler(device, enabled=self.dtype == torch.float16)
        groups = [
            {"params": [p for p in self.parameters if p.ndim >= 2], "weight_decay": weight_decay},
            {"params": [p for p in self.parameters if p.ndim < 2], "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
        self.optimizer = torch.optim.AdamW(groups, lr=lr, fused=device in ("cpu", "cuda"))
        self.history = History()

    def step(self, batch: Any, rate: float, clock: "_Clock") -> None:
        """Take one step at learning rate `rate` and write it into the history."""
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        half = self.dtype != torch.float32
        with torch.autocast(self.device, self.dtype, enabled=half):
            loss = self.loss(self.model, batch)
        value = _as_number(loss)
        if not isfinite(value):
            self._diverged(f"the loss is {value}", batch, rate)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        limit = inf if self.clip is None else self.clip
        norm = float(nn.utils.clip_grad_norm_(self.parameters, limit))
        if not isfinite(norm) and not self.scaler.is_enabled():  # the scaler skips such steps
            self._diverged(f"the loss is {value:.3g}, but its gradient is not finite", batch, rate)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.history.loss.append(value)
        self.history.lr.append(rate)
        self.history.gradient_norm.append(norm)
        self.history.seconds.append(clock.spent())

    def evaluate(self, evaluate: Evaluate) -> dict[str, float]:
        """Measure in eval mode, without gradients, and write it into the history."""
        self.model.eval()
        with torch.no_grad():
            result = evaluate(self.model)
        named = result if isinstance(result, Mapping) else {"evaluation": result}
        metrics = {name: float(value) for name, value in named.items()}
        self.history.eval_steps.append(self.history.steps)
        for name, value in metrics.items():
            self.history.metrics.setdefault(name, []).append(value)
        return metrics

    def save(self, path: Path) -> None:
        save_checkpoint(path, self.model, self.optimizer, asdict(self.history))

    def resume(self, path: Path) -> None:
        stored = load_checkpoint(path, self.model, self.optimizer)
        for name, values in stored.items():
            setattr(self.history, name, values)

    def _diverged(self, what: str, batch: Any, rate: float) -> None:
        half = self.dtype != torch.float32
        reasons = likely_reasons(self.model, batch, self.history.loss, rate, half=half)
        raise TrainingDiverged(what, self.history.steps + 1, reasons)


class _Clock:
    """How much of the budget is spent."""

    def __init__(self, steps: int | None, seconds: float | None, history: History) -> None:
        self.steps, self.seconds, self.history = steps, seconds, history
        before = history.seconds[-1] if history.seconds else 0.0
        self.start = time.process_time() - before

    def spent(self) -> float:
        """Return the CPU-seconds spent, those before a resumed checkpoint included."""
        return time.process_time() - self.start

    def is_spent(self) -> bool:
        by_steps = self.steps is not None and self.history.steps >= self.steps
        return by_steps or (self.seconds is not None and self.spent() >= self.seconds)

    def total_steps(self) -> float:
        """Return the steps that the budget allows, estimated from the pace if it is in seconds."""
        limit = inf if self.steps is None else self.steps
        if self.seconds is None or self.history.steps == 0:
            return limit
        pace = self.spent() / self.history.steps
        return min(limit, max(self.history.steps + 1, self.seconds / pace))

    def position(self) -> float:
        """Return how far the progress bar stands, in the unit of its total."""
        if self.steps is not None or self.seconds is None:
            return self.history.steps
        return min(self.spent(), self.seconds)


def _feed(batches: Batches, start: int) -> Iterator[Any]:
    if callable(batches):
        yield from map(batches, count(start))
    else:
        yield from islice(_endless(batches), start, None)


def _endless(batches: Iterable[Any]) -> Iterator[Any]:
    while True:
        empty = True
        for batch in batches:
            empty = False
            yield batch
        if empty:
            raise ValueError(
                "batches ran out before the budget was spent: give a list, a DataLoader or a "
                "function step -> batch (a generator can be read only once)"
            )


def _as_number(loss: Any) -> float:
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
        raise ValueError(f"loss(model, batch) must return a tensor of one number, got {shape}")
    if not loss.requires_grad:
        raise ValueError(
            "the loss does not depend on the parameters: was it computed under no_grad, "
            "detached, or made from numbers?"
        )
    return loss.item()


def _compute_dtype(precision: Precision, device: str) -> torch.dtype:
    if precision == "auto":
        if device != "cuda":
            return torch.float32
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    names = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if precision not in names:
        raise ValueError(f"precision={precision!r} is none of {', '.join([*names, 'auto'])}")
    return names[precision]


def _progress_bar(label: str, steps: int | None, seconds: float | None) -> Any:
    # imported here: it draws in ipywidgets, which a script does not need
    from tqdm.auto import tqdm

    unit = "steps" if steps is not None else "CPU-seconds"
    return tqdm(
        desc=label,
        total=steps if steps is not None else seconds,
        bar_format="{desc} {percentage:3.0f}%|{bar}| {n:.0f} of {total:.0f} "
        + unit
        + ", {remaining} left{postfix}",
        disable=not _has_audience(),
    )


def _has_audience() -> bool:
    if os.environ.get("ATTN_COURSE_PROGRESS_BAR") == "0":
        return False
    return _in_kernel() or sys.stderr.isatty()


def _in_kernel() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def _check_settings(steps, seconds, lr, clip, eval_every, checkpoint_every) -> None:
    if steps is None and seconds is None:
        raise ValueError("no budget: give steps=, seconds= or both")
    positive = {
        "steps": steps,
        "seconds": seconds,
        "lr": lr,
        "clip": clip,
        "eval_every": eval_every,
        "checkpoint_every": checkpoint_every,
    }
    for name, value in positive.items():
        if value is not None and not 0 < value < inf:
            raise ValueError(f"{name}={value} must be positive and finite")
