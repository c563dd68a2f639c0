"""The exercises of chapter 07, in the order of the lesson."""

from attn_course.checks.catalogue.listed import Listed

EXERCISES = (
    Listed("7.1", "layer_norm"),
    Listed("7.2", "FeedForward", "feed_forward"),
    Listed("7.3", "EncoderBlock", "encoder_block"),
    Listed("7.4", "PreNormBlock", "pre_norm_block"),
    Listed("7.5", "count_parameters"),
)
