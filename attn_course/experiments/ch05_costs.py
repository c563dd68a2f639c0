"""Chapter 05: what multi-head attention costs, counted by PyTorch and not by a formula."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode


def multiply_adds(call: Callable[..., Any], *inputs: Tensor) -> int:
    """Return the multiply-adds of all matrix products in `call(*inputs)`.

    PyTorch counts each as two operations.
    """
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        call(*inputs)
    return counter.get_total_flops() // 2


def kept_bytes(call: Callable[..., Any], *inputs: Tensor) -> int:
    """Return the bytes that autograd keeps for the backward pass of `call(*inputs)`.

    Each piece of memory counts once, however many tensors look at it; parameters and the
    inputs, which are there anyway, do not count.
    """
    known = {tensor.untyped_storage().data_ptr() for tensor in inputs}
    if isinstance(call, nn.Module):
        known |= {p.untyped_storage().data_ptr() for p in call.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        output = call(*inputs)  # kept alive until all is counted: freed memory is used again
    del output
    return sum(kept.values())
