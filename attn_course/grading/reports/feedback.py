"""What a student may read of a verdict: the cause, and never the hidden inputs."""

from __future__ import annotations

from attn_course.grading.verdict import Verdict

_NUMBERS = ("Yours: ", "Expected: ")
_OPENING, _CLOSING, _QUOTES = "([{", ")]}", "'\""


def told(verdict: Verdict) -> str:
    """The message on a verdict without the inputs that grading drew and their outputs.

    A check in the notebook shows them: there they help. In feedback they would be what the next
    submission returns without computing anything.
    """
    lines = [line for line in verdict.message.split("\n") if not line.startswith(_NUMBERS)]
    return "\n".join(_without_inputs(line) for line in lines)


def _without_inputs(line: str) -> str:
    """`With query = [[1, 0]]: it is wrong.` without the inputs."""
    if not line.startswith("With "):
        return line
    cut = _end_of_inputs(line)
    return f"On inputs drawn for grading: {line[cut:].strip()}" if cut else "Wrong on some inputs."


def _end_of_inputs(line: str) -> int:
    """Where the text goes on after the first colon outside brackets and quotes; 0 without one."""
    depth, quote = 0, ""
    for k, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        elif char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        elif char == ":" and depth == 0:
            return k + 1
    return 0
