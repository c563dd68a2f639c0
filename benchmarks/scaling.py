"""How the cost grows with the sequence: slopes in log-log, beside what theory says."""

from collections.abc import Callable
from math import log

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from attn_course.efficient import chunked_attention, sliding_window_attention
from benchmarks.measure import Work, seconds

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
FITTED = 3
"""The slope is taken over the longest lengths: at short ones the fixed cost of a call shows."""


def work(kind: str, n: int, device: torch.device, dtype: torch.dtype) -> Work:
    """One forward pass over n positions of width 256 (4 heads of 64), without gradients."""
    q, k, v = (torch.randn(1, 4, n, 64, device=device, dtype=dtype) for _ in range(3))
    if kind == "recurrent":
        gru = nn.GRU(256, 256, batch_first=True).to(device, dtype)
        x = torch.randn(1, n, 256, device=device, dtype=dtype)
        return lambda: gru(x)
    kinds: dict[str, Callable[[], object]] = {
        "fused": lambda: F.scaled_dot_product_attention(q, k, v),
        "chunked": lambda: chunked_attention(q, k, v),
        "window": lambda: sliding_window_attention(q, k, v, 128),
    }
    return kinds[kind]


THEORY = {"fused": 2.0, "chunked": 2.0, "window": 1.0, "recurrent": 1.0}


def slopes(device: torch.device, dtype: torch.dtype, rounds: int) -> list[dict]:
    """A row for each kind: the measured slope, the theory's, and the times."""
    rows = []
    for kind, theory in THEORY.items():
        with torch.no_grad():
            times = [
                seconds(work(kind, n, device, dtype), rounds=rounds, device=device) for n in LENGTHS
            ]
        points = [(log(n), log(t)) for n, t in zip(LENGTHS, times, strict=True)][-FITTED:]
        slope = float(np.polyfit(*zip(*points, strict=True), 1)[0])
        rows.append(
            {
                "row": f"{kind}: cost against n = {LENGTHS[0]} … {LENGTHS[-1]}, slope",
                "peer": "theory",
                "slope": round(slope, 2),
                "theory": theory,
                "time_ratio": round(slope / theory, 3),
                "memory_ratio": None,
                "reach": f"slope about {theory:g}",
                "seconds": {str(n): t for n, t in zip(LENGTHS, times, strict=True)},
            }
        )
    return rows
