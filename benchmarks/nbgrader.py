"""nbgrader in an environment of its own, and a class for it to mark."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = Path(__file__).with_name("nbgrader-requirements.txt")
HOME = ROOT / "build" / "nbgrader"
ASSIGNMENT = "chapter"


class Missing(Exception):
    """It cannot be installed here; the text says why."""


def program() -> Path:
    """The nbgrader command, installed on first use and kept in build/.

    Raises:
        Missing: if it cannot be installed.
    """
    found = HOME / ("Scripts" if sys.platform == "win32" else "bin") / "nbgrader"
    wanted, made = REQUIREMENTS.read_text(encoding="utf-8"), HOME / "made-from.txt"
    if made.exists() and made.read_text(encoding="utf-8") == wanted:
        return found
    shutil.rmtree(HOME, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
    pip = [found.with_name("python"), "-m", "pip", "install", "--quiet", "--no-input"]
    done = subprocess.run([*pip, "-r", REQUIREMENTS], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"nbgrader cannot be installed here: {done.stderr.strip()[-300:]}")
    made.write_text(wanted, encoding="utf-8")
    return found


def write_course(folder: Path, notebook: Path, students: int) -> Path:
    """A course with one assignment that all have handed in solved; returns what was handed in."""
    source = folder / "source" / ASSIGNMENT / "answers.ipynb"
    source.parent.mkdir(parents=True)
    shutil.copy(notebook, source)
    settings = "c = get_config()\nc.CourseDirectory.course_id = 'bench'\n"
    (folder / "nbgrader_config.py").write_text(settings, encoding="utf-8")
    submitted = folder / "submitted"
    for k in range(students):
        place = submitted / f"student{k:02d}" / ASSIGNMENT
        place.mkdir(parents=True)
        shutil.copy(notebook, place / "answers.ipynb")
    # the kernel is this Python's, which has torch and the course
    spec = folder / "data" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    return submitted


def environment(folder: Path) -> dict[str, str]:
    """What the commands need in the environment, besides what is there."""
    return {
        # it calls alembic by name
        "PATH": os.pathsep.join((str(program().parent), os.environ["PATH"])),
        "JUPYTER_PATH": str(folder / "data"),
        "JUPYTER_PLATFORM_DIRS": "1",
        "IPYTHONDIR": str(folder / "ipython"),
        "ATTN_COURSE_PROGRESS": str(folder / "progress.json"),
    }
