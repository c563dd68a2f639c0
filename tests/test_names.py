"""One name, one thing: no two classes of the package share a name.

The catalogue is left out: there a class is what a learner would have written, under its name.
"""

import ast
from collections import defaultdict
from pathlib import Path

import attn_course

PACKAGE = Path(attn_course.__file__).parent
CATALOGUE = PACKAGE / "checks" / "catalogue"


def test_no_two_classes_share_a_name():
    homes: dict[str, list[str]] = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        if not path.is_relative_to(CATALOGUE):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    homes[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
