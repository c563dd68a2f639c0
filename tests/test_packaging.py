"""What is installed where: on Colab, by conda, from the wheel; and what an import draws in."""

import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from attn_course.authoring.source import read_chapter
from attn_course.course import CHAPTERS

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TESTED_PYTHONS = ("3.11", "3.12", "3.13")

# Google Colab's published list of packages, August 2026, Python 3.13.15.
COLAB = {
    "torch": "2.11.0",
    "numpy": "2.1.3",
    "matplotlib": "3.10.0",
    "einops": "0.8.2",
    "ipywidgets": "7.7.1",
    "widgetsnbextension": "3.6.10",
    "anywidget": "0.9.21",
    "ipython": "7.34.0",
    "ipykernel": "6.17.1",
    "notebook": "6.5.7",
    "nbformat": "5.11.1",
    "nbclient": "0.10.4",
    "jupytext": "1.19.5",
    "pytest": "8.4.2",
    "tqdm": "4.67.3",
    "rich": "13.9.4",
    "plotly": "5.24.1",
    "pandas": "2.2.3",
    "tokenizers": "0.22.2",
    "transformers": "5.15.0",
    "dask": "2026.7.1",
}
COLAB_PYTHON = "3.13.15"
OFFLINE = re.compile(r"connection (broken|error|refused|reset)|name resolution|timed out", re.I)


def requirements(extra: str | None = None) -> list[Requirement]:
    optional = PROJECT["optional-dependencies"]
    return [Requirement(text) for text in (optional[extra] if extra else PROJECT["dependencies"])]


def constraints() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def new_on_colab() -> dict[str, str]:
    """What the base install brings to Colab: name, and who asks for it, all the way down.

    Requirements of requirements are read off this environment's packages.
    """
    new: dict[str, str] = {}
    pending = [(requirement, "attn-course") for requirement in requirements()]
    while pending:
        requirement, asker = pending.pop()
        name = canonicalize_name(requirement.name)
        marker = requirement.marker
        colab = {"extra": "", "python_version": "3.13", "python_full_version": COLAB_PYTHON}
        if name in COLAB or name in new or (marker and not marker.evaluate(colab)):
            continue
        new[name] = asker
        pending += [(Requirement(text), name) for text in metadata.requires(name) or []]
    return new


def test_bounds_admit_what_colab_has():
    refused = [
        f"{requirement} refuses {COLAB[name]}"
        for requirement in requirements()
        if (name := canonicalize_name(requirement.name)) in COLAB
        and not requirement.specifier.contains(COLAB[name])
    ]
    assert refused == []
    assert SpecifierSet(PROJECT["requires-python"]).contains(COLAB_PYTHON)


def test_what_is_new_on_colab_accepts_the_rest_of_it():
    refused = []
    for newcomer in new_on_colab():
        for text in metadata.requires(newcomer) or []:
            requirement = Requirement(text)
            version = COLAB.get(canonicalize_name(requirement.name))
            applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if version and applies and not requirement.specifier.contains(version):
                refused.append(f"{newcomer} wants {requirement}, Colab has {version}")
    assert refused == []


def test_jaxtyping_is_new_on_colab_and_torch_is_not():
    new = new_on_colab()
    assert new["jaxtyping"] == "attn-course"
    assert not set(new) & set(COLAB)


def test_pip_itself_would_change_nothing_of_colab(tmp_path):
    """Pip resolves the base install beside packages that bear Colab's names and versions.

    The packages are only metadata, so that nothing large is downloaded.
    """
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True)
    base = {"base": str(tmp_path), "platbase": str(tmp_path)}
    python = Path(sysconfig.get_path("scripts", "venv", base)) / "python"
    site = Path(sysconfig.get_path("purelib", "venv", base))
    for name, version in COLAB.items():
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(text)
    command = [python, "-m", "pip", "install", "--dry-run", "--retries=1", *PROJECT["dependencies"]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode and OFFLINE.search(done.stderr):
        pytest.skip("pip has no network here")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("Would install")]
    installed = {canonicalize_name(word.rsplit("-", 1)[0]) for word in line.split()[2:]}
    assert "jaxtyping" in installed
    assert not installed & set(COLAB)


def test_each_extra_brings_what_it_is_for():
    names = {extra: {r.name for r in requirements(extra)} for extra in ("lab", "dev")}
    assert {"jupyterlab", "nbval"} <= names["lab"]
    assert {"pytest-xdist", "playwright", "jupytext", "ruff", "pyright"} <= names["dev"]
    (own,) = [r for r in requirements("dev") if r.name == "attn-course"]
    assert own.extras == {"lab", "cluster"}, "[dev] includes both"


def test_base_install_has_nothing_that_only_lab_or_dev_needs():
    base = {canonicalize_name(r.name) for r in requirements()}
    assert not base & {"jupyterlab", "nbval", "pytest", "jupytext", "nbclient", "notebook"}


@pytest.mark.parametrize("python", TESTED_PYTHONS)
def test_each_requirement_has_one_tested_version_that_fits_it(python):
    tested = {
        canonicalize_name(pin.name): pin.specifier
        for pin in constraints()
        if pin.marker is None or pin.marker.evaluate({"python_version": python})
    }
    wrong = []
    for requirement in [*requirements(), *requirements("lab"), *requirements("dev")]:
        if requirement.name == "attn-course":
            continue
        pins = [p.version for p in tested.get(canonicalize_name(requirement.name), [])]
        if len(pins) != 1 or not requirement.specifier.contains(pins[0]):
            wrong.append(f"{requirement}: {pins}")
    assert wrong == []


@pytest.mark.parametrize("python", ["3.11.2", "3.12.0", "3.13.0"])
def test_tested_versions_do_not_ask_for_a_later_patch_of_python(python):
    """Debian 12 has Python 3.11.2, and keeps it."""
    refusing = []
    for pin in constraints():
        try:
            package = metadata.metadata(pin.name)
        except metadata.PackageNotFoundError:  # only for another version of Python
            continue
        wanted = package.get("Requires-Python")
        if not pin.specifier.contains(package["Version"]):  # not the tested version
            continue
        if wanted and not SpecifierSet(wanted).contains(python):
            refusing.append(f"{pin} wants Python {wanted}")
    assert refusing == []


def test_constraints_are_exact_and_pin_torch():
    assert [
        str(pin) for pin in constraints() if not re.fullmatch(r"==[\w.]+", str(pin.specifier))
    ] == []
    assert "torch==2.13.0" in map(str, constraints())


def test_tested_pythons_are_said_alike_everywhere():
    said = {
        text.removeprefix("Programming Language :: Python :: ")
        for text in PROJECT["classifiers"]
        if re.search(r":: 3\.\d+$", text)
    }
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    assert said == set(TESTED_PYTHONS)
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == list(TESTED_PYTHONS)


def test_environment_yml_is_in_step():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    python, tool = map(Requirement, conda)
    assert (python.name, tool.name) == ("python", "pip")
    for version in TESTED_PYTHONS:
        assert python.specifier.contains(version)
    lowest = min(map(Version, TESTED_PYTHONS))
    assert str(lowest) in PROJECT["requires-python"]
    assert not python.specifier.contains("3.10")
    assert not python.specifier.contains("3.14"), "no tested versions for it"
    assert pip == {"pip": ["-c constraints.txt", "-e .[lab]"]}
    assert "lab" in PROJECT["optional-dependencies"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> set[str]:
    """The names of the files in a wheel built from this tree."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def package_files() -> set[str]:
    """All that git would keep of the package, committed or not yet."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "attn_course"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in done.stdout.splitlines() if (ROOT / name).exists()}


def test_wheel_holds_the_whole_package_and_its_data(wheel):
    assert package_files() - wheel == set()
    assert "attn_course/data/questions.json" in wheel


def test_wheel_holds_nothing_else(wheel):
    others = {name.split("/")[0] for name in wheel} - {"attn_course"}
    assert others == {f"attn_course-{PROJECT['version']}.dist-info"}


def test_wheel_carries_both_licences(wheel):
    carried = {name.rsplit("/", 1)[-1] for name in wheel if "/licenses/" in name}
    assert carried == {"LICENSE", "LICENSE-prose"}


def test_version_is_the_same_everywhere():
    import attn_course

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert attn_course.__version__ == PROJECT["version"] == citation["version"]


@pytest.mark.parametrize(
    "module", ["attn_course", "attn_course.course", "attn_course.cli", "attn_course.setup.lab"]
)
def test_import_draws_in_nothing_heavy(module):
    code = (
        f"import sys, {module};"
        "heavy = {'torch', 'numpy', 'matplotlib', 'ipywidgets', 'anywidget', 'IPython', 'rich'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_readme_lists_every_chapter_and_says_which_are_not_there_yet():
    readme = (ROOT / "README.md").read_text()
    for chapter in CHAPTERS:
        (row,) = [line for line in readme.splitlines() if line.startswith(f"| {chapter.number} |")]
        assert chapter.title in row
        assert ("not yet" in row) is not chapter.notebook(ROOT).exists(), (
            f"README.md says otherwise: {row}"
        )


def test_chapter_titles_are_said_alike_in_the_sources():
    for chapter in CHAPTERS:
        if chapter.source(ROOT).exists():
            assert read_chapter(chapter.source(ROOT)).title == chapter.title
