"""What multi-head attention holds in memory, accounted for in bytes."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class AttentionMemory:
    """Bytes of multi-head attention in one training step, by what they hold.

    Attributes:
        parameters: the four projections with their biases.
        projected: queries, keys and values, kept for the backward pass.
        merged: the heads' outputs side by side, which W_o needs again.
        weights: the h · n_query · n_key attention weights; 0 for a fused kernel.
    """

    parameters: int
    projected: int
    merged: int
    weights: int

    @property
    def activations(self) -> int:
        """All that is kept for the backward pass besides the parameters and the input."""
        return self.projected + self.merged + self.weights


def attention_memory(
    d_model: int,
    num_heads: int,
    n_query: int,
    n_key: int | None = None,
    *,
    batch: int = 1,
    dtype: torch.dtype = torch.float32,
    fused: bool = False,
) -> AttentionMemory:
    """Account for the memory of `MultiHeadAttention` with equal widths, in bytes.

    Activations are (n_query · 2 + n_key · 2) · d_model + h · n_query · n_key numbers a
    sequence: only the last term knows the number of heads, and a fused kernel drops it.

    Raises ValueError for sizes below 1 and a head count that does not divide d_model.
    """
    n_key = n_query if n_key is None else n_key
    sizes = {"d_model": d_model, "num_heads": num_heads, "n_query": n_query, "n_key": n_key}
    for name, size in {**sizes, "batch": batch}.items():
        check_positive(name, size)
    if d_model % num_heads != 0:
        raise ValueError(f"d_model={d_model} is not divisible by num_heads={num_heads}")
    width = dtype.itemsize
    return AttentionMemory(
        parameters=4 * (d_model * d_model + d_model) * width,
        projected=batch * (n_query + 2 * n_key) * d_model * width,
        merged=batch * n_query * d_model * width,
        weights=0 if fused else batch * num_heads * n_query * n_key * width,
    )


def check_positive(name: str, value: int) -> None:
    """Raise ValueError unless a size is at least 1."""
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
