"""Multi-head attention as it was got wrong: heads, roles, batches, groups, positions, cache."""

import torch
from wrong_attention import SCORES_DROPPED
from wrong_versions import REJECTED, Wrong

from attn_course import multihead
from attn_course.multihead import MultiHeadAttention
from attn_course.positions import RotaryPositions, apply_rope

SPLIT, MERGE, SHARE = "multihead.split_heads", "multihead.merge_heads", "multihead.share_heads"
FORWARD = "multihead.MultiHeadAttention.forward"
SDPA = "multihead.scaled_dot_product_attention"
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


CUT = 'rearrange(x, "b n (h d) -> b h n d", h=num_heads)'
LAID = 'rearrange(x, "b h n d -> b n (h d)")'
BY_VIEW = {LAID: "x.reshape(len(x), x.shape[2], -1)"}


def split_floored(x, num_heads):
    d = x.shape[-1] // max(num_heads, 1)
    return x[..., : d * num_heads].unflatten(-1, (num_heads, d)).transpose(1, 2)


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


def turned_across_heads(self, x, positions):
    whole = apply_rope(multihead.merge_heads(x), positions, self.base)
    return multihead.split_heads(whole, x.shape[1])


def rounded_to_float32(pairs):
    with torch.no_grad():
        for target, source in pairs:
            if target is not None:
                target.copy_(source.float())


def fused_features_first(W_v, W_o, num_heads):
    values = W_v.unflatten(1, (-1, num_heads)).permute(2, 0, 1)
    return values @ W_o.unflatten(0, (-1, num_heads)).transpose(0, 1)


MULTIHEAD = [
    Wrong(
        "C1 heads split and merged by view",
        {SPLIT: {CUT: "x.reshape(len(x), num_heads, x.shape[1], -1)"}, MERGE: BY_VIEW},
        TOKENS_ARE_A_SET,
    ),
    Wrong("C2 heads merged by view", {MERGE: BY_VIEW}, ITSELF_ALONE),
    Wrong(
        "C4 (d h) for (h d)",
        {SPLIT: {"(h d)": "(d h)"}, MERGE: {"(h d)": "(d h)"}},
        TORCH,
        square,
    ),
    Wrong(
        "C5 keys and values unpacked the wrong way round",
        {FORWARD: {"self.W_k(key)": "self.W_v(key)", "self.W_v(value)": "self.W_k(value)"}},
        TORCH,
        square,
    ),
    Wrong(
        "C7 heads averaged", {MERGE: {LAID: "x.mean(1).repeat(1, 1, x.shape[1])"}}, TORCH, square
    ),
    Wrong(
        "C10 keys from the queries' layer",
        {FORWARD: {"self.W_k(key)": "self.W_q(key)"}},
        TORCH,
        square,
    ),
    Wrong(
        "no output projection",
        {FORWARD: {"self.W_o(merge_heads(output))": "merge_heads(output)"}},
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
        {SHARE: {"(h_kv g)": "(g h_kv)"}},
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
        "A2 scaled by the model's width",
        {SDPA: {"sqrt(d_k)": "sqrt(d_k * query.shape[1])"}},
        TORCH,
        square,
    ),
    Wrong(
        "A16 dropout in evaluation",
        {FORWARD: {" if self.training else 0.0": ""}},
        DROPOUT,
        with_weights,
    ),
    Wrong(
        "A19 dropout never on",
        {FORWARD: {"self.dropout_p if self.training else 0.0": "0.0"}},
        DROPOUT,
        with_weights,
    ),
    Wrong(
        "A17 dropout on the scores",
        {SDPA: SCORES_DROPPED},
        "test_multihead.test_dropout_is_on_the_weights_not_on_the_scores",
    ),
    Wrong(
        "B25 masks of samples taken for masks of heads",
        {"multihead.lift_mask": {"b i j -> b 1 i j": "b i j -> 1 b i j"}},
        "test_multihead.test_a_mask_of_samples_is_not_one_of_heads",
    ),
    Wrong(
        "E8 values turned",
        {
            FORWARD: {
                "share_heads(v,": "share_heads(self.position.rotate(v, torch.arange(v.shape[2])),"
            }
        },
        ROPE,
        with_weights,
    ),
    Wrong(
        "E8 turned twice",
        {ROTATE: {"positions, self.base": "2 * positions, self.base"}},
        ROPE,
        with_weights,
    ),
    Wrong("E5 turned across heads", {ROTATE: turned_across_heads}, ROPE, with_weights),
    Wrong(
        "E13 the cache's length ignored",
        {FORWARD: {"past=0 if cache is None else cache.length": "past=0"}},
        CACHED,
        chunks,
    ),
    Wrong(
        "E14 the cache's length counted twice",
        {FORWARD: {"else cache.length": "else 2 * cache.length"}},
        CACHED,
        chunks,
    ),
    Wrong(
        "D11 positions made on the CPU",
        {ROTATE: {"positions, self.base": "torch.arange(len(positions)), self.base"}},
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
        {"multihead.ablate_heads": {"deepcopy(attention)": "attention"}},
        ABLATED,
        {"heads": [1]},
    ),
    Wrong(
        "outputs ablated in the place of heads",
        {
            "multihead.ablate_heads": {
                "unflatten(1,": "unflatten(0,",
                "parts[:, sorted(heads)]": "parts[sorted(heads)]",
            }
        },
        ABLATED,
        {"heads": [1]},
    ),
    Wrong(
        "nn.Linear's own start",
        {"multihead.projection": {"nn.init.xavier_uniform_(linear.weight)": "pass"}},
        "test_multihead_options.test_scores_start_with_variance_one",
    ),
    Wrong(
        "biases that start at random",
        {"multihead.projection": {"nn.init.zeros_(": "nn.init.normal_("}},
        "test_multihead_options.test_projections_start_as_xavier_says",
        {"d_in": 64, "d_out": 256},
        error=REJECTED,
    ),
]
