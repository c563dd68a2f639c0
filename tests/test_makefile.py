"""`make lab` and `make test` on machines of all kinds, played by stand-ins for Python and pip.

The stand-in is a shell script that answers as scripts/set_up.sh asks: its version, `-m venv`
(which puts the stand-in into the new folder) and `-m pip` (which is written down). The real
thing is what CI does.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("sh", "make", "awk", "cat", "chmod", "cksum", "cp", "dirname", "grep", "head", "mkdir")
MORE_TOOLS = ("printf", "pwd", "rm", "tail")

STAND_IN = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$1 $2" in
    "-c "*ensurepip*) echo "{answer}" ;;
    "-c "*) ;;
    "--version "*) echo "Python {version}" ;;
    "-m venv")
        if [ "$3" = --clear ]; then rm -rf .venv; fi
        mkdir -p .venv/bin
        echo stand-in > .venv/pyvenv.cfg
        cp "$0" .venv/bin/python ;;
    "-m pip")
        [ "$3" = --version ] && exit 0
        if [ -n "$PIP_SAYS" ]; then echo "$PIP_SAYS" >&2; exit 1; fi
        if [ -n "$PIP_KILLED" ]; then kill -9 $PPID; fi ;;
esac
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="make is not used on Windows")


@dataclass
class Machine:
    """A copy of what set-up reads, and a PATH with only what the test put there."""

    clone: Path
    bin: Path
    calls: Path

    def python(self, name: str, version: str, kind: str = "tested") -> None:
        self.program(name, STAND_IN.format(answer=f"{version} {kind}", version=f"{version}.1"))

    def program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    def make(self, *targets: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "CALLS": str(self.calls), **variables}
        return subprocess.run(
            ["make", *targets],
            cwd=self.clone,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def installs(self) -> list[str]:
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line for line in lines if line.startswith("-m pip install")]


@pytest.fixture
def machine(tmp_path):
    clone = tmp_path / "a clone"
    clone.mkdir()
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, clone)
    shutil.copytree(ROOT / "scripts", clone / "scripts")
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in (*TOOLS, *MORE_TOOLS):
        where = shutil.which(tool)
        if where:
            (programs / tool).symlink_to(where)
    return Machine(clone, programs, tmp_path / "calls")


def errors(result: subprocess.CompletedProcess[str]) -> list[str]:
    """What a person is told, without make's own last line."""
    return [line for line in result.stderr.splitlines() if not line.startswith("make:")]


def test_second_run_sets_nothing_up_again(machine):
    machine.python("python3.12", "3.12")
    assert machine.make("lab-ready").returncode == 0
    assert len(machine.installs()) == 1
    assert machine.make("lab-ready").returncode == 0
    assert len(machine.installs()) == 1


def test_set_up_installs_the_tested_versions_for_the_command(machine):
    machine.python("python3.12", "3.12")
    machine.make("lab-ready")
    machine.make("dev-ready")
    lab, dev = machine.installs()
    assert "-c constraints.txt -e .[lab]" in lab
    assert "-c constraints.txt -e .[dev]" in dev
    made = [line for line in machine.calls.read_text().splitlines() if line.startswith("-m venv")]
    assert len(made) == 1, "test after lab adds to the same .venv"


def test_lab_after_test_has_nothing_to_do(machine):
    machine.python("python3.12", "3.12")
    machine.make("dev-ready")
    machine.make("lab-ready")
    assert len(machine.installs()) == 1


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml"])
def test_changed_requirements_are_installed(machine, name):
    machine.python("python3.12", "3.12")
    machine.make("lab-ready")
    with (machine.clone / name).open("a") as file:
        file.write("# changed\n")
    machine.make("lab-ready")
    assert len(machine.installs()) == 2


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        ({"python3.11": "3.11", "python3.13": "3.13"}, "3.13"),
        ({"python3": "3.12"}, "3.12"),
        ({"python": "3.11"}, "3.11"),
        ({"python3": "3.12", "python": "3.11"}, "3.12"),
    ],
)
def test_newest_tested_python_is_taken(machine, present, expected):
    for name, version in present.items():
        machine.python(name, version)
    result = machine.make("lab-ready")
    assert f"making .venv with Python {expected}." in result.stdout


def test_shims_that_fail_are_skipped(machine):
    machine.program(
        "python3.13", "#!/bin/sh\necho 'pyenv: python3.13: command not found' >&2\nexit 127\n"
    )
    machine.python("python3.11", "3.11")
    result = machine.make("lab-ready")
    assert result.returncode == 0
    assert "Python 3.11." in result.stdout
    assert errors(result) == []


def test_newer_python_is_a_last_choice_with_a_word(machine):
    machine.python("python3", "3.14", "new")
    machine.python("python", "3.12")
    assert "Python 3.12." in machine.make("lab-ready").stdout
    (machine.bin / "python").unlink()
    shutil.rmtree(machine.clone / ".venv")
    result = machine.make("lab-ready")
    assert result.returncode == 0
    assert "newer than the tested versions" in result.stderr


def test_python_can_be_chosen(machine):
    machine.python("python3.13", "3.13")
    machine.python("mine", "3.11")
    assert "Python 3.11." in machine.make("lab-ready", PYTHON="mine").stdout


def test_a_chosen_python_that_does_not_run_is_not_replaced(machine):
    machine.python("python3.13", "3.13")
    result = machine.make("lab-ready", PYTHON="nowhere")
    assert result.returncode != 0
    assert errors(result) == [
        "attn_course: PYTHON=nowhere does not run; the course needs Python 3.11, 3.12 or 3.13"
    ]


def test_a_python_that_is_chosen_later_makes_another_venv(machine):
    machine.python("python3.13", "3.13")
    machine.python("mine", "3.11")
    machine.make("lab-ready")
    assert "Python 3.11." in machine.make("lab-ready", PYTHON="mine").stdout
    assert machine.make("lab-ready", PYTHON="mine").stdout == ""
    assert machine.make("lab-ready").stdout == "", "what was chosen once is kept"


def test_a_venv_that_is_a_link_is_not_emptied(machine):
    machine.python("python3.12", "3.12")
    theirs = machine.clone.with_name("theirs")
    theirs.mkdir()
    (theirs / "work").write_text("of somebody else")
    (machine.clone / ".venv").symlink_to(theirs)
    result = machine.make("lab-ready")
    assert result.returncode != 0
    assert ".venv is a link" in "".join(errors(result))
    assert (theirs / "work").exists()


def test_a_folder_that_is_no_venv_is_not_emptied(machine):
    machine.python("python3.12", "3.12")
    (machine.clone / ".venv").mkdir()
    (machine.clone / ".venv" / "work").write_text("of somebody else")
    result = machine.make("lab-ready")
    assert result.returncode != 0
    assert "no virtual environment" in "".join(errors(result))
    assert (machine.clone / ".venv" / "work").exists()


@pytest.mark.parametrize(
    ("pythons", "words"),
    [
        ([], "found no Python"),
        ([("python3", "3.9", "old")], "found only Python 3.9"),
        ([("python3", "2.7", "old-without-venv")], "found only Python 2.7"),
        ([("python3", "3.11", "tested-without-venv")], "sudo apt install python3.11-venv"),
    ],
)
def test_no_suitable_python_is_one_clear_line(machine, pythons, words):
    for python in pythons:
        machine.python(*python)
    result = machine.make("lab-ready")
    assert result.returncode != 0
    (line,) = errors(result)
    assert line.startswith("attn_course: ")
    assert words in line
    assert not (machine.clone / ".venv").exists()


def test_no_network_is_one_clear_line(machine):
    machine.python("python3.12", "3.12")
    says = (
        "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError'\n"
        "ERROR: No matching distribution found for hatchling>=1.27"
    )
    result = machine.make("lab-ready", PIP_SAYS=says)
    assert result.returncode != 0
    (line,) = errors(result)
    assert "no network" in line
    # What was there is kept: a large torch need not be downloaded again.
    (machine.clone / ".venv" / "torch").write_text("")
    assert machine.make("lab-ready").returncode == 0
    assert (machine.clone / ".venv" / "torch").exists()


def test_other_failures_of_pip_keep_its_reason(machine):
    machine.python("python3.12", "3.12")
    result = machine.make("lab-ready", PIP_SAYS="ERROR: ResolutionImpossible: a needs b")
    (line,) = errors(result)
    assert "ResolutionImpossible: a needs b" in line


def test_an_interrupted_set_up_is_started_again_from_nothing(machine):
    machine.python("python3.12", "3.12")
    assert machine.make("lab-ready", PIP_KILLED="yes").returncode != 0
    (machine.clone / ".venv" / "half").write_text("half a package")
    assert machine.make("lab-ready").returncode == 0
    assert not (machine.clone / ".venv" / "half").exists()


def test_what_an_interrupted_addition_leaves_is_not_taken_as_ready(machine):
    machine.python("python3.12", "3.12")
    machine.make("lab-ready")
    assert machine.make("dev-ready", PIP_KILLED="yes").returncode != 0
    machine.make("lab-ready")
    assert len(machine.installs()) == 3


def test_a_moved_clone_is_set_up_again(machine):
    machine.python("python3.12", "3.12")
    machine.make("lab-ready")
    moved = machine.clone.with_name("moved")
    machine.clone.rename(moved)
    machine.clone = moved
    result = machine.make("lab-ready")
    assert "making .venv" in result.stdout


def test_a_venv_whose_python_is_gone_is_made_anew(machine):
    machine.python("python3.12", "3.12")
    machine.make("lab-ready")
    (machine.clone / ".venv" / "bin" / "python").unlink()
    result = machine.make("lab-ready")
    assert result.returncode == 0
    assert "making .venv" in result.stdout


def test_a_venv_made_by_hand_is_kept(machine):
    machine.python("python3.12", "3.12")
    hand_made = machine.clone / ".venv" / "bin"
    hand_made.mkdir(parents=True)
    shutil.copy(machine.bin / "python3.12", hand_made / "python")
    (hand_made / "mine").write_text("a CPU build of torch, say")
    assert machine.make("lab-ready").returncode == 0
    assert (hand_made / "mine").exists()
    assert len(machine.installs()) == 1


def test_help_lists_every_command_of_the_readme(machine):
    listed = machine.make("help").stdout
    for target in ("lab", "test", "notebooks", "bench", "test-slow"):
        assert f"make {target} " in listed


def test_make_alone_shows_the_help(machine):
    listed = machine.make("help").stdout
    assert machine.make().stdout == listed
