"""Mistakes that leave the values right and lose the gradient."""

from attn_course.checks.catalogue.families.family import Family
from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake


def detached(*returned: str) -> Edits:
    """All that is returned is cut from its graph: an edit of `return …`."""
    cut = ", ".join(f"{value}.detach()" for value in returned)
    return {f"return {', '.join(returned)}": f"return {cut}"}


GRADIENT = Family(
    Mistake(
        "detached",
        "No gradient flows back to the inputs: the result is detached (a numpy array, "
        "`.data`, `.detach()`, `.item()` or `no_grad` on the way), so nothing could learn.",
        detached("output", "weights"),
    ),
    Mistake(
        "weights-detached",
        "The gradient reaches the values only: the weights are detached on the way to the "
        "sum, so queries and keys would never learn.",
        {"weights @ value": "weights.detach() @ value"},
    ),
    Mistake(
        "softmax-detached",
        "The weights are cut off from the gradient as soon as they are made: queries and keys "
        "would never learn.",
        {"scores.softmax(dim=-1)": "scores.softmax(dim=-1).detach()"},
    ),
)
"""Edits of `scores.softmax(dim=-1)`, `output = weights @ value` and `return output, weights`."""
