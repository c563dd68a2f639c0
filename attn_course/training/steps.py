"""The parts that a training run repeats: a step, an evaluation, a checkpoint."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from math import inf, isfinite
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from attn_course.training.checkpoints import load_checkpoint, save_checkpoint
from attn_course.training.guard import TrainingDiverged, likely_reasons

Loss = Callable[[Any, Any], Tensor]
Evaluate = Callable[[Any], Mapping[str, float] | float]
Precision = Literal["float32", "bfloat16", "float16", "auto"]


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


class Trainer:
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

    def step(self, batch: Any, rate: float, seconds: Callable[[], float]) -> None:
        """Take one step at learning rate `rate` and write it into the history."""
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        half = self.dtype != torch.float32
        with torch.autocast(self.device, self.dtype) if half else nullcontext():
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
        self.history.seconds.append(seconds())

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
        """Write a checkpoint."""
        save_checkpoint(path, self.model, self.optimizer, asdict(self.history))

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint."""
        stored = load_checkpoint(path, self.model, self.optimizer)
        for name, values in stored.items():
            setattr(self.history, name, values)

    def _diverged(self, what: str, batch: Any, rate: float) -> None:
        half = self.dtype != torch.float32
        reasons = likely_reasons(self.model, batch, self.history.loss, rate, half=half)
        raise TrainingDiverged(what, self.history.steps + 1, reasons, self.history)


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
