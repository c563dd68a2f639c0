"""One training loop for all experiments; it knows nothing about the model or the data."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from math import cos, inf, pi
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from attn_course.sentences import say, spoken
from attn_course.training.guard import deferred_interrupt
from attn_course.training.progress_bar import training_bar
from attn_course.training.steps import Evaluate, History, Loss, Precision, Trainer

Batches = Callable[[int], Any] | Iterable[Any]
Schedule = Literal["cosine", "constant"]


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
    label: str | None = None,
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
        If it has a method `finish(history)`, that is called when the run has ended,
        however it ended, so that an observer can complete what it shows.
    checkpoint: a file, written every `checkpoint_every` steps and at the end.
        If it exists the run goes on from it and gets the numbers that it would
        have got uninterrupted; delete it to start afresh.
    precision: "auto" computes in half precision where a GPU has it. It pays
        for large models; those of the course are too small to gain.
    threads: torch's threads during the run (None: leave them).
    label: the words before the progress bar (None: "training"), which is drawn in notebooks and
        terminals unless ATTN_COURSE_PROGRESS_BAR is 0. Empty: no bar, for many short runs.

    Ctrl-C, or the notebook's stop button, ends the run after the current step
    and keeps what was learnt.

    Raises:
        ValueError: for a budget, loss, batches or checkpoint that cannot be used.
        TrainingDiverged: when loss or gradient is not finite, before the
            weights are touched: the step and the likely reasons.
    """
    _check_settings(steps, seconds, lr, clip, eval_every, checkpoint_every)
    trainer = Trainer(model, loss, lr, weight_decay, clip, precision)
    history = trainer.history
    if checkpoint is not None and Path(checkpoint).exists():
        trainer.resume(Path(checkpoint))
    clock = _Clock(steps, seconds, history)
    lr_factor(0, inf, warmup=warmup, schedule=schedule)  # a misspelt schedule: now, not later
    history.stopped = "finished" if clock.is_spent() else ""
    feed = _feed(batches, history.steps)
    label = spoken("training") if label is None else label
    mode, bar = model.training, training_bar(label, steps, seconds, done=clock.position())
    with torch_threads(threads), bar, deferred_interrupt() as interrupted:
        try:
            while not history.stopped:
                total = clock.total_steps()
                factor = lr_factor(history.steps, total, warmup=warmup, schedule=schedule)
                trainer.step(next(feed), lr * factor, clock.spent)
                spent = clock.is_spent()
                due = spent or (eval_every is not None and history.steps % eval_every == 0)
                metrics = trainer.evaluate(evaluate) if evaluate is not None and due else None
                bar.update(clock.position() - bar.n)
                bar.set_postfix_str(
                    spoken(say("loss {loss:.3g}", loss=history.loss[-1])), refresh=False
                )
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
            getattr(on_step, "finish", _nothing)(history)
    return history


def _nothing(history: History) -> None:
    """What an observer does at the end that has no `finish`."""


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
