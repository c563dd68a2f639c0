"""The device: the toggle's choice, else the variable, else the CPU."""

import subprocess
import sys

import ipywidgets
import pytest
import torch

from attn_course.device import DeviceToggle, choice, device_reasons, pick_device, toggle


@pytest.fixture(autouse=True)
def _a_new_session(monkeypatch):
    monkeypatch.setattr(choice, "_choice", None)
    monkeypatch.setattr(toggle, "_shown", None)
    monkeypatch.delenv(choice.VARIABLE, raising=False)


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


def buttons(shown):
    shown._repr_mimebundle_()
    return toggle._shown.buttons


@pytest.mark.usefixtures("two_gpus")
def test_default_variable_and_toggle_in_rising_order(monkeypatch):
    assert pick_device() == torch.device("cpu")
    monkeypatch.setenv(choice.VARIABLE, "cuda:1")
    assert pick_device() == torch.device("cuda:1")
    chosen = DeviceToggle()
    assert chosen.device == torch.device("cuda:1")
    chosen.select("cpu")
    assert pick_device() == chosen.device == torch.device("cpu")
    monkeypatch.setenv(choice.VARIABLE, "cuda")
    assert pick_device() == torch.device("cpu")


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("wrong", ["gpu", "cuda", "CPU ", "cpu:1", "mps", "cuda:x"])
def test_a_wrong_variable_names_what_is_valid(monkeypatch, wrong):
    monkeypatch.setenv(choice.VARIABLE, wrong)
    with pytest.raises(ValueError, match=rf"ATTN_COURSE_DEVICE='{wrong}'.*Valid: 'cpu'.*'cuda': "):
        pick_device()
    with pytest.raises(ValueError, match="ATTN_COURSE_DEVICE"):
        DeviceToggle()


@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_that_is_not_there_is_refused():
    chosen = DeviceToggle()
    chosen.select("cuda:1")
    with pytest.raises(ValueError, match="'cuda:2' cannot be used here"):
        chosen.select("cuda:2")
    assert chosen.device == torch.device("cuda:1")


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize(
    ("version", "reason"),
    [(None, "built without CUDA"), ("12.8", "no GPU and driver that fit")],
)
def test_reasons_tell_a_missing_build_from_a_missing_gpu(monkeypatch, version, reason):
    monkeypatch.setattr(torch.version, "cuda", version)
    monkeypatch.setattr(torch.version, "hip", None)
    assert reason in device_reasons()["cuda"]


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize(("platform", "reason"), [("linux", "Apple"), ("darwin", "macOS")])
def test_reasons_for_mps(monkeypatch, platform, reason):
    monkeypatch.setattr(sys, "platform", platform)
    assert reason in device_reasons()["mps"]


@pytest.mark.usefixtures("no_gpu")
def test_absent_devices_are_greyed_and_say_why():
    found = buttons(DeviceToggle())
    assert {name: button.disabled for name, button in found.items()} == {
        "cpu": False,
        "cuda": True,
        "mps": True,
    }
    assert "built without CUDA" in found["cuda"].tooltip or "no GPU" in found["cuda"].tooltip
    text = " ".join(w.value for w in toggle._shown.box.children if isinstance(w, ipywidgets.HTML))
    assert "GPU (CUDA) cannot be chosen: " in text
    assert "GPU (Apple MPS) cannot be chosen: " in text
    assert "CPU cannot" not in text


# kills: buttons that do nothing, or that look pressed together
@pytest.mark.usefixtures("two_gpus")
def test_a_click_chooses_and_shows_it():
    found = buttons(DeviceToggle())
    assert [name for name, button in found.items() if button.icon == "check"] == ["cpu"]
    found["cuda"].click()
    assert pick_device() == torch.device("cuda")
    assert [name for name, button in found.items() if button.icon == "check"] == ["cuda"]
    assert "GPU (CUDA)" in toggle._shown.status.value
    assert 'role="status"' in toggle._shown.status.value


@pytest.mark.usefixtures("two_gpus")
def test_a_second_toggle_keeps_the_choice_and_clears_the_first():
    first = DeviceToggle()
    buttons(first)["cuda"].click()
    old = toggle._shown
    second = DeviceToggle()
    assert second.device == torch.device("cuda")
    assert [name for name, b in buttons(second).items() if b.icon == "check"] == ["cuda"]
    assert old.box.comm is None
    assert all(button.comm is None for button in old.buttons.values())
    assert toggle._shown.box.comm is not None


@pytest.mark.usefixtures("no_gpu")
def test_what_is_stored_in_a_notebook_is_the_same_on_every_machine(monkeypatch):
    bundle = DeviceToggle()._repr_mimebundle_()
    view = bundle.pop("application/vnd.jupyter.widget-view+json")
    assert view["model_id"] == toggle._shown.box.model_id
    assert bundle == {"text/plain": toggle.PLAIN}
    assert repr(DeviceToggle()) == "DeviceToggle(device='cpu')"


def test_a_script_does_not_pay_for_widgets():
    program = (
        "import sys; from attn_course import DeviceToggle; DeviceToggle().select('cpu');"
        "print('ipywidgets' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


@pytest.mark.usefixtures("no_gpu")
def test_the_toggle_speaks_the_readers_language(monkeypatch):
    monkeypatch.setenv("ATTN_COURSE_LANGUAGE", "en-XA")
    found = buttons(DeviceToggle())
    texts = [text for button in found.values() for text in (button.description, button.tooltip)]
    assert all(text.startswith("⟦") for text in texts)
    assert "ccaannnnoott bbee cchhoosseenn" in toggle._shown.box.children[-1].value
    assert "⟦CCPPUU⟧.⟧" in toggle._shown.status.value
