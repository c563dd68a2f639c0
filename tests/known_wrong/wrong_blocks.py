"""Norms, feed-forward and blocks as they were got wrong."""

import torch
from wrong_versions import Wrong

from attn_course import blocks
from attn_course.blocks import DecoderBlock, EncoderBlock

NORM, MODULE = "blocks.layer_norm", "blocks.LayerNorm.forward"
NORM_TEST = "test_norms.test_layer_norm_equals_torch"
EPSILON = "test_norms.test_layer_norm_has_its_epsilon_within_the_root"
ONE_TOKEN = "test_norms.test_norms_look_at_one_token_at_a_time"
RMS = "blocks.rms_norm"
RMS_TEST = "test_norms.test_rms_norm_equals_torch"
FEED, FEED_TEST = "blocks.FeedForward.forward", "test_norms.test_feed_forward_by_its_formula"
RESIDUAL = "blocks.Residual.forward"
IDENTITY = "test_blocks.test_without_its_sublayers_a_pre_norm_block_is_the_identity"
NORMALISED = "test_blocks.test_what_leaves_a_post_norm_block_is_normalised"
DECODER = "blocks.DecoderBlock.forward"
TORCH = "test_blocks.test_block_equals_torch_with_its_weights"
as_torch = {"norm": "pre", "activation": "relu", "bias": True}

SAMPLE_VARIANCE = "square().sum(dim=-1, keepdim=True) / max(x.shape[-1] - 1, 1)"
OUT = "self.W_2(self.dropout(hidden))"
PRE = "return x + self.dropout(sublayer(self.norm(x)))"
POST = "return self.norm(x + self.dropout(sublayer(x)))"
TO_ITSELF = "self.around_self(x, lambda y: attend(self.self_attention, y, y, mask, cache))"
TO_MEMORY = "self.around_cross(x, lambda y: attend(self.cross_attention, y, memory, memory_mask))"

right_init = EncoderBlock.__init__


def module_over(*dims):
    """A norm module with the statistics of other axes than the last alone."""

    def forward(self, x):
        mean = x.mean(dims, keepdim=True)
        variance = x.var(dims, correction=0, keepdim=True)
        return self.gain * (x - mean) / (variance + self.eps).sqrt()

    return forward


def one_norm_for_both(self, *sizes, **options):
    right_init(self, *sizes, **options)
    self.around_feed_forward = self.around_self


BLOCKS = [
    Wrong(
        "F1 the sample's deviation",
        {NORM: {"square().mean(dim=-1, keepdim=True)": SAMPLE_VARIANCE}},
        NORM_TEST,
    ),
    Wrong(
        "F2 epsilon outside the root",
        {NORM: {"torch.sqrt(variance + eps)": "(torch.sqrt(variance) + eps)"}},
        EPSILON,
    ),
    Wrong("not centred", {NORM: {"gain * centred": "gain * x"}}, NORM_TEST),
    Wrong(
        "the module has another epsilon",
        {MODULE: {"self.bias, self.eps)": "self.bias)"}},
        "test_norms.test_layer_norm_module_equals_the_function",
    ),
    Wrong(
        "F4 statistics over time",
        {MODULE: module_over(1)},
        ONE_TOKEN,
        {"module": blocks.LayerNorm(4)},
    ),
    Wrong(
        "F5 statistics over all but the batch",
        {MODULE: module_over(1, 2)},
        ONE_TOKEN,
        {"module": blocks.LayerNorm(4)},
    ),
    Wrong(
        "F7 RMS norm with epsilon outside",
        {RMS: {"torch.sqrt(mean_square + eps)": "(torch.sqrt(mean_square) + eps)"}},
        RMS_TEST,
    ),
    Wrong(
        "F8 squared before it is widened",
        {
            RMS: {
                "x.to(torch.promote_types(x.dtype, torch.float32))": "x",
                "keepdim=True)": "keepdim=True).float()",
            }
        },
        "test_norms.test_rms_norm_of_tiny_numbers_in_half_precision",
        {"dtype": torch.float16},
    ),
    Wrong(
        "F17 no non-linearity",
        {FEED: {"F.relu(self.W_1(x))": "self.W_1(x)"}},
        FEED_TEST,
        {"activation": "relu", "bias": True},
    ),
    Wrong(
        "F17 the non-linearity last",
        {FEED: {"F.relu(self.W_1(x))": "self.W_1(x)", OUT: f"F.relu({OUT})"}},
        FEED_TEST,
        {"activation": "relu", "bias": True},
    ),
    Wrong(
        "GELU by its approximation",
        {FEED: {"F.gelu(self.W_1(x))": "F.gelu(self.W_1(x), approximate='tanh')"}},
        FEED_TEST,
        {"activation": "gelu", "bias": True},
    ),
    Wrong(
        "gate and value swapped",
        {FEED: {"F.silu(self.W_gate(x)) * self.W_1(x)": "F.silu(self.W_1(x)) * self.W_gate(x)"}},
        FEED_TEST,
        {"activation": "swiglu", "bias": True},
    ),
    Wrong(
        "A19 the feed-forward's dropout never called",
        {FEED: {OUT: "self.W_2(hidden)"}},
        "test_norms.test_feed_forward_drops_hidden_features_in_training",
    ),
    Wrong(
        "F10 the residual from the normalised",
        {RESIDUAL: {PRE: "x = self.norm(x)\n            return x + self.dropout(sublayer(x))"}},
        IDENTITY,
        {"kind": EncoderBlock},
    ),
    Wrong(
        "F11 x overwritten before the sum",
        {RESIDUAL: {PRE: "x = self.dropout(sublayer(self.norm(x)))\n            return x + x"}},
        IDENTITY,
        {"kind": EncoderBlock},
    ),
    Wrong(
        "F13 the sum inside the sublayer",
        {RESIDUAL: {PRE: "return self.dropout(sublayer(self.norm(x) + x))"}},
        IDENTITY,
        {"kind": EncoderBlock},
    ),
    Wrong(
        "F14 post-norm keeps the raw stream",
        {RESIDUAL: {POST: "return x + self.norm(self.dropout(sublayer(x)))"}},
        NORMALISED,
        {"kind": EncoderBlock},
    ),
    Wrong(
        "post-norm before the sum",
        {RESIDUAL: {POST: "return self.norm(x) + self.dropout(sublayer(x))"}},
        NORMALISED,
        {"kind": DecoderBlock},
    ),
    Wrong(
        "pre-norm where post-norm was asked for",
        {RESIDUAL: {'self.order == "pre"': "True"}},
        NORMALISED,
        {"kind": EncoderBlock},
    ),
    Wrong(
        "post-norm where pre-norm was asked for",
        {RESIDUAL: {'self.order == "pre"': "False"}},
        IDENTITY,
        {"kind": DecoderBlock},
    ),
    Wrong(
        "dropout on the sum",
        {RESIDUAL: {PRE: "return self.dropout(x + sublayer(self.norm(x)))"}},
        "test_blocks.test_dropout_of_a_residual_is_on_what_the_sublayer_returns",
        {"norm": "pre"},
    ),
    Wrong(
        "F16 one norm for both sublayers",
        {"blocks.EncoderBlock.__init__": one_norm_for_both},
        "test_blocks.test_each_part_has_weights_of_its_own",
        {"kind": EncoderBlock, "norm": "post"},
    ),
    Wrong(
        "C19 pre-norm on the queries alone",
        {"blocks.EncoderBlock.forward": {"y, y, mask, cache": "y, x, mask, cache"}},
        "test_blocks.test_pre_norm_self_attention_sees_no_scale",
        {"kind": EncoderBlock},
    ),
    Wrong(
        "C11 cross-attention reads x",
        {DECODER: {"y, memory, memory_mask": "y, y, None"}},
        TORCH,
        as_torch | {"kind": DecoderBlock},
    ),
    Wrong(
        "B31 the memory's mask forgotten",
        {DECODER: {"y, memory, memory_mask": "y, memory, None"}},
        TORCH,
        as_torch | {"kind": DecoderBlock},
    ),
    Wrong(
        "B31 the target's mask on the memory",
        {DECODER: {"y, memory, memory_mask": "y, memory, mask"}},
        TORCH,
        as_torch | {"kind": DecoderBlock},
        error=ValueError,
    ),
    Wrong(
        "cross-attention before self-attention",
        {DECODER: {TO_ITSELF: TO_MEMORY, TO_MEMORY: TO_ITSELF}},
        TORCH,
        as_torch | {"kind": DecoderBlock},
    ),
    Wrong(
        "B16 the mask never reaches attention",
        {"blocks.attend": {"source, mask, need": "source, None, need"}},
        "test_blocks.test_the_past_of_a_block_does_not_depend_on_its_future",
        {"kind": EncoderBlock, "norm": "pre"},
    ),
]
