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
    "AttentionViewer": {
        "title": "Attention maps",
        "query_axis": "query",
        "key_axis": "key",
        "weight": "attention weight",
        "thumbnails": "all heads",
        "heads_axis": "head",
        "layers_axis": "layer",
        "head_label": "Thumbnails of all heads. Layer {layer}, head {head}: mean entropy {entropy} "
        "nats. Arrow keys choose another.",
        "map": "attention weights",
        "map_title": "layer {layer}, head {head}",
        "token": "“{token}” ({place})",
        "token_cell": "{row} to {column}: {value}.",
        "attends": "what {token} attends to",
        "attended": "who attends to {token}",
        "bars_label": "{title}. Largest: {largest}.",
        "sentence": "sentence",
        "beside": "beside it",
        "nothing": "nothing",
        "kind": "attention",
        "kind_attention": "attention",
        "kind_self": "self-attention",
        "kind_encoder": "encoder's self-attention",
        "kind_decoder": "decoder's self-attention",
        "kind_cross": "cross-attention",
        "stretch": "colours up to the largest weight of each map",
        "entropy": "mean entropy of each head (nats)",
        "mean_entropy": "mean entropy",
        "described": "Layer {layer}, head {head}: {row} attends most to {largest}, "
        "entropy {entropy} of at most {most} nats. {row} to {column}: {value}.",
        "drawn": "“{name}”: {kind}, {layers} layers of {heads} heads, {rows} queries by {columns} "
        "keys; large is layer {layer}, head {head}.",
        "no_sentences": "sentences must be packed attention maps, of the same kinds in each",
        "index_allowed": "{name} must be from 0 to {last}, got {got}",
        "kind_allowed": "kind must be one of {allowed}, got {got}",
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
    "HeadsExplorer": {
        "title": "Heads at a fixed d_model",
        "num_heads": "number of heads h",
        "causal": "causal: no token sees later ones",
        "example": "what is shown",
        "source_by_hand": "Queries and keys are set by hand: features 0–5 look for the word "
        "before, 6–11 for the word after, 12–17 for a kind of word that goes with one’s own, "
        "18–23 for words of one’s own kind. Four heads keep the four apart.",
        "source_random": "The weights are drawn at random, as before any training.",
        "source_own": "The weights are your own, of width {d_model}: the same numbers, cut "
        "into as many heads as the slider says.",
        "strip": "one token’s d_model features, cut into heads",
        "strip_label": "{d_model} features cut into {num_heads} heads of {d_k}.",
        "strip_left": "{d_model} features cut into {num_heads} heads of {d_k}: {left_over} "
        "left over.",
        "path": "the path and its shapes",
        "project": "project",
        "split": "split",
        "attend": "attend: weights",
        "sum": "attend: weighted sum",
        "merge": "merge",
        "mix": "W_O mixes the heads",
        "no_whole": "d_k = {d_model} / {num_heads} = {quotient}",
        "not_reached": "not reached",
        "costs": "what it costs",
        "cost": "cost",
        "one_head": "h = 1",
        "these_heads": "h = {num_heads}",
        "parameters": "parameters",
        "multiply_adds": "multiply-adds",
        "weight_bytes": "attention weights in memory, bytes",
        "heads": "all heads",
        "heads_label": "{num_heads} heads as small maps, head {head} chosen, switched off: "
        "{off}. Arrow keys choose, Enter switches off and on.",
        "none": "none",
        "head_on": "head {head}",
        "head_off": "head {head}: off",
        "map": "the chosen head",
        "map_of": "weights of head {head}",
        "query_axis": "query i",
        "key_axis": "key j",
        "token": "token",
        "feature": "feature",
        "switch_off": "Switch head {head} off",
        "switch_on": "Switch head {head} on",
        "only": "Only head {head}",
        "all_on": "All heads on",
        "output": "output",
        "change": "‖change‖ / ‖output of all heads‖",
        "change_title": "how far the output moves when heads are off",
        "described": "{num_heads} heads of d_k = {d_k} make {d_model} features; {parameters} "
        "parameters, as at every count. The largest weight of head {head} is {weight}, from "
        "“{from_token}” to “{to_token}”.",
        "described_off": "Switched off: {off}. The output moves by {percent} % of its length, "
        "on average over the tokens.",
        "does_not_divide": "d_model / h = {d_model} / {num_heads} = {quotient} is no whole "
        "number: {num_heads} heads of {d_k} would use {used} features and lose {left_over}, and "
        "W_o would be given {used} in place of {d_model}. Counts that divide: {divisors}.",
        "d_model_fixed": "d_model is the width of the weights, {width}, got {got}",
        "num_heads_allowed": "num_heads must be a whole number from 1 to d_model = {d_model}, "
        "got {got}",
        "head_allowed": "heads are numbers from 0 to {last}, got {got}",
    },
}


def words_of(name: str) -> dict[str, str]:
    """Return the words of one explorer, those that all share among them."""
    return WORDS["shared"] | WORDS[name]
