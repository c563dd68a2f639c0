"""What the doctor looks at, one function for each thing.

Every function looks at the machine and gives diagnoses; none of them raises, since a broken
install is what they are there to describe.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from attn_course.course import project_root
from attn_course.sentences import Sentence, joined, say
from attn_course.setup.diagnosis import Diagnosis, as_is
from attn_course.setup.packages import (
    install_line,
    installed_version,
    requirement_faults,
    running_python,
)

TESTED_PYTHON = ((3, 11), (3, 13))
LEAST_DISK_GB = 0.2  # notebooks, checkpoints and the progress file
ENOUGH_DISK_GB = 1.0
SCRIPTS = {"Latin": "ğż", "Cyrillic": "Ж", "Chinese": "年月日", "Arabic": "يناير"}
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


def look_at_python() -> Iterable[Diagnosis]:
    """The Python that runs this, against those the course is tested with."""
    found = as_is(f"{sys.version.split()[0]}  {sys.executable}")
    lowest, highest = TESTED_PYTHON
    if sys.version_info[:2] < lowest:
        yield Diagnosis("Python", found, "stops", say(TOO_OLD, version="3.13", line="make lab"))
    elif sys.version_info[:2] > highest:
        fix = say(UNTRIED, line="PYTHON=python3.13 make lab")
        yield Diagnosis("Python", found, "note", fix)
    else:
        yield Diagnosis("Python", found)


def look_at_packages() -> Iterable[Diagnosis]:
    """The packages that every notebook needs, each against its lower bound."""
    faults = requirement_faults("attn-course")
    if faults:
        yield Diagnosis("packages", joined(faults, "; "), "stops", install_line())
    else:
        yield Diagnosis("packages", "all in versions that fit")


def look_at_torch() -> Iterable[Diagnosis]:
    """Torch, and the devices that it can compute on."""
    try:
        import torch
    except Exception as error:  # a broken build fails with OSError and worse
        found = say(NO_IMPORT, error=_first_line(error))
        yield Diagnosis("torch", found, "stops", install_line())
        return
    yield Diagnosis("torch", as_is(torch.__version__))
    yield Diagnosis("device", say(THREADS, n=torch.get_num_threads()))
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            memory = torch.cuda.get_device_properties(index).total_memory / 1e9
            found = say(GPU, name=torch.cuda.get_device_name(index), memory=memory)
            yield Diagnosis("device", found)
    elif shutil.which("nvidia-smi"):
        found = say(GPU_UNUSED, version=str(torch.version.cuda))
        yield Diagnosis("device", found, "note", CHOOSE_BUILD)
    if torch.backends.mps.is_available():
        yield Diagnosis("device", "MPS, Apple GPU")


def look_at_widgets() -> Iterable[Diagnosis]:
    """Whether ipywidgets and anywidget are there, and their parts fit each other."""
    names = ("ipywidgets", "anywidget")
    faults = [fault for name in names for fault in requirement_faults(name)]
    versions = joined((_named_version(name) for name in names), ", ")
    if faults:
        found = say(FAULTS, versions=versions, faults=joined(faults, "; "))
        yield Diagnosis("widgets", found, "stops", install_line())
    else:
        yield Diagnosis("widgets", say("{versions}, fit each other", versions=versions))


def look_at_jupyterlab() -> Iterable[Diagnosis]:
    """JupyterLab, and whether it will load the two extensions that draw widgets."""
    version = installed_version("jupyterlab")
    if version is None:
        # Colab brings its own front end.
        state = "note" if os.environ.get("COLAB_RELEASE_TAG") else "stops"
        yield Diagnosis("JupyterLab", "missing", state, install_line())
        return
    faults = [*requirement_faults("jupyterlab"), *requirement_faults("attn-course", extra="lab")]
    if faults:
        found = say(FAULTS, versions=version, faults=joined(faults, "; "))
        yield Diagnosis("JupyterLab", found, "stops", install_line())
        return
    yield Diagnosis("JupyterLab", as_is(version))
    yield from _look_at_lab_extensions()


def _look_at_lab_extensions() -> Iterable[Diagnosis]:
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
            yield Diagnosis("JupyterLab", found, "stops", as_is(line))
        elif extension in disabled:
            line = f"{python} -m jupyter labextension enable {extension}"
            found = say("its extension {name} is disabled", name=extension)
            yield Diagnosis("JupyterLab", found, "stops", as_is(line))


def look_at_kernel() -> Iterable[Diagnosis]:
    """The kernel named python3, which notebooks ask for: does it run this Python?"""
    fix = as_is(f"{running_python()} -m ipykernel install --sys-prefix")
    try:
        from jupyter_client.kernelspec import KernelSpecManager

        spec = KernelSpecManager().get_kernel_spec("python3")
    except Exception as error:  # no jupyter_client, no spec, or one that is not JSON
        yield Diagnosis("kernel", as_is(_first_line(error)), "stops", fix)
        return
    program = spec.argv[0]
    # A bare name is replaced by the Python that runs the server.
    if Path(program).name == program or _same_file(program, sys.executable):
        yield Diagnosis("kernel", "python3 runs this Python")
    else:
        yield Diagnosis("kernel", say(OTHER_PYTHON, program=program), "stops", fix)


def look_at_nbval() -> Iterable[Diagnosis]:
    """The plugin that validates and grades notebooks, nbval; learners do without it."""
    version = installed_version("nbval")
    if version is None:
        found = "missing (needed to validate and grade)"
        yield Diagnosis("nbval", found, "note", install_line())
    else:
        yield Diagnosis("nbval", as_is(version))


def look_at_fonts() -> Iterable[Diagnosis]:
    """Fonts for the scripts in which chapter 08 writes dates."""
    try:
        from attn_course.plots.fonts import missing_glyphs

        missing = missing_glyphs(SCRIPTS.values())
    except Exception as error:  # no matplotlib, or one that does not import
        found = say("cannot be listed: {error}", error=_first_line(error))
        yield Diagnosis("fonts", found, "note", install_line())
        return
    without = [name for name, sample in SCRIPTS.items() if set(sample) & set(missing)]
    if without:
        fix = say(INSTALL_FONTS, line="sudo apt install fonts-noto-cjk fonts-noto-core")
        found = say(NO_FONT, scripts=joined(map(say, without), ", "))
        yield Diagnosis("fonts", found, "note", fix)
    else:
        scripts = joined(map(say, SCRIPTS), ", ")
        yield Diagnosis("fonts", say("there is one for each of {scripts}", scripts=scripts))


def look_at_folder() -> Iterable[Diagnosis]:
    """The course's folder: there, writable, on a disk with room."""
    root = project_root()
    if root is None:
        found, fix = "no course folder here (fine on Colab)", "cd to the clone"
        yield Diagnosis("folder", found, "note", fix)
    elif not os.access(root, os.W_OK):
        found = say("{folder} cannot be written", folder=str(root))
        yield Diagnosis("folder", found, "stops", as_is(f"chmod -R u+w '{root}'"))
    else:
        yield Diagnosis("folder", as_is(str(root)))
    free = shutil.disk_usage(root or Path.cwd()).free / 1e9
    if free < ENOUGH_DISK_GB:
        state = "stops" if free < LEAST_DISK_GB else "note"
        fix = as_is(f"{running_python()} -m pip cache purge")
        yield Diagnosis("disk", say("{free:.1f} GB free", free=free), state, fix)
    else:
        yield Diagnosis("disk", say("{free:.0f} GB free", free=free))


EXAMINATIONS: tuple[Callable[[], Iterable[Diagnosis]], ...] = (
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
