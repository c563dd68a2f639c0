"""Time and peak memory of two pieces of work, taken in turn so that drift hits both."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch.profiler import ProfilerActivity, profile

Work = Callable[[], object]

SHORTEST = 0.05
"""Seconds: quicker work is repeated within one timing until it takes about that long."""


@dataclass(frozen=True)
class Ratios:
    """Ours over the peer's: medians over paired runs; memory beyond what stood before."""

    time: float
    memory: float | None
    ours_seconds: float
    peer_seconds: float


def compare(ours: Work, peer: Work, *, rounds: int, memory: bool, device: torch.device) -> Ratios:
    """Run the two in turn `rounds` times, after one warm-up each."""
    repeats = [max(1, round(SHORTEST / _seconds(work, 1, device))) for work in (ours, peer)]
    pairs = [
        (_seconds(ours, repeats[0], device), _seconds(peer, repeats[1], device))
        for _ in range(rounds)
    ]
    ratio = peak_memory(ours, device) / peak_memory(peer, device) if memory else None
    return Ratios(
        time=median(a / b for a, b in pairs),
        memory=ratio,
        ours_seconds=median(a for a, _ in pairs),
        peer_seconds=median(b for _, b in pairs),
    )


def seconds(work: Work, *, rounds: int, device: torch.device) -> float:
    """The median time of one run of `work`."""
    repeats = max(1, round(SHORTEST / _seconds(work, 1, device)))
    return median(_seconds(work, repeats, device) for _ in range(rounds))


def _seconds(work: Work, repeats: int, device: torch.device) -> float:
    _wait(device)
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    _wait(device)
    return (time.perf_counter() - start) / repeats


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_memory(work: Work, device: torch.device) -> int:
    """The most bytes that `work` holds at once, beyond what stood before it."""
    gc.collect()
    if device.type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    # the allocator reports every block to the profiler, to the byte
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        work()
    events = recorded.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    held = peak = 0
    for _, change in changes:
        held += change
        peak = max(peak, held)
    return peak
