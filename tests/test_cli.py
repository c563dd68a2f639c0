"""The commands, above all with arguments that are wrong."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import click
import nbformat
import pytest
from click.testing import CliRunner

from attn_course import __version__, cli
from attn_course.course import CHAPTERS, find_chapter, project_root
from attn_course.setup import lab
from attn_course.terminal import SpokenCommand, SpokenOption

ROOT = Path(__file__).resolve().parents[1]
URL = re.compile(r"http://\S+")


def run(*arguments: str):
    return CliRunner().invoke(cli.main, arguments)


@pytest.fixture
def course_folder(tmp_path, monkeypatch):
    """A course folder in which only chapter 03 has been built, seen from its notebooks/."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    nbformat.write(nbformat.v4.new_notebook(), notebooks / "03_scaled_dot_product.ipynb")
    monkeypatch.chdir(notebooks)
    return tmp_path


@pytest.fixture
def started(monkeypatch):
    """What `attn-course lab` would have started, instead of starting it."""
    calls = []

    def record(root, notebook, extra=()):
        calls.append((root, notebook, extra))
        return 0

    monkeypatch.setattr(lab, "run_lab", record)
    return calls


def test_version():
    assert run("--version").output.strip() == f"attn-course, version {__version__}"


def test_help_lists_every_command_with_a_line():
    output = run("--help").output
    for name, (*_, text) in cli._COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(str(text)[:30])}", output, flags=re.MULTILINE)


@pytest.mark.parametrize("name", ["doctor", "lab", "progress"])
def test_each_command_has_help_of_its_own(name):
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"{name} [OPTIONS]" in result.output


def test_unknown_command_is_named():
    result = run("lob")
    assert result.exit_code == 2
    assert "No such command 'lob'" in result.output


@pytest.mark.parametrize("arguments", [("doctor", "now"), ("progress", "--all")])
def test_arguments_that_a_command_does_not_take(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert arguments[1] in result.output


def test_a_command_whose_package_is_missing_says_what_to_install(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError("No module named 'jupytext'", name="jupytext")

    monkeypatch.setattr(cli, "import_module", missing)
    result = run("build")
    assert result.exit_code == 1
    assert "needs the package 'jupytext'" in result.output
    assert "-e '.[dev]'" in result.output


def test_our_own_missing_module_is_not_blamed_on_the_install(monkeypatch):
    monkeypatch.setitem(cli._COMMANDS, "build", ("attn_course.nowhere", "build", ""))
    assert isinstance(run("build").exception, ModuleNotFoundError)


def test_help_imports_nothing_heavy():
    heavy = ("torch", "matplotlib", "ipywidgets", "jupytext", "rich")
    code = (
        "import sys; from attn_course.cli import main; main(['--help'], standalone_mode=False);"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "wanted",
    [
        "3",
        "03",
        "scaled_dot_product",
        "Scaled-Dot-Product",
        "03_scaled_dot_product",
        "03_scaled_dot_product.ipynb",
        "exercises/03_scaled_dot_product.ipynb",
        "notebooks\\03_scaled_dot_product.ipynb",
        "chapters/03_scaled_dot_product.py",
        "Scaled dot-product attention",
    ],
)
def test_a_chapter_is_found_by_any_of_its_names(wanted):
    assert find_chapter(wanted).number == "03"


def test_zero_means_the_first_chapter():
    assert find_chapter("0") is CHAPTERS[0]


@pytest.mark.parametrize(
    "wanted", ["", "13", "1.5", "003", "scaled", "../", "03_self_attention", "٣"]
)
def test_an_unknown_chapter_raises_with_the_list(wanted):
    with pytest.raises(ValueError, match="there is no chapter") as caught:
        find_chapter(wanted)
    for chapter in CHAPTERS:
        assert f"{chapter.number}  {chapter.title}" in str(caught.value)


def test_chapters_are_numbered_without_gaps_and_named_once():
    assert [chapter.number for chapter in CHAPTERS] == [f"{i:02d}" for i in range(13)]
    assert len({chapter.name for chapter in CHAPTERS}) == len(CHAPTERS)


def test_root_is_found_from_a_folder_inside_it(course_folder):
    assert project_root() == course_folder


def test_root_of_an_editable_install_is_found_from_anywhere(tmp_path):
    assert project_root(tmp_path) == ROOT


@pytest.mark.parametrize("text", ['[project]\nname = "other"', "[project", 'project = "text"'])
def test_another_pyproject_is_not_the_root(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    assert project_root(tmp_path) == ROOT


@pytest.mark.parametrize("wanted", ["3", "03_scaled_dot_product.ipynb"])
def test_lab_opens_the_chapter_asked_for(course_folder, started, wanted):
    assert run("lab", wanted).exit_code == 0
    assert started == [(course_folder, course_folder / "notebooks/03_scaled_dot_product.ipynb", ())]


def test_lab_passes_on_what_follows(course_folder, started):
    run("lab", "3", "--port=9000", "--ip", "0.0.0.0")
    run("lab", "--port=9001")
    run("lab", "--", "--port=9002")
    assert [extra for _, _, extra in started] == [
        ("--port=9000", "--ip", "0.0.0.0"),
        ("--port=9001",),
        ("--port=9002",),
    ]


def test_lab_with_an_unknown_chapter_lists_the_chapters(course_folder, started):
    result = run("lab", "17")
    assert result.exit_code == 1
    assert "there is no chapter '17'" in result.output
    assert "12  A real Transformer" in result.output
    assert started == []


def test_lab_says_which_chapter_is_not_there_yet(course_folder, started):
    result = run("lab", "4")
    assert result.exit_code == 1
    assert "chapter 04 (Self-attention) has no notebook yet" in result.output
    assert started == []


def test_lab_without_chapter_opens_the_folder_while_none_is_built(course_folder, started):
    run("lab")
    assert started == [(course_folder, None, ())]


def test_lab_without_jupyterlab_says_what_to_install(course_folder, started, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run("lab")
    assert result.exit_code == 1
    assert '-m pip install -c constraints.txt -e ".[lab]"' in result.output
    assert started == []


def test_lab_outside_the_course_says_so(started, monkeypatch):
    monkeypatch.setattr(lab, "project_root", lambda: None)
    result = run("lab")
    assert result.exit_code == 1
    assert "the course's folder is not here" in result.output


def test_no_news_of_others_lies_over_the_first_page(tmp_path):
    from jupyterlab.labapp import LabApp

    lab_app = LabApp()
    lab_app.parse_command_line([o for o in lab.lab_options(tmp_path, None) if "LabApp" in o])
    assert lab_app.news_url is None  # JupyterLab then asks nothing and fetches nothing


@pytest.mark.parametrize(("uid", "allowed"), [(0, True), (1000, False)])
def test_only_the_superuser_needs_leave(monkeypatch, tmp_path, uid, allowed):
    monkeypatch.setattr(os, "geteuid", lambda: uid, raising=False)
    assert ("--allow-root" in lab.lab_options(tmp_path, None)) is allowed


@pytest.mark.parametrize(
    ("platform", "variables", "opens"),
    [
        ("linux", {}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("linux", {"BROWSER": "firefox"}, True),
        ("darwin", {}, True),
        ("win32", {}, True),
    ],
)
def test_a_browser_is_opened_only_where_there_is_a_screen(
    monkeypatch, tmp_path, platform, variables, opens
):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert ("--no-browser" not in lab.lab_options(tmp_path, None)) is opens


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_lab_prints_the_address_of_the_chapter(course_folder):
    """The real JupyterLab, in a folder of its own, as `make lab` starts it."""
    command = [sys.executable, "-m", "attn_course", "lab", "3", "--no-browser", "--port=0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        assert server.stdout is not None
        try:
            addresses = (URL.search(line) for line in server.stdout)
            address = next(found.group() for found in addresses if found)
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=60)
    assert "/lab/tree/notebooks/03_scaled_dot_product.ipynb?token=" in address


def test_progress_shows_every_chapter():
    result = run("progress")
    assert result.exit_code == 0
    assert result.output.strip()


# kills: a docstring or an option's help that click prints without asking for a translation
def test_help_is_said_in_the_readers_language(monkeypatch):
    monkeypatch.setenv("ATTN_COURSE_LANGUAGE", "en-XA")
    assert "⟦OOppeenn JJuuppyytteerrLLaabb aatt aa cchhaapptteerr.⟧" in run("--help").output
    assert "⟦SShhooww wwhhiicchh eexxeerrcciisseess" in run("progress", "--help").output
    assert "⟦tthheerree iiss nnoo cchhaapptteerr '17'" in run("lab", "17").output


@pytest.mark.parametrize("name", list(cli._COMMANDS))
def test_every_command_and_option_speaks(name):
    command = cli.main.get_command(click.Context(cli.main), name)
    assert isinstance(command, SpokenCommand)
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert [option.name for option in options if not isinstance(option, SpokenOption)] == []
