"""What keeps a training run safe: NaN explained at once, and Ctrl-C between two steps."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class TrainingDiverged(FloatingPointError):
    """The loss or the gradient of a step is NaN or infinite.

    `step` counts from 1, `reasons` lists likely causes, the best supported
    first, `history` holds what was measured until then. The weights are those
    from before the step.
    """

    def __init__(self, what: str, step: int, reasons: list[str], history: Any) -> None:
        """Say what is not finite, in which step, and the reasons."""
        listed = "".join(f"\n  - {reason}" for reason in reasons)
        super().__init__(f"{what} at step {step}. Likely reasons:{listed}")
        self.step = step
        self.reasons = reasons
        self.history = history


def likely_reasons(
    model: nn.Module, batch: Any, losses: list[float], lr: float, *, half: bool
) -> list[str]:
    """Return why a step gave NaN or infinity, read from the evidence at hand.

    `losses` are the steps before, the gradients are still those of the step.
    """
    reasons = []
    broken = [name for name, p in model.named_parameters() if not p.isfinite().all()]
    if broken:
        reasons.append(f"not finite already before the step: the parameter {broken[0]}")
    if any(x.is_floating_point() and not x.isfinite().all() for x in _tensors(batch)):
        reasons.append("the batch itself contains NaN or infinity")
    recent = losses[-20:]
    if recent and recent[-1] > 2 * min(recent):
        reasons.append(
            f"the loss had been rising ({min(recent):.3g} to {recent[-1]:.3g}): "
            f"lr={lr:.3g} is too high; try a third of it, or a longer warm-up"
        )
    if half:
        reasons.append("half precision overflowed: try precision='float32'")
    if not reasons:
        reasons.append("a softmax over a row in which everything is masked with -inf")
        reasons.append("log(0), sqrt(0) (its gradient is infinite) or a division by 0")
        reasons.append("to find the line: torch.autograd.set_detect_anomaly(True)")
    return reasons


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Hold Ctrl-C back until asked for, so that no step is left half done.

    Yields a function that says whether an interrupt has come. A second one
    raises KeyboardInterrupt at once. Outside the main thread, or where somebody
    else handles the signal, nothing is changed and the answer is always False.
    """
    came = False

    def note(signum: int, frame: object) -> None:
        nonlocal came
        if came:
            raise KeyboardInterrupt
        came = True

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield lambda: came
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _tensors(batch: Any) -> Iterable[Tensor]:
    if isinstance(batch, torch.Tensor):
        yield batch
    elif isinstance(batch, Mapping):
        for part in batch.values():
            yield from _tensors(part)
    elif isinstance(batch, list | tuple):
        for part in batch:
            yield from _tensors(part)
