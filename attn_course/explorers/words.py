"""Every word that an explorer shows, in one table, so that a translation can replace it.

`WORDS["shared"]` holds what all explorers say, the other entries what one of them says.
`{names}` are filled in; a translation may put them anywhere in its sentence.
"""

WORDS: dict[str, dict[str, str]] = {
    "shared": {
        "language": "en",
        "table": "Table",
        "csv": "Save as CSV",
        "map_label": "{name}: map of {rows} rows by {columns} columns.",
        "cell": "Row {row}, column {column}: {value}.",
        "hidden_cell": "hidden by the mask",
        "still": "Interactive in a running notebook and in exported HTML.",
        "wrong_shape": "{name} must have shape {expected}, got {got}",
    },
    "ScalingExplorer": {
        "title": "Scaled and unscaled scores",
        "d_k": "d_k",
        "redraw": "Draw other keys",
        "scaled": "divided by √d_k",
        "unscaled": "not divided",
        "weights": "softmax of the first query",
        "key_axis": "key position j",
        "weight": "weight",
        "spread": "standard deviation of the scores",
        "entropy": "mean entropy of the weights (nats)",
        "gradient": "mean size of the softmax's gradient",
        "measure": "measure",
        "d_k_allowed": "d_k must be one of {allowed}, got {got}",
        "seed_allowed": "seed must be a whole number from 0, got {got}",
        "described": "At d_k = {d_k} the scores spread by {spread} without the division and by "
        "{scaled_spread} with it. The first query's largest weight is {largest} without and "
        "{scaled_largest} with; the size of the softmax's gradient is {gradient} without and "
        "{scaled_gradient} with.",
    },
    "Quiz": {
        "title": "Question",
        "options": "Options",
        "answer": "Answer",
        "right": "Right.",
        "wrong": "Not quite.",
        "choose": "Choose an option first.",
        "option_allowed": "an option's index must lie between -1 and one below {count}, got {got}",
    },
    "Predict": {
        "title": "Prediction",
        "options": "Options",
        "value": "Your prediction",
        "value_in": "Your prediction ({unit})",
        "exact": "exactly",
        "confidence": "How sure are you?",
        "commit": "Commit",
        "uncommitted": "Commit before you run on: what you predict is kept.",
        "committed": "Committed. Run on and see.",
        "before": "You committed to this before.",
        "choose": "Choose an option first.",
        "closed": "this prediction is committed and stays as it was made",
        "option_allowed": "an option's index must lie between -1 and one below {count}, got {got}",
        "value_allowed": "the prediction must lie between {low} and {high}, got {got}",
        "confidence_allowed": "the confidence must be one of {allowed} percent, got {got}",
    },
}


def words_of(name: str) -> dict[str, str]:
    """Return the words of one explorer, those that all share among them."""
    return WORDS["shared"] | WORDS[name]
