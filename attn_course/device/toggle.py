"""The device toggle: a row of buttons, one a device, that chooses for the session."""

from functools import partial
from typing import Any

import torch

from attn_course.device.choice import choose_device, device_reasons, pick_device
from attn_course.sentences import joined, say, spoken

NAMES = {"cpu": "CPU", "cuda": "GPU (CUDA)", "mps": "GPU (Apple MPS)"}
LEGEND = "Compute on"
CHOSEN = "The cells that run from now on compute on: {name}."
MISSING = "{name} cannot be chosen: {reason}."
PLAIN = (
    "The device toggle. Without it cells compute on what ATTN_COURSE_DEVICE says, else on the CPU."
)

_shown: "_Buttons | None" = None


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
        choose_device(name)
        if _shown is not None:
            _shown.show(name)

    def __repr__(self) -> str:
        """Name the device chosen now."""
        return f"DeviceToggle(device={str(self.device)!r})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        global _shown
        if _shown is not None:
            _shown.close()  # else every run of the cell would leave a dead view behind
        _shown = _Buttons(self)
        return {
            "text/plain": spoken(PLAIN),
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
                description=spoken(NAMES[name]),
                disabled=reason is not None,
                tooltip=spoken(reason or NAMES[name]),
                layout=ipywidgets.Layout(width="12em"),
            )
            button.on_click(partial(self._clicked, toggle, name))
            self.buttons[name] = button
        self.status = ipywidgets.HTML()
        missing = joined(
            (
                say(MISSING, name=say(NAMES[name]), reason=say(reason))
                for name, reason in reasons.items()
                if reason is not None
            ),
            between="<br>",
        )
        row = ipywidgets.HBox([ipywidgets.Label(spoken(LEGEND)), *self.buttons.values()])
        self.box = ipywidgets.VBox([row, self.status, ipywidgets.HTML(f"<small>{missing}</small>")])
        self.show(str(toggle.device))

    def show(self, choice: str) -> None:
        """Mark the chosen button, by a sign as well as by colour."""
        kind = choice.partition(":")[0]
        for name, button in self.buttons.items():
            button.button_style = "primary" if name == kind else ""
            button.icon = "check" if name == kind else ""
        text = say(CHOSEN, name=say(NAMES[kind]))
        self.status.value = f'<span role="status">{text}</span>'

    def close(self) -> None:
        """Take the widgets out of the page and of ipywidgets' registry."""
        row = self.box.children[0]
        for widget in (*row.children, *self.box.children, self.box):
            widget.close()

    @staticmethod
    def _clicked(toggle: DeviceToggle, name: str, button: Any) -> None:
        toggle.select(name)
