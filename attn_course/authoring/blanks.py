"""What is taken out of a solution to make the exercise: whole bodies, blocks, statements.

The marks that a chapter sets: `### BEGIN SOLUTION`, `### STUB`, `### END SOLUTION` round
a block, `# BLANK` or `# BLANK: a word` on a statement. They appear in no notebook.
"""

import ast
import io
import json
import re
import tokenize
from dataclasses import dataclass

from attn_course.authoring import wording
from attn_course.authoring.errors import BuildError
from attn_course.authoring.names import definition

BEGIN, STUB, END = "### BEGIN SOLUTION", "### STUB", "### END SOLUTION"
_MARKS = {BEGIN, STUB, END}
_UNCOMMENT = re.compile(r"^(\s*)# ?")
_BLANK = re.compile(r"#\s*BLANK\b\s*:?\s*(?P<word>.*)")
_BLANKABLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)


def without_body(code: str, name: str) -> str:
    """The cell with the body of `name` taken out, of every method if it is a class.

    Signatures, docstrings and calls of `super().__init__` stay. Raises ValueError if the
    code defines no such function or class.
    """
    node = definition(code, name)
    if node is None:
        raise ValueError(f"the code defines no {name!r}")
    functions = [node] if isinstance(node, ast.FunctionDef) else _methods(node)
    lines = code.splitlines()
    for function in reversed(functions):
        title = name if function is node else f"{name}.{function.name}"
        lines[function.lineno - 1 : function.end_lineno] = _emptied(lines, function, title)
    return "\n".join(lines)


def has_marks(code: str) -> bool:
    """Whether the chapter marked anything in this cell to be taken out."""
    return BEGIN in code or bool(_marked_rows(code))


def solved(code: str, where: str) -> str:
    """The solution: the cell without its marks and without what `### STUB` introduces."""
    lines = code.splitlines()
    for row, (column, _) in _marked_rows(code).items():
        lines[row] = lines[row][:column].rstrip()
    for block in reversed(_blocks(lines, where)):
        del lines[block.stub : block.end + 1]
        del lines[block.begin]
    return "\n".join(lines)


def stubbed(code: str, name: str, where: str) -> str:
    """The exercise: what is marked gives way to an error, or to the stub that the chapter holds.

    Raises BuildError for marks that do not pair, or on what is no plain statement.
    """
    lines = code.splitlines()
    edits = _blanked_statements(code, where)
    for block in _blocks(lines, where):
        edits.append((block.begin, block.end + 1, _start(lines, block, name)))
    below = len(lines)
    for begin, end, replacement in sorted(edits, reverse=True):
        if end > below:
            raise BuildError(
                "{where}: line {line} of the cell is taken out twice", where=where, line=below + 1
            )
        lines[begin:end] = replacement
        below = begin
    return "\n".join(lines)


@dataclass(frozen=True)
class _Block:
    """Row numbers of a block's marks; `stub` equals `end` where the chapter holds no stub."""

    begin: int
    stub: int
    end: int


def _blocks(lines: list[str], where: str) -> list[_Block]:
    marks = [(row, line.strip()) for row, line in enumerate(lines) if line.strip() in _MARKS]
    blocks = []
    while marks:
        for shape in ((BEGIN, END), (BEGIN, STUB, END)):
            if tuple(mark for _, mark in marks[: len(shape)]) == shape:
                rows = [row for row, _ in marks[: len(shape)]]
                blocks.append(_Block(rows[0], rows[1], rows[-1]))
                del marks[: len(shape)]
                break
        else:
            row, mark = marks[0]
            raise BuildError(
                "{where}: line {line} of the cell, {mark!r}, pairs with nothing",
                where=where,
                line=row + 1,
                mark=mark,
            )
    return blocks


def _start(lines: list[str], block: _Block, name: str) -> list[str]:
    """What the learner finds in a block's place."""
    if block.stub < block.end:
        return [_UNCOMMENT.sub(r"\1", line) for line in lines[block.stub + 1 : block.end]]
    return [_raise(_indent(lines[block.begin]), wording.to_write(name))]


def _blanked_statements(code: str, where: str) -> list[tuple[int, int, list[str]]]:
    statements = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.stmt)]
    edits = []
    for row, (_, word) in _marked_rows(code).items():
        around = [s for s in statements if s.lineno <= row + 1 <= (s.end_lineno or s.lineno)]
        statement = max(around, key=lambda s: s.lineno, default=None)
        if not isinstance(statement, _BLANKABLE) or statement.value is None:
            told = code.splitlines()[row].strip()
            raise BuildError(
                "{where}: # BLANK takes out one plain statement, not {told!r}",
                where=where,
                told=told,
            )
        line = code.splitlines()[statement.lineno - 1]
        left = _columns(line, statement.col_offset, statement.value.col_offset).rstrip("( ")
        what = f"{left} …".strip() + (f": {word}" if word else "")
        edit = (statement.lineno - 1, statement.end_lineno or 0, [_raise(_indent(line), what)])
        edits.append(edit)
    return edits


def _marked_rows(code: str) -> dict[int, tuple[int, str]]:
    """Row and column of each `# BLANK` comment, and the word it gives."""
    found = {}
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        match = _BLANK.fullmatch(token.string) if token.type == tokenize.COMMENT else None
        if match:
            found[token.start[0] - 1] = (token.start[1], match["word"].strip())
    return found


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [child for child in node.body if isinstance(child, ast.FunctionDef)]


def _emptied(lines: list[str], function: ast.FunctionDef, title: str) -> list[str]:
    """The function's lines with its body replaced by an error."""
    head = _signature_rows(lines, function)
    body = list(function.body)
    kept = lines[function.lineno - 1 : head]
    if body[0].lineno <= head:  # the body stands on the signature's own line
        kept[-1] = _columns(kept[-1], 0, body[0].col_offset).rstrip()
        body = []
    indent = " " * (function.col_offset + 4)
    if ast.get_docstring(function) is not None and body:
        kept = lines[function.lineno - 1 : body.pop(0).end_lineno]
    for statement in body:
        if ast.unparse(statement).startswith("super().__init__("):
            kept += lines[statement.lineno - 1 : statement.end_lineno]
    return [*kept, _raise(indent, wording.to_write(title))]


def _signature_rows(lines: list[str], function: ast.FunctionDef) -> int:
    """The number of the line on which the signature ends."""
    rest = "\n".join(lines[function.lineno - 1 :]) + "\n"
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(rest).readline):
        if token.type != tokenize.OP:
            continue
        depth += (token.string in "([{") - (token.string in ")]}")
        if token.string == ":" and depth == 0:
            return function.lineno - 1 + token.start[0]
    raise ValueError(f"{function.name} has no signature")  # ast has read it, so it has


def _raise(indent: str, message: str) -> str:
    quoted = json.dumps(message, ensure_ascii=False)
    return f"{indent}raise NotImplementedError({quoted})"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _columns(line: str, start: int, stop: int) -> str:
    """A stretch of a line by ast's offsets, which count bytes."""
    return line.encode()[start:stop].decode()
