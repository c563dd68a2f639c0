"""Which device the cells compute on: the toggle's choice, else a variable, else the CPU."""

import os
import sys
from functools import partial
from typing import Any

import torch

VARIABLE = "ATTN_COURSE_DEVICE"

WORDS = {
    "cpu": "CPU",
    "cuda": "GPU (CUDA)",
    "mps": "GPU (Apple MPS)",
    "legend": "Compute on",
    "chosen": "The cells that run from now on compute on: {name}.",
    "missing": "{name} cannot be chosen: {reason}.",
    "no_cuda_build": "this PyTorch was built without CUDA",
    "no_cuda_device": "no GPU and driver that fit this PyTorch were found",
    "no_mps": "it exists on Apple computers only",
    "no_mps_build": "this PyTorch or this macOS does not support it",
    "plain": "The device toggle. Without it cells compute on what ATTN_COURSE_DEVICE says, "
    "else on the CPU.",
}

# The choice is the session's, not one widget's: a cell that is run again makes a
# new toggle, and what had been chosen stays.
_choice: str | None = None
_shown: Any = None


def device_reasons() -> dict[str, str | None]:
    """Return for "cpu", "cuda" and "mps" why it cannot be used here, or None if it can."""
    cuda = mps = None
    if not torch.cuda.is_available():
        built = torch.version.cuda or torch.version.hip
        cuda = WORDS["no_cuda_device" if built else "no_cuda_build"]
    if not torch.backends.mps.is_available():
        mps = WORDS["no_mps_build" if sys.platform == "darwin" else "no_mps"]
    return {"cpu": None, "cuda": cuda, "mps": mps}


def pick_device() -> torch.device:
    """Return the device that cells should compute on.

    It is the choice made in a `DeviceToggle`, if there is one; else what the
    environment variable ATTN_COURSE_DEVICE names; else the CPU, which is fast
    enough for all models of the course and gives the same numbers everywhere.

    Raises:
        ValueError: if ATTN_COURSE_DEVICE names no device of this machine.
    """
    if _choice is not None:
        return torch.device(_choice)
    return torch.device(_usable(os.environ.get(VARIABLE) or "cpu", source=f"{VARIABLE}="))


class DeviceToggle:
    """A row of buttons, one a device; those that do not exist here are greyed, with the reason.

    Cells that run after a choice follow it through `pick_device()` or this
    object's `device`. It starts with the choice made earlier in the session,
    else as `pick_device` does. In a script it is the same object without buttons.
    """

    def __init__(self) -> None:
        """Take over the session's choice; raise ValueError as `pick_device` does."""
        self.select(str(pick_device()))

    @property
    def device(self) -> torch.device:
        """The device chosen now."""
        return pick_device()

    def select(self, name: str) -> None:
        """Choose a device by name ("cpu", "cuda", "cuda:1", "mps").

        Raises:
            ValueError: if this machine has no such device.
        """
        global _choice
        _choice = _usable(name, source="device ")
        if _shown is not None:
            _shown.show(_choice)

    def __repr__(self) -> str:
        """Name the device chosen now."""
        return f"DeviceToggle(device={str(self.device)!r})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        global _shown
        if _shown is not None:
            _shown.close()  # else every run of the cell would leave a dead view behind
        _shown = _Buttons(self)
        return {
            "text/plain": WORDS["plain"],
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": _shown.box.model_id,
            },
        }


class _Buttons:
    """The widgets of a toggle. Plain buttons: single options of ToggleButtons cannot be greyed."""

    def __init__(self, toggle: DeviceToggle) -> None:
        import ipywidgets  # only a notebook that shows the toggle pays for it

        self.buttons: dict[str, Any] = {}
        reasons = device_reasons()
        for name, reason in reasons.items():
            button = ipywidgets.Button(
                description=WORDS[name],
                disabled=reason is not None,
                tooltip=reason or WORDS[name],
                layout=ipywidgets.Layout(width="12em"),
            )
            button.on_click(partial(self._clicked, toggle, name))
            self.buttons[name] = button
        self.status = ipywidgets.HTML()
        missing = "<br>".join(
            WORDS["missing"].format(name=WORDS[name], reason=reason)
            for name, reason in reasons.items()
            if reason is not None
        )
        row = ipywidgets.HBox([ipywidgets.Label(WORDS["legend"]), *self.buttons.values()])
        self.box = ipywidgets.VBox([row, self.status, ipywidgets.HTML(f"<small>{missing}</small>")])
        self.show(str(toggle.device))

    def show(self, choice: str) -> None:
        """Mark the chosen button, by a sign as well as by colour."""
        kind = choice.partition(":")[0]
        for name, button in self.buttons.items():
            button.button_style = "primary" if name == kind else ""
            button.icon = "check" if name == kind else ""
        text = WORDS["chosen"].format(name=WORDS[kind])
        self.status.value = f'<span role="status">{text}</span>'

    def close(self) -> None:
        """Take the widgets out of the page and of ipywidgets' registry."""
        row = self.box.children[0]
        for widget in (*row.children, *self.box.children, self.box):
            widget.close()

    @staticmethod
    def _clicked(toggle: DeviceToggle, name: str, button: Any) -> None:
        toggle.select(name)


def _usable(name: str, source: str) -> str:
    kind, _, index = name.partition(":")
    reasons = device_reasons()
    if kind in reasons and reasons[kind] is None and _index_exists(kind, index):
        return name
    valid = ", ".join(repr(other) for other, reason in reasons.items() if reason is None)
    absent = "; ".join(f"{other!r}: {reason}" for other, reason in reasons.items() if reason)
    raise ValueError(
        f"{source}{name!r} cannot be used here. Valid: {valid}" + (f" ({absent})" if absent else "")
    )


def _index_exists(kind: str, index: str) -> bool:
    if index == "":
        return True
    count = torch.cuda.device_count() if kind == "cuda" else 1
    return index.isdecimal() and int(index) < count
