"""Checkpoints: written whole or not at all, and read without running what they contain."""

import os
import pickle
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

_FORMAT = "attn_course checkpoint 1"


def save_checkpoint(
    path: Path, model: nn.Module, optimizer: Optimizer, history: dict[str, Any]
) -> None:
    """Write weights, optimizer, history and torch's random state, atomically.

    A reader sees the old file or the new one, never half of one.
    """
    state = {
        "format": _FORMAT,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "history": history,
        "rng": torch.get_rng_state(),
        "cuda_rng": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    half_written = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with half_written.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        half_written.replace(path)
    finally:
        half_written.unlink(missing_ok=True)


def load_checkpoint(path: Path, model: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    """Put weights, optimizer and torch's global random state back; return the history.

    Raises:
        ValueError: if the file is no checkpoint of this course, or of another model.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, OSError, pickle.UnpicklingError) as error:
        raise ValueError(
            f"{path} cannot be read as a checkpoint ({error}); delete it to start afresh"
        ) from error
    if not isinstance(state, dict) or state.get("format") != _FORMAT:
        raise ValueError(f"{path} is not a checkpoint of this course; choose another file name")
    try:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"{path} holds the checkpoint of another model ({error}); "
            "delete it or choose another file name"
        ) from error
    torch.set_rng_state(state["rng"])
    if torch.cuda.is_available() and len(state["cuda_rng"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state["cuda_rng"])
    return state["history"]
