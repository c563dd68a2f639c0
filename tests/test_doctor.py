"""The doctor names each thing that would stop the course, and nothing that would not."""

import os
import shutil
import sys
import unicodedata
from importlib import metadata
from types import SimpleNamespace

import pytest
import torch
from babel.dates import get_month_names
from click.testing import CliRunner
from jupyterlab_server import config

from attn_course.plots import fonts
from attn_course.setup import doctor, examinations
from attn_course.setup.condition import Condition
from attn_course.setup.packages import requirement_faults
from attn_course.tasks.dates import LANGUAGES


@pytest.fixture
def versions(monkeypatch):
    """Installed versions as the doctor sees them; set one, or None for a missing package."""
    pretended = {}
    real = metadata.version

    def version(name):
        found = pretended.get(name.lower().replace("-", "_"), "")
        if found is None:
            raise metadata.PackageNotFoundError(name)
        return found or real(name)

    monkeypatch.setattr(metadata, "version", version)
    return pretended


def only(conditions):
    (condition,) = conditions
    return condition


def worst(conditions):
    order = ("ok", "note", "stops")
    return max(conditions, key=lambda condition: order.index(condition.state))


def test_nothing_stops_the_course_here():
    assert [condition for condition in doctor.examine() if condition.state == "stops"] == []


def test_each_check_has_its_rows():
    rows = {str(condition.what) for condition in doctor.examine()}
    assert rows >= {"Python", "torch", "device", "widgets", "JupyterLab", "fonts", "disk"}


@pytest.mark.parametrize(
    ("version", "state"),
    [((3, 10), "stops"), ((3, 11), "ok"), ((3, 13), "ok"), ((3, 14), "note")],
)
def test_python_is_held_against_the_tested_ones(monkeypatch, version, state):
    monkeypatch.setattr(sys, "version_info", (*version, 1))
    condition = only(examinations.look_at_python())
    assert condition.state == state
    assert bool(condition.fix) is (state != "ok")


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        ("einops", None, "einops is missing"),
        ("numpy", "1.20.0", "numpy 1.20.0 is not >=1.26"),
        ("ipywidgets", "7.6.5", "ipywidgets 7.6.5 is not >=7.7.1"),
    ],
)
def test_a_package_that_does_not_fit_is_named(versions, name, version, words):
    versions[name] = version
    condition = only(examinations.look_at_packages())
    assert condition.state == "stops"
    assert words in str(condition.found)
    assert '-e ".[lab]"' in str(condition.fix)


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        ("jupyterlab_widgets", "1.1.1", "widgets 1.1.1 is not ~=3.0"),
        ("widgetsnbextension", None, "widgetsnbextension is missing"),
        ("ipywidgets", "7.5.0", "ipywidgets 7.5.0 is not >=7.6.0"),
    ],
)
def test_widgets_that_do_not_fit_each_other(versions, name, version, words):
    versions[name] = version
    condition = only(examinations.look_at_widgets())
    assert condition.state == "stops"
    assert words in str(condition.found)


def test_missing_jupyterlab_stops_the_course_but_not_on_colab(versions, monkeypatch):
    versions["jupyterlab"] = None
    monkeypatch.delenv("COLAB_RELEASE_TAG", raising=False)
    assert only(examinations.look_at_jupyterlab()).state == "stops"
    monkeypatch.setenv("COLAB_RELEASE_TAG", "release")
    assert only(examinations.look_at_jupyterlab()).state == "note"


def test_jupyterlab_4_needs_ipywidgets_8(versions):
    versions["ipywidgets"] = "7.7.1"
    condition = worst(examinations.look_at_jupyterlab())
    assert condition.state == "stops"
    assert "ipywidgets 7.7.1 is not >=8.1" in str(condition.found)


@pytest.mark.parametrize("extension", list(examinations.LAB_EXTENSIONS))
def test_a_missing_lab_extension_is_named(monkeypatch, extension):
    real = config.get_federated_extensions

    def without(folders):
        return {name: data for name, data in real(folders).items() if name != extension}

    monkeypatch.setattr(config, "get_federated_extensions", without)
    condition = worst(examinations.look_at_jupyterlab())
    assert condition.state == "stops"
    assert extension in str(condition.found)
    assert examinations.LAB_EXTENSIONS[extension] in str(condition.fix)


def test_a_disabled_lab_extension_is_named(monkeypatch):
    page = {"disabledExtensions": ["anywidget"]}
    monkeypatch.setattr(config, "get_page_config", lambda folders: page)
    condition = worst(examinations.look_at_jupyterlab())
    assert condition.state == "stops"
    assert str(condition.fix).endswith("labextension enable anywidget")


@pytest.mark.parametrize(
    ("program", "state"),
    [
        ("python", "ok"),
        (sys.executable, "ok"),
        ("/opt/other/bin/python", "stops"),
        (shutil.which("sh") or "/bin/sh", "stops"),
    ],
)
def test_the_kernel_has_to_run_this_python(monkeypatch, program, state):
    monkeypatch.setattr(
        "jupyter_client.kernelspec.KernelSpecManager.get_kernel_spec",
        lambda self, name: SimpleNamespace(argv=[program, "-m", "ipykernel_launcher"]),
    )
    assert only(examinations.look_at_kernel()).state == state


def test_a_torch_that_does_not_import_stops_the_course(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    condition = only(examinations.look_at_torch())
    assert condition.state == "stops"
    assert "does not import" in str(condition.found)


def test_every_cuda_device_has_a_row(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"card {index}")
    monkeypatch.setattr(
        torch.cuda,
        "get_device_properties",
        lambda index: SimpleNamespace(total_memory=141e9),
    )
    found = [str(condition.found) for condition in examinations.look_at_torch()]
    assert "CUDA, card 0, 141 GB" in found
    assert "CUDA, card 1, 141 GB" in found


def test_a_driver_without_a_torch_for_it_is_a_note(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert worst(examinations.look_at_torch()).state == "note"


def test_no_gpu_is_no_problem(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert worst(examinations.look_at_torch()).state == "ok"


def test_missing_glyphs_are_a_note_that_names_the_script(monkeypatch):
    monkeypatch.setattr(fonts, "missing_glyphs", lambda texts: "年")
    condition = only(examinations.look_at_fonts())
    assert condition.state == "note"
    assert "Chinese" in str(condition.found)
    assert "Cyrillic" not in str(condition.found)


def test_each_script_of_the_dates_has_a_sample():
    """The doctor asks for a glyph of every script that a date of chapter 08 is written in."""
    letters = {c for language in LANGUAGES for c in get_month_names(locale=language)[1]}
    scripts = {unicodedata.name(c).split()[0] for c in letters if c.isalpha()}
    sampled = {
        unicodedata.name(c).split()[0] for text in examinations.SCRIPTS.values() for c in text
    }
    assert scripts <= sampled


@pytest.mark.parametrize(("free", "state"), [(50e6, "stops"), (0.6e9, "note"), (40e9, "ok")])
def test_disk_room(monkeypatch, free, state):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    assert list(examinations.look_at_folder())[-1].state == state


def test_a_folder_that_cannot_be_written_stops_the_course(monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert worst(examinations.look_at_folder()).state == "stops"


def test_no_folder_is_a_note(monkeypatch):
    monkeypatch.setattr(examinations, "project_root", lambda: None)
    assert worst(examinations.look_at_folder()).state == "note"


def test_requirements_of_extras_are_asked_for_by_name():
    assert requirement_faults("attn-course") == []
    (fault,) = requirement_faults("no-such-package")
    assert str(fault) == "no-such-package is missing"


@pytest.mark.parametrize(("state", "status"), [("ok", 0), ("note", 0), ("stops", 1)])
def test_exit_status_and_the_mending_line(monkeypatch, state, status):
    line = "python -m pip install" + " a-long-name" * 20
    condition = Condition("thing", "broken [really]", state, line)
    monkeypatch.setattr(doctor, "examine", lambda: [condition])
    result = CliRunner().invoke(doctor.command)
    assert result.exit_code == status
    assert "broken [really]" in result.output
    assert f"thing: {line}" in result.output, "the line can be copied whole"
