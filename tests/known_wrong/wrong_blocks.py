"""Norms, feed-forward and blocks as they were got wrong."""

import torch
import torch.nn.functional as F
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

right_init = EncoderBlock.__init__


def norm_by(deviation, dim=-1):
    def norm(x, gain, bias, eps=1e-5):
        centred = x - x.mean(dim, keepdim=True)
        return gain * centred / deviation(x, eps) + bias

    return norm


def sample_deviation(x, eps):
    squares = (x - x.mean(-1, keepdim=True)).square().sum(-1, keepdim=True)
    return (squares / max(x.shape[-1] - 1, 1) + eps).sqrt()


def epsilon_outside(x, eps):
    return x.std(-1, correction=0, keepdim=True) + eps


def not_centred(x, gain, bias, eps=1e-5):
    return gain * x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt() + bias


def module_over(*dims):
    """A norm module with the statistics of other axes than the last alone."""

    def forward(self, x):
        mean = x.mean(dims, keepdim=True)
        variance = x.var(dims, correction=0, keepdim=True)
        return self.gain * (x - mean) / (variance + self.eps).sqrt()

    return forward


def rms_with_epsilon_outside(x, gain, eps=1e-6):
    return gain * x / (x.square().mean(-1, keepdim=True).sqrt() + eps)


def rms_squared_before_widening(x, gain, eps=1e-6):
    mean_square = x.square().mean(-1, keepdim=True).float()
    return gain * (x / (mean_square + eps).sqrt()).to(x.dtype)


def feed_forward_with(activate):
    def forward(self, x):
        return self.W_2(self.dropout(activate(self, x)))

    return forward


def gate_and_value_swapped(self, x):
    return F.silu(self.W_1(x)) * self.W_gate(x)


def activation_last(self, x):
    return F.relu(self.W_2(self.W_1(x)))


def residual_by(pre, post):
    def forward(self, x, sublayer):
        return (pre if self.order == "pre" else post)(self, x, sublayer)

    return forward


def right_pre(self, x, sublayer):
    return x + self.dropout(sublayer(self.norm(x)))


def right_post(self, x, sublayer):
    return self.norm(x + self.dropout(sublayer(x)))


def from_the_normalised(self, x, sublayer):
    x = self.norm(x)
    return x + self.dropout(sublayer(x))


def overwritten(self, x, sublayer):
    x = self.dropout(sublayer(self.norm(x)))
    return x + x


def sum_inside(self, x, sublayer):
    return self.dropout(sublayer(self.norm(x) + x))


def in_place(self, x, sublayer):
    with torch.no_grad():
        return x.add_(sublayer(self.norm(x)))


def keeps_the_raw_stream(self, x, sublayer):
    return x + self.norm(self.dropout(sublayer(x)))


def norm_before_the_sum(self, x, sublayer):
    return self.norm(x) + self.dropout(sublayer(x))


def dropout_on_the_sum(self, x, sublayer):
    return self.dropout(x + sublayer(self.norm(x)))


def one_norm_for_both(self, *sizes, **options):
    right_init(self, *sizes, **options)
    self.around_feed_forward = self.around_self


def keys_and_values_left_raw(self, x, mask=None, *, cache=None):
    asked = self.around_self.norm(x)
    x = x + self.self_attention(asked, x, x, mask, need_weights=False)[0]
    return self.around_feed_forward(x, self.feed_forward)


def cross_attention_with(source, mask_used):
    """A decoder block whose cross-attention reads `source(y, memory)` under another mask."""

    def forward(self, x, memory, mask=None, memory_mask=None, *, cache=None):
        x = self.around_self(x, lambda y: blocks.attend(self.self_attention, y, y, mask))
        used = mask_used(mask, memory_mask)
        x = self.around_cross(
            x, lambda y: blocks.attend(self.cross_attention, y, source(y, memory), used)
        )
        return self.around_feed_forward(x, self.feed_forward)

    return forward


def cross_attention_first(self, x, memory, mask=None, memory_mask=None, *, cache=None):
    x = self.around_cross(x, lambda y: blocks.attend(self.cross_attention, y, memory, memory_mask))
    x = self.around_self(x, lambda y: blocks.attend(self.self_attention, y, y, mask))
    return self.around_feed_forward(x, self.feed_forward)


def mask_forgotten(attention, x, source, mask, cache=None):
    return attention(x, source, source, need_weights=False, cache=cache)[0]


BLOCKS = [
    Wrong("F1 the sample's deviation", {NORM: norm_by(sample_deviation)}, NORM_TEST),
    Wrong("F2 epsilon outside the root", {NORM: norm_by(epsilon_outside)}, EPSILON),
    Wrong("not centred", {NORM: not_centred}, NORM_TEST),
    Wrong(
        "the module has another epsilon",
        {MODULE: lambda self, x: F.layer_norm(x, self.gain.shape, self.gain, self.bias)},
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
    Wrong("F7 RMS norm with epsilon outside", {RMS: rms_with_epsilon_outside}, RMS_TEST),
    Wrong(
        "F8 squared before it is widened",
        {RMS: rms_squared_before_widening},
        "test_norms.test_rms_norm_of_tiny_numbers_in_half_precision",
        {"dtype": torch.float16},
    ),
    Wrong(
        "F17 no non-linearity",
        {FEED: feed_forward_with(lambda self, x: self.W_1(x))},
        FEED_TEST,
        {"activation": "relu", "bias": True},
    ),
    Wrong(
        "F17 the non-linearity last",
        {FEED: activation_last},
        FEED_TEST,
        {"activation": "relu", "bias": True},
    ),
    Wrong(
        "GELU by its approximation",
        {FEED: feed_forward_with(lambda self, x: F.gelu(self.W_1(x), approximate="tanh"))},
        FEED_TEST,
        {"activation": "gelu", "bias": True},
    ),
    Wrong(
        "gate and value swapped",
        {FEED: feed_forward_with(gate_and_value_swapped)},
        FEED_TEST,
        {"activation": "swiglu", "bias": True},
    ),
    Wrong(
        "A19 the feed-forward's dropout never called",
        {FEED: lambda self, x: self.W_2(F.relu(self.W_1(x)))},
        "test_norms.test_feed_forward_drops_hidden_features_in_training",
    ),
    Wrong(
        "F10 the residual from the normalised",
        {RESIDUAL: residual_by(from_the_normalised, right_post)},
        IDENTITY,
        {"kind": EncoderBlock},
    ),
    Wrong(
        "F11 x overwritten before the sum",
        {RESIDUAL: residual_by(overwritten, right_post)},
        IDENTITY,
        {"kind": EncoderBlock},
    ),
    Wrong(
        "F13 the sum inside the sublayer",
        {RESIDUAL: residual_by(sum_inside, right_post)},
        IDENTITY,
        {"kind": EncoderBlock},
    ),
    Wrong(
        "F14 post-norm keeps the raw stream",
        {RESIDUAL: residual_by(right_pre, keeps_the_raw_stream)},
        NORMALISED,
        {"kind": EncoderBlock},
    ),
    Wrong(
        "post-norm before the sum",
        {RESIDUAL: residual_by(right_pre, norm_before_the_sum)},
        NORMALISED,
        {"kind": DecoderBlock},
    ),
    Wrong(
        "pre-norm where post-norm was asked for",
        {RESIDUAL: residual_by(right_pre, right_pre)},
        NORMALISED,
        {"kind": EncoderBlock},
    ),
    Wrong(
        "post-norm where pre-norm was asked for",
        {RESIDUAL: residual_by(right_post, right_post)},
        IDENTITY,
        {"kind": DecoderBlock},
    ),
    Wrong(
        "dropout on the sum",
        {RESIDUAL: residual_by(dropout_on_the_sum, right_post)},
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
        {"blocks.EncoderBlock.forward": keys_and_values_left_raw},
        "test_blocks.test_pre_norm_self_attention_sees_no_scale",
        {"kind": EncoderBlock},
    ),
    Wrong(
        "C11 cross-attention reads x",
        {DECODER: cross_attention_with(lambda y, memory: y, lambda mask, memory_mask: None)},
        TORCH,
        as_torch | {"kind": DecoderBlock},
    ),
    Wrong(
        "B31 the memory's mask forgotten",
        {DECODER: cross_attention_with(lambda y, memory: memory, lambda mask, memory_mask: None)},
        TORCH,
        as_torch | {"kind": DecoderBlock},
    ),
    Wrong(
        "B31 the target's mask on the memory",
        {DECODER: cross_attention_with(lambda y, memory: memory, lambda mask, memory_mask: mask)},
        TORCH,
        as_torch | {"kind": DecoderBlock},
        error=ValueError,
    ),
    Wrong(
        "cross-attention before self-attention",
        {DECODER: cross_attention_first},
        TORCH,
        as_torch | {"kind": DecoderBlock},
    ),
    Wrong(
        "B16 the mask never reaches attention",
        {"blocks.attend": mask_forgotten},
        "test_blocks.test_the_past_of_a_block_does_not_depend_on_its_future",
        {"kind": EncoderBlock, "norm": "pre"},
    ),
]
