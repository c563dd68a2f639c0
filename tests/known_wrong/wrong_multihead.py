"""Multi-head attention as it was got wrong: heads, roles, batches, groups, positions, cache."""

from copy import deepcopy

import torch
from torch import nn
from wrong_versions import REJECTED, Wrong

from attn_course import multihead
from attn_course.attention import scaled_dot_product_attention
from attn_course.multihead import MultiHeadAttention
from attn_course.positions import RotaryPositions, apply_rope

SPLIT, MERGE, SHARE = "multihead.split_heads", "multihead.merge_heads", "multihead.share_heads"
FORWARD = "multihead.MultiHeadAttention.forward"
SDPA = "multihead.scaled_dot_product_attention"
POSITIONS = "multihead.MultiHeadAttention._put_positions_in"
ROTATE = "positions.RotaryPositions.rotate"

TORCH = "test_multihead.test_equals_torch_with_its_weights"
square = {"bias": True, "kdim": None, "vdim": None, "need_weights": True}
TOKENS_ARE_A_SET = "test_multihead.test_without_mask_and_position_tokens_are_a_set"
ITSELF_ALONE = "test_multihead.test_a_token_that_sees_itself_alone_depends_on_itself_alone"
GROUPED = "test_multihead.test_grouped_queries_equal_full_heads_with_repeated_weights"
DROPOUT = "test_multihead.test_dropout_in_training_only"
SAMPLES = "test_multihead.test_samples_do_not_see_each_other"
ROPE = "test_multihead_options.test_rope_turns_queries_and_keys_of_each_head_and_no_values"
CACHED = "test_multihead_options.test_cached_equals_uncached"
ABLATED = "test_multihead.test_ablated_heads_add_nothing"
with_weights = {"need_weights": True}
chunks = {
    "chunks": (2, 3, 2),
    "position": RotaryPositions(),
    "num_kv_heads": 2,
    "need_weights": True,
}

right_forward = MultiHeadAttention.forward
right_positions = MultiHeadAttention._put_positions_in
right_projection = multihead.projection


def split_by_view(x, num_heads):
    b, n, d_model = x.shape
    return x.reshape(b, num_heads, n, d_model // num_heads)


def merge_by_view(x):
    b, h, n, d = x.shape
    return x.reshape(b, n, h * d)


def split_features_first(x, num_heads):
    b, n, d_model = x.shape
    return x.reshape(b, n, d_model // num_heads, num_heads).permute(0, 3, 1, 2)


def merge_features_first(x):
    return x.permute(0, 2, 3, 1).flatten(2)


def split_floored(x, num_heads):
    d = x.shape[-1] // max(num_heads, 1)
    return x[..., : d * num_heads].unflatten(-1, (num_heads, d)).transpose(1, 2)


def heads_averaged(x):
    return x.mean(1).repeat(1, 1, x.shape[1])


def forward_with(**swapped):
    """The right forward, run with some attributes of the module swapped."""

    def forward(self, *inputs, **options):
        before = {name: getattr(self, name) for name in swapped}
        after = {name: swap(self) for name, swap in swapped.items()}
        for name, value in after.items():
            setattr(self, name, value)
        try:
            return right_forward(self, *inputs, **options)
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    return forward


def roles_reversed(self, query, key, value, mask=None, **options):
    output, weights = right_forward(self, key, query, query, **options)
    n = min(query.shape[1], output.shape[1])
    return torch.nn.functional.pad(output[:, :n], (0, 0, 0, query.shape[1] - n)), weights


def sequence_first(self, query, key, value, mask=None, **options):
    output, weights = right_forward(
        self, *(x.transpose(0, 1) for x in (query, key, value)), **options
    )
    return output.transpose(0, 1), weights


def repeated_along_the_sequence(x, num_heads):
    b, h_kv, n, d = x.shape
    return x.repeat_interleave(num_heads // h_kv, dim=2).reshape(b, num_heads, n, d)


class ValuesTurned(nn.Module):
    """A projection of values that puts positions into them."""

    def __init__(self, linear, num_heads):
        super().__init__()
        self.linear, self.num_heads, self.in_features = linear, num_heads, linear.in_features

    def forward(self, x):
        heads = multihead.split_heads(self.linear(x), self.num_heads)
        return multihead.merge_heads(apply_rope(heads, torch.arange(x.shape[1]), 100.0))


def turned_twice(self, x, positions):
    return apply_rope(apply_rope(x, positions, self.base), positions, self.base)


def turned_across_heads(self, x, positions):
    whole = apply_rope(multihead.merge_heads(x), positions, self.base)
    return multihead.split_heads(whole, x.shape[1])


def scaled_by_the_width_of_the_model(query, key, value, mask=None, **options):
    return scaled_dot_product_attention(query / query.shape[1] ** 0.5, key, value, mask, **options)


def dropout_on_the_scores(query, key, value, mask=None, *, dropout_p=0.0, **options):
    scores = torch.nn.functional.dropout(query @ key.mT / query.shape[-1] ** 0.5, dropout_p)
    return scores.softmax(-1) @ value, scores.softmax(-1)


def lift_samples_into_the_heads_place(mask):
    return mask.reshape((1,) * (4 - mask.ndim) + mask.shape)


def rounded_to_float32(pairs):
    with torch.no_grad():
        for target, source in pairs:
            if target is not None:
                target.copy_(source.float())


def fused_features_first(W_v, W_o, num_heads):
    values = W_v.unflatten(1, (-1, num_heads)).permute(2, 0, 1)
    return values @ W_o.unflatten(0, (-1, num_heads)).transpose(0, 1)


def ablated_in_place(attention, heads):
    columns = attention.W_o.weight.unflatten(1, (attention.num_heads, -1))
    with torch.no_grad():
        columns[:, list(heads)] = 0.0
    return attention


def rows_ablated(attention, heads):
    ablated = deepcopy(attention)
    rows = ablated.W_o.weight.unflatten(0, (attention.num_heads, -1))
    with torch.no_grad():
        rows[list(heads)] = 0.0
    return ablated


def plain_linear(d_in, d_out, *, bias=True):
    return nn.Linear(d_in, d_out, bias=bias)


def bias_started_at_random(d_in, d_out, *, bias=True):
    linear = right_projection(d_in, d_out, bias=bias)
    return nn.init.normal_(linear.bias) is not None and linear


MULTIHEAD = [
    Wrong(
        "C1 heads split and merged by view",
        {SPLIT: split_by_view, MERGE: merge_by_view},
        TOKENS_ARE_A_SET,
    ),
    Wrong("C2 heads merged by view", {MERGE: merge_by_view}, ITSELF_ALONE),
    Wrong(
        "C4 (d h) for (h d)",
        {SPLIT: split_features_first, MERGE: merge_features_first},
        TORCH,
        square,
    ),
    Wrong(
        "C5 keys and values unpacked the wrong way round",
        {FORWARD: forward_with(W_k=lambda self: self.W_v, W_v=lambda self: self.W_k)},
        TORCH,
        square,
    ),
    Wrong("C7 heads averaged", {MERGE: heads_averaged}, TORCH, square),
    Wrong(
        "C10 keys from the queries' layer",
        {FORWARD: forward_with(W_k=lambda self: self.W_q)},
        TORCH,
        square,
    ),
    Wrong(
        "no output projection",
        {FORWARD: forward_with(W_o=lambda self: nn.Identity())},
        TORCH,
        square,
    ),
    Wrong(
        "C11 queries from the memory",
        {FORWARD: roles_reversed},
        "test_multihead.test_every_weight_has_torchs_gradient",
        {"bias": True, "kdim": None, "vdim": None},
    ),
    Wrong(
        "C13 head width floored",
        {SPLIT: split_floored},
        "test_multihead.test_features_that_cannot_be_split",
        {"num_heads": 3},
    ),
    Wrong(
        "C13 head counts never checked",
        {"multihead.check_divides": lambda *sizes: None},
        "test_multihead_options.test_settings_that_cannot_be",
        {"arguments": {"d_model": 10, "num_heads": 3}, "words": "possible"},
    ),
    Wrong("C14 sequence first", {FORWARD: sequence_first}, SAMPLES),
    Wrong(
        "C16 key heads tiled",
        {SHARE: lambda x, h: x.repeat(1, h // x.shape[1], 1, 1)},
        GROUPED,
        {"num_kv_heads": 2, "need_weights": True},
    ),
    Wrong(
        "C17 keys repeated along the sequence",
        {SHARE: repeated_along_the_sequence},
        GROUPED,
        {"num_kv_heads": 2, "need_weights": True},
    ),
    Wrong(
        "A2 scaled by the model's width", {SDPA: scaled_by_the_width_of_the_model}, TORCH, square
    ),
    Wrong(
        "A16 dropout in evaluation",
        {FORWARD: forward_with(training=lambda self: True)},
        DROPOUT,
        with_weights,
    ),
    Wrong(
        "A19 dropout never on",
        {FORWARD: forward_with(dropout_p=lambda self: 0.0)},
        DROPOUT,
        with_weights,
    ),
    Wrong(
        "A17 dropout on the scores",
        {SDPA: dropout_on_the_scores},
        "test_multihead.test_dropout_is_on_the_weights_not_on_the_scores",
    ),
    Wrong(
        "B25 masks of samples taken for masks of heads",
        {"multihead.lift_mask": lift_samples_into_the_heads_place},
        "test_multihead.test_a_mask_of_samples_is_not_one_of_heads",
    ),
    Wrong(
        "E8 values turned",
        {FORWARD: forward_with(W_v=lambda self: ValuesTurned(self.W_v, self.num_heads))},
        ROPE,
        with_weights,
    ),
    Wrong("E8 turned twice", {ROTATE: turned_twice}, ROPE, with_weights),
    Wrong("E5 turned across heads", {ROTATE: turned_across_heads}, ROPE, with_weights),
    Wrong(
        "E13 the cache's length ignored",
        {POSITIONS: lambda self, q, k, past: right_positions(self, q, k, 0)},
        CACHED,
        chunks,
    ),
    Wrong(
        "E14 the cache's length counted twice",
        {POSITIONS: lambda self, q, k, past: right_positions(self, q, k, 2 * past)},
        CACHED,
        chunks,
    ),
    Wrong(
        "D11 positions made on the CPU",
        {ROTATE: lambda self, x, at: apply_rope(x, torch.arange(len(at)), self.base)},
        "test_multihead_options.test_positions_are_made_where_the_tokens_are",
        {"position": RotaryPositions(), "need_weights": True},
        error=RuntimeError,
    ),
    Wrong(
        "weights rounded to float32 on their way",
        {"torch_layers.copy_pairs": rounded_to_float32},
        "test_multihead.test_there_and_back_gives_the_same_weights_and_settings",
    ),
    Wrong(
        "values and outputs fused with the heads in (d h) order",
        {"multihead.fuse_value_output": fused_features_first},
        "test_multihead.test_values_and_outputs_fuse_into_one_matrix_a_head",
    ),
    Wrong(
        "heads ablated in the module that was given",
        {"multihead.ablate_heads": ablated_in_place},
        ABLATED,
        {"heads": [1]},
    ),
    Wrong(
        "outputs ablated in the place of heads",
        {"multihead.ablate_heads": rows_ablated},
        ABLATED,
        {"heads": [1]},
    ),
    Wrong(
        "nn.Linear's own start",
        {"multihead.projection": plain_linear},
        "test_multihead_options.test_scores_start_with_variance_one",
    ),
    Wrong(
        "biases that start at random",
        {"multihead.projection": bias_started_at_random},
        "test_multihead_options.test_projections_start_as_xavier_says",
        {"d_in": 64, "d_out": 256},
        error=REJECTED,
    ),
]
