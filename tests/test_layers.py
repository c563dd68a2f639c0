"""Who imports whom: no circles, and nothing below the floor. The layers stand in pyproject.toml."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def imports_of(package: str) -> dict[str, set[str]]:
    """For each module what it imports: at its top, inside functions, and for types alone.

    What is written counts: a package through whose door an import passes is not in it.
    """
    graph = grimp.build_graph(package, cache_dir=None)
    return {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}


def circle(imports: dict[str, set[str]]) -> list[str]:
    """The modules of one circle, or none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_file_imports_another_in_a_circle():
    assert circle(imports_of("attn_course")) == []


@pytest.mark.parametrize("module", ["sentences", "events"])
def test_what_all_rooms_may_use_uses_no_room(module):
    assert imports_of("attn_course")[f"attn_course.{module}"] == set()


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Writes a package in which first imports second, second third, and third what is given."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(third: str) -> dict[str, set[str]]:
        texts = {"__init__": "", "first": "from small import second\n"}
        texts |= {"second": "from small.third import last\n", "third": third}
        (tmp_path / "small").mkdir()
        for name, text in texts.items():
            (tmp_path / "small" / f"{name}.py").write_text(text)
        return imports_of("small")

    return write


# kills: a search that sees only the imports that run when a file is imported
@pytest.mark.parametrize(
    "third",
    [
        "def last():\n    from small import first\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from small import first\n",
    ],
)
def test_a_circle_is_found(small, third):
    found = circle(small(third))
    assert set(found) == {"small.first", "small.second", "small.third"}
