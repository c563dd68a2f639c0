"""Which device the cells compute on, and the toggle that chooses it."""

from attn_course.device.choice import device_reasons, pick_device
from attn_course.device.toggle import DeviceToggle

__all__ = ["DeviceToggle", "device_reasons", "pick_device"]
