"""Which packages are installed, whether they fit, and the line that installs them."""

import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from attn_course.course import project_root
from attn_course.sentences import Code, Sentence, say
from attn_course.setup.lab import INSTALL_LAB

MISSING = "{name} is missing"
OTHER_VERSION = "{name} {version} is not {wanted}"


def requirement_faults(distribution: str, extra: str = "") -> list[Sentence]:
    """What an installed package declares to need and does not find.

    With `extra`, only what that extra adds.
    """
    try:
        declared = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return [say(MISSING, name=distribution)]
    faults = []
    for requirement in map(Requirement, declared):
        if not _applies(requirement, extra):
            continue
        name, version = requirement.name, installed_version(requirement.name)
        if version is None:
            faults.append(say(MISSING, name=name))
        elif not requirement.specifier.contains(version, prereleases=True):
            wanted = str(requirement.specifier)
            faults.append(say(OTHER_VERSION, name=name, version=version, wanted=wanted))
    return faults


def installed_version(distribution: str) -> str | None:
    """The version that is installed, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def install_line() -> Code:
    """The line that installs the course with all that learners need."""
    root, python = project_root(), running_python()
    if root is None:
        return Code(f"{python} -m pip install --upgrade attn-course")
    line = INSTALL_LAB.replace("python", python, 1)
    return Code(line if root == Path.cwd() else f"cd '{root}' && {line}")


def running_python() -> str:
    """The running Python as one types it."""
    return f"'{sys.executable}'" if " " in sys.executable else sys.executable


def _applies(requirement: Requirement, extra: str) -> bool:
    if requirement.marker is None:
        return not extra
    always = requirement.marker.evaluate({"extra": ""})
    return not always and requirement.marker.evaluate({"extra": extra}) if extra else always
