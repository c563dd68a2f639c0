"""What the tests of the attention modules share: random numbers, gradients, closeness."""

from collections.abc import Sequence
from copy import deepcopy

import torch
from hypothesis import strategies as st
from torch import Tensor

size = st.integers(1, 5)
seed = st.integers(0, 2**16)


def normal(*shape: int, seed: int, grad: bool = False) -> Tensor:
    """Float64 from a normal distribution, the same for the same seed and shape."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, dtype=torch.float64, generator=generator)
    return x.requires_grad_(grad)


def random_mask(*shape: int, seed: int) -> Tensor:
    """A mask with about half of its keys hidden and at least one key in each row."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(*shape, generator=generator) < 0.5
    keep = torch.randint(shape[-1], (*shape[:-1], 1), generator=generator)
    return mask.scatter(-1, keep, True)


def assert_same(actual: object, expected: object, tolerance: float = 1e-10) -> None:
    """Fail unless both agree in shape, dtype and value, up to float64's rounding."""
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def gradients(output: Tensor, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The gradients of a fixed random combination of the outputs."""
    direction = normal(*output.shape, seed=99).to(output.dtype)
    return torch.autograd.grad((output * direction).sum(), inputs)


def randomise(module: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """Make it float64 and give every parameter, biases too, random values."""
    module.double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
            parameter.copy_(0.4 * noise)
    return module


def gradients_as_weights(module: torch.nn.Module) -> torch.nn.Module:
    """A copy that holds the gradient of each parameter in its place."""
    copy = deepcopy(module)
    for parameter, original in zip(copy.parameters(), module.parameters(), strict=True):
        assert original.grad is not None
        parameter.data = original.grad
    return copy
