"""The exercises of chapter 09, in the order of the lesson."""

from attn_course.checks.catalogue.listed import Listed

EXERCISES = (
    Listed("9.1", "next_token_targets"),
    Listed("9.2", "DecoderLM", "decoder_lm"),
    Listed("9.3", "sample_next"),
    Listed("9.4", "mask_tokens"),
)
