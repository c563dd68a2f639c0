"""A solution is complete by itself, whatever its module imports and defines."""

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest

from attn_course.authoring.blanks import without_body
from attn_course.authoring.errors import BuildError
from attn_course.authoring.names import undefined_names
from attn_course.authoring.solutions import package_solution

MODULES = ("attention", "blocks", "masks", "multihead", "positions", "primer", "recurrent")


def public() -> list[tuple[str, str]]:
    """Every public function and class of the modules that chapters take solutions from."""
    found = []
    for module in (import_module(f"attn_course.{short}") for short in MODULES):
        for name, value in vars(module).items():
            own = getattr(value, "__module__", "") == module.__name__
            if own and inspect.isfunction(value) | inspect.isclass(value) and name[0] != "_":
                found.append((module.__name__, name))
    return found


@pytest.mark.parametrize(("module", "name"), public())
def test_a_solution_of_the_package_runs_by_itself_and_its_stub_is_empty(
    module: str, name: str
) -> None:
    solution = package_solution(name, module, "here")
    assert undefined_names(solution) == {}
    real, copied, emptied = getattr(import_module(module), name), {}, {}
    exec(solution, copied)
    exec(without_body(solution, name), emptied)
    assert copied[name].__doc__ == emptied[name].__doc__ == real.__doc__
    assert str(inspect.signature(emptied[name])) == str(inspect.signature(real))
    if inspect.isfunction(real):
        parameters = inspect.signature(real).parameters.values()
        required = [p for p in parameters if p.default is p.empty]
        named = {p.name: None for p in required if p.kind is p.KEYWORD_ONLY}
        with pytest.raises(NotImplementedError, match=name):
            emptied[name](*[None] * (len(required) - len(named)), **named)


MODULE = dedent(
    '''\
    """A module that imports in many ways."""

    import os.path
    import sys as system
    from math import inf, pi, sqrt as root
    from typing import TYPE_CHECKING, Literal

    import torch
    from torch import Tensor

    from attn_course.masks import causal_mask

    from . import sibling

    if TYPE_CHECKING:
        from collections.abc import Callable

    LIMIT, OTHER = 3, 4
    SCALE: float = 2.0


    def helper(x: Tensor) -> Tensor:
        """Help."""
        return x


    # a remark on the next function


    @torch.no_grad()
    def wanted(
        x: Float[Tensor, "b torch"], kind: Literal["post", "pre"], f: "Callable[[int], int]"
    ) -> Tensor:
        """Use some of it."""
        pi = root(x) if kind == "post" else LIMIT * SCALE  # a local with an import's name
        causal_mask(os.path.join, sibling.deep)
        return helper(pi) + wanted(x, kind, f)
    '''
)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "many_ways"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "sibling.py").write_text("deep = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith("many_ways")]:
        del sys.modules[name]


def test_exactly_the_used_imports_come_along_in_groups(package: Path) -> None:
    (package / "module.py").write_text(
        MODULE.replace("from torch import Tensor\n", "from torch import Tensor, nn\n").replace(
            "import torch\n", "import torch\nfrom jaxtyping import Float, Int\n", 1
        )
    )
    solution = package_solution("wanted", "many_ways.module", "here")
    imports, _, body = solution.partition("\n\n\n")
    assert imports == dedent(
        """\
        import os.path
        from collections.abc import Callable
        from math import sqrt as root
        from typing import Literal

        import torch
        from jaxtyping import Float
        from many_ways import sibling
        from many_ways.module import LIMIT, SCALE, helper
        from torch import Tensor

        from attn_course.masks import causal_mask"""
    )
    assert body == MODULE[MODULE.index("@torch") :].rstrip()


def test_a_name_that_the_module_does_not_have_is_an_error(package: Path) -> None:
    (package / "module.py").write_text(MODULE)
    with pytest.raises(BuildError, match=r"many_ways\.module uses \['Float'\] but neither imports"):
        package_solution("wanted", "many_ways.module", "here")


def test_annotations_that_need_the_future_keep_it(package: Path) -> None:
    code = "from __future__ import annotations\n\n\nclass Tree:\n    def up(self) -> Tree: ...\n"
    (package / "module.py").write_text(code)
    assert package_solution("Tree", "many_ways.module", "here") == code.rstrip()


def test_a_long_import_is_wrapped(package: Path) -> None:
    names = [f"a_rather_long_name_{n}" for n in range(6)]
    code = "\n".join(f"{name} = 1" for name in names)
    (package / "module.py").write_text(f"{code}\n\n\ndef f():\n    return {' + '.join(names)}\n")
    solution = package_solution("f", "many_ways.module", "here")
    wrapped = "".join(f"    {name},\n" for name in names)
    assert solution.startswith(f"from many_ways.module import (\n{wrapped})\n\n\ndef f")


@pytest.mark.parametrize(
    ("name", "module", "told"),
    [
        ("nothing", "attn_course.attention", "defines no function or class 'nothing'"),
        ("Tensor", "attn_course.attention", "defines no function or class 'Tensor'"),
        ("softmax", "attn_course.attentoin", "no module 'attn_course.attentoin'"),
        ("softmax", "attn_cuorse.attention", "no module 'attn_cuorse.attention'"),
    ],
)
def test_what_is_not_there_is_told(name: str, module: str, told: str) -> None:
    with pytest.raises(BuildError, match=f"^chapters/x.py:9: .*{told}"):
        package_solution(name, module, "chapters/x.py:9")
