"""What the doctor looks at, one function for each thing.

Every function looks at the machine and gives conditions; none of them raises, since a broken
install is what they are there to describe.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from attn_course.course import project_root
from attn_course.sentences import Code, Sentence, joined, say
from attn_course.setup.condition import Condition
from attn_course.setup.packages import (
    install_line,
    installed_version,
    requirement_faults,
    running_python,
)

TESTED_PYTHON = ((3, 11), (3, 13))
LEAST_DISK_GB = 0.2  # notebooks, checkpoints and the progress file
ENOUGH_DISK_GB = 1.0
SCRIPTS = {
    say("Latin"): "ğż",
    say("Cyrillic"): "Ж",
    say("Chinese"): "年月日",
    say("Arabic"): "يناير",
}
LAB_EXTENSIONS = {
    "@jupyter-widgets/jupyterlab-manager": "jupyterlab_widgets",
    "anywidget": "anywidget",
}

TOO_OLD = "install Python {version}, then run: {line}"
UNTRIED = "newer than tested; if it fails: {line}"
THREADS = "CPU, {n} threads"
GPU = "CUDA, {name}, {memory:.0f} GB"
GPU_UNUSED = "there is an NVIDIA driver, but this torch (CUDA {version}) cannot use it"
CHOOSE_BUILD = "nvidia-smi shows the driver's CUDA; choose the torch build for it on pytorch.org"
NO_IMPORT = "does not import: {error}"
FAULTS = "{versions}: {faults}"
OTHER_PYTHON = "python3 runs another Python, {program}"
NO_FONT = "none for {scripts}: boxes stand for its characters in pictures"
INSTALL_FONTS = "install Noto (Debian, Ubuntu: {line})"


def look_at_python() -> Iterable[Condition]:
    """The Python that runs this, against those the course is tested with."""
    found = Code(f"{sys.version.split()[0]}  {sys.executable}")
    lowest, highest = TESTED_PYTHON
    if sys.version_info[:2] < lowest:
        yield Condition(
            say("Python"), found, "stops", say(TOO_OLD, version="3.13", line="make lab")
        )
    elif sys.version_info[:2] > highest:
        fix = say(UNTRIED, line="PYTHON=python3.13 make lab")
        yield Condition(say("Python"), found, "note", fix)
    else:
        yield Condition(say("Python"), found)


def look_at_packages() -> Iterable[Condition]:
    """The packages that every notebook needs, each against its lower bound."""
    faults = requirement_faults("attn-course")
    if faults:
        yield Condition(say("packages"), joined(faults, "; "), "stops", install_line())
    else:
        yield Condition(say("packages"), say("all in versions that fit"))


def look_at_torch() -> Iterable[Condition]:
    """Torch, and the devices that it can compute on."""
    try:
        import torch
    except Exception as error:  # a broken build fails with OSError and worse
        found = say(NO_IMPORT, error=_first_line(error))
        yield Condition(say("torch"), found, "stops", install_line())
        return
    yield Condition(say("torch"), Code(torch.__version__))
    yield Condition(say("device"), say(THREADS, n=torch.get_num_threads()))
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            memory = torch.cuda.get_device_properties(index).total_memory / 1e9
            found = say(GPU, name=torch.cuda.get_device_name(index), memory=memory)
            yield Condition(say("device"), found)
    elif shutil.which("nvidia-smi"):
        found = say(GPU_UNUSED, version=str(torch.version.cuda))
        yield Condition(say("device"), found, "note", say(CHOOSE_BUILD))
    if torch.backends.mps.is_available():
        yield Condition(say("device"), say("MPS, Apple GPU"))


def look_at_widgets() -> Iterable[Condition]:
    """Whether ipywidgets and anywidget are there, and their parts fit each other."""
    names = ("ipywidgets", "anywidget")
    faults = [fault for name in names for fault in requirement_faults(name)]
    versions = joined((_named_version(name) for name in names), ", ")
    if faults:
        found = say(FAULTS, versions=versions, faults=joined(faults, "; "))
        yield Condition(say("widgets"), found, "stops", install_line())
    else:
        yield Condition(say("widgets"), say("{versions}, fit each other", versions=versions))


def look_at_jupyterlab() -> Iterable[Condition]:
    """JupyterLab, and whether it will load the two extensions that draw widgets."""
    version = installed_version("jupyterlab")
    if version is None:
        # Colab brings its own front end.
        state = "note" if os.environ.get("COLAB_RELEASE_TAG") else "stops"
        yield Condition(say("JupyterLab"), say("missing"), state, install_line())
        return
    faults = [*requirement_faults("jupyterlab"), *requirement_faults("attn-course", extra="lab")]
    if faults:
        found = say(FAULTS, versions=version, faults=joined(faults, "; "))
        yield Condition(say("JupyterLab"), found, "stops", install_line())
        return
    yield Condition(say("JupyterLab"), Code(version))
    yield from _look_at_lab_extensions()


def _look_at_lab_extensions() -> Iterable[Condition]:
    from jupyter_core.paths import jupyter_path
    from jupyterlab_server.config import get_federated_extensions, get_page_config

    folders = jupyter_path("labextensions")
    there = get_federated_extensions(folders)
    disabled = get_page_config(folders).get("disabledExtensions", [])
    python = running_python()
    for extension, package in LAB_EXTENSIONS.items():
        if extension not in there:
            line = f"{python} -m pip install --force-reinstall --no-deps {package}"
            found = say("has no extension {name}", name=extension)
            yield Condition(say("JupyterLab"), found, "stops", Code(line))
        elif extension in disabled:
            line = f"{python} -m jupyter labextension enable {extension}"
            found = say("its extension {name} is disabled", name=extension)
            yield Condition(say("JupyterLab"), found, "stops", Code(line))


def look_at_kernel() -> Iterable[Condition]:
    """The kernel named python3, which notebooks ask for: does it run this Python?"""
    fix = Code(f"{running_python()} -m ipykernel install --sys-prefix")
    try:
        from jupyter_client.kernelspec import KernelSpecManager

        spec = KernelSpecManager().get_kernel_spec("python3")
    except Exception as error:  # no jupyter_client, no spec, or one that is not JSON
        yield Condition(say("kernel"), Code(_first_line(error)), "stops", fix)
        return
    program = spec.argv[0]
    # A bare name is replaced by the Python that runs the server.
    if Path(program).name == program or _same_file(program, sys.executable):
        yield Condition(say("kernel"), say("python3 runs this Python"))
    else:
        yield Condition(say("kernel"), say(OTHER_PYTHON, program=program), "stops", fix)


def look_at_nbval() -> Iterable[Condition]:
    """The plugin that validates and grades notebooks, nbval; learners do without it."""
    version = installed_version("nbval")
    if version is None:
        found = say("missing (needed to validate and grade)")
        yield Condition(say("nbval"), found, "note", install_line())
    else:
        yield Condition(say("nbval"), Code(version))


def look_at_fonts() -> Iterable[Condition]:
    """Fonts for the scripts in which chapter 08 writes dates."""
    try:
        from attn_course.plots.fonts import missing_glyphs

        missing = missing_glyphs(SCRIPTS.values())
    except Exception as error:  # no matplotlib, or one that does not import
        found = say("cannot be listed: {error}", error=_first_line(error))
        yield Condition(say("fonts"), found, "note", install_line())
        return
    without = [name for name, sample in SCRIPTS.items() if set(sample) & set(missing)]
    if without:
        fix = say(INSTALL_FONTS, line="sudo apt install fonts-noto-cjk fonts-noto-core")
        found = say(NO_FONT, scripts=joined(without, ", "))
        yield Condition(say("fonts"), found, "note", fix)
    else:
        scripts = joined(SCRIPTS, ", ")
        yield Condition(say("fonts"), say("there is one for each of {scripts}", scripts=scripts))


def look_at_folder() -> Iterable[Condition]:
    """The course's folder: there, writable, on a disk with room."""
    root = project_root()
    if root is None:
        found, fix = say("no course folder here (fine on Colab)"), say("cd to the clone")
        yield Condition(say("folder"), found, "note", fix)
    elif not os.access(root, os.W_OK):
        found = say("{folder} cannot be written", folder=str(root))
        yield Condition(say("folder"), found, "stops", Code(f"chmod -R u+w '{root}'"))
    else:
        yield Condition(say("folder"), Code(str(root)))
    free = shutil.disk_usage(root or Path.cwd()).free / 1e9
    if free < ENOUGH_DISK_GB:
        state = "stops" if free < LEAST_DISK_GB else "note"
        fix = Code(f"{running_python()} -m pip cache purge")
        yield Condition(say("disk"), say("{free:.1f} GB free", free=free), state, fix)
    else:
        yield Condition(say("disk"), say("{free:.0f} GB free", free=free))


EXAMINATIONS: tuple[Callable[[], Iterable[Condition]], ...] = (
    look_at_python,
    look_at_packages,
    look_at_torch,
    look_at_widgets,
    look_at_jupyterlab,
    look_at_kernel,
    look_at_nbval,
    look_at_fonts,
    look_at_folder,
)


def _named_version(name: str) -> Sentence:
    version = installed_version(name)
    return say("{name} {version}", name=name, version=version or say("missing"))


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
