"""Models that start alike on every device, and how to wait for one."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import nn

from attn_course.device import pick_device

Model = TypeVar("Model", bound=nn.Module)


def seeded(seed: int, make: Callable[[], Model]) -> Model:
    """Return the model that `make` builds from this seed, on the device that was chosen.

    Generators of different devices give different numbers for one seed; that of the CPU gives
    the same weights everywhere. The caller's own random numbers go on as if nothing had happened.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make().to(pick_device())


def device_of(model: nn.Module) -> torch.device:
    """Return the device of a model's parameters; the CPU if it has none."""
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def wait_for(device: torch.device) -> None:
    """Return when the device has done all that it was told; a GPU computes while Python goes on."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
