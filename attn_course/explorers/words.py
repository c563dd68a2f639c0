"""Every word that an explorer shows, in one table of constants for the door.

`WORDS["shared"]` holds what all explorers say, the other entries what one of them says.
`words_of` turns them into the reader's language, in which the browser gets them; it fills in
`{names}` itself. A translation may put them anywhere in its sentence. `{name:one|more}` is the
word that goes with the count of that name: "{heads} {heads:head|heads}".
"""

import re
from collections.abc import Mapping
from typing import Any

from attn_course.sentences import language_spoken, spoken

_MAPS = {
    "query_axis": "query",
    "key_axis": "key",
    "weight": "attention weight",
    "thumbnails": "all heads",
    "heads_axis": "head",
    "layers_axis": "layer",
    "head_label": "Thumbnails of all heads. Layer {layer}, head {head}: mean entropy {entropy} "
    "nats. Arrow keys choose another.",
    "hint": "Arrow keys or a click choose a head among the small maps; the number or the bar "
    "below each is its mean entropy, in nats. In the large map they choose a query and a key.",
    "map": "attention weights",
    "map_title": "layer {layer}, head {head}",
    "token": "“{token}” ({place})",
    "token_cell": "{row} to {column}: {value}.",
    "nothing": "nothing",
    "kind": "attention",
    "kind_attention": "attention",
    "kind_self": "self-attention",
    "kind_encoder": "encoder's self-attention",
    "kind_decoder": "decoder's self-attention",
    "kind_cross": "cross-attention",
    "stretch": "colours up to the largest weight of each map",
    "index_allowed": "{name} must be from 0 to {last}, got {got}",
}

WORDS: dict[str, dict[str, str]] = {
    "shared": {
        "table": "Table",
        "csv": "Save as CSV",
        "cut_table": "{title}: the first {shown} of {rows} rows, all are in the CSV",
        "map_label": "{name}: map of {rows} {rows:row|rows} by {columns} {columns:column|columns}.",
        "cell": "Row {row}, column {column}: {value}.",
        "hidden_cell": "hidden by the mask",
        "still": "Interactive in a running notebook and in exported HTML.",
        "wrong_shape": "{name} must have shape {expected}, got {got}",
    },
    "gallery": {
        "title": "The explorers of the attention course",
        "introduction": "Every view below computes in this page: no kernel, no network. In a "
        "notebook each is a widget that takes your own data.",
        "contents": "Explorers",
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
        "both_or_neither": "give both query and key, or neither",
        "too_large": "{name} may have {rows} rows of {features} features, got shape {got}",
        "seed_allowed": "seed must be a whole number from 0, got {got}",
        "described": "At d_k = {d_k} the scores spread by {spread} without the division and by "
        "{scaled_spread} with it. The first query's largest weight is {largest} without and "
        "{scaled_largest} with; the size of the softmax's gradient is {gradient} without and "
        "{scaled_gradient} with.",
    },
    "AttentionViewer": _MAPS
    | {
        "title": "Attention maps",
        "attends": "what {token} attends to",
        "attended": "who attends to {token}",
        "bars_label": "{title}. Largest: {largest}.",
        "sentence": "sentence",
        "beside": "beside it",
        "entropy": "mean entropy of each head (nats)",
        "mean_entropy": "mean entropy",
        "described": "Layer {layer}, head {head}: {row} attends most to {largest}, "
        "entropy {entropy} of at most {most} nats. {row} to {column}: {value}.",
        "drawn": "“{name}”: {kind}, {layers} {layers:layer|layers} of {heads} {heads:head|heads}, "
        "{rows} {rows:query|queries} by {columns} {columns:key|keys}; large is layer {layer}, head "
        "{head}.",
        "no_sentences": "sentences must be packed attention maps, of the same kinds in each",
        "kind_allowed": "kind must be one of {allowed}, got {got}",
    },
    "TrainingView": _MAPS
    | {
        "title": "A training run",
        "steps": "training steps",
        "loss": "loss",
        "moment": "moment",
        "at_step": "step {step}",
        "metric": "metric",
        "log": "logarithmic loss",
        "no_metric": "no metric yet",
        "waiting": "Waiting for the first step.",
        "example": "An example of a run, until yours begins: {step} {step:step|steps} in "
        "{elapsed}, {pace} {pace:step|steps} a second.",
        "running": "Running: step {step} of {total}, {pace} {pace:step|steps} a second, {left} "
        "left.",
        "running_on": "Running: step {step}, {pace} {pace:step|steps} a second.",
        "finished": "Finished: {step} {step:step|steps} in {elapsed}, {pace} {pace:step|steps} a "
        "second.",
        "interrupted": "Interrupted after {step} {step:step|steps} in {elapsed}, {pace} "
        "{pace:step|steps} a second.",
        "asked": "Stopped as asked after {step} {step:step|steps} in {elapsed}, {pace} "
        "{pace:step|steps} a second.",
        "diverged": "Broken off after {step} {step:step|steps} in {elapsed}, {pace} "
        "{pace:step|steps} a second.",
        "seconds": "{seconds} s",
        "minutes": "{minutes} min {seconds} s",
        "hours": "{hours} h {minutes} min",
        "described": "Step {step}: loss {loss}.",
        "described_mean": "Steps {first} to {step}: mean loss {loss}.",
        "described_metric": "Metric {name}: {value} at step {step}.",
        "described_map": "Layer {layer}, head {head}: mean entropy {entropy} of at most {most} "
        "nats.",
        "curve": "{name} against training steps, the last {value}.",
        "drawn": "Loss and metrics against training steps; attention maps at moments of the run, "
        "if attention is watched.",
        "at_allowed": "at must be a step from 1 to {last}, got {got}",
        "choice_allowed": "{name} must be one of {allowed}, got {got}",
        "record_allowed": "{name} is written by a run and cannot be {got}",
    },
    "Quiz": {
        "title": "Question",
        "options": "Options",
        "answer": "Answer",
        "right": "Right.",
        "wrong": "Not quite.",
        "choose": "Choose an option first.",
        "option_allowed": "an option's index must lie between -1 and one below {count}, got {got}",
        "fixed": "{name} belongs to the question, which stays as it was asked",
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
        "fixed": "{name} belongs to the question, which stays as it was asked",
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
        "strip": "one token’s projected features, cut into heads",
        "strip_label": "{d_model} {d_model:feature|features} cut into {num_heads} "
        "{num_heads:head|heads} of {d_k}.",
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
        "hint": "In the small maps arrow keys or a click choose a head, and Enter switches it off "
        "and on.",
        "heads_label": "{num_heads} {num_heads:head|heads} as small maps, head {head} chosen, "
        "switched off: {off}. Arrow keys choose, Enter switches off and on.",
        "none": "none",
        "off_count": "{count} of {num_heads} heads",
        "head_on": "head {head}",
        "head_off": "head {head}: off",
        "map": "the chosen head",
        "map_of": "weights of head {head}",
        "query_axis": "query i",
        "key_axis": "key j",
        "token": "token",
        "feature": "feature",
        "first_features": "the first {count} features",
        "switch_off": "Switch head {head} off",
        "switch_on": "Switch head {head} on",
        "only": "Only head {head}",
        "all_on": "All heads on",
        "output": "output",
        "change": "‖change‖ / ‖output of all heads‖",
        "change_title": "how far the output moves when heads are off",
        "described": "{num_heads} {num_heads:head|heads} of d_k = {d_k} {num_heads:makes|make} "
        "{d_model} {d_model:feature|features}; {parameters} parameters, as at every count. The "
        "largest weight of head {head} is {weight}, from “{from_token}” to “{to_token}”.",
        "described_nan": "{num_heads} {num_heads:head|heads} of d_k = {d_k} "
        "{num_heads:makes|make} {d_model} {d_model:feature|features}; {parameters} parameters, as "
        "at every count. All weights of head {head} are NaN.",
        "described_off": "Switched off: {off}. The output moves by {percent} % of its length, "
        "on average over the tokens.",
        "drawn_own": "{num_heads} {num_heads:head|heads} of d_k = {d_k} {num_heads:makes|make} "
        "{d_model} {d_model:feature|features} of {n} {n:token|tokens}; {parameters} parameters, as "
        "at every count. Switched off: {off}.",
        "does_not_divide": "d_model / h = {d_model} / {num_heads} = {quotient} is no whole "
        "number: {num_heads} heads of {d_k} would use {used} features and lose {left_over}, and "
        "W_o would be given {used} in place of {d_model}. Counts that divide: {divisors}.",
        "d_model_fixed": "d_model is the width of the weights, {width}, got {got}",
        "num_heads_allowed": "num_heads must be a whole number from 1 to d_model = {d_model}, "
        "got {got}",
        "head_allowed": "heads are numbers from 0 to {last}, got {got}",
        "too_many_weights": "with {n} tokens a step can draw at most {most} heads, got {got}: give "
        "fewer heads or a shorter text",
        "tokens_count": "tokens must name the {n} {n:row|rows} of x, got {got}",
        "origin_allowed": "source and biases belong to the tensors, got {got}",
        "tensors_allowed": "tensors must be packed query, key and value (n, d_model), W_o "
        "(d_model, d_model) and b_o (d_model,)",
    },
    "AttentionStepper": {
        "title": "Attention, number by number",
        "hint": "Arrow keys step, Page Up and Page Down change the stage. Enter or a click on a "
        "number of q, k or v edits it, on ✓ or ✗ changes the mask, on any other number unfolds it.",
        "step": "step",
        "step_of": "{step} of {steps}",
        "back": "Back",
        "forward": "Next",
        "pace": "one step is",
        "pace_number": "one number",
        "pace_row": "one row",
        "pace_stage": "one stage",
        "predict": "Predict the next number",
        "restore": "Put the numbers back",
        "formula": "formula",
        "formula_label": "softmax of mask of (q k transposed over the root of d_k), times v. "
        "Now: {term}.",
        "code": "code",
        "shapes": "shapes",
        "cells": "numbers",
        "in_full": "this number in full",
        "dot": "dot product",
        "scale": "scale",
        "mask_stage": "mask",
        "softmax": "softmax",
        "sum": "weighted sum",
        "query": "query q",
        "key": "key k",
        "value": "value v",
        "mask": "mask, ✓ may attend",
        "scores": "scores",
        "scaled": "scaled scores",
        "masked": "masked scores",
        "weights": "weights",
        "output": "output",
        "token": "token",
        "may": "✓",
        "may_not": "✗",
        "summed": "{axis} is summed over",
        "each_alone": "each number by itself",
        "each_row": "each row of j by itself",
        "stays": "may attend: {value} stays",
        "hidden": "hidden: −∞",
        "nothing_seen": "all keys are hidden: 0",
        "shifted": "scores less their largest, {top}:",
        "number_dot": "score of query “{query}” with key “{key}”",
        "number_scale": "scaled score of query “{query}” with key “{key}”",
        "number_mask": "masked score of query “{query}” with key “{key}”",
        "number_softmax": "weight of query “{query}” on key “{key}”",
        "number_sum": "feature {d} of the output for “{query}”",
        "described_dot": "The score of query “{query}” with key “{key}” is {value}, the sum of "
        "{d_k} {d_k:product|products}.",
        "described_scale": "The scaled score of query “{query}” with key “{key}” is {value}: "
        "{before} divided by the root of d_k = {d_k}.",
        "described_mask": "The masked score of query “{query}” with key “{key}” is {value}: "
        "what the mask hides becomes −∞.",
        "described_softmax": "The weight of query “{query}” on key “{key}” is {value}; the "
        "weights of this query sum to {total}.",
        "described_sum": "Feature {d} of the output for “{query}” is {value}: the values’ "
        "feature {d}, each times its weight, summed.",
        "ask": "Next: {number}",
        "judge": "Check",
        "judged_right": "Right: the {number} is {value}. {right} of {asked} right so far.",
        "judged_wrong": "Off by {error}: the {number} is {value}, you said {guess}. {right} of "
        "{asked} right so far.",
        "at_the_end": "That was the last number.",
        "number_needed": "a number is needed, got “{got}”",
        "equal_rows": "{name} must hold numbers in equal rows",
        "too_large": "every number is shown, so there is room for {limit} tokens of {limit} "
        "features; {name} has shape {got}",
        "tokens_count": "{name} must name {expected} {expected:token|tokens}, got {got}",
        "stage_allowed": "stage must be one of {allowed}, got {got}",
        "pace_allowed": "pace must be one of {allowed}, got {got}",
        "place_allowed": "{name} must be a whole number in 0 … {last}, got {got}",
    },
    "PositionExplorer": {
        "title": "Positions, and a token to move",
        "hint": "On the line left and right move the chosen token, up and down choose another; "
        "the mouse or a finger drags one.",
        "line": "where the tokens stand",
        "line_label": "“{word}” is chosen and stands at position {position}. Left and right "
        "move it, up and down choose another token. All tokens: {spots}.",
        "back": "Put it back",
        "kind": "kind",
        "sinusoidal": "sinusoidal",
        "learned": "learned",
        "rope": "RoPE",
        "alibi": "ALiBi",
        "position": "position",
        "key_position": "key position j",
        "dimension": "dimension",
        "n": "positions n",
        "max_len": "trained length",
        "d_model": "d_model",
        "base": "base",
        "head": "head",
        "token": "token",
        "weight": "weight",
        "distance": "distance j − i",
        "attention": "attention of the chosen token",
        "without": "without positions",
        "at_home": "at first, position {home}",
        "at_now": "now, position {position}",
        "no_row": "no row",
        "untrained": "never trained",
        "encodings": "encodings",
        "value": "value",
        "table_sinusoidal": "encodings, added to the tokens",
        "table_learned": "learned vectors, added to the tokens",
        "table_rope": "cosine and sine of each turn",
        "table_alibi": "bias of the head, added to the scores",
        "waves_sinusoidal": "a pair of dimensions over the positions",
        "waves_learned": "two dimensions over the positions",
        "waves_rope": "cosine and sine of one pair over the positions",
        "waves_alibi": "bias of three heads, seen from the token",
        "dimension_line": "dimension {number}",
        "head_line": "head {number}",
        "similarity_sinusoidal": "similarity (cosine) against distance",
        "similarity_learned": "similarity (cosine) against distance",
        "similarity_rope": "similarity of a vector turned to both places",
        "similarity_alibi": "bias against distance",
        "row_sinusoidal": "what is added to the chosen token",
        "row_learned": "what is added to the chosen token",
        "row_rope": "how the chosen token’s query and key are turned",
        "row_alibi": "what is added to the chosen token’s scores",
        "described": "“{word}” stands at position {position}, at first at {home}.",
        "described_home": "“{word}” stands at position {position}, as at first.",
        "looks_home": "It gives itself the weight {own}, and of the others most to “{to}” at {at}: "
        "{top}.",
        "looks": "It gives itself the weight {own} (at first {own_home}), and of the others most "
        "to “{to}” at {at}: {top} (at first “{to_home}” at {at_home}: {top_home}).",
        "lost": "There is no row for position {places}: 0 … {last} were learned. The look-up "
        "fails, so there is no attention to show.",
        "unseen": "Positions from {max_len} on were never seen in training: the formula has a "
        "value there; whether a model can use it, only a trial tells.",
        "kind_allowed": "kind must be one of {allowed}, got {got}",
        "base_allowed": "base must be above 1 and at most 1000000000, got {got}",
        "even": "d_model must be even, since positions turn pairs of features, got {got}",
        "within": "{name} must be a whole number from {low} to {high}, got {got}",
        "places_count": "places must name a position for each of {count} {count:token|tokens}, got "
        "{got}",
        "places_allowed": "places must be different positions from 0 to {last}, got {got}",
    },
    "MaskExplorer": {
        "title": "Masks: who may attend to whom",
        "hint": "Arrow keys move in the left map, Enter or the mouse paints: it opens what is "
        "hidden and hides what is open. Hatched is hidden.",
        "sizes": "sizes",
        "rules": "rules: a key is seen if all of them let it be",
        "n_query": "n_query",
        "n_key": "n_key",
        "causal": "causal",
        "window": "window",
        "no_window": "none",
        "padding": "padded keys at the end",
        "align": "the last query stands at",
        "bottom-right": "the last key (bottom-right)",
        "top-left": "key n_query − 1 (top-left)",
        "fill": "hidden scores become",
        "zeros": "−∞, empty rows zero",
        "-inf": "−∞",
        "-1e9": "−1e9",
        "clear": "Take the painting away",
        "code": "code",
        "mask": "mask: 1 may attend",
        "weights": "weights",
        "query_axis": "query i",
        "key_axis": "key j",
        "query_name": "q{i}",
        "who": "who sees whom",
        "sees": "Query {i} “{token}” sees {count} of {all} {all:key|keys}:",
        "seen_by": "Key {j} “{token}” is seen by {count} of {all} {all:query|queries}:",
        "open_cell": "Query {i} may attend to key {j}.",
        "shut_cell": "Query {i} may not attend to key {j}: hidden by {rules}.",
        "painted_open": "Query {i} may attend to key {j}: painted open.",
        "rule_mask": "the given mask",
        "rule_causal": "causal",
        "rule_window": "window",
        "rule_padding": "padding",
        "rule_painted": "paint",
        "and": " and ",
        "described": "{open} of {all} {all:cell|cells} {open:is|are} open. Query {i} sees {count} "
        "of {n_key} {n_key:key|keys}.",
        "described_empty": "{count} queries see nothing: {outcome}.",
        "described_one_empty": "Query {first} sees nothing: {outcome}.",
        "outcome_zeros": "with the row cleared their weights are 0, and so is their output",
        "outcome_-inf": "the softmax of nothing but −∞ is NaN, which spreads from there",
        "outcome_-1e9": "all scores are equal, so they get the mean of all keys, hidden ones too",
        "sees_column": "sees",
        "count_column": "keys seen",
        "token": "token",
        "size_allowed": "{name} must be a whole number in {low} … {high}, got {got}",
        "one_of": "{name} must be one of {allowed}, got {got}",
        "needs_fewer": "a causal mask or a window that is aligned bottom-right needs n_query <= "
        "n_key, got {n_query} and {n_key}",
        "tokens_count": "tokens must name {expected} {expected:key|keys}, got {got}",
        "painted_allowed": "painted holds [i, j, may attend] with i and j in 0 … {last}, got {got}",
    },
}


def words_of(name: str) -> dict[str, str]:
    """Return the words of one explorer in the reader's language, which is among them."""
    table = WORDS["shared"] | WORDS[name]
    return {"language": language_spoken()} | {key: spoken(text) for key, text in table.items()}


def filled(text: str, values: Mapping[str, Any]) -> str:
    """Return a text of the table with its names filled in: `filled` of core.mjs in Python."""

    def value(found: re.Match[str]) -> str:
        name, one, more = found.groups()
        if name not in values:
            return found[0]
        got = str(values[name])
        return got if one is None else one if got == "1" else more

    return _NAME.sub(value, text)


_NAME = re.compile(r"\{(\w+)(?::([^|}]*)\|([^}]*))?\}")
