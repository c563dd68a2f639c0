"""Which names a piece of code needs from outside, and which it binds."""

import ast
from collections.abc import Iterable

from IPython.core.inputtransformer2 import TransformerManager
from pyflakes.checker import Checker
from pyflakes.messages import UndefinedLocal, UndefinedName

# what IPython itself puts into every notebook
NOTEBOOK_BUILTINS = frozenset({"display", "get_ipython"})


def plain_python(code: str) -> str:
    """The cell's code with IPython's magics turned into the calls that they stand for."""
    return TransformerManager().transform_cell(code)


def undefined_names(code: str, known: Iterable[str] = ()) -> dict[str, int]:
    """Names that are used but bound nowhere in the code, with the line of their first use.

    Shapes in signatures, such as `Float[Tensor, "b i d"]`, are no names.
    Raises SyntaxError for code that Python cannot read.
    """
    known = set(known)
    tree = ast.fix_missing_locations(_DropIndexStrings().visit(ast.parse(code)))
    found: dict[str, int] = {}
    checker = Checker(tree, builtins=NOTEBOOK_BUILTINS | known)
    for message in sorted(checker.messages, key=lambda message: (message.lineno, message.col)):
        if isinstance(message, UndefinedName | UndefinedLocal):
            args = message.message_args  # a bare name for a builtin that is also a local
            name = args if isinstance(args, str) else args[0]
            if name not in known:
                found.setdefault(name, message.lineno)
    return found


def bound_names(code: str) -> set[str]:
    """Every name that the code assigns or imports, at any depth."""
    bound = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
    return bound


def definition(code: str, name: str) -> ast.FunctionDef | ast.ClassDef | None:
    """The top-level function or class of that name, None if the code defines none."""
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
    return None


class _DropIndexStrings(ast.NodeTransformer):
    """Pyflakes would read the strings of a shape as forward references."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                part.value = None
        return node
