"""Which of the package's definitions a notebook's outputs depend on."""

from pathlib import Path

import pytest

from attn_course.authoring import modules
from attn_course.authoring.reach import by_file, mentioned, reached

FILES = {
    "__init__.py": """
if TYPE_CHECKING:
    from attn_course.lazy import fetched
_HOMES = {"fetched": "attn_course.lazy"}
""",
    "alone.py": """
import math
SIZE = 3
def f(x=SIZE):
    return x
def g():
    return 1
""",
    "chain.py": """
def f():
    from attn_course.deep.inner import x
    return x
""",
    "relative.py": """
from . import alone
from .deep import inner as renamed
def f():
    return renamed.x + alone.f()
""",
    "lazy.py": "fetched = 1",
    "again.py": "from attn_course.alone import f",
    "acting.py": """
import os
from attn_course import alone
os.environ["A"] = alone.g()
x = 1
""",
    "calls.py": """
from attn_course.acting import x
def f():
    return 1
""",
    "family.py": """
class Base:
    size = 1
class Child(Base):
    def f(self):
        return 2
""",
    "told.py": """TABLE = [("attn_course.alone", "g")]""",
    "deep/__init__.py": """
from attn_course import alone
_HOMES = {"View": "attn_course.deep.inner"}
""",
    "deep/inner.py": """
x = 1
class View:
    def page(self):
        return read("page.html")
""",
    "deep/other.py": "y = 1",
    "deep/page.html": "<p>a page</p>",
    "deep/notes.txt": "",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(modules, "PACKAGE", tmp_path)
    return tmp_path


def texts(code: str, known: tuple = ()) -> dict[str, str]:
    return by_file(reached(mentioned(["x = 1", code]), known))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import math\nimport torch.nn\nmath.pi", []),
        ("import attn_course", []),
        ("import attn_course.alone as a\na.f()", ["alone.py"]),
        ("import attn_course.alone\nattn_course.alone.f()", ["alone.py"]),
        ("from attn_course import alone\nalone.f()", ["alone.py"]),
        ("from attn_course import alone\nprint(alone)", ["alone.py"]),
        ("from attn_course.alone import anything\nanything()", ["alone.py"]),
        ("from attn_course.alone import *", ["alone.py"]),
        ("from attn_course.again import f\nf()", ["alone.py"]),
        ("from attn_course import fetched\nfetched", ["lazy.py"]),
        ("def f():\n    import attn_course.alone as a\n    a.g()", ["alone.py"]),
        ("%matplotlib inline\nfrom attn_course import alone\nalone.f()", ["alone.py"]),
        ("from attn_course.chain import f\nf()", ["chain.py", "deep/inner.py"]),
        ("from attn_course.deep import View\nView()", ["deep/inner.py", "deep/page.html"]),
        ("from attn_course.relative import f\nf()", ["alone.py", "deep/inner.py", "relative.py"]),
        ("from attn_course.calls import f\nf()", ["acting.py", "alone.py", "calls.py"]),
        ("from attn_course.family import Child\nChild()", ["family.py"]),
        ("from attn_course.told import TABLE\nTABLE", ["alone.py", "told.py"]),
    ],
)
def test_imports_of_every_form_are_followed(package: Path, code: str, expected: list[str]) -> None:
    assert sorted(texts(code)) == expected


CHAIN = "from attn_course import chain\nchain.f()"
CALLS = "from attn_course import calls\ncalls.f()"
VIEW = "from attn_course.deep import View\nView()"
SIZE = "from attn_course import alone\nalone.f()"
CHILD = "from attn_course.family import Child\nChild()"


@pytest.mark.parametrize(
    ("code", "file", "before", "after"),
    [
        (CHAIN, "chain.py", "return x", "return -x"),
        (CHAIN, "deep/inner.py", "x = 1", "x = 2"),
        (SIZE, "alone.py", "SIZE = 3", "SIZE = 4"),
        (CALLS, "acting.py", '["A"]', '["B"]'),
        (CALLS, "alone.py", "return 1", "return 2"),
        (CHILD, "family.py", "size = 1", "size = 2"),
        (CHILD, "family.py", "return 2", "return 3"),
        (VIEW, "deep/page.html", "a page", "another page"),
    ],
)
def test_what_is_reached_makes_a_difference(
    package: Path, code: str, file: str, before: str, after: str
) -> None:
    former = texts(code)
    edit(package / file, before, after)
    now = texts(code)
    assert [name for name in now if now[name] != former[name]] == [file]


@pytest.mark.parametrize(
    ("code", "file", "before", "after"),
    [
        (SIZE, "alone.py", "return 1", "return 2"),  # a function that nobody calls
        (SIZE, "alone.py", "SIZE = 3", "SIZE = (  # three\n    3\n)"),
        (SIZE, "alone.py", "def f(x=SIZE):\n", 'def f(x=SIZE):\n    """Return x."""\n'),
        (SIZE, "alone.py", "import math", '"""All alone."""\nimport math'),
        (SIZE, "alone.py", "SIZE = 3\n", 'SIZE = 3\n"""How many."""\n'),
        (SIZE, "alone.py", "\n", "\r\n"),
        (CHAIN, "deep/inner.py", "class View", "class Sight"),
        (CHAIN, "deep/other.py", "y = 1", "y = 2"),
        (VIEW, "deep/notes.txt", "", "a note"),
    ],
)
def test_what_is_not_reached_or_is_no_code_makes_none(
    package: Path, code: str, file: str, before: str, after: str
) -> None:
    former = texts(code)
    edit(package / file, before, after)
    assert texts(code) == former


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_bytes(text.replace(before, after).encode())


def test_what_is_known_in_another_way_is_not_followed(package: Path) -> None:
    known = (("attn_course.deep.inner", "x"), ("attn_course.again", "f"))
    assert sorted(texts(CHAIN, known)) == ["chain.py"]
    assert texts("from attn_course.again import f\nf()", known) == {}
