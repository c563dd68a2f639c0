"""Mistakes in the mask."""

from attn_course.checks.catalogue.families.family import Family
from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake

FILLED = "scores.masked_fill(hidden & ~empty, -inf)"
CLEARED = ".masked_fill(empty, 0.0)"


def masked_by(mask: str) -> Edits:
    """Another mask in the place of the one that is given."""
    return {"else ~mask": f"else ~{mask}"}


def in_place_of_filling(scores: str) -> Edits:
    """Other scores go into the softmax, and no thought is given to empty rows."""
    return {FILLED: scores, CLEARED: ""}


def no_softmax() -> Edits:
    """Scores as weights, those of hidden keys set to 0."""
    return {FILLED: "scores * ~hidden", "scores.softmax(dim=-1)": "scores"}


def filled_with(fill: str) -> Edits:
    """Hidden keys get this score, and no thought is given to empty rows."""
    return in_place_of_filling(f"scores.masked_fill(hidden, {fill})")


def masked_after_the_softmax(divided: str) -> Edits:
    """Hidden weights are set to 0 after the softmax, and the others divided by their sum."""
    weights = divided.format("scores.softmax(dim=-1) * ~hidden")
    return {FILLED: "scores", f"scores.softmax(dim=-1){CLEARED}": weights}


MASK = Family(
    Mistake(
        "mask-inverted",
        "True means “may attend” here, and the mask is used the other way round.",
        {"else ~mask": "else mask"},
    ),
    Mistake(
        "mask-ignored",
        "The mask changes nothing: it is never used, or what it gives is thrown away.",
        {" if mask is None else ~mask": ""},
    ),
    Mistake(
        "mask-transposed",
        "Rows and columns of the mask are exchanged: mask[i, j] says whether query i may "
        "attend to key j.",
        masked_by("mask.mT"),
    ),
    Mistake(
        "mask-first-row-for-all",
        "The first row of the mask decides for all queries; each query has a row of its own.",
        masked_by("mask[..., :1, :]"),
    ),
    Mistake(
        "mask-with-an-axis-too-many",
        "The mask is given an axis between queries and keys, or before the queries, that its "
        "shape does not ask for: (i, j) broadcasts over all leading axes as it is.",
        masked_by("mask.unsqueeze(1)"),
    ),
    Mistake(
        "mask-read-as-padding",
        "A mask (i, j) is read as padding (b, j) where the sizes allow it. Two axes are always "
        "queries and keys, whatever their sizes.",
        masked_by(
            "(mask[:, None] if (mask.ndim, query.ndim, len(mask)) == (2, 3, len(query)) else mask)"
        ),
    ),
    Mistake(
        "mask-added",
        "The mask reaches the scores as 0 and 1 (added, or taken off): hidden keys are only 1 "
        "behind.",
        in_place_of_filling("scores + ~hidden"),
    ),
    Mistake(
        "mask-times-infinity",
        "Open keys become NaN: 0 times infinity is not 0. Choose between two scores; do not "
        "multiply infinity by a mask.",
        in_place_of_filling("scores if mask is None else scores + hidden * -inf"),
    ),
    Mistake(
        "mask-as-index",
        "The mask is used as an index into the scores, which fails where they have leading axes "
        "that it has not: (i, j) must broadcast over them.",
        {f"scores = {FILLED}": "scores[hidden & ~empty] = -inf"},
    ),
    Mistake(
        "mask-multiplied-after",
        "The mask is multiplied onto the weights after the softmax, "
        "so what is left in a row no longer sums to one.",
        {FILLED: "scores", CLEARED: " * ~hidden"},
    ),
    Mistake(
        "mask-renormalised",
        "The softmax runs over hidden keys, too, and the mask comes after it. Where a hidden score "
        "is far above the open ones, nothing is left of these, and no division brings it back: "
        "hide the scores before the softmax.",
        masked_after_the_softmax("torch.nn.functional.normalize({}, p=1.0, dim=-1)"),
        also=(masked_after_the_softmax("(lambda x: x / x.sum(dim=-1, keepdim=True))({})"),),
    ),
    Mistake(
        "mask-filled-with-zero",
        "Hidden scores become about 0, and exp(0) is 1: hidden keys still get weight. "
        "Which number does the exponential turn into 0?",
        filled_with("0.0"),
    ),
    Mistake(
        "mask-filled-with-plus-infinity",
        "Hidden scores become plus infinity: the sign is lost.",
        filled_with("inf"),
    ),
    Mistake(
        "mask-filled-with-a-large-number",
        "Hidden scores become large and positive, so the hidden keys get all the weight: "
        "the sign is lost.",
        filled_with("1e9"),
    ),
    Mistake(
        "fill-too-small",
        "Hidden keys get a score that is only somewhat low; beside lower ones it wins.",
        examples=(filled_with("-10.0"), filled_with("-100.0"), filled_with("-1000.0")),
    ),
    Mistake(
        "always-causal",
        "The future is hidden although no mask was given: attend to everything unless a mask "
        "says otherwise.",
        {
            "zeros_like(scores, dtype=torch.bool) if mask is None else ~mask": "ones_like("
            "scores, dtype=torch.bool).triu(1)"
        },
    ),
    Mistake(
        "causal-in-place-of-the-mask",
        "The mask that is given is not looked at: in its place a triangle of your own decides.",
        masked_by("torch.ones_like(scores, dtype=torch.bool).tril()"),
    ),
    Mistake(
        "empty-row-nan",
        "A query that may attend to nothing gets NaN: a softmax over nothing but minus "
        "infinity is 0/0. It should get zeros.",
        filled_with("-inf"),
    ),
    Mistake(
        "empty-row-mean",
        "A query that may attend to nothing gets the mean of all values, hidden ones "
        "included: with a finite fill, equal scores share alike. It should get zeros.",
        filled_with("-1e9"),
    ),
    Mistake(
        "gradient-nan",
        "The output is clean, but the gradient is NaN: NaN arose inside and was "
        "replaced only at the end. It must not arise.",
        {
            **in_place_of_filling("scores + torch.zeros_like(scores).masked_fill(hidden, -inf)"),
            "return output, weights": "return output.nan_to_num(), weights.nan_to_num()",
        },
    ),
)
"""Edits of the lines from `hidden = …` to `.masked_fill(empty, 0.0)`."""
