"""On a GPU: how much of the device's matrix throughput the fused kernel uses."""

import torch
import torch.nn.functional as F

from benchmarks.measure import seconds


def rows(device: torch.device, dtype: torch.dtype, rounds: int) -> list[dict]:
    """Fused attention at several lengths against a large matrix product on the same device."""
    peak = _matmul_flops(device, dtype, rounds)
    found = []
    for n in (1024, 4096, 16384):
        q, k, v = (torch.randn(4, 16, n, 64, device=device, dtype=dtype) for _ in range(3))
        took = seconds(
            lambda q=q, k=k, v=v: F.scaled_dot_product_attention(q, k, v),
            rounds=rounds,
            device=device,
        )
        flops = 4 * 4 * 16 * n * n * 64 / took  # two products of n · n · 64 multiply-adds
        found.append(
            {
                "row": f"fused kernel utilisation, n={n}, {dtype}",
                "peer": "matrix product 8192 × 8192, floating-point operations a second",
                "time_ratio": round(flops / peak, 3),
                "memory_ratio": None,
                "reach": "",
            }
        )
    return found


def _matmul_flops(device: torch.device, dtype: torch.dtype, rounds: int) -> float:
    a, b = (torch.randn(8192, 8192, device=device, dtype=dtype) for _ in range(2))
    return 2 * 8192**3 / seconds(lambda: a @ b, rounds=rounds, device=device)
