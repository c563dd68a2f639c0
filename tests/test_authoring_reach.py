"""Which of the package's files a notebook's outputs depend on."""

from pathlib import Path

import nbformat
import pytest

from attn_course.authoring import reach
from attn_course.authoring.reach import reached_files, source_hash

FILES = {
    "__init__.py": "if TYPE_CHECKING:\n    from attn_course.lazy import fetched\n",
    "alone.py": "import math\n",
    "chain.py": "def f():\n    from attn_course.deep.inner import x\n",
    "relative.py": "from . import alone\nfrom .deep import inner as renamed\n",
    "lazy.py": "",
    "deep/__init__.py": "from attn_course import alone\n",
    "deep/inner.py": "x = 1\n",
    "deep/other.py": "",
    "deep/view.mjs": "",
    "deep/notes.txt": "",
    "checks/catalogue/ch03_softmax.py": "",
    "checks/catalogue/ch04_mask.py": "",
}
WHOLE = {"__init__.py"}
DEEP = WHOLE | {"deep/__init__.py", "deep/inner.py", "deep/view.mjs", "alone.py"}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(reach, "_PACKAGE", tmp_path)
    lazy = {
        "attn_course": {"fetched": "attn_course.lazy"},
        "attn_course.deep": {"View": "attn_course.deep.inner"},
    }
    monkeypatch.setattr(reach, "_LAZY", lazy)
    return tmp_path


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import math\nimport torch.nn", set()),
        ("import attn_course", WHOLE),
        ("import attn_course.alone as a", WHOLE | {"alone.py"}),
        ("from attn_course import alone", WHOLE | {"alone.py"}),
        ("from attn_course.alone import anything", WHOLE | {"alone.py"}),
        ("from attn_course import fetched", WHOLE | {"lazy.py"}),
        ("def f():\n    import attn_course.alone", WHOLE | {"alone.py"}),
        ("%matplotlib inline\nfrom attn_course import alone", WHOLE | {"alone.py"}),
        ("from attn_course.chain import f", DEEP | {"chain.py"}),
        ("from attn_course.deep import View", DEEP),
        ("from attn_course.relative import alone", DEEP | {"relative.py"}),
    ],
)
def test_imports_of_every_form_are_followed(package: Path, code: str, expected: set) -> None:
    found = reached_files(["x = 1", code])
    assert [path.relative_to(package).as_posix() for path in found] == sorted(expected)


def notebook(code: str, prose: str = "prose") -> nbformat.NotebookNode:
    cells = [nbformat.v4.new_code_cell(code), nbformat.v4.new_markdown_cell(prose)]
    return nbformat.v4.new_notebook(cells=cells, metadata={"attn_course": {"chapter": "03"}})


@pytest.mark.parametrize("name", ["chain.py", "deep/inner.py", "deep/view.mjs", "alone.py"])
def test_the_key_changes_with_a_file_that_is_reached(package: Path, name: str) -> None:
    built = notebook("from attn_course import chain")
    before = source_hash(built, "")
    path = package / name
    path.write_text(path.read_text() + "# changed\n")
    assert source_hash(built, "") != before


def test_the_key_changes_with_the_code_the_context_and_the_chapters_checks(package: Path) -> None:
    key = source_hash(notebook("x = 1"), "context")
    assert source_hash(notebook("x = 2"), "context") != key
    assert source_hash(notebook("x = 1"), "another") != key
    (package / "checks/catalogue/ch03_softmax.py").write_text("changed")
    assert source_hash(notebook("x = 1"), "context") != key


def test_the_key_ignores_prose_other_chapters_and_line_ends(package: Path) -> None:
    key = source_hash(notebook("import attn_course.chain"), "")
    (package / "checks/catalogue/ch04_mask.py").write_text("changed")
    (package / "deep/other.py").write_text("changed")
    (package / "chain.py").write_bytes(FILES["chain.py"].replace("\n", "\r\n").encode())
    assert source_hash(notebook("import attn_course.chain", "other prose"), "") == key
