"""`attn-course doctor`: what is installed, whether it fits, and the line that mends what does not.

Every check looks at the machine and returns findings; none of them raises, since
a broken install is what they are there to describe.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

import click
from packaging.requirements import Requirement

from attn_course.course import project_root
from attn_course.setup.lab import INSTALL_LAB

State = Literal["ok", "note", "stops"]

TESTED_PYTHON = ((3, 11), (3, 13))
LEAST_DISK_GB = 0.2  # notebooks, checkpoints and the progress file
ENOUGH_DISK_GB = 1.0
SCRIPTS = {"Latin": "ğż", "Cyrillic": "Ж", "Chinese": "年月日", "Arabic": "يناير"}
LAB_EXTENSIONS = {
    "@jupyter-widgets/jupyterlab-manager": "jupyterlab_widgets",
    "anywidget": "anywidget",
}


@dataclass(frozen=True)
class Finding:
    """One row: what was looked at, what was found, whether it matters, how to mend it.

    `stops` is for what would stop the course, `note` for what would not.
    """

    what: str
    found: str
    state: State = "ok"
    mend: str = ""


@click.command()
def command() -> None:
    """Show what is installed, and for each problem the line that mends it.

    The exit status is 1 if something would stop the course.
    """
    findings = examine()
    _show(findings)
    sys.exit(any(finding.state == "stops" for finding in findings))


def examine() -> list[Finding]:
    """All findings about this machine, in the order in which they are shown."""
    return [finding for check in CHECKS for finding in check()]


def check_python() -> Iterable[Finding]:
    """The Python that runs this, against those the course is tested with."""
    found = f"{sys.version.split()[0]}  {sys.executable}"
    lowest, highest = TESTED_PYTHON
    if sys.version_info[:2] < lowest:
        yield Finding("Python", found, "stops", "install Python 3.13, then run: make lab")
    elif sys.version_info[:2] > highest:
        yield Finding(
            "Python", found, "note", "newer than tested; if it fails: PYTHON=python3.13 make lab"
        )
    else:
        yield Finding("Python", found)


def check_packages() -> Iterable[Finding]:
    """The packages that every notebook needs, each against its lower bound."""
    faults = requirement_faults("attn-course")
    if faults:
        yield Finding("packages", "; ".join(faults), "stops", _install_line())
    else:
        yield Finding("packages", "all in versions that fit")


def check_torch() -> Iterable[Finding]:
    """torch, and the devices that it can compute on."""
    try:
        import torch
    except Exception as error:  # a broken build fails with OSError and worse
        yield Finding("torch", f"does not import: {_first_line(error)}", "stops", _install_line())
        return
    yield Finding("torch", torch.__version__)
    yield Finding("device", f"CPU, {torch.get_num_threads()} threads")
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            memory = torch.cuda.get_device_properties(index).total_memory / 1e9
            yield Finding("device", f"CUDA, {torch.cuda.get_device_name(index)}, {memory:.0f} GB")
    elif shutil.which("nvidia-smi"):
        yield Finding(
            "device",
            f"there is an NVIDIA driver, but this torch (CUDA {torch.version.cuda}) cannot use it",
            "note",
            "nvidia-smi shows the driver's CUDA; choose the torch build for it on pytorch.org",
        )
    if torch.backends.mps.is_available():
        yield Finding("device", "MPS, Apple GPU")


def check_widgets() -> Iterable[Finding]:
    """ipywidgets and anywidget, and whether their parts fit each other."""
    faults = [
        *requirement_faults("ipywidgets"),
        *requirement_faults("anywidget"),
    ]
    versions = ", ".join(f"{name} {_version(name)}" for name in ("ipywidgets", "anywidget"))
    if faults:
        yield Finding("widgets", f"{versions}: {'; '.join(faults)}", "stops", _install_line())
    else:
        yield Finding("widgets", f"{versions}, fit each other")


def check_jupyterlab() -> Iterable[Finding]:
    """JupyterLab, and whether it will load the two extensions that draw widgets."""
    if _version("jupyterlab") == "missing":
        # Colab brings its own front end.
        state = "note" if os.environ.get("COLAB_RELEASE_TAG") else "stops"
        yield Finding("JupyterLab", "missing", state, _install_line())
        return
    found = _version("jupyterlab")
    faults = [*requirement_faults("jupyterlab"), *requirement_faults("attn-course", extra="lab")]
    if faults:
        yield Finding("JupyterLab", f"{found}: {'; '.join(faults)}", "stops", _install_line())
        return
    yield Finding("JupyterLab", found)
    yield from _check_lab_extensions()


def _check_lab_extensions() -> Iterable[Finding]:
    from jupyter_core.paths import jupyter_path
    from jupyterlab_server.config import get_federated_extensions, get_page_config

    folders = jupyter_path("labextensions")
    there = get_federated_extensions(folders)
    disabled = get_page_config(folders).get("disabledExtensions", [])
    for extension, package in LAB_EXTENSIONS.items():
        if extension not in there:
            mend = f"{_python()} -m pip install --force-reinstall --no-deps {package}"
            yield Finding("JupyterLab", f"has no extension {extension}", "stops", mend)
        elif extension in disabled:
            mend = f"{_python()} -m jupyter labextension enable {extension}"
            yield Finding("JupyterLab", f"its extension {extension} is disabled", "stops", mend)


def check_kernel() -> Iterable[Finding]:
    """The kernel named python3, which notebooks ask for: does it run this Python?"""
    try:
        from jupyter_client.kernelspec import KernelSpecManager

        spec = KernelSpecManager().get_kernel_spec("python3")
    except Exception as error:  # no jupyter_client, no spec, or one that is not JSON
        yield Finding(
            "kernel", _first_line(error), "stops", f"{_python()} -m ipykernel install --sys-prefix"
        )
        return
    program = spec.argv[0]
    # A bare name is replaced by the Python that runs the server.
    if Path(program).name == program or _same_file(program, sys.executable):
        yield Finding("kernel", "python3 runs this Python")
    else:
        yield Finding(
            "kernel",
            f"python3 runs another Python, {program}",
            "stops",
            f"{_python()} -m ipykernel install --sys-prefix",
        )


def check_nbval() -> Iterable[Finding]:
    """nbval, which validates and grades notebooks; learners do without it."""
    version = _version("nbval")
    if version == "missing":
        yield Finding("nbval", "missing (needed to validate and grade)", "note", _install_line())
    else:
        yield Finding("nbval", version)


def check_fonts() -> Iterable[Finding]:
    """Fonts for the scripts in which chapter 08 writes dates."""
    try:
        from attn_course.plots.fonts import missing_glyphs

        missing = missing_glyphs(SCRIPTS.values())
    except Exception as error:  # no matplotlib, or one that does not import
        yield Finding("fonts", f"cannot be listed: {_first_line(error)}", "note", _install_line())
        return
    without = [name for name, sample in SCRIPTS.items() if set(sample) & set(missing)]
    if without:
        yield Finding(
            "fonts",
            f"none for {', '.join(without)}: boxes stand for its characters in pictures",
            "note",
            "install Noto (Debian, Ubuntu: sudo apt install fonts-noto-cjk fonts-noto-core)",
        )
    else:
        yield Finding("fonts", f"there is one for each of {', '.join(SCRIPTS)}")


def check_folder() -> Iterable[Finding]:
    """The course's folder: there, writable, on a disk with room."""
    root = project_root()
    if root is None:
        yield Finding("folder", "no course folder here (fine on Colab)", "note", "cd to the clone")
    elif not os.access(root, os.W_OK):
        yield Finding("folder", f"{root} cannot be written", "stops", f"chmod -R u+w '{root}'")
    else:
        yield Finding("folder", str(root))
    free = shutil.disk_usage(root or Path.cwd()).free / 1e9
    if free < ENOUGH_DISK_GB:
        state = "stops" if free < LEAST_DISK_GB else "note"
        yield Finding("disk", f"{free:.1f} GB free", state, f"{_python()} -m pip cache purge")
    else:
        yield Finding("disk", f"{free:.0f} GB free")


CHECKS: tuple[Callable[[], Iterable[Finding]], ...] = (
    check_python,
    check_packages,
    check_torch,
    check_widgets,
    check_jupyterlab,
    check_kernel,
    check_nbval,
    check_fonts,
    check_folder,
)


def requirement_faults(distribution: str, extra: str = "") -> list[str]:
    """What an installed package declares to need and does not find, in words.

    With `extra`, only what that extra adds.
    """
    try:
        declared = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return [f"{distribution} is missing"]
    faults = []
    for requirement in map(Requirement, declared):
        if not _applies(requirement, extra):
            continue
        version = _version(requirement.name)
        if version == "missing":
            faults.append(f"{requirement.name} is missing")
        elif not requirement.specifier.contains(version, prereleases=True):
            faults.append(f"{requirement.name} {version} is not {requirement.specifier}")
    return faults


def _applies(requirement: Requirement, extra: str) -> bool:
    if requirement.marker is None:
        return not extra
    always = requirement.marker.evaluate({"extra": ""})
    return not always and requirement.marker.evaluate({"extra": extra}) if extra else always


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "missing"


def _install_line() -> str:
    root = project_root()
    if root is None:
        return f"{_python()} -m pip install --upgrade attn-course"
    line = INSTALL_LAB.replace("python", _python(), 1)
    return line if root == Path.cwd() else f"cd '{root}' && {line}"


def _python() -> str:
    """The running Python as one types it."""
    return f"'{sys.executable}'" if " " in sys.executable else sys.executable


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _show(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    colours = {"ok": "green", "note": "yellow", "stops": "bold red"}
    table = Table("", "found", "", title="attn_course")
    for finding in findings:
        state = f"[{colours[finding.state]}]{finding.state}[/]"
        table.add_row(finding.what, escape(finding.found), state)
    console = Console()
    console.print(table)
    # Outside the table, so that a line can be copied whole.
    for finding in findings:
        if finding.mend:
            console.print(
                f"{finding.what}: {escape(finding.mend)}", soft_wrap=True, highlight=False
            )
