"""Which sandboxes can be used on this machine, and what to do about one that cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from attn_course.grading.sandbox.mounts import system_mounts
from attn_course.sentences import Sentence, say

CONTAINERS = ("docker", "podman")
KINDS = ("bubblewrap", *CONTAINERS, "none")


class SandboxError(RuntimeError):
    """The sandbox cannot be used here; the text says why and what to do."""


REMEDY = (
    "Install it (`apt install bubblewrap`, `dnf install bubblewrap`). Where user namespaces are "
    "off (Ubuntu 24.04: `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or an AppArmor "
    "profile for bwrap; inside Docker: `--security-opt seccomp=unconfined --cap-add SYS_ADMIN`), "
    "and on macOS, use `--sandbox docker` or `--sandbox podman`; on Windows grade inside WSL. "
    "`--sandbox none` runs students' code with all rights of your account, and every report says "
    "so."
)


IMAGE_REMEDY = (
    "{kind} has to be installed and at work, with an image {image!r} that has Python {python} and "
    "the course's packages. In the course's folder: `{kind} build -t {image} --build-arg "
    "PYTHON={python} -f attn_course/grading/sandbox/Dockerfile .` (the environment's "
    "ATTN_COURSE_IMAGE names another one)."
)


def probe(kind: str) -> None:
    """See that a sandbox of this kind works here.

    Raises:
        SandboxError: if it does not, with the remedy.
        ValueError: if there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(
            say("sandbox {kind!r} is none of {known}", kind=kind, known=", ".join(KINDS))
        )
    if kind == "none":
        return
    program = "bwrap" if kind == "bubblewrap" else kind
    remedy = say(REMEDY) if kind == "bubblewrap" else _image_remedy(kind)
    if shutil.which(program) is None:
        words = "{program} is not installed. {remedy}"
        raise SandboxError(say(words, program=program, remedy=remedy))
    if kind == "bubblewrap":
        command = ["bwrap", *("--unshare-all" if os.geteuid() else "--unshare-pid",)]
        command += ["--die-with-parent", *system_mounts(), "--proc", "/proc", "--", "/bin/true"]
    else:
        command = [kind, "image", "inspect", image()]
    done = what_failed(command)
    if done is not None:
        words = "{kind} does not work here: {why}\n{remedy}"
        raise SandboxError(say(words, kind=kind, why=done, remedy=remedy))


def image() -> str:
    """The container image for Docker and Podman: any that has Python and the course's packages."""
    return os.environ.get("ATTN_COURSE_IMAGE", "attn-course-grading")


def _image_remedy(kind: str) -> Sentence:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return say(IMAGE_REMEDY, kind=kind, image=image(), python=python)


def what_failed(command: Sequence[str]) -> str | None:
    """Run a command, and say what went wrong; None if nothing did."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stderr.strip() or f"exit code {done.returncode}") if done.returncode else None
