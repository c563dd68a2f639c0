"""The functions of the first chapters as they were got wrong."""

import torch
import torch.nn.functional as F
from wrong_versions import Wrong

# --- the primer ---------------------------------------------------------------------------


def no_zero_grad(model, optimizer, inputs, targets):
    loss = F.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.item()


def step_before_backward(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs), targets)
    optimizer.step()
    loss.backward()
    return loss.item()


def loss_as_a_tensor(model, optimizer, inputs, targets):
    no_zero_grad(model, optimizer, inputs, targets)
    return F.cross_entropy(model(inputs), targets)


def overflowing(logits, targets):
    probabilities = logits.exp() / logits.exp().sum(-1, keepdim=True)
    return -probabilities.gather(-1, targets[:, None]).log().mean()


def silent_about_lengths(logits, targets):
    return -logits.log_softmax(-1).gather(-1, targets[:, None]).mean()


CROSS_ENTROPY = "test_primer.test_cross_entropy_equals_torch"
STEP = "test_primer.test_training_step_is_one_step_of_gradient_descent"

PRIMER = [
    Wrong(
        "cosines for dot products",
        {"primer.dot_products": lambda a, b: F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T},
        "test_primer.test_dot_products_of_all_pairs",
    ),
    Wrong(
        "rows and columns swapped",
        {"primer.dot_products": lambda a, b: b @ a.T},
        "test_primer.test_dot_products_of_all_pairs",
    ),
    Wrong(
        "H8 softmax before cross-entropy",
        {"primer.cross_entropy": lambda logits, y: F.cross_entropy(logits.softmax(-1), y)},
        CROSS_ENTROPY,
    ),
    Wrong(
        "a sum for the mean",
        {"primer.cross_entropy": lambda logits, y: F.cross_entropy(logits, y, reduction="sum")},
        CROSS_ENTROPY,
    ),
    Wrong(
        "bits for nats",
        {"primer.cross_entropy": lambda x, y: F.cross_entropy(x, y) / torch.tensor(2.0).log()},
        CROSS_ENTROPY,
    ),
    Wrong(
        "J1 exponentials overflow",
        {"primer.cross_entropy": overflowing},
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
        {"primer.training_step": no_zero_grad},
        "test_primer.test_training_steps_do_not_add_their_gradients_up",
    ),
    Wrong("step before backward", {"primer.training_step": step_before_backward}, STEP),
    Wrong("the loss as a tensor", {"primer.training_step": loss_as_a_tensor}, STEP),
]

# --- the look-up, step by step ------------------------------------------------------------


def without_shift(scores, dim=-1):
    return scores.exp() / scores.exp().sum(dim, keepdim=True)


def shifted_by_no_less_than_zero(scores, dim=-1):
    raised = (scores - scores.amax(dim, keepdim=True).clamp(min=0)).exp()
    return raised / raised.sum(dim, keepdim=True)


def epsilon_below(scores, dim=-1):
    raised = (scores - scores.amax(dim, keepdim=True)).exp()
    return raised / (raised.sum(dim, keepdim=True) + 1e-8)


def additive(hidden=torch.tanh, values="value"):
    def attend(query, key, value, W_q, W_k, w):
        both = hidden((query @ W_q)[..., :, None, :] + (key @ W_k)[..., None, :, :])
        weights = (both @ w).softmax(-1)
        return weights @ (value if values == "value" else value.flip(-2)), weights

    return attend


def scaled_lookup(query, key, value):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return weights @ value, weights


def central(dtype=torch.float64, half_width=2.0):
    def gradient(scores, index, eps=1e-5):
        scores = scores.to(dtype)
        nudges = eps * torch.eye(len(scores), dtype=dtype)
        above = (scores + nudges).softmax(-1)[:, index]
        below = (scores - nudges).softmax(-1)[:, index]
        return ((above - below) / (half_width * eps)).double()

    return gradient


def one_sided(scores, index, eps=1e-5):
    nudges = eps * torch.eye(len(scores), dtype=scores.dtype)
    return ((scores + nudges).softmax(-1)[:, index] - scores.softmax(-1)[index]) / eps


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
        {"attention.softmax": without_shift},
        "test_lookup.test_softmax_of_extreme_scores",
        {"row": [1000, 1001, 999]},
    ),
    Wrong(
        "J2 shifted by max(0, the largest)",
        {"attention.softmax": shifted_by_no_less_than_zero},
        "test_lookup.test_softmax_of_extreme_scores",
        {"row": [-1000, -1001, -1002]},
    ),
    Wrong(
        "J4 an epsilon below the line",
        {"attention.softmax": epsilon_below},
        "test_lookup.test_softmax_equals_torch",
        {"dim": -1},
    ),
    Wrong(
        "softmax along the first axis",
        {"attention.softmax": lambda scores, dim=0: scores.softmax(dim)},
        "test_lookup.test_softmax_looks_along_the_last_axis_unless_told",
    ),
    Wrong(
        "scaled before its chapter",
        {"attention.attention_scores": lambda q, k: q @ k.mT / q.shape[-1] ** 0.5},
        "test_lookup.test_attention_scores_are_dot_products",
    ),
    Wrong(
        "C5 query, value, key",
        {"attention.project_qkv": lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_v, x @ W_k)},
        "test_lookup.test_project_qkv_equals_three_linear_maps",
    ),
    Wrong(
        "C10 the keys from the queries' matrix",
        {"attention.project_qkv": lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_q, x @ W_v)},
        "test_lookup.test_project_qkv_equals_three_linear_maps",
    ),
    Wrong(
        "a look-up with a scale",
        {"attention.lookup": scaled_lookup},
        "test_lookup.test_lookup_is_attention_without_scale",
    ),
    Wrong("no tanh", {"attention.additive_attention": additive(lambda x: x)}, ADDITIVE),
    Wrong("values reversed", {"attention.additive_attention": additive(values="-")}, ADDITIVE),
    Wrong(
        "entropy in bits",
        {"attention.attention_entropy": lambda p: -(p * p.log2()).sum(-1)},
        ENTROPY,
    ),
    Wrong(
        "a mean over the keys",
        {"attention.attention_entropy": lambda p: -(p * p.log()).mean(-1)},
        ENTROPY,
    ),
    Wrong(
        "0 · log 0 is NaN",
        {"attention.attention_entropy": lambda p: -(p * p.log()).sum(-1)},
        "test_lookup.test_entropy_where_weights_are_zero",
    ),
    Wrong(
        "0 · log 0 is 0, its gradient infinite",
        {"attention.attention_entropy": lambda p: torch.special.entr(p).sum(-1)},
        "test_lookup.test_entropy_where_weights_are_zero",
    ),
    Wrong("one-sided difference", {"attention.softmax_gradient": one_sided}, GRADIENT),
    Wrong(
        "divided by one step",
        {"attention.softmax_gradient": central(half_width=1.0)},
        GRADIENT,
    ),
    Wrong(
        "differences in float32",
        {"attention.softmax_gradient": central(torch.float32)},
        GRADIENT,
    ),
    Wrong(
        "a step of its own",
        {"attention.softmax_gradient": lambda s, index, eps=1e-5: central()(s, index)},
        "test_lookup.test_softmax_gradient_takes_the_step_it_is_given",
    ),
    Wrong(
        "the diagonal alone",
        {"attention.softmax_jacobian": lambda p: torch.diag_embed(p * (1 - p))},
        "test_lookup.test_softmax_jacobian_equals_autograd",
    ),
    Wrong(
        "no diagonal",
        {"attention.softmax_jacobian": lambda p: -p[..., :, None] * p[..., None, :]},
        "test_lookup.test_softmax_jacobian_equals_autograd",
    ),
]
