"""Questions and predictions: read from their cells, compiled into the package's data."""

import ast
import json
import re
from typing import Any

from filelock import FileLock

from attn_course.authoring.errors import BuildError
from attn_course.authoring.layout import Course
from attn_course.authoring.names import plain_python
from attn_course.authoring.source import Cell, ChapterSource
from attn_course.sentences import say

Questions = dict[str, dict[str, Any]]

_CHOICE = re.compile(r"- \[(?P<mark>[ xX])\] (?P<text>.+)")
_OPTION = re.compile(r"- (?!\[[ xX]\])(?P<text>.+)")
_FIGURE = r"[-−]?\d+(?:\.\d+)?(?:e-?\d+)?"
_NUMBER = re.compile(
    rf"number:\s*(?P<low>{_FIGURE})\s*(?:…|\.\.\.)\s*(?P<high>{_FIGURE}),"
    rf"\s*within\s+(?P<tolerance>{_FIGURE})(?:,\s*(?P<unit>.+))?"
)


def compile_questions(chapter: ChapterSource) -> Questions:
    """All questions and predictions of a chapter by their id, ready for JSON.

    Raises BuildError for a cell that breaks the format, and for a prediction that is
    not revealed after it was asked.
    """
    _check_reveals(chapter)
    return {
        cell.name: {"chapter": chapter.number, **_compiled(cell)}
        for cell in chapter.cells
        if cell.role in ("question", "prediction")
    }


def as_json(questions: Questions) -> str:
    """The text of the questions file."""
    return json.dumps(questions, ensure_ascii=False, indent=1) + "\n"


def merge_questions(course: Course, compiled: dict[str, Questions], keep: bool) -> Questions:
    """The questions of the whole course: those just compiled and, with `keep`, the stored others.

    `compiled` has the chapters' questions by their numbers. Raises BuildError for an id that
    two chapters use.
    """
    stored: Questions = {}
    if keep and course.questions_file.is_file():
        stored = json.loads(course.questions_file.read_text(encoding="utf-8"))
    merged = {name: q for name, q in stored.items() if q["chapter"] not in compiled}
    for one in compiled.values():
        for name, question in one.items():
            if name in merged:
                raise BuildError(
                    "the question id {name!r} stands in chapters {one} and {other}",
                    name=name,
                    one=merged[name]["chapter"],
                    other=question["chapter"],
                )
            merged[name] = question
    return dict(sorted(merged.items(), key=lambda item: item[1]["chapter"]))


def questions_lock(course: Course) -> FileLock:
    """Held while the questions file is read, merged and written: builds may run side by side."""
    folder = course.root / "build"
    folder.mkdir(exist_ok=True)
    return FileLock(folder / "questions.lock")


def _compiled(cell: Cell) -> dict[str, Any]:
    lines = cell.text.splitlines()
    start = next((row for row, line in enumerate(lines) if _begins(line, cell)), len(lines))
    prompt = "\n".join(lines[:start]).strip()
    if not prompt or start == len(lines):
        raise BuildError(
            "{where}: {name!r} needs a question and, below it, its answers",
            where=cell.where,
            name=cell.name,
        )
    if cell.role == "prediction" and lines[start].startswith("number:"):
        return {"kind": "prediction-number", "prompt": prompt, **_number(lines[start:], cell)}
    options = _options(lines[start:], cell)
    if cell.role == "prediction":
        plain = [{"text": option["text"]} for option in options]
        return {"kind": "prediction-choice", "prompt": prompt, "options": plain}
    right = sum(option["right"] for option in options)
    silent = [option["text"] for option in options if not option["why"]]
    if right != 1 or silent:
        raise BuildError(
            "{where}: {name!r} needs exactly one [x] (it has {right}) and an explanation "
            "below every option (without one: {silent})",
            where=cell.where,
            name=cell.name,
            right=right,
            silent=silent or say("none"),
        )
    return {"kind": "choice", "prompt": prompt, "options": options}


def _begins(line: str, cell: Cell) -> bool:
    if cell.role == "question":
        return bool(_CHOICE.match(line))
    return bool(_OPTION.match(line)) or line.startswith("number:")


def _options(lines: list[str], cell: Cell) -> list[dict[str, Any]]:
    pattern = _CHOICE if cell.role == "question" else _OPTION
    options: list[dict[str, Any]] = []
    for line in lines:
        match = pattern.fullmatch(line)
        if match:
            right = match.groupdict().get("mark", " ") != " "
            options.append({"text": match["text"].strip(), "right": right, "why": ""})
        elif not line.strip() or line.startswith("  "):
            options[-1]["why"] = f"{options[-1]['why']}\n{line.strip()}".strip()
        else:
            raise BuildError(
                "{where}: {name!r}: {line!r} is no option, nor below one",
                where=cell.where,
                name=cell.name,
                line=line,
            )
    texts = {option["text"] for option in options}
    if len(options) < 2 or len(texts) < len(options):
        raise BuildError(
            "{where}: {name!r} needs two different options or more",
            where=cell.where,
            name=cell.name,
        )
    return options


def _number(lines: list[str], cell: Cell) -> dict[str, Any]:
    match = _NUMBER.fullmatch("\n".join(lines).strip())
    if match is None:
        raise BuildError(
            "{where}: {name!r}: {line!r} is not of the form `number: LOW … HIGH, within "
            "TOLERANCE[, unit]`",
            where=cell.where,
            name=cell.name,
            line=lines[0],
        )
    low, high, tolerance = (
        float(match[key].replace("−", "-")) for key in ("low", "high", "tolerance")
    )
    if not 0 < tolerance < high - low:
        raise BuildError(
            "{where}: {name!r}: within {tolerance:g} tells nothing about a number between "
            "{low:g} and {high:g}",
            where=cell.where,
            name=cell.name,
            tolerance=tolerance,
            low=low,
            high=high,
        )
    return {"low": low, "high": high, "tolerance": tolerance, "unit": match["unit"] or ""}


def _check_reveals(chapter: ChapterSource) -> None:
    """Every prediction is revealed by a later cell, and nothing else is."""
    waiting: dict[str, Cell] = {}
    for cell in chapter.cells:
        if cell.role == "prediction":
            waiting[cell.name] = cell
        elif cell.kind == "code" and cell.role == "plain":
            for name in _revealed(cell):
                if waiting.pop(name, None) is None:
                    raise BuildError(
                        "{where}: reveal({name!r}) but no open prediction",
                        where=cell.where,
                        name=name,
                    )
    for cell in waiting.values():
        raise BuildError(
            "{where}: the prediction {name!r} is never revealed", where=cell.where, name=cell.name
        )


def _revealed(cell: Cell) -> list[Any]:
    try:
        tree = ast.parse(plain_python(cell.text))
    except SyntaxError as error:
        raise BuildError(
            "{where}: {problem}: {code}",
            where=cell.where,
            problem=error.msg,
            code=(error.text or "").strip(),
        ) from error
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    reveals = [call for call in calls if getattr(call.func, "id", "") == "reveal"]
    for call in reveals:
        if not isinstance(call.args[0], ast.Constant):
            raise BuildError(
                "{where}: reveal takes the prediction's id as a literal", where=cell.where
            )
    return [ast.literal_eval(call.args[0]) for call in reveals]
