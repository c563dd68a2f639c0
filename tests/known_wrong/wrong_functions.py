"""The functions of the first chapters as they were got wrong."""

import torch
from wrong_versions import Wrong, known

# --- the primer ---------------------------------------------------------------------------


def silent_about_lengths(logits, targets):
    return -logits.log_softmax(-1).gather(-1, targets[:, None]).mean()


CROSS_ENTROPY = "test_primer.test_cross_entropy_equals_torch"
STEP = "test_primer.test_training_step_is_one_step_of_gradient_descent"

PRIMER = [
    Wrong(
        "cosines for dot products",
        {"primer.dot_products": known("dot_products", "cosine")},
        "test_primer.test_dot_products_of_all_pairs",
    ),
    Wrong(
        "rows and columns swapped",
        {"primer.dot_products": known("dot_products", "table-transposed")},
        "test_primer.test_dot_products_of_all_pairs",
    ),
    Wrong(
        "H8 softmax before cross-entropy",
        {"primer.cross_entropy": known("cross_entropy", "softmax-twice")},
        CROSS_ENTROPY,
    ),
    Wrong(
        "a sum for the mean",
        {"primer.cross_entropy": known("cross_entropy", "sum-not-mean")},
        CROSS_ENTROPY,
    ),
    Wrong(
        "bits for nats",
        {"primer.cross_entropy": known("cross_entropy", "base-two")},
        CROSS_ENTROPY,
    ),
    Wrong(
        "J1 exponentials overflow",
        {"primer.cross_entropy": known("cross_entropy", "overflow")},
        "test_primer.test_cross_entropy_of_huge_logits",
        {"size": 1e4},
    ),
    Wrong(
        "too few targets go unnoticed",
        {"primer.cross_entropy": silent_about_lengths},
        "test_primer.test_cross_entropy_needs_one_target_for_each_row",
    ),
    Wrong(
        "H16 gradients never zeroed",
        {"primer.training_step": known("training_step", "never-zeroed")},
        "test_primer.test_training_steps_do_not_add_their_gradients_up",
    ),
    Wrong(
        "step before backward",
        {"primer.training_step": known("training_step", "step-before-backward")},
        STEP,
    ),
    Wrong(
        "the loss as a tensor",
        {"primer.training_step": known("training_step", "tensor-returned")},
        STEP,
    ),
]

# --- the look-up, step by step ------------------------------------------------------------


TOTAL = "exponentials.sum(dim=dim, keepdim=True)"
GRADIENT = "test_lookup.test_softmax_gradient_equals_autograd"
ADDITIVE = "test_lookup.test_additive_attention_by_its_formula"
ENTROPY = "test_lookup.test_entropy_of_weights"

LOOKUP = [
    Wrong(
        "negative ids count from the end",
        {"attention.embed": lambda ids, table: table[ids]},
        "test_lookup.test_embed_refuses_ids_that_are_no_row",
        {"bad": -1},
    ),
    Wrong(
        "ids flattened",
        {"attention.embed": lambda ids, table: table[ids.flatten()]},
        "test_lookup.test_embed_looks_rows_up",
    ),
    Wrong(
        "J1 softmax without the shift",
        {"attention.softmax": known("softmax", "no-shift")},
        "test_lookup.test_softmax_of_extreme_scores",
        {"row": [1000, 1001, 999]},
    ),
    Wrong(
        "J2 shifted by max(0, the largest)",
        {"attention.softmax": known("softmax", "shift-never-negative")},
        "test_lookup.test_softmax_of_extreme_scores",
        {"row": [-1000, -1001, -1002]},
    ),
    Wrong(
        "J4 an epsilon below the line",
        {"attention.softmax": {TOTAL: f"({TOTAL} + 1e-8)"}},
        "test_lookup.test_softmax_equals_torch",
        {"dim": -1},
    ),
    Wrong(
        "softmax along the first axis",
        {"attention.softmax": known("softmax", "default-axis-counted-from-left")},
        "test_lookup.test_softmax_looks_along_the_last_axis_unless_told",
    ),
    Wrong(
        "scaled before its chapter",
        {"attention.attention_scores": known("attention_scores", "scaled")},
        "test_lookup.test_attention_scores_are_dot_products",
    ),
    Wrong(
        "C5 query, value, key",
        {"attention.project_qkv": {"x @ W_k, x @ W_v": "x @ W_v, x @ W_k"}},
        "test_lookup.test_project_qkv_equals_three_linear_maps",
    ),
    Wrong(
        "C10 the keys from the queries' matrix",
        {"attention.project_qkv": {"x @ W_k": "x @ W_q"}},
        "test_lookup.test_project_qkv_equals_three_linear_maps",
    ),
    Wrong(
        "a look-up with a scale",
        {"attention.lookup": known("lookup", "scaled")},
        "test_lookup.test_lookup_is_attention_without_scale",
    ),
    Wrong(
        "no tanh",
        {"attention.additive_attention": known("additive_attention", "no-tanh")},
        ADDITIVE,
    ),
    Wrong(
        "values reversed",
        {
            "attention.additive_attention": {
                "einsum(weights, value,": "einsum(weights, value.flip(-2),"
            }
        },
        ADDITIVE,
    ),
    Wrong(
        "entropy in bits",
        {"attention.attention_entropy": known("attention_entropy", "log2")},
        ENTROPY,
    ),
    Wrong(
        "a mean over the keys",
        {"attention.attention_entropy": known("attention_entropy", "mean-over-keys")},
        ENTROPY,
    ),
    Wrong(
        "0 · log 0 is NaN",
        {"attention.attention_entropy": known("attention_entropy", "nan-at-zero")},
        "test_lookup.test_entropy_where_weights_are_zero",
    ),
    Wrong(
        "0 · log 0 is 0, its gradient infinite",
        {"attention.attention_entropy": lambda p: torch.special.entr(p).sum(-1)},
        "test_lookup.test_entropy_where_weights_are_zero",
    ),
    Wrong(
        "one-sided difference",
        {"attention.softmax_gradient": known("softmax_gradient", "one-sided-forward")},
        GRADIENT,
    ),
    Wrong(
        "divided by one step",
        {"attention.softmax_gradient": known("softmax_gradient", "divided-by-eps")},
        GRADIENT,
    ),
    Wrong(
        "differences in float32",
        {"attention.softmax_gradient": known("softmax_gradient", "single-precision", 1)},
        GRADIENT,
    ),
    Wrong(
        "a step of its own",
        {
            "attention.softmax_gradient": {
                "scores = scores.double()": "scores, eps = scores.double(), 1e-5"
            }
        },
        "test_lookup.test_softmax_gradient_takes_the_step_it_is_given",
    ),
    Wrong(
        "the diagonal alone",
        {"attention.softmax_jacobian": known("softmax_jacobian", "own-score-only")},
        "test_lookup.test_softmax_jacobian_equals_autograd",
    ),
    Wrong(
        "no diagonal",
        {"attention.softmax_jacobian": known("softmax_jacobian", "no-diagonal")},
        "test_lookup.test_softmax_jacobian_equals_autograd",
    ),
]
